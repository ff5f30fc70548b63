"""Context of an agent in the database: what its turns remembered, on any worker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._engine import current_engine
from toolcrib.adapters.dbos._work_tables import applied_changes as _applied
from toolcrib.adapters.dbos._work_tables import contexts as _contexts
from toolcrib.calls import StoredFields, versioned
from toolcrib.database import Database
from toolcrib.durable import TurnExecution, current_execution
from toolcrib.turns import Agent, ContextItem, ContextPool, ContextQueue


class SharedContext:
    """Keeps the queue and the pool of an agent in step with the database.

    What a turn does to them is gathered, and applied in the database when the turn is recorded: exactly once.
    """

    def __init__(self, agent: Agent, *, watched: bool = False) -> None:
        """Keep an agent's context.

        Args:
            watched: A branch: it has the hooks of what it was branched from.
        """
        self._agent, self._queue, self._pool = agent, agent.context_queue, agent.context_pool
        self._version = 0
        self._database: Database | None = None  # which the version is of
        self._running: list[TurnExecution] = []
        self._first = _state(self._queue, self._pool)
        if not watched:
            _watch(self._queue, self._pool)

    # --- a turn's way

    async def enter(self, execution: TurnExecution) -> None:
        """Refresh the agent's context for a turn that begins."""
        await self.bring(current_engine().client)
        self._running.append(execution)

    async def bring(self, client: Client) -> None:
        """Refresh the agent's context."""
        if self._database != client.database:
            self._database, self._version = client.database, 0
        found = await asyncio.to_thread(self._read, client)
        if found is not None:
            self._version, state = found[0], StoredFields("AgentContext", found[1])
            for other in self._running:  # what they did is not in the database yet
                state = self._changed(state, other.changes)
            self._queue.replace(map(ContextItem[Any].from_dict, state["queue"]))
            self._pool.replace(map(ContextItem[Any].from_dict, state["pool"]))

    def leave(self, execution: TurnExecution) -> None:
        """Record that a turn ended."""
        if execution in self._running:
            self._running.remove(execution)

    def _read(self, client: Client) -> tuple[int, Mapping[str, Any]] | None:
        query = sa.select(_contexts.c.version, _contexts.c.context)
        newer = sa.and_(_contexts.c.agent == self._key(client), _contexts.c.version > self._version)
        with client.engine.begin() as connection:
            row = connection.execute(query.where(newer)).first()
        return None if row is None else (row.version, json.loads(row.context))

    async def apply(self, client: Client, work_id: str, changes: list[dict[str, Any]]) -> None:
        """Make a turn's changes in the database, unless they are made."""
        if changes:
            await asyncio.to_thread(self._apply, client, work_id, changes)

    def _apply(self, client: Client, work_id: str, changes: list[dict[str, Any]]) -> None:
        self._begin(client)
        row = _contexts.c.agent == self._key(client)
        try:
            with client.engine.begin() as connection:
                connection.execute(sa.insert(_applied).values(work_id=work_id, agent=self._key(client)))
                query = sa.select(_contexts.c.version, _contexts.c.context).where(row).with_for_update()
                version, text = connection.execute(query).one()
                before = StoredFields("AgentContext", json.loads(text))
                changed = json.dumps(self._changed(before, changes), ensure_ascii=False)
                connection.execute(sa.update(_contexts).where(row).values(version=version + 1, context=changed))
        except IntegrityError:  # an earlier execution of the same turn made them
            return

    def _begin(self, client: Client) -> None:
        """Insert the row of the agent, with what its context had when it was made durable."""
        with client.engine.begin() as connection:
            if connection.execute(sa.select(_contexts.c.version).where(_contexts.c.agent == self._key(client))).first():
                return
        first = json.dumps(self._first, ensure_ascii=False)
        try:
            with client.engine.begin() as connection:
                connection.execute(sa.insert(_contexts).values(agent=self._key(client), version=1, context=first))
        except IntegrityError:  # another worker did
            return

    def _key(self, client: Client) -> str:
        return client.database.scoped(self._agent.name)

    async def store(self, client: Client) -> None:
        """Write the context down as it is, for an agent that is not in the database yet."""
        await asyncio.to_thread(self._begin, client)

    def _changed(self, state: Mapping[str, Any], changes: list[dict[str, Any]]) -> dict[str, Any]:
        """Return a state after changes, within the limits of queue and pool."""
        queue, pool = list(state["queue"]), {item["id"]: item for item in state["pool"]}
        for change in changes:
            match change["op"]:
                case "append":
                    queue.append(change["item"])
                case "clear_queue":
                    queue.clear()
                case "add":
                    pool.pop(change["item"]["id"], None)
                    pool[change["item"]["id"]] = change["item"]
                case "remove":
                    pool.pop(change["id"], None)
                case _:
                    pool.clear()
        of_queue, of_pool = self._queue.limit, self._pool.limit
        items = list(pool.values())
        return versioned(
            "AgentContext",
            {"queue": queue[-of_queue:] if of_queue else queue, "pool": items[-of_pool:] if of_pool else items},
        )


def _state(queue: ContextQueue, pool: ContextPool) -> dict[str, Any]:
    items = {"queue": [item.to_dict() for item in queue], "pool": [item.to_dict() for item in pool]}
    return versioned("AgentContext", items)


def _watch(queue: ContextQueue, pool: ContextPool) -> None:
    """Gather what turns do to a context, for what they are recorded with."""

    async def appended(queue: Any, items: Any) -> None:
        _gather(*({"op": "append", "item": item.to_dict()} for item in items))

    async def emptied(queue: Any) -> None:
        _gather({"op": "clear_queue"})

    async def added(pool: Any, item: Any) -> None:
        _gather({"op": "add", "item": item.to_dict()})

    async def removed(pool: Any, item: Any) -> None:
        _gather({"op": "remove", "id": item.id})

    async def drained(pool: Any) -> None:
        _gather({"op": "clear_pool"})

    queue.after_append(appended)
    queue.after_clear(emptied)
    pool.after_add(added)
    pool.after_remove(removed)
    pool.after_clear(drained)


def _gather(*changes: dict[str, Any]) -> None:
    execution = current_execution.get()
    if execution is not None and not execution.over:
        execution.changes.extend(changes)


def forget_changes(connection: sa.Connection, work_id: str) -> None:
    """Allow a turn that begins again to change the context again."""
    connection.execute(sa.delete(_applied).where(_applied.c.work_id == work_id))

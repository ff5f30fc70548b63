"""Client of a Restate server: it enqueues turns, reads their outcomes, cancels and lists them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote
from uuid import uuid4

import httpx2

from toolcrib._numbers import require_number
from toolcrib.approvals import ApprovalEntry
from toolcrib.durable import AnswerStore, DurableFailure, answered_entries
from toolcrib.errors import EngineError, explain_options

MAIN = "run"
"""The handler that runs a turn."""

_SERVICE = "toolcrib."
_NOT_READY = 470  # of a turn that has not ended
_CANCELLED = _ENDED = 409
_UNKNOWN = 404
_SECONDS = 30.0  # for a reply


def service_of(agent_name: str) -> str:
    """Return the name of the service of an agent's turns in Restate."""
    return f"{_SERVICE}{agent_name}"


@dataclass(frozen=True, slots=True)
class RestateTurn:
    """A turn as a Restate server lists it.

    Attributes:
        id: The turn's id.
        agent: The agent that it is for.
        status: How far it is, in Restate's words: `scheduled`, `running`, `backing-off`, `suspended` (it waits for a
            person), `paused`, `completed`.
        created_at: When it was put.
        problem: The error of the last try, or of the turn: also that no worker of it can be reached.
    """

    id: str
    agent: str
    status: str
    created_at: datetime
    problem: str = ""


@explain_options()
class RestateClient:
    """A connection to a Restate server. It runs nothing, and there may be any number of them.

    Args:
        ingress: The URL of the server's ingress.
        admin: The URL of its admin API, by which turns are cancelled and listed; it must not be open to others.
        approvals: Where requests wait and answers are found, the same for all workers and clients.
    """

    def __init__(
        self,
        ingress: str = "http://127.0.0.1:8080",
        admin: str = "http://127.0.0.1:9070",
        *,
        approvals: AnswerStore,
    ) -> None:
        self.ingress, self.admin, self.approvals = ingress.rstrip("/"), admin.rstrip("/"), approvals
        self._http = httpx2.AsyncClient(timeout=_SECONDS)
        self._settled: set[tuple[str, datetime | None]] = set()

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def __aenter__(self) -> RestateClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def register(self, worker: str) -> None:
        """Register the URL of a worker, which runs its agents' turns from then on.

        Turns that have begun stay with the URL that they began at; those that wait begin at the newest one.
        """
        await self._sent("POST", f"{self.admin}/deployments", {"uri": worker, "force": True})

    # --- one turn

    async def enqueue(self, agent: str, turn_id: str, data: Mapping[str, Any], delay: float | None = None) -> None:
        """Enqueue a turn; one of an id that the server knows is not enqueued again."""
        query = "" if delay is None else f"?delay={int(delay * 1000)}ms"
        await self._sent("POST", f"{self._turn(agent, turn_id)}/{MAIN}/send{query}", data)

    async def record(self, agent: str, turn_id: str) -> dict[str, Any] | None:
        """Return the record of a turn that has ended; None while it has not.

        Raises:
            DurableFailure: It was cancelled, or failed outside of its tool.
            EngineError: The server knows no turn of this id.
        """
        reply = await self._output(agent, turn_id)
        if reply.status_code == _NOT_READY:
            return None
        if reply.status_code == _UNKNOWN:
            raise EngineError(f"there is no turn {turn_id} of the agent `{agent}` at {self.ingress}")
        if reply.is_success:
            return reply.json()
        if reply.status_code == _CANCELLED:
            raise DurableFailure("Cancelled", f"{turn_id} was cancelled")
        raise DurableFailure("Failed", f"{turn_id}: {_message(reply)}")

    async def ask(self, agent: str, turn_id: str, handler: str, about: Any = None) -> Any:
        """Return the answer of another handler of a turn."""
        reply = await self._sent("POST", f"{self._turn(agent, turn_id)}/{handler}", about)
        return reply.json() if reply.content else None

    async def cancel(self, agent: str, turn_id: str) -> None:
        """Stop a turn however far it is: its tool, or its wait for a person; one that has ended stays as it is."""
        await self._change("cancel", agent, turn_id, unless=_ENDED)

    async def pause(self, agent: str, turn_id: str) -> None:
        """Keep a turn that runs, or fails at each try, from being tried again, until it is resumed.

        A call that runs is not stopped; what it comes to is kept.

        Raises:
            EngineError: The server knows no turn of this id, or it does not run.
        """
        await self._change("pause", agent, turn_id)

    async def resume(self, agent: str, turn_id: str, *, at_newest: bool = False) -> None:
        """Resume a turn that is paused, or try one that waits for its next try at once.

        Args:
            at_newest: Resume it at the newest deployment of its agent, in place of the one that it began at.

        Raises:
            EngineError: The server knows no turn of this id, or it has ended.
        """
        await self._change("resume", agent, turn_id, "?deployment=latest" if at_newest else "")

    async def fork(self, agent: str, turn_id: str) -> str:
        """Put a turn like another one, which stays as it is, and return its id: it is a new call, under all gates.

        Raises:
            EngineError: The server knows no turn of this id, or has dropped its journal, which it keeps for a day after
                the turn has ended.
        """
        invocation = await self._invocation(agent, turn_id)
        query = f"SELECT entry_json FROM sys_journal WHERE id = {_text(invocation)} AND index = 0"
        entries = await self._query(query)
        if not entries or not entries[0].get("entry_json"):
            raise EngineError(f"the server at {self.admin} no longer has a journal of the turn {turn_id}: put it again")
        data = json.loads(bytes(json.loads(entries[0]["entry_json"])["Command"]["Input"]["payload"]))
        fork_id = str(uuid4())
        await self.enqueue(agent, fork_id, {**data, "turn": {**data["turn"], "uuid": fork_id}})
        return fork_id

    async def _change(self, verb: str, agent: str, turn_id: str, query: str = "", unless: int = 0) -> None:
        """Change the state of a turn; a refusal with the status `unless` counts as done."""
        invocation = await self._invocation(agent, turn_id)
        url = f"{self.admin}/invocations/{invocation}/{verb}{query}"
        reply = await self._reply("PATCH", url)
        if not reply.is_success and reply.status_code != unless:
            raise _refused("PATCH", url, reply)

    async def _invocation(self, agent: str, turn_id: str) -> str:
        """Return the id by which the server knows a turn; raises EngineError where it does not."""
        where = f"target_service_name = {_text(service_of(agent))} AND target_service_key = {_text(turn_id)}"
        found = await self._query(f"SELECT id FROM sys_invocation WHERE {where} AND target_handler_name = '{MAIN}'")
        if not found:
            raise EngineError(f"there is no turn {turn_id} of the agent `{agent}` at {self.admin}")
        return found[0]["id"]

    # --- all of them

    @explain_options()
    async def turns(
        self,
        *,
        agent: str | None = None,
        turn_id: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        start: int = 0,
    ) -> tuple[RestateTurn, ...]:
        """Return turns, newest first.

        Args:
            agent: Those of this agent.
            turn_id: The one of this id.
            status: Those with this status; see `RestateTurn`.
            since: Those that were put then or later, with a time zone.
            until: Those that were put before then.
            limit: The most that are returned.
            start: How many are left out before the first.
        """
        require_number("turns", "limit", limit, least=1)
        require_number("turns", "start", start, least=0)
        service = "LIKE 'toolcrib.%'" if agent is None else f"= {_text(service_of(agent))}"
        where = f"target_service_name {service} AND target_handler_name = '{MAIN}'"
        for column, value in (("target_service_key", turn_id), ("status", status)):
            where += "" if value is None else f" AND {column} = {_text(value)}"
        for sign, time in ((">=", since), ("<", until)):
            where += "" if time is None else f" AND created_at {sign} TIMESTAMP {_text(_in_utc(time))}"
        columns = "target_service_name, target_service_key, status, created_at, last_failure, completion_failure"
        rows = await self._query(
            f"SELECT {columns} FROM sys_invocation WHERE {where} "
            f"ORDER BY created_at DESC, id LIMIT {limit} OFFSET {start}"
        )
        return tuple(
            RestateTurn(
                row["target_service_key"],
                row["target_service_name"].removeprefix(_SERVICE),
                row["status"],
                datetime.fromisoformat(row["created_at"]),
                row.get("completion_failure") or row.get("last_failure") or "",
            )
            for row in rows
        )

    async def continue_answered(self) -> list[str]:
        """Continue the turns whose answers are in the store, and return their ids.

        Any process may do so at any time, and several at once. Workers do it all the time; call it where an answer
        should not wait for their next look.
        """
        entries = await answered_entries(self.approvals)
        states = await asyncio.gather(*map(self._continue, entries), return_exceptions=True)
        self._settled = {_key(entry) for entry, state in zip(entries, states, strict=True) if state == "settled"}
        if failed := [state for state in states if isinstance(state, BaseException)]:
            raise failed[0]  # the others go on
        return [entry.request.call_id for entry, state in zip(entries, states, strict=True) if state == "goes on"]

    async def _continue(self, entry: ApprovalEntry) -> Literal["goes on", "not yet", "settled"]:
        """Continue the turn that waits for an answer; it is settled where no turn does, or will."""
        agent, turn_id = entry.request.agent, entry.request.call_id
        if agent is None or _key(entry) in self._settled:
            return "settled"
        reply = await self._output(agent, turn_id)
        if reply.is_success or reply.status_code in (_UNKNOWN, _CANCELLED):
            return "settled"  # it has ended, or is not of this server; any other reply may be of a moment
        waits = reply.status_code == _NOT_READY and await self.ask(agent, turn_id, "answered", entry.request.id)
        return "goes on" if waits else "not yet"

    # --- requests

    def _turn(self, agent: str, turn_id: str) -> str:
        return f"{self.ingress}/{service_of(agent)}/{quote(turn_id, safe='')}"

    async def _output(self, agent: str, turn_id: str) -> httpx2.Response:
        path = f"{service_of(agent)}/{quote(turn_id, safe='')}"
        return await self._reply("GET", f"{self.ingress}/restate/workflow/{path}/output")

    async def _query(self, query: str) -> list[dict[str, Any]]:
        headers = {"accept": "application/json"}
        return (await self._sent("POST", f"{self.admin}/query", {"query": query}, headers)).json()["rows"]

    async def _sent(
        self, method: str, url: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        reply = await self._reply(method, url, body, headers)
        if not reply.is_success:
            raise _refused(method, url, reply)
        return reply

    async def _reply(
        self, method: str, url: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        try:
            return await self._http.request(method, url, headers=headers, **({} if body is None else {"json": body}))
        except httpx2.TransportError as error:
            raise EngineError(f"no Restate server answers at {url}: {error}") from error


def _key(entry: ApprovalEntry) -> tuple[str, datetime | None]:
    return entry.request.id, None if entry.answer is None else entry.answer.at


def _refused(method: str, url: str, reply: httpx2.Response) -> EngineError:
    return EngineError(f"the Restate server refused {method} {url}: {_message(reply)}")


def _message(reply: httpx2.Response) -> str:
    try:
        return str(reply.json()["message"])
    except (ValueError, KeyError, TypeError):
        return reply.text[:500]


def _in_utc(time: datetime) -> str:
    """Return a time as it stands in a query; raises ValueError without a time zone."""
    if time.tzinfo is None:
        raise ValueError("since and until need a time zone: datetime(2026, 11, 1, tzinfo=UTC)")
    return time.astimezone(UTC).isoformat(timespec="milliseconds")


def _text(value: str) -> str:
    """Return a text as it stands in a query."""
    return "'" + value.replace("'", "''") + "'"

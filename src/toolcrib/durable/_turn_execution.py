"""Execution of a turn's workflow, which records its call before the tool begins."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from toolcrib.approvals import digest
from toolcrib.calls import ApprovalRequest, Denial, Grant, Suspended, versioned
from toolcrib.pipeline import Call
from toolcrib.tools import stopped_clocks
from toolcrib.turns import Turn

PLACEMENT = "placement"
"""The key under which a turn that was put by another says how it waits."""


class TurnExecution:
    """One call in a workflow, which is recorded before it is executed; the recorder of the call's run.

    Attributes:
        waiting: The suspended call that is taken up, if it is one.
        asked: The request of the call that is taken up: its answer belongs to this work, used up or not.
        reached: The call as JSON, when it passed its gates.
        recorded: Set when the workflow has recorded it, so that the tool may run.
        approval: The answer without what a person typed: its approver, its time, the digest.
        children: The turns that were put on agents meanwhile.
        changes: The changes of the agent's context meanwhile.
        begun: The records of executions that were cut off, by call id.
        retried: The ids of calls that ended with an error before, and are made again.
        conversation_id: The conversation that the turn is part of.
        partition: The partition that it is part of, and so are the turns that it puts.
        attributes: Its attributes, which the turns that it puts have, too.
        over: Whether it has ended, and nothing is gathered any more.
    """

    def __init__(
        self,
        work_id: str,
        waiting: Suspended | None,
        worker_id: str = "",
        may_begin: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.work_id, self.waiting, self._worker_id, self._may_begin = work_id, waiting, worker_id, may_begin
        self.asked = None if waiting is None else waiting.request.id
        self.reached: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.recorded = asyncio.Event()
        self.approval: dict[str, Any] | None = None
        self.children: list[dict[str, Any]] = []
        self._same = Counter[str]()  # how many alike were put
        self.changes: list[dict[str, Any]] = []
        self.finished = self.over = False
        self.begun: dict[str, Mapping[str, Any]] = {}
        self.retried = set[str]()
        self.conversation_id: str | None = None
        self.partition: str | None = None
        self.attributes: Mapping[str, str] | None = None

    async def begin(self, call: Call) -> None:
        """Hand over the call to be recorded, and wait until it is."""
        if not self.reached.done():
            self.reached.set_result(versioned("TurnState", {"call": call.to_dict(), **began(self._worker_id)}))
        with stopped_clocks():  # a database that is waited for is no time of the tool
            await self.recorded.wait()
            if self._may_begin is not None:
                await self._may_begin()

    def add_child(
        self, data: dict[str, Any], named: Mapping[str, Any], placement: Mapping[str, Any], *, is_new: bool
    ) -> str:
        """Keep a turn that was put meanwhile, to wait in its queue when this one has ended; return its id.

        The id of a new one follows from this work and from what it is: a retry that puts the same puts it once.

        Args:
            data: The turn as it is stored.
            named: Its arguments for the id, which is shown: with secrets hidden.
            placement: How it waits.
            is_new: Whether it has no id of its own.
        """
        if is_new:
            turn = {name: value for name, value in data["turn"].items() if name != "uuid"} | {"kwargs": dict(named)}
            text = json.dumps({**data, "turn": turn, "work": self.work_id}, sort_keys=True)
            self._same[text] += 1
            data["turn"]["uuid"] = str(uuid5(NAMESPACE_URL, f"toolcrib:{self._same[text]}:{text}"))
        self.children.append({**data, PLACEMENT: dict(placement)} if placement else data)
        return data["turn"]["uuid"]

    def note(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        """Add the answer to a request to the record."""
        data = answer.to_dict()
        for secret in ("user_input", "override_args", "done"):  # what a person typed may be a secret
            data.pop(secret, None)
        self.approval = {**data, "digest": request.digest, "request_id": request.id}


def began(worker_id: str) -> dict[str, Any]:
    """Return the record of a call's beginning: the worker and the time; a retry adds the error, as `failed`."""
    return {"worker": worker_id, "at": time.time()}


current_execution: ContextVar[TurnExecution | None] = ContextVar("toolcrib_turn_execution", default=None)
"""The execution whose turn runs here."""


def step_name(kind: str, turn: Turn[Any], data: Mapping[str, Any]) -> str:
    """Return the name of a step: the tool, its arguments, and the number of the call in the workflow."""
    return f"{kind} {turn.tool_name} {digest(turn.tool_name, arguments_in_names(turn, data['kwargs']))[:16]} 1"


def arguments_in_names(turn: Turn[Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments for a name that is shown elsewhere: those of a turn, with secrets hidden.

    Args:
        turn: The turn.
        arguments: Its arguments as they are stored.
    """
    form = turn.tool.spec.canonical(turn.kwargs)
    return form.shown if form.has_secrets else arguments

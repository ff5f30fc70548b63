"""Task: a call that goes on after its request was answered, and how both generations of clients see it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

import mcp_types as types

from toolcrib.adapters.mcp_server._task_questions import TaskQuestions
from toolcrib.approvals import SuspendedCall
from toolcrib.calls import now

__all__ = ["Task", "row_key"]

_PATIENCE = 5  # times as long between two requests about a task that waits for a person


def row_key(task_id: str) -> str:
    """Return the key of a task among the suspended calls; those of calls are digests."""
    return f"task:{task_id}"


@dataclass(slots=True, eq=False)
class Task:
    """A call that goes on after its request was answered. `Tasks` moves it.

    Attributes:
        principal: The name of its principal; only requests of this principal find it.
        params: The call.
        ttl: For how long it is kept.
        poll: Milliseconds after which a client should ask again.
        questions: What its tool asks the client.
        waits_for: The ids of the approval requests that it is suspended for.
        message: The text of its state, for a person.
        has_own_ttl: Whether the client asked for the time.
        is_known: Whether a client has its id.
        is_kept: Whether it is in the store of suspended calls.
        job: The work on it, while there is any.
        tools: The open tools that it belongs to.
        session: The session of an older client, which is notified.
    """

    id: str
    principal: str
    params: types.CallToolRequestParams = field(repr=False)
    ttl: timedelta
    poll: int
    questions: TaskQuestions = field(init=False)
    created: datetime = field(default_factory=now)
    updated: datetime = field(default_factory=now)
    waits_for: tuple[str, ...] = ()
    message: str = ""
    has_own_ttl: bool = False
    is_known: bool = False
    is_kept: bool = False
    is_cancelled: bool = False
    reply: types.CallToolResult | None = None
    error: types.ErrorData | None = None
    job: asyncio.Task[None] | None = None
    tools: Any = None
    session: Any = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.questions = TaskQuestions(None, (), self.change)

    @property
    def has_ended(self) -> bool:
        """Whether it has a result, an error, or was cancelled."""
        return self.is_cancelled or self.reply is not None or self.error is not None

    def change(self, message: str | None = None) -> None:
        """Note that it has changed, and wake those who wait for that."""
        if message is not None:
            self.message = message
        self.updated = now()
        event, self.changed = self.changed, asyncio.Event()
        event.set()

    def status(self, *, modern: bool) -> types.TaskStatus:
        """Return its status: a tool's own error is a result for newer clients, and a failure for older ones."""
        if self.is_cancelled:
            return "cancelled"
        if self.error is not None:
            return "failed"
        if self.reply is not None:
            return "failed" if self.reply.is_error and not modern else "completed"
        return "input_required" if self.questions.pending else "working"

    def legacy(self) -> dict[str, Any]:
        """Return it as clients of the revision 2025-11-25 see it."""
        return {**self._shape(modern=False), "ttl": _milliseconds(self.ttl), "pollInterval": self._poll()}

    def modern(self) -> dict[str, Any]:
        """Return it as newer clients see it when it begins."""
        return {**self._shape(modern=True), "ttlMs": _milliseconds(self.ttl), "pollIntervalMs": self._poll()}

    def detailed(self) -> dict[str, Any]:
        """Return it as newer clients see it later, with its result, its error, or its questions."""
        shape = {**self.modern(), "resultType": "complete"}
        match self.status(modern=True):
            case "completed":
                shape["result"] = self.result()
            case "failed":
                shape["error"] = _dump(cast("types.ErrorData", self.error))
            case "input_required":
                shape["inputRequests"] = dict(self.questions.pending)
            case _:
                pass
        return shape

    def result(self) -> dict[str, Any]:
        """Return the result of its call, as JSON shapes."""
        return {} if self.reply is None else _dump(self.reply)

    def _shape(self, *, modern: bool) -> dict[str, Any]:
        shape: dict[str, Any] = {"taskId": self.id, "status": self.status(modern=modern)}
        if self.message and not (self.reply or self.error):
            shape["statusMessage"] = self.message
        elif self.error is not None:
            shape["statusMessage"] = self.error.message
        return {**shape, "createdAt": self.created.isoformat(), "lastUpdatedAt": self.updated.isoformat()}

    def _poll(self) -> int:
        return self.poll * _PATIENCE if self.waits_for and self.job is None else self.poll

    # --- in the store of suspended calls

    def row(self) -> SuspendedCall:
        """Return what is kept of it, so that it is found again after a restart."""
        state = {
            "params": _dump(self.params),
            "ttl": self.ttl.total_seconds(),
            "waits_for": list(self.waits_for),
            "message": self.message,
            "cancelled": self.is_cancelled,
            "reply": None if self.reply is None else _dump(self.reply),
            "error": None if self.error is None else _dump(self.error),
        }
        return SuspendedCall(row_key(self.id), self.principal, self.params.name, (), state, self.created)

    @classmethod
    def from_row(cls, row: SuspendedCall, poll: int) -> Task:
        """Return the task that `row` described."""
        state: Mapping[str, Any] = row.state
        params = types.CallToolRequestParams.model_validate(state["params"])
        task = cls(row.key.removeprefix(row_key("")), row.principal, params, timedelta(seconds=state["ttl"]), poll)
        task.created, task.waits_for, task.message = row.since, tuple(state["waits_for"]), state["message"]
        task.is_known = task.is_kept = True
        task.is_cancelled = state["cancelled"]
        task.reply = None if state["reply"] is None else types.CallToolResult.model_validate(state["reply"])
        task.error = None if state["error"] is None else types.ErrorData.model_validate(state["error"])
        return task


def _dump(value: types.CallToolResult | types.ErrorData | types.CallToolRequestParams) -> dict[str, Any]:
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


def _milliseconds(time: timedelta) -> int:
    return max(1, round(time.total_seconds() * 1_000))

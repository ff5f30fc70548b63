"""Task: an open call whose client has an id of it, and how both generations of clients see it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from pydantic import BaseModel

from toolcrib.approvals import SuspendedCall
from toolcrib.calls import now
from toolcrib.serving import OpenCall

TASK = "task"
"""The kind of open calls whose client has an id."""

_PATIENCE = 5  # times as long between two requests about a task that waits for a person


def row_key(task_id: str) -> str:
    """Return the key of a task among the suspended calls; those of calls are digests."""
    return f"task:{task_id}"


class TaskCancelledError(MCPError):
    """A task was cancelled."""

    def __init__(self) -> None:
        super().__init__(INVALID_PARAMS, "the task was cancelled: it has no result")


@dataclass(slots=True, eq=False, kw_only=True)
class Task(OpenCall):
    """An open call that goes on after its request was answered. `Tasks` moves it.

    Attributes:
        poll: Milliseconds after which a client should ask again.
        has_own_ttl: Whether the client asked for the time.
        is_kept: Whether it is in the store of suspended calls.
        session: The session of an older client, which is notified.
    """

    params: types.CallToolRequestParams = field(repr=False)
    ttl: timedelta
    poll: int
    created: datetime = field(default_factory=now)
    has_own_ttl: bool = False
    is_kept: bool = False
    session: Any = None

    @property
    def is_known(self) -> bool:
        """True if the request was answered, so that a client has the id of the task."""
        return self.ctx is None

    @property
    def has_ended(self) -> bool:
        return self.state == "ended"

    @property
    def seconds_left(self) -> float:
        return (self.created + self.ttl - now()).total_seconds()

    @property
    def failure(self) -> types.ErrorData | None:
        """Its error, as a client sees it."""
        match self.error:
            case None:
                return None
            case MCPError(error=error):
                return error
            case asyncio.CancelledError():
                return types.ErrorData(code=INTERNAL_ERROR, message="the call was broken off")
            case _:
                return types.ErrorData(code=INTERNAL_ERROR, message="Internal server error")

    def status(self, *, modern: bool) -> types.TaskStatus:
        """Return its status: a tool's own error is a result for newer clients, and a failure for older ones."""
        if self.error is not None:
            return "cancelled" if isinstance(self.error, TaskCancelledError) else "failed"
        if self.result is not None:
            return "failed" if self.result.is_error and not modern else "completed"
        return "input_required" if self.state == "asking" else "working"

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
                shape["result"] = dump(self.result)
            case "failed":
                shape["error"] = dump(self.failure)
            case "input_required":
                shape["inputRequests"] = {
                    key: {"params": {}, **dump(question.request)} for key, question in self.questions.items()
                }
            case _:
                pass
        return shape

    def _shape(self, *, modern: bool) -> dict[str, Any]:
        status, asked = self.status(modern=modern), len(self.questions)
        text = self.message
        if status == "input_required":
            text = f"it asks you {asked} question{'s' if asked > 1 else ''}"
        elif status in ("completed", "failed"):
            text = "" if self.failure is None else self.failure.message
        shape: dict[str, Any] = {"taskId": self.id, "status": status, **({"statusMessage": text} if text else {})}
        return {**shape, "createdAt": self.created.isoformat(), "lastUpdatedAt": self.updated.isoformat()}

    def _poll(self) -> int:
        return self.poll * _PATIENCE if self.state == "suspended" else self.poll

    # --- in the store of suspended calls

    def row(self, result: types.CallToolResult | None = None) -> SuspendedCall:
        """Return the stored form, by which the task is found again after a restart.

        Args:
            result: The result that it is about to have.
        """
        result = result or self.result
        cancelled = isinstance(self.error, TaskCancelledError)
        state = {
            "params": dump(self.params),
            "ttl": self.ttl.total_seconds(),
            "waits_for": list(self.waits_for),
            "message": self.message,
            "cancelled": cancelled,
            "reply": None if result is None else dump(result),
            "error": None if self.failure is None or cancelled else dump(self.failure),
        }
        return SuspendedCall(row_key(self.id), self.principal, self.params.name, (), state, self.created)

    @classmethod
    def from_row(cls, row: SuspendedCall, poll: int, owner: object) -> Task:
        state: Mapping[str, Any] = row.state
        params = types.CallToolRequestParams.model_validate(state["params"])
        id, ttl = row.key.removeprefix(row_key("")), timedelta(seconds=state["ttl"])
        task = cls(
            kind=TASK,
            principal=row.principal,
            tool=params.name,
            owner=owner,
            id=id,
            waits_for=tuple(state["waits_for"]),
            message=state["message"],
            params=params,
            ttl=ttl,
            poll=poll,
            created=row.since,
            is_kept=True,
        )
        if state["cancelled"]:
            task.error = TaskCancelledError()
        elif state["error"] is not None:
            task.error = MCPError.from_error_data(types.ErrorData.model_validate(state["error"]))
        elif state["reply"] is not None:
            task.result = types.CallToolResult.model_validate(state["reply"])
        return task


def dump(value: BaseModel | None) -> dict[str, Any]:
    """Return a value of the protocol as JSON shapes."""
    return {} if value is None else value.model_dump(by_alias=True, mode="json", exclude_none=True)


def _milliseconds(time: timedelta) -> int:
    return max(1, round(time.total_seconds() * 1_000))

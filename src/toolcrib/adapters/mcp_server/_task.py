"""Tasks: calls that go on after their requests were answered, by an id that clients have, over both generations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from os import urandom
from typing import Any, Protocol, runtime_checkable

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolRequestParams, CallToolResult
from pydantic import BaseModel

from toolcrib._numbers import count_text
from toolcrib.adapters.mcp_server._elicitation import Suspension
from toolcrib.adapters.mcp_server._options import ServerOptions, TaskOptions
from toolcrib.adapters.mcp_server._served import Served
from toolcrib.adapters.mcp_server._tool_server import (
    PROGRESS_SECONDS,
    REQUEST_META,
    ToolRequest,
    ToolServer,
    request_key,
)
from toolcrib.approvals import ApprovalEntry, ApprovalStore, SuspendedCall, WaitableApprovalStore
from toolcrib.calls import ApprovalRequest, now
from toolcrib.clock import first_of, wait_until_set
from toolcrib.errors import ApprovalError, NewerForm
from toolcrib.serving import OpenCall, OpenCalls, Principal

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


_log = logging.getLogger("toolcrib.adapters")
_LOOK_SECONDS = 0.5  # between two looks at a suspended task whose store cannot wait, or whose equal goes on

_Context = ServerRequestContext[Served, Any]


class TasksFullError(MCPError):
    """There are as many tasks as are kept at a time."""

    def __init__(self, most: int) -> None:
        limit_text = count_text(most, "task")
        super().__init__(INVALID_PARAMS, f"at most {limit_text} can be kept at a time; cancel some, or wait for them")


class Tasks:
    """The open calls of one server whose clients have an id of them.

    Args:
        calls: The open calls; its store has the tasks that wait for a person, beside their calls.
    """

    def __init__(self, options: TaskOptions, served: ServerOptions, calls: OpenCalls) -> None:
        self.options = options
        self._served, self._calls, self._store = served, calls, calls.suspended
        self.on_change: Callable[[Task], Coroutine[Any, Any, None]] | None = None

    # --- a task's life

    async def begin(
        self,
        ctx: _Context,
        params: CallToolRequestParams,
        principal: Principal,
        *,
        ttl: timedelta | None = None,
        after: float = 0.0,
    ) -> Task:
        """Make a call, or continue the equal one that is suspended, as a task; one unknown to its client has ended.

        Args:
            ttl: For how long the client wants it kept.
            after: Seconds in which it may end before it is a task.

        Raises:
            TasksFullError: There are too many.
        """
        options = self.options
        if self._calls.is_full(principal.name, TASK):
            raise TasksFullError(options.most)
        task = Task(
            kind=TASK,
            principal=principal.name,
            tool=params.name,
            owner=ctx.lifespan_context.tools,
            ctx=ctx if after else None,
            id=f"task_{urandom(16).hex()}",
            params=params.model_copy(update={"task": None}),
            ttl=options.ttl if ttl is None else min(max(ttl, timedelta(milliseconds=1)), options.longest_ttl),
            poll=options.poll,
            has_own_ttl=ttl is not None,
        )
        self._add(task)
        try:
            self._work(task, ctx, principal, task.params)
            await task.wait(after)
        except BaseException:  # the client has cancelled its request: nobody knows the task
            self._calls.forget(task)
            raise
        if task.has_ended and after:
            self._calls.forget(task)
        else:
            task.ctx = None
        return task

    async def find(self, principal: Principal, task_id: str, tools: ToolServer) -> Task:
        """Return a task of a principal; raises MCPError for an unknown one, and for another principal's."""
        task = self._calls.find(principal.name, task_id)
        if task is None and task_id.isascii():  # as all ids are; a store takes no half of a surrogate pair
            task = await self._restored(principal, task_id, tools)
        if not isinstance(task, Task):
            raise MCPError(INVALID_PARAMS, "there is no such task: its time may be over")
        return task

    def of(self, principal: Principal) -> list[Task]:
        """Return the tasks of a principal that clients know, the oldest first."""
        return [task for task in self._all_of(principal.name) if task.is_known]

    async def advance(self, task: Task, ctx: _Context, principal: Principal) -> ApprovalRequest | None:
        """Continue a task that waits for a person, if they have answered or what it waits for is settled.

        Returns:
            The first request that is pending still; None without one.
        """
        if task.state != "suspended" or not task.waits_for:
            return None
        for request_id in task.waits_for:
            pending = await _pending(principal.pending.store, request_id, ctx.lifespan_context.tools)
            if pending is not None:
                return pending
        goes_on = any(other.job for other in self._equal(task))  # then all of them get its result
        if task.state == "suspended" and not goes_on:
            named = {**(task.params.meta or {}), REQUEST_META: task.waits_for[0]}
            self._work(task, ctx, principal, task.params.model_copy(update={"meta": named}))
        return None

    async def end_of(self, task: Task, ctx: _Context, principal: Principal) -> None:
        """Wait for the next change of a task, or until a person has answered."""
        changed, store = task.changed, principal.pending.store
        pending = await self.advance(task, ctx, principal)
        if task.has_ended or task.changed is not changed:
            return
        if pending is not None and isinstance(store, WaitableApprovalStore):
            answered = ctx.lifespan_context.tools.is_answered(store, pending, PROGRESS_SECONDS)
            await first_of(changed.wait(), answered)
        elif task.state == "suspended":
            await wait_until_set(changed, _LOOK_SECONDS)
        else:
            await changed.wait()

    async def cancel(self, task: Task, principal: Principal) -> None:
        """Cancel a task and its call, and what its approver is asked; one that has ended stays as it is."""
        if task.has_ended:
            return
        await task.stop()
        if task.result is not None or isinstance(task.error, TaskCancelledError):  # it ended meanwhile
            return
        task.message = "it was cancelled; what it had done by then is done"
        task.end(None, TaskCancelledError())
        if task.waits_for and not self._equal(task):
            await self._drop_call(task, principal.pending.store)
        if task.is_kept:
            await self._store.keep(task.row())

    # --- inside

    def _add(self, task: Task) -> None:
        task.listener, task.on_forget = partial(self._changed, task), partial(self._forgotten, task)
        self._calls.add(task, task.seconds_left)

    def _forgotten(self, task: Task) -> None:
        if task.is_kept:
            self._calls.spawn(self._store.drop(row_key(task.id), ()))

    def _work(self, task: Task, ctx: _Context, principal: Principal, params: CallToolRequestParams) -> None:
        """Start the work on a call."""
        tools, key = ctx.lifespan_context.tools, request_key(task.params, principal)
        request = ToolRequest(ctx, params, principal, principal.run, key, task)
        task.start(self._job(task, tools, request), f"mcp task: {params.name}")

    async def _job(self, task: Task, tools: ToolServer, request: ToolRequest) -> CallToolResult | None:
        """Return the result of a call; None where it is suspended."""
        try:
            result = await tools.perform(request)
        except NewerForm as error:
            if not task.waits_for:
                raise
            task.message = f"it waits as before: {error}"
            return None
        later = copy(task)  # a client is not shown what a restart would take back
        if isinstance(result, Suspension):
            ids = ", ".join(result.ids)
            later.message = f"a person has to answer it, in {self._served.answered_in} (request {ids})"
            later.waits_for, later.is_kept = result.ids, True
            if task.ttl < self._served.kept_for and not task.has_own_ttl:
                later.ttl = self._served.kept_for
        else:
            later.result = result
        if later.is_kept:
            await self._store.keep(later.row())
        task.waits_for, task.message = later.waits_for, later.message
        task.ttl, task.is_kept = later.ttl, later.is_kept
        if task.timer is not None:
            self._calls.keep_for(task, task.seconds_left)
        return later.result

    def _changed(self, task: Task) -> None:
        """Notify the client of a new state; a call that was not broken off ends the tasks of equal calls, too."""
        if task.has_ended and not isinstance(task.error, TaskCancelledError | asyncio.CancelledError):
            if task.error is not None and not isinstance(task.error, MCPError):
                _log.error("the task of a call of %s failed", task.tool, exc_info=task.error)
            if task.is_kept:
                self._calls.spawn(self._store.keep(task.row()))
            others = self._equal(task)
            for other in others:
                other.result, other.error = task.result, task.error
            for other in others:
                other.move()
        if task.is_known and self.on_change is not None and task.session is not None:
            self._calls.spawn(self.on_change(task))

    def _all_of(self, principal: str) -> list[Task]:
        return [call for call in self._calls.of(principal, TASK) if isinstance(call, Task)]

    def _equal(self, task: Task) -> list[Task]:
        """Return the other tasks that wait for the same person."""
        if not task.waits_for:
            return []
        others = [other for other in self._all_of(task.principal) if other.waits_for == task.waits_for]
        return [other for other in others if other is not task and not other.has_ended]

    # --- the store

    async def _restored(self, principal: Principal, task_id: str, tools: ToolServer) -> OpenCall | None:
        """Return a task from the store: it waited for a person when another server kept it."""
        row = await self._store.find(row_key(task_id))
        if row is None or row.principal != principal.name:
            return None
        task = Task.from_row(row, self.options.poll, tools)
        if task.seconds_left <= 0:
            await self._store.drop(row.key, row.requests)
            return None
        known = self._calls.find(principal.name, task_id)  # another request was quicker
        if known is None:
            self._add(task)
        return known or task

    async def _drop_call(self, task: Task, approvals: ApprovalStore) -> None:
        """Forget the suspended call of a task, and close its request: no client goes on with it."""
        call = await self._store.find_request(task.principal, task.waits_for[0])
        if call is None or not await self._store.drop(call.key, call.requests):
            return
        if not isinstance(approvals, _ShowsRequests):
            return
        for request_id in call.requests:
            try:
                request = (await approvals.show(request_id)).request
                await approvals.answer(request.deny(message="its client has cancelled the call", by="its client"))
            except ApprovalError as error:  # a person has answered it meanwhile
                _log.debug("the request %s is not closed: %s", request_id, error)


@runtime_checkable
class _ShowsRequests(ApprovalStore, Protocol):
    """A store that shows one request, as all of toolcrib's do."""

    async def show(self, request_id: str) -> ApprovalEntry: ...


async def _pending(store: ApprovalStore, request_id: str, tools: ToolServer) -> ApprovalRequest | None:
    """Return the request whose answer a call waits for still, as far as the store can tell."""
    if not isinstance(store, _ShowsRequests):
        return None
    try:
        entry = await store.show(request_id)
    except ApprovalError:  # it is gone; the call says so
        return None
    return entry.request if entry.state == "pending" and not await tools.is_settled(entry.request) else None

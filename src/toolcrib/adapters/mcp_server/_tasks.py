"""Tasks: the calls of all principals that go on after their requests were answered, over both generations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from os import urandom
from typing import Any, Protocol, runtime_checkable

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from toolcrib.adapters.mcp_server._elicitation import Suspension, answers_from_forms, can_elicit, forms_for
from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._served import Served
from toolcrib.adapters.mcp_server._task import Task, row_key
from toolcrib.adapters.mcp_server._task_options import TaskOptions
from toolcrib.adapters.mcp_server._task_questions import TaskQuestions
from toolcrib.adapters.mcp_server._tool_server import REQUEST_META, ToolRequest, ToolServer, request_key
from toolcrib.approvals import ApprovalEntry, ApprovalStore, Approver, SuspendedCallStore
from toolcrib.calls import ApprovalRequest, Denial, Grant, now
from toolcrib.errors import ApprovalError
from toolcrib.serving import PendingApprovals, Principal

__all__ = ["Tasks", "TasksFullError"]

_log = logging.getLogger("toolcrib.adapters")
_MOST_OF_ALL = 10_000  # tasks of all principals
_LOOK_SECONDS = 5.0  # between two looks whether a person has answered, while a client waits for the result
_CANCEL_SECONDS = 5.0  # for a call to end when it is cancelled

_Context = ServerRequestContext[Served, Any]


class TasksFullError(MCPError):
    """There are as many tasks as are kept at a time."""

    def __init__(self, most: int) -> None:
        super().__init__(INVALID_PARAMS, f"no more than {most} tasks are kept at a time; cancel some, or wait for them")


@dataclass(slots=True)
class _TaskRequest(ToolRequest):
    """A request whose progress goes to its task once a client has that."""

    task: Task | None = None

    async def progress(self, message: str | None, done: float | None = None, total: float | None = None) -> None:
        if self.task is None or not self.task.is_known:
            await super(_TaskRequest, self).progress(message, done, total)
            return
        amount = "" if done is None else f"{done:g}" if total is None else f"{done:g} of {total:g}"
        self.task.change(": ".join(part for part in (amount, message) if part))


class Tasks:
    """The tasks of one server.

    Args:
        options: How calls become tasks.
        served: How the tools are served.
        store: Keeps the tasks that wait for a person, beside their calls.
    """

    def __init__(self, options: TaskOptions, served: ServerOptions, store: SuspendedCallStore) -> None:
        self.options = options
        self._served, self._store = served, store
        self._tasks: dict[str, Task] = {}
        self._count: dict[str, int] = {}
        self._expiry: dict[str, asyncio.TimerHandle] = {}
        self._errands: set[asyncio.Task[object]] = set()
        self._waiting_for: dict[tuple[str, ...], str] = {}  # ids of approval requests -> id of the task
        self.on_change: Callable[[Task], Coroutine[Any, Any, None]] | None = None

    @asynccontextmanager
    async def running(self, tools: ToolServer) -> AsyncGenerator[None]:
        """Call open tools inside; at the end calls are cancelled, and what waits for a person stays in the store."""
        try:
            yield
        finally:
            tasks = [task for task in self._tasks.values() if task.tools is tools]
            jobs = {task.job for task in tasks if task.job is not None}
            for task in tasks:
                self._forget(task, ended=False)
            if waiting := jobs | self._errands:
                await asyncio.wait(waiting, timeout=_CANCEL_SECONDS)

    # --- a task's life

    async def begin(
        self,
        ctx: _Context,
        params: types.CallToolRequestParams,
        principal: Principal,
        *,
        ttl: timedelta | None = None,
        after: float = 0.0,
    ) -> Task:
        """Make a call, or continue the equal one that is suspended, as a task.

        Args:
            ttl: For how long the client wants it kept.
            after: Seconds in which it may end before it is a task.

        Returns:
            The task; one that is not known to its client has ended.

        Raises:
            TasksFullError: There are too many.
        """
        options = self.options
        if len(self._tasks) >= _MOST_OF_ALL or self._count.get(principal.name, 0) >= options.most:
            raise TasksFullError(options.most)
        kept_for = options.ttl if ttl is None else min(max(ttl, timedelta(milliseconds=1)), options.longest_ttl)
        plain = params.model_copy(update={"task": None})
        task = Task(f"task_{urandom(16).hex()}", principal.name, plain, kept_for, options.poll)
        task.has_own_ttl = ttl is not None
        task.tools = ctx.lifespan_context.tools
        self._add(task)
        try:
            self._work(task, ctx, principal, plain)
            await self._wait(task, after)
        except BaseException:  # the client has cancelled its request: nobody knows the task
            self._forget(task)
            raise
        if task.has_ended and after:
            self._forget(task)
            return task
        task.is_known = True
        return task

    async def find(self, principal: Principal, task_id: str, tools: ToolServer) -> Task:
        """Return a task of a principal; raises MCPError for an unknown one, and for another principal's."""
        task = self._tasks.get(task_id)
        if task is None:
            task = await self._restored(task_id, tools)
        if task is None or task.principal != principal.name:
            raise MCPError(INVALID_PARAMS, "there is no such task: its time may be over")
        return task

    def of(self, principal: Principal) -> list[Task]:
        """Return the tasks of a principal that clients know, the oldest first."""
        return [task for task in self._tasks.values() if task.principal == principal.name and task.is_known]

    async def advance(self, task: Task, ctx: _Context, principal: Principal) -> None:
        """Continue a task that waits for a person, if they have answered or what it waits for is settled."""
        if task.has_ended or task.job is not None or not task.waits_for:
            return
        first = self._first_of(task)
        if first is not task:  # an equal call, which both go on with
            await self.advance(first, ctx, principal)
            return
        for request_id in task.waits_for:
            if await _is_pending(principal.pending.store, request_id, ctx.lifespan_context.tools):
                return
        if task.job is None and not task.has_ended:
            named = {**(task.params.meta or {}), REQUEST_META: task.waits_for[0]}
            self._work(task, ctx, principal, task.params.model_copy(update={"meta": named}))

    async def end_of(self, task: Task, ctx: _Context, principal: Principal) -> None:
        """Wait for the next change of a task, or look whether a person has answered."""
        changed = task.changed
        await self.advance(task, ctx, principal)
        if task.has_ended or task.changed is not changed:
            return
        try:
            async with asyncio.timeout(_LOOK_SECONDS if task.waits_for and task.job is None else None):
                await changed.wait()
        except TimeoutError:
            pass

    async def cancel(self, task: Task, principal: Principal) -> None:
        """Cancel a task and its call, and what its approver is asked; one that has ended stays as it is."""
        if task.has_ended:
            return
        job, waits_for = task.job, task.waits_for
        if job is not None:
            job.cancel()
            await asyncio.wait({job}, timeout=_CANCEL_SECONDS)
        if task.reply is not None or task.is_cancelled:  # it ended meanwhile
            return
        task.error, task.is_cancelled = None, True
        task.change("it was cancelled; what it had done by then is done")
        self._release(task)
        if waits_for and not self._others(task, waits_for):
            await self._drop_call(task, waits_for, principal.pending.store)
        if task.is_kept:
            await self._keep(task)
        self._notify(task)

    # --- inside

    def _add(self, task: Task) -> None:
        self._tasks[task.id] = task
        self._count[task.principal] = self._count.get(task.principal, 0) + 1
        self._expire_later(task)

    def _expire_later(self, task: Task) -> None:
        if (timer := self._expiry.pop(task.id, None)) is not None:
            timer.cancel()
        left = (task.created + task.ttl - now()).total_seconds()
        self._expiry[task.id] = asyncio.get_running_loop().call_later(max(0.0, left), self._forget, task)

    def _forget(self, task: Task, *, ended: bool = True) -> None:
        """Forget a task, and cancel its call; one that is not `ended` stays in the store."""
        if self._tasks.pop(task.id, None) is None:
            return
        left = self._count[task.principal] - 1
        if left:
            self._count[task.principal] = left
        else:
            del self._count[task.principal]
        self._expiry.pop(task.id).cancel()
        self._release(task)
        if task.job is not None:
            task.job.cancel()
        if task.is_kept and ended:
            self._start(self._store.drop(row_key(task.id), ()))

    def _work(self, task: Task, ctx: _Context, principal: Principal, params: types.CallToolRequestParams) -> None:
        """Start the work on a call."""
        run, tools, served = principal.run, ctx.lifespan_context.tools, self._served
        declared = ctx.session.client_capabilities
        task.questions = questions = TaskQuestions(declared, served.ask_client, partial(self._asked, task))
        approver = run.approver
        if served.approve_by == "elicit" and approver is None and can_elicit(ctx):
            approver = _approver(questions, principal.pending)
        run = run.view(client=questions, approver=approver)
        request = _TaskRequest(ctx, params, principal, run, request_key(task.params, principal), task=task)
        task.message = ""
        task.job = job = asyncio.create_task(self._job(task, tools, request), name=f"mcp task: {params.name}")
        job.add_done_callback(partial(self._ended, task))

    async def _job(self, task: Task, tools: ToolServer, request: ToolRequest) -> None:
        result = await tools.perform(request)
        later = copy(task)  # a client is not shown what a restart would take back
        if isinstance(result, Suspension):
            ids = ", ".join(result.ids)
            later.message = f"a person has to answer it, in {self._served.answered_in} (request {ids})"
            later.waits_for, later.is_kept = result.ids, True
            if task.ttl < self._served.kept_for and not task.has_own_ttl:
                later.ttl = self._served.kept_for
        else:
            later.reply = result
        if later.is_kept:
            await self._store.keep(later.row())
        self._release(task)
        task.waits_for, task.message, task.ttl = later.waits_for, later.message, later.ttl
        task.is_kept, task.reply = later.is_kept, later.reply
        if task.id in self._tasks:
            self._expire_later(task)

    def _ended(self, task: Task, job: asyncio.Task[None]) -> None:
        """Note how the work on a call has ended, for tasks of equal calls that waited for the same person, too."""
        task.job = None
        error = None if job.cancelled() else job.exception()
        if job.cancelled() and not task.has_ended:
            task.error = types.ErrorData(code=INTERNAL_ERROR, message="the call was broken off")
        elif isinstance(error, MCPError):
            task.error = error.error
        elif error is not None:
            _log.error("the task of a call of %s failed", task.params.name, exc_info=error)
            task.error = types.ErrorData(code=INTERNAL_ERROR, message="Internal server error")
        self._changed(task, keep=error is not None)
        if task.reply is not None or error is not None:
            for other in self._others(task, task.waits_for):
                other.reply, other.error = task.reply, task.error
                self._changed(other, keep=True)

    def _changed(self, task: Task, *, keep: bool) -> None:
        task.change()
        if keep and task.is_kept and task.id in self._tasks:
            self._start(self._keep(task))
        self._notify(task)

    def _first_of(self, task: Task) -> Task:
        """Return the one of the tasks that wait for the same person which goes on with the call."""
        first = self._tasks.get(self._waiting_for.get(task.waits_for, ""))
        if first is None:
            self._waiting_for[task.waits_for] = task.id
        return first or task

    def _others(self, task: Task, waits_for: tuple[str, ...]) -> list[Task]:
        """Return the other tasks that wait for the same person."""
        if not waits_for:
            return []
        return [t for t in self._tasks.values() if t is not task and t.waits_for == waits_for and not t.has_ended]

    def _release(self, task: Task) -> None:
        """Let another task go on with the call."""
        if self._waiting_for.get(task.waits_for) == task.id:
            del self._waiting_for[task.waits_for]

    def _asked(self, task: Task) -> None:
        count = len(task.questions.pending)
        task.change("" if not count else f"it asks you {count} question{'s' if count > 1 else ''}")
        self._notify(task)

    async def _wait(self, task: Task, seconds: float) -> None:
        """Wait until a task has ended, asks or waits for a person, and no longer than so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                while task.job is not None and not task.questions.pending:
                    await task.changed.wait()
        except TimeoutError:
            pass

    def _notify(self, task: Task) -> None:
        if task.is_known and self.on_change is not None and task.session is not None:
            self._start(self.on_change(task))

    def _start(self, errand: Coroutine[Any, Any, object]) -> None:
        started = asyncio.create_task(errand)
        self._errands.add(started)
        started.add_done_callback(self._errands.discard)

    # --- the store

    async def _keep(self, task: Task) -> None:
        await self._store.keep(task.row())

    async def _restored(self, task_id: str, tools: ToolServer) -> Task | None:
        """Return a task from the store: it waited for a person when another server kept it."""
        row = await self._store.find(row_key(task_id))
        if row is None:
            return None
        task = Task.from_row(row, self.options.poll)
        if task.created + task.ttl <= now():
            await self._store.drop(row.key, row.requests)
            return None
        if task_id in self._tasks:  # another request was quicker
            return self._tasks[task_id]
        task.tools = tools
        self._add(task)
        return task

    async def _drop_call(self, task: Task, waits_for: tuple[str, ...], approvals: ApprovalStore) -> None:
        """Forget the suspended call of a task, and close its request: no client goes on with it."""
        call = await self._store.find_request(task.principal, waits_for[0])
        if call is None or not await self._store.drop(call.key, call.requests):
            return
        if not isinstance(approvals, _ShowsRequests):
            return
        for request_id in call.requests:
            try:
                request = (await approvals.show(request_id)).request
                await approvals.answer(request.deny("its client has cancelled the call", "its client"))
            except ApprovalError as error:  # a person has answered it meanwhile
                _log.debug("the request %s is not closed: %s", request_id, error)


@runtime_checkable
class _ShowsRequests(ApprovalStore, Protocol):
    """A store that shows one request, as all of toolcrib's do."""

    async def show(self, request_id: str) -> ApprovalEntry: ...


async def _is_pending(store: ApprovalStore, request_id: str, tools: ToolServer) -> bool:
    """Return whether a call waits for the answer to its request still, as far as the store can tell."""
    if not isinstance(store, _ShowsRequests):
        return False
    try:
        entry = await store.show(request_id)
    except ApprovalError:  # it is gone; the call says so
        return False
    return entry.state == "pending" and not await tools.is_settled(entry.request)


def _approver(questions: TaskQuestions, pending: PendingApprovals) -> Approver:
    """Return an approver that has the client's user answer by a form, when the client fetches it."""

    async def approver(request: ApprovalRequest) -> Grant | Denial | None:
        form = forms_for([request])[request.id].model_dump(by_alias=True, mode="json", exclude_none=True)
        async with pending.form(request):
            result = await questions.ask("elicitation/create", form["params"], request.id)
        return next(iter(answers_from_forms([request], {request.id: result})), None)

    return approver

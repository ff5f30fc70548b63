"""Tasks of a server: calls whose results a client comes back for, also over another connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from itertools import count
from typing import Any, ClassVar, Literal, cast

import mcp_types as types
from mcp.client import ClientRequestContext, ClientSession
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, REQUEST_TIMEOUT
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolcrib.clock import Clock
from toolcrib.errors import ServerError
from toolcrib.tools import Deadline

_SHORTEST, _LONGEST = 0.05, 60.0  # seconds between two requests about a task, whatever the server says
_USUAL = 1.0  # where it says nothing
_PAUSES = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)  # seconds before each try to come back to a task
_CANCEL_SECONDS = 5.0
_ANSWER_SECONDS = 60.0  # for the state of a task
_numbers = count(1_000_000_000)  # of requests that may become tasks; the SDK counts from 1

Report = Callable[[float, float | None, str | None], Awaitable[None]]


class _CreateTask(types.Result):
    """The reply to a call that the server made a task of."""

    result_type: Literal["task"] = "task"
    task_id: str


class _TaskParams(types.RequestParams):
    task_id: str


class _UpdateParams(_TaskParams):
    input_responses: dict[str, Any]


class _GetTask(types.Request[_TaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: _TaskParams
    name_param: ClassVar[str | None] = "taskId"


class _CancelTask(types.Request[_TaskParams, Literal["tasks/cancel"]]):
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: _TaskParams
    name_param: ClassVar[str | None] = "taskId"


class _UpdateTask(types.Request[_UpdateParams, Literal["tasks/update"]]):
    method: Literal["tasks/update"] = "tasks/update"
    params: _UpdateParams
    name_param: ClassVar[str | None] = "taskId"


class _TaskState(types.Result):
    """A task as either generation shows it."""

    status: types.TaskStatus
    status_message: str | None = None
    poll_interval: float | None = None
    poll_interval_ms: float | None = None
    result: dict[str, Any] | None = None
    error: types.ErrorData | None = None
    input_requests: dict[str, types.InputRequest] | None = None

    def pause(self) -> float:
        """Return the seconds until the server should be asked again."""
        milliseconds = self.poll_interval_ms if self.poll_interval is None else self.poll_interval
        return _USUAL if milliseconds is None else min(max(milliseconds / 1_000, _SHORTEST), _LONGEST)


class TasksExtension(ClientExtension):
    """The extension by which servers of the newer generation may make tasks of calls."""

    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Claim the replies that are tasks."""
        return (ResultClaim(result_type="task", model=_CreateTask, resolve=_resolve),)


class TaskCall:
    """One call of a tool, which its server may make a task of.

    Args:
        everything: Whether a tool that may be called as a task is.

    Attributes:
        id: The id of the task; empty while there is none.
    """

    _cancelling: ClassVar[set[asyncio.Task[None]]] = set()  # requests that are under way after their calls

    def __init__(self, server: str, tool: types.Tool | None, everything: bool, report: Report, clock: Clock) -> None:
        self._server, self._report, self._clock = server, report, clock
        self._name, self._everything = "" if tool is None else tool.name, everything
        support = None if tool is None or tool.execution is None else tool.execution.task_support
        self._wanted = support == "required" or (everything and support == "optional")
        self.id, self._lost, self._said, self._steps = "", False, "", 0
        self._limit: Deadline | None = None

    @contextmanager
    def current(self, limit: Deadline | None) -> Generator[None]:
        """Set this task as the one that begins inside.

        Args:
            limit: The deadline of the call, which stands while the task is followed: each request has its own.
        """
        token, self._limit = current_task.set(self), limit
        try:
            yield
        finally:
            current_task.reset(token)

    def begins_in(self, session: ClientSession) -> bool:
        """Return whether the call is made as a task that this client asks for, as older servers want it."""
        tasks = None if session.server_capabilities is None else session.server_capabilities.tasks
        requests = None if tasks is None else tasks.requests
        takes = requests is not None and requests.tools is not None and requests.tools.call is not None
        return self._wanted and takes and session.protocol_version == "2025-11-25"

    async def begin(
        self, session: ClientSession, arguments: Mapping[str, Any], meta: types.RequestParamsMeta | None
    ) -> types.CallToolResult:
        """Make the call as a task, and return its result."""
        params: dict[str, Any] = {"name": self._name, "arguments": dict(arguments), "task": {}}
        if meta:
            params["_meta"] = dict(meta)
        internals: Any = session  # the SDK's own way reads the reply as a result
        data, options = {"method": "tools/call", "params": params}, dict[str, Any]()
        internals._stamp(data, options)
        raw: dict[str, Any] = await internals._dispatcher.send_raw_request("tools/call", data["params"], options)
        if "task" not in raw:
            return types.CallToolResult.model_validate(raw, by_name=False)
        self.id = types.CreateTaskResult.model_validate(raw, by_name=False).task.task_id
        return await self.follow(session)

    def may_begin_in(self, session: ClientSession) -> bool:
        """Return whether the server may reply with a task."""
        is_newer = session.protocol_version in MODERN_PROTOCOL_VERSIONS
        return self._everything if is_newer else self.begins_in(session)

    async def send(
        self, session: ClientSession, dispatcher: Any, params: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Send the call, and return the reply; a call that is cancelled before it cancels the task that comes late."""
        number = next(_numbers)
        request = dispatcher.send_raw_request("tools/call", params, {**options, "request_id": number})
        sending: asyncio.Task[dict[str, Any]] = asyncio.create_task(request)
        is_answered = False
        try:
            raw = await asyncio.shield(sending)
            is_answered = True
        finally:
            if not is_answered and not (sending.done() and sending.exception()):
                self._start(self._cancel_begun(session, sending, number))
        return raw

    async def follow(self, session: ClientSession) -> types.CallToolResult:
        """Return the result of the task once it has one; a call that is cancelled meanwhile cancels it.

        Raises:
            MCPError: The task failed, or was cancelled by others.
            ServerError: The server that it comes back to does not know it.
        """
        is_over = False
        try:
            with nullcontext() if self._limit is None else self._limit.stopped():
                result = await self._followed(session)
            is_over = True
        except MCPError as error:
            is_over = True
            if error.code == REQUEST_TIMEOUT:
                problem = f"did not answer within {_ANSWER_SECONDS:g} s while `{self._name}` ran as a task"
                unknown = f"{problem}. Whether it took effect is unknown"
                raise ServerError(self._server, unknown, may_have_run=True) from error
            if self._lost and error.code == INVALID_PARAMS:
                problem = f"was lost while `{self._name}` ran as a task, which it no longer knows"
                raise ServerError(self._server, f"{problem}. Whether it took effect is unknown") from error
            raise
        except Exception:  # the connection's: the task goes on
            is_over = True
            raise
        finally:
            if not is_over:
                self._start(self._cancel(session, self.id))
        return result

    async def come_back(self, ask: Callable[[], Awaitable[types.CallToolResult]]) -> types.CallToolResult:
        """Return the result of a task whose connection was lost; `ask` follows it over a new one.

        Raises:
            ServerError: There is no connection for half a minute, or the server does not know the task any more.
        """
        self._lost = True
        for pause in _PAUSES[:-1]:
            await self._clock.sleep(pause)
            try:
                return await ask()
            except ServerError as error:
                if isinstance(error.__cause__, MCPError) and error.__cause__.code == INVALID_PARAMS:
                    raise
        await self._clock.sleep(_PAUSES[-1])
        return await ask()

    # --- inside

    async def _followed(self, session: ClientSession) -> types.CallToolResult:
        params = _TaskParams(task_id=self.id)
        while True:
            state = await session.send_request(
                _GetTask(params=params), _TaskState, request_read_timeout_seconds=_ANSWER_SECONDS
            )
            if state.status_message and state.status_message != self._said:
                self._said, self._steps = state.status_message, self._steps + 1
                await self._report(self._steps, None, state.status_message)
            if session.protocol_version == "2025-11-25":
                if state.status in ("completed", "failed", "input_required"):  # questions come while it is waited for
                    asked = types.GetTaskPayloadRequest(params=types.GetTaskPayloadRequestParams(task_id=self.id))
                    return await session.send_request(asked, types.CallToolResult)
            elif state.status == "completed":
                return types.CallToolResult.model_validate(state.result or {}, by_name=False)
            elif state.error is not None:
                raise MCPError.from_error_data(state.error)
            elif state.input_requests:
                await self._answer(session, state.input_requests)
                continue
            if state.status == "cancelled":
                raise MCPError(INVALID_PARAMS if self._lost else 0, f"the task of `{self._name}` was cancelled")
            await self._clock.sleep(state.pause())

    async def _answer(self, session: ClientSession, requests: Mapping[str, types.InputRequest]) -> None:
        responses: dict[str, Any] = {}
        for key, request in requests.items():
            context = ClientRequestContext(session=session, request_id=key)
            answer = await session.dispatch_input_request(context, request)
            if isinstance(answer, types.ErrorData):
                raise MCPError.from_error_data(answer)
            responses[key] = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        update = _UpdateTask(params=_UpdateParams(task_id=self.id, input_responses=responses))
        await session.send_request(update, types.EmptyResult)

    def _start(self, errand: Coroutine[Any, Any, None]) -> None:
        """Cancel a task on the server after its call, which does not wait for that."""
        started = asyncio.create_task(errand)
        self._cancelling.add(started)
        started.add_done_callback(self._cancelling.discard)

    async def _cancel_begun(self, session: ClientSession, sending: asyncio.Task[dict[str, Any]], number: int) -> None:
        if session.protocol_version in MODERN_PROTOCOL_VERSIONS:  # else a call that is a task ends by its id alone
            notice = types.CancelledNotificationParams(request_id=number, reason="the call was cancelled")
            await session.send_notification(types.CancelledNotification(params=notice))
        await asyncio.wait({sending}, timeout=_CANCEL_SECONDS)
        if not sending.done() or sending.cancelled():
            sending.cancel()
        elif sending.exception() is None and (task_id := _task_in(sending.result())):
            await self._cancel(session, task_id)

    async def _cancel(self, session: ClientSession, task_id: str) -> None:
        try:
            async with asyncio.timeout(_CANCEL_SECONDS):
                await session.send_request(_CancelTask(params=_TaskParams(task_id=task_id)), types.Result)
        except Exception:  # the connection's, the server's: it may have ended meanwhile
            return


def _task_in(raw: Mapping[str, Any]) -> str:
    """Return the id of the task that a reply of either generation names, empty where it names none."""
    task: Any = raw.get("task", raw)
    task_id: Any = cast("dict[str, Any]", task).get("taskId") if isinstance(task, dict) else None
    return task_id if isinstance(task_id, str) else ""


current_task: ContextVar[TaskCall | None] = ContextVar("toolcrib_mcp_task", default=None)
"""The call that the current code makes, which its server may make a task of."""


async def _resolve(created: _CreateTask, context: ClaimContext) -> types.CallToolResult:
    """Return the result of a call that a server of the newer generation made a task of."""
    call = current_task.get()
    if call is None:
        raise MCPError(INVALID_PARAMS, f"the server made a task of `{context.tool_name}`, which no call here waits for")
    call.id = created.task_id
    return await call.follow(context.session)

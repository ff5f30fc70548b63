"""Methods of tasks: the requests of both generations of the protocol, and what they get."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import BaseModel, ValidationError

from toolcrib.adapters.mcp_server._elicitation import is_stateless
from toolcrib.adapters.mcp_server._served import Served, page_of
from toolcrib.adapters.mcp_server._task import Task, Tasks, TasksFullError, dump
from toolcrib.adapters.mcp_server._tool_changes import notify
from toolcrib.adapters.mcp_server._tool_server import CallReply
from toolcrib.serving import ClientQuestion, Principal, Principals

EXTENSION = "io.modelcontextprotocol/tasks"

_RELATED = "io.modelcontextprotocol/related-task"
_PAGE = 100  # tasks in one reply

_Context = ServerRequestContext[Served, Any]


class TaskParams(types.RequestParams):
    """The parameters of a request about a task: its id."""

    task_id: str


class _UpdateParams(TaskParams):
    input_responses: dict[str, Any]


class TaskMethods:
    """The methods of tasks, added to a server."""

    def __init__(self, tasks: Tasks, principals: Principals) -> None:
        self._tasks, self._principals = tasks, principals
        tasks.on_change = _notify

    def add_to(self, server: Server[Served]) -> None:
        """Register the requests of tasks with a server, and declare the capability."""
        server.extensions = {**server.extensions, EXTENSION: {}}
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel)
        server.add_request_handler("tasks/update", _UpdateParams, self._update)
        server.add_request_handler("tasks/result", TaskParams, self._result)
        server.add_request_handler("tasks/list", types.PaginatedRequestParams, self._list)
        server.middleware.append(self._call_as_task)

    # --- tools

    def marked(self, ctx: _Context, tools: list[types.Tool]) -> list[types.Tool]:
        """Return tools with the mark by which clients of the revision 2025-11-25 know whether calls may be tasks."""
        if ctx.protocol_version != LATEST_HANDSHAKE_VERSION:
            return tools
        supports = [(tool, self._support(ctx, tool.name)) for tool in tools]
        return [tool.model_copy(update={"execution": types.ToolExecution(task_support=s)}) for tool, s in supports]

    async def call(
        self, ctx: _Context, params: types.CallToolRequestParams, principal: Principal
    ) -> CallReply | types.InputRequiredResult | dict[str, Any]:
        """Answer a call of a client that has not asked for a task: with its result, or where it may, with a task."""
        support = self._support(ctx, params.name)
        if support == "required" and ctx.protocol_version == LATEST_HANDSHAKE_VERSION:
            raise MCPError(METHOD_NOT_FOUND, f"`{params.name}` is called as a task: give the call `task`")
        if support == "required" and is_stateless(ctx) and not _declares(ctx):
            raise _missing_capability(f"`{params.name}` is called as a task")
        comes_back = params.request_state is not None or params.input_responses
        if support == "forbidden" or not _declares(ctx) or comes_back:
            return await ctx.lifespan_context.tools.call(ctx, params, principal)
        after = 0.0 if support == "required" or self._is_tagged(ctx, params.name, "task") else self._tasks.options.after
        try:
            task = await self._tasks.begin(ctx, params, principal, after=after)
        except TasksFullError:
            if support == "required":
                raise
            return await ctx.lifespan_context.tools.call(ctx, params, principal)
        if task.is_known:
            return {**task.modern(), "resultType": "task"}
        if task.failure is not None:
            raise MCPError.from_error_data(task.failure)
        return task.result

    async def _call_as_task(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        """Begin a task that a client of the revision 2025-11-25 asks for; a middleware."""
        wanted = (ctx.params or {}).get("task")
        if ctx.method != "tools/call" or wanted is None or ctx.protocol_version != LATEST_HANDSHAKE_VERSION:
            return await call_next(ctx)
        try:
            params = types.CallToolRequestParams.model_validate(ctx.params, by_name=False)
        except ValidationError as error:
            raise MCPError(INVALID_PARAMS, f"Invalid request parameters: {error}") from None
        if params.name in ctx.lifespan_context.tools.entries and self._support(ctx, params.name) == "forbidden":
            raise MCPError(METHOD_NOT_FOUND, f"`{params.name}` is not called as a task: leave `task` out")
        asked_ttl = None if params.task is None else params.task.ttl
        ttl = None if asked_ttl is None else timedelta(milliseconds=min(max(asked_ttl, 0), 10**12))
        task = await self._tasks.begin(ctx, params, self._principals.current(), ttl=ttl)
        task.session = ctx.session
        return {"task": task.legacy()}

    def _support(self, ctx: _Context, name: str) -> Any:
        if self._is_tagged(ctx, name, "task_required"):
            return "required"
        return "forbidden" if self._is_tagged(ctx, name, "task_forbidden") else "optional"

    def _is_tagged(self, ctx: _Context, name: str, tag: str) -> bool:
        entry = ctx.lifespan_context.tools.entries.get(name)
        return entry is not None and tag in entry.tool.tags

    # --- tasks

    async def _found(self, ctx: _Context, task_id: str) -> tuple[Task, Principal]:
        """Return the task that a request is about."""
        if is_stateless(ctx):
            if not _declares(ctx):
                raise _missing_capability("this is a request about a task")
            named = None if ctx.request is None else ctx.request.headers.get("mcp-name")
            if named is not None and named != task_id:
                raise MCPError(HEADER_MISMATCH, "the header Mcp-Name is not the `taskId` of the request")
        elif ctx.protocol_version != LATEST_HANDSHAKE_VERSION:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", ctx.method)
        principal = self._principals.current()
        return await self._tasks.find(principal, task_id, ctx.lifespan_context.tools), principal

    async def _get(self, ctx: _Context, params: TaskParams) -> dict[str, Any]:
        task, principal = await self._found(ctx, params.task_id)
        await self._tasks.advance(task, ctx, principal)
        return task.detailed() if is_stateless(ctx) else task.legacy()

    async def _cancel(self, ctx: _Context, params: TaskParams) -> dict[str, Any]:
        task, principal = await self._found(ctx, params.task_id)
        if is_stateless(ctx):
            await self._tasks.cancel(task, principal)
            return {}
        if task.has_ended:
            raise MCPError(INVALID_PARAMS, f"the task has ended: it is {task.status(modern=False)}")
        await self._tasks.cancel(task, principal)
        return task.legacy()

    async def _update(self, ctx: _Context, params: _UpdateParams) -> dict[str, Any]:
        if not is_stateless(ctx):
            raise MCPError(METHOD_NOT_FOUND, "Method not found", ctx.method)
        task, _ = await self._found(ctx, params.task_id)
        # where one is not of the kind that its question wants, none of them is taken
        answers: dict[str, BaseModel] = {}
        for key, question in task.questions.items():
            if key in params.input_responses:
                try:
                    answers[key] = question.accepts[-1].model_validate(params.input_responses[key])
                except ValidationError as error:
                    text = f"the answer `{key}` is not a result of {question.request.method}: {error}"
                    raise MCPError(INVALID_PARAMS, text) from None
        task.answer(answers)
        return {}

    async def _result(self, ctx: _Context, params: TaskParams) -> dict[str, Any]:
        """Answer an older client with the result, once there is one; its user is asked meanwhile."""
        if is_stateless(ctx):
            raise MCPError(METHOD_NOT_FOUND, "Method not found", ctx.method)
        task, principal = await self._found(ctx, params.task_id)
        asked: set[str] = set()
        while not task.has_ended:
            new = [(key, question) for key, question in task.questions.items() if key not in asked]
            for key, question in new:
                asked.add(key)
                task.answer({key: await _ask(ctx, task, question)})
            if not new:
                await self._tasks.end_of(task, ctx, principal)
        if task.failure is not None:
            raise MCPError.from_error_data(task.failure)
        result = dump(task.result)
        result.pop("resultType", None)  # a word of the newer generation
        return {**result, "_meta": {**(result.get("_meta") or {}), _RELATED: {"taskId": task.id}}}

    async def _list(self, ctx: _Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        if ctx.protocol_version != LATEST_HANDSHAKE_VERSION:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", ctx.method)
        tasks = self._tasks.of(self._principals.current())
        page, following = page_of(tasks, params, _PAGE, lambda task: task.id)
        more = {} if following is None else {"nextCursor": following}
        return {"tasks": [task.legacy() for task in page], **more}


def capability() -> types.ServerTasksCapability:
    """Return the capability that clients of the revision 2025-11-25 get at the start."""
    call = types.TasksToolsCapability(call=types.TasksCallCapability())
    return types.ServerTasksCapability(
        list=types.TasksListCapability(),
        cancel=types.TasksCancelCapability(),
        requests=types.ServerTasksRequestsCapability(tools=call),
    )


def _declares(ctx: _Context) -> bool:
    declared = ctx.session.client_capabilities
    return is_stateless(ctx) and declared is not None and EXTENSION in (declared.extensions or {})


def _missing_capability(why: str) -> MCPError:
    needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    text = f"{why}, and needs a client that declares the extension {EXTENSION}"
    return MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, text, needed)


async def _ask(ctx: _Context, task: Task, question: ClientQuestion) -> Any:
    """Return the answer of an older client to a question of a task, which it gets while it waits for the result."""
    shape = dump(question.request)
    params = {**shape.get("params", {}), "_meta": {_RELATED: {"taskId": task.id}}}
    kind = cast("type[BaseModel]", type(question.request))
    request: Any = kind.model_validate({**shape, "params": params}, by_name=False)
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await ctx.session.send_request(request, question.accepts[-1], metadata=related)


async def _notify(task: Task) -> None:
    """Notify the client of a task's new status."""
    params = types.TaskStatusNotificationParams.model_validate(task.legacy(), by_name=False)
    await notify(task.session.send_notification(types.TaskStatusNotification(params=params)))

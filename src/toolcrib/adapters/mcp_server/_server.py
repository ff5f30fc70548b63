"""MCP server: the SDK's low-level server, whose tool calls go through the pipeline."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

import mcp_types as types
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, principal_components
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from toolcrib.adapters.mcp_server._media import text_in
from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._programs import ProgramServer
from toolcrib.adapters.mcp_server._tool_changes import ToolChanges
from toolcrib.adapters.mcp_server._tool_server import ToolServer
from toolcrib.adapters.mcp_server._tools import DirectToolServer
from toolcrib.approvals import ApprovalStore, MemoryApprovalStore, SuspendedCallStore, WaitableApprovalStore
from toolcrib.calls import ResultReader
from toolcrib.errors import SchemaError
from toolcrib.pipeline import Pipeline, Run
from toolcrib.serving import Principals, check_countable, local_user, suspended_calls_beside
from toolcrib.toolsets import Toolset, ToolsetLike, sources_of

__all__ = ["McpServer", "build_server"]

_Context = ServerRequestContext[ToolServer, Any]
_READABLE = "@:.+ /"  # characters that a part of a principal's name keeps


def build_server(toolset: ToolsetLike, options: ServerOptions | None = None) -> McpServer:
    """Return a server of the SDK that serves a toolset; give it to any of the SDK's transports.

    Args:
        toolset: The tools; members that list themselves are asked when the server starts, and kept open while it runs.
        options: How they are served.

    Raises:
        ValueError: A key is too short, or the store cannot wait for an answer, or cannot list its requests.
    """
    return McpServer(Toolset.of(toolset), options or ServerOptions())


class McpServer(Server[ToolServer]):
    """A toolset as a server of the SDK. Made by `build_server`.

    Attributes:
        toolset: The tools.
        options: How they are served.
        approvals: The store of approval requests and their answers.
        suspended_calls: The store of the calls that wait for these answers.
        principals: The principals of the requests.
        changes: Notifies the clients when the tools change.
        tools: What serves the tools, once the server runs.
    """

    def __init__(self, toolset: Toolset, options: ServerOptions) -> None:
        self.toolset, self.options = toolset, options
        self.approvals: ApprovalStore = MemoryApprovalStore() if options.approvals is None else options.approvals
        self.suspended_calls: SuspendedCallStore = (
            suspended_calls_beside(self.approvals) if options.suspended_calls is None else options.suspended_calls
        )
        self.tools: ToolServer | None = None
        if options.wait and not isinstance(self.approvals, WaitableApprovalStore):
            raise ValueError(f"{type(self.approvals).__name__} cannot be waited for; leave `wait` out")
        check_countable(self.approvals, options.max_pending)
        local = options.principal or local_user()
        self.principals = Principals(
            self.approvals, self._open_run, lambda: _caller() or local, options.max_pending, options.kept_for
        )
        self.changes = ToolChanges()
        self._may_change = bool(options.search or sources_of(toolset))
        super().__init__(
            options.name,
            title=options.title,
            version=version("toolcrib") if options.version is None else options.version,
            lifespan=_open_toolset,
            get_tool_input_schema=self._input_schema,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        self.middleware += [
            RequestStateBoundary(self._state_security(), default_audience=options.name),
            self._add_instructions,
        ]
        if self._may_change:
            self.middleware.append(self.changes.note_session)
            self.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, self._listen)

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema that the SDK compares the headers of a call with; else it would list all tools for each."""
        entry = None if self.tools is None else self.tools.entries.get(name)
        try:
            return None if entry is None else entry.parameters
        except SchemaError:  # such a tool is not listed, either
            return None

    def _state_security(self) -> RequestStateSecurity:
        """Return how the state that clients hand back is sealed: to a call, to a principal, and for a limited time."""
        return RequestStateSecurity(
            keys=list(self.options.keys) or [secrets.token_bytes(32)],
            ttl=self.options.state_seconds,
            bind_principal=lambda ctx: self.principals.name(),
        )

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return what the SDK sends a client of the older generation at the start."""
        options = notification_options or NotificationOptions(tools_changed=self._may_change)
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    def _open_run(self, principal: str) -> Run:
        options = self.options
        run = Run(limits=options.limits, deps=options.deps) if options.run is None else options.run(principal)
        shown = {"reader": ResultReader(text_in)}
        return run.view(**shown) if options.errors is None else run.view(**shown, errors=options.errors)

    # --- requests

    async def _list(self, ctx: _Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        if params is not None and params.cursor is not None:
            raise MCPError(INVALID_PARAMS, "there is no such cursor: all tools are on the first page")
        return types.ListToolsResult(tools=[*await ctx.lifespan_context.list(self.principals.current())])

    async def _call(
        self, ctx: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        principal = self.principals.current()
        before = len(principal.run.revealed)
        result = await ctx.lifespan_context.call(ctx, params, principal)
        if len(principal.run.revealed) > before:  # the call has found tools
            await ctx.session.send_tool_list_changed()  # a newer client listens for it
            await self.changes.publish(principal)
        return result

    async def _listen(
        self, ctx: _Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        return await self.changes.listen(self.principals.current(), ctx, params)

    async def _add_instructions(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        """Add the instructions of the tools to the replies by which a server introduces itself."""
        result = await call_next(ctx)
        if ctx.method not in ("initialize", "server/discover") or not isinstance(result, dict):
            return result
        texts = [self.options.instructions, *await ctx.lifespan_context.instructions(self.principals.current())]
        joined = "\n\n".join(text for text in texts if text)
        return {**result, "instructions": joined} if joined else result


def _caller() -> str | None:
    """Return the principal of the request's token: its client, and where known its issuer and its subject."""
    token: AccessToken | None = get_access_token()
    if token is None:
        return None
    client, issuer, subject = (part and quote(part, _READABLE) for part in principal_components(token))
    parts = [client or "", f"iss={issuer}" if issuer else "", f"sub={subject}" if subject else ""]
    return ";".join(part for part in parts if part)


@asynccontextmanager
async def _open_toolset(server: Server[ToolServer]) -> AsyncGenerator[ToolServer]:
    if not isinstance(server, McpServer):
        raise TypeError("this is the lifespan of an McpServer")
    async with server.toolset.open(hide_unavailable=False) as bound:
        server.tools = tools = await _tool_server(server, bound)
        async with server.changes.following(bound, tools):
            yield tools


async def _tool_server(server: McpServer, bound: Toolset) -> ToolServer:
    options, suspended = server.options, server.suspended_calls
    if options.code_mode:
        return ProgramServer(bound, options, suspended)
    whole = Pipeline(bound, sinks=options.sinks, executor=options.executor)
    listed = 5 if options.search is True else options.search

    def pipeline() -> Pipeline:
        tools = _searchable(bound, listed) if listed else bound
        return whole if tools is bound else Pipeline(tools, sinks=options.sinks, executor=options.executor)

    return DirectToolServer(pipeline, options, suspended, await suspended.tools())


def _searchable(toolset: Toolset, most: int) -> Toolset:
    """Return a large toolset with some of its tools listed, and a search for the others."""
    offered = [name for name in toolset.names() if name in toolset.offered()]
    if len(offered) <= most:
        return toolset
    search = import_module("toolcrib.toolsets.search")  # with the extra of that name
    return search.searchable(toolset, keep=offered[:most])

"""The server: the SDK's low-level one, with handlers that go over the counter."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from toolcrib.adapters.mcp_server._elicitation import Waits
from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._programs import ServedPrograms
from toolcrib.adapters.mcp_server._tool_server import Served
from toolcrib.adapters.mcp_server._tools import ServedTools
from toolcrib.approvals import ApprovalStore, MemoryApprovalStore, SuspendedCallStore
from toolcrib.errors import SchemaError
from toolcrib.pipeline import Pipeline
from toolcrib.serving._pending_limit import countable
from toolcrib.serving._principals import Principals
from toolcrib.serving._suspended_calls import waiting_calls_beside
from toolcrib.toolsets import ToolEntry, Toolset, ToolsetLike

__all__ = ["CribServer", "build_server"]

_Context = ServerRequestContext[Served, Any]


def build_server(toolset: ToolsetLike, options: ServerOptions | None = None) -> CribServer:
    """Return a server of the SDK that serves a toolset; give it to any of the SDK's transports.

    Args:
        toolset: The tools; members that list themselves are asked when the server starts, and kept open while it runs.
        options: How they are served.

    Raises:
        ValueError: A key is too short, or the store cannot be waited for, or not be looked through.
    """
    return CribServer(Toolset.of(toolset), options or ServerOptions())


class CribServer(Server[Served]):
    """A toolset as a server of the SDK. Made by `build_server`.

    Attributes:
        toolset: The tools.
        options: How they are served.
        approvals: Where questions about calls and their answers are kept.
        waiting: Where the calls themselves are kept meanwhile.
        principals: On whose behalf requests come.
        entries: The tools that are served one by one, by name, once the server runs.
    """

    def __init__(self, toolset: Toolset, options: ServerOptions) -> None:
        self.toolset, self.options = toolset, options
        self.approvals: ApprovalStore = MemoryApprovalStore() if options.approvals is None else options.approvals
        self.waiting: SuspendedCallStore = (
            waiting_calls_beside(self.approvals) if options.waiting is None else options.waiting
        )
        self.principals = Principals(options, self.approvals)
        self.entries: Mapping[str, ToolEntry] = {}
        if options.wait and not isinstance(self.approvals, Waits):
            raise ValueError(f"{type(self.approvals).__name__} cannot be waited for; leave `wait` out")
        countable(self.approvals, options.max_pending)
        super().__init__(
            options.name,
            title=options.title,
            version=version("toolcrib") if options.version is None else options.version,
            lifespan=_opened,
            get_tool_input_schema=self._input_schema,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        self.middleware += [RequestStateBoundary(self._sealing(), default_audience=options.name), self._introduce]
        if options.search:
            self.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, self._listen)

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return what the SDK compares headers of a call with; without it, it would list all tools for every call."""
        entry = self.entries.get(name)
        try:
            return None if entry is None else entry.parameters
        except SchemaError:  # such a tool is not listed, either
            return None

    def _sealing(self) -> RequestStateSecurity:
        """Return how the state that clients hand back is sealed: to a call, to a principal, and for a while."""
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
        """Return what the SDK tells a client of the older generation at the start."""
        told = notification_options or NotificationOptions(tools_changed=bool(self.options.search))
        return super().create_initialization_options(told, experimental_capabilities, extensions)

    # --- requests

    async def _list(self, ctx: _Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        if params is not None and params.cursor is not None:
            raise MCPError(INVALID_PARAMS, "there is no such cursor: all tools are on the first page")
        return types.ListToolsResult(tools=[*await ctx.lifespan_context.list(self.principals.current())])

    async def _call(
        self, ctx: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        return await ctx.lifespan_context.call(ctx, params, self.principals.current())

    async def _listen(
        self, ctx: _Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        return await self.principals.current().listen(ctx, params)

    async def _introduce(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        """Put the instructions of the tools into the answers by which a server introduces itself."""
        result = await call_next(ctx)
        if ctx.method not in ("initialize", "server/discover") or not isinstance(result, dict):
            return result
        texts = [self.options.instructions, *await ctx.lifespan_context.instructions(self.principals.current())]
        said = "\n\n".join(text for text in texts if text)
        return {**result, "instructions": said} if said else result


@asynccontextmanager
async def _opened(server: Server[Served]) -> AsyncGenerator[Served]:
    if not isinstance(server, CribServer):
        raise TypeError("this is the lifespan of a CribServer")
    options, waiting = server.options, server.waiting
    async with server.toolset.open(hide_unavailable=False) as bound:
        if options.code_mode:
            yield ServedPrograms(bound, options, waiting)
            return
        if options.search:
            bound = _searchable(bound, 5 if options.search is True else options.search)
        server.entries = bound.entries
        pipeline = Pipeline(bound, sinks=options.sinks, executor=options.executor)
        yield ServedTools(pipeline, options, waiting, await waiting.tools())


def _searchable(toolset: Toolset, most: int) -> Toolset:
    """Return a set that is too big to be listed whole with some of its tools listed, and a search for the others."""
    offered = [name for name in toolset.names() if name in toolset.offered()]
    if len(offered) <= most:
        return toolset
    search = import_module("toolcrib.toolsets.search")  # with the extra of that name
    return search.searchable(toolset, keep=offered[:most])

"""The server: the SDK's low-level one, with handlers that go over the counter."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._principals import Principals
from toolcrib.adapters.mcp_server._tools import ServedTools
from toolcrib.approvals import ApprovalStore, MemoryApprovalStore
from toolcrib.invoke import Pipeline
from toolcrib.toolsets import Toolset, ToolsetLike

__all__ = ["CribServer", "build_server"]

_Context = ServerRequestContext[ServedTools, Any]


def build_server(toolset: ToolsetLike, options: ServerOptions | None = None) -> CribServer:
    """Return a server of the SDK that serves a toolset; give it to any of the SDK's transports.

    Args:
        toolset: The tools; members that list themselves are asked when the server starts, and kept open while it runs.
        options: How they are served.
    """
    return CribServer(Toolset.of(toolset), options or ServerOptions())


class CribServer(Server[ServedTools]):
    """A toolset as a server of the SDK. Made by `build_server`.

    Attributes:
        toolset: The tools.
        options: How they are served.
        approvals: Where questions about calls and their answers are kept.
        principals: On whose behalf requests come.
    """

    def __init__(self, toolset: Toolset, options: ServerOptions) -> None:
        self.toolset, self.options = toolset, options
        self.approvals: ApprovalStore = MemoryApprovalStore() if options.approvals is None else options.approvals
        self.principals = Principals(options, self.approvals)
        super().__init__(
            options.name,
            title=options.title,
            version=version("toolcrib") if options.version is None else options.version,
            lifespan=_opened,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        self.middleware.append(self._introduce)

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
        return types.ListToolsResult(tools=await ctx.lifespan_context.list(self.principals.current()))

    async def _call(
        self, ctx: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        return await ctx.lifespan_context.call(ctx, params, self.principals.current())

    async def _introduce(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        """Put the instructions of the tools into the answers by which a server introduces itself."""
        result = await call_next(ctx)
        if ctx.method not in ("initialize", "server/discover") or not isinstance(result, dict):
            return result
        texts = [self.options.instructions, *await ctx.lifespan_context.instructions(self.principals.current())]
        said = "\n\n".join(text for text in texts if text)
        return {**result, "instructions": said} if said else result


@asynccontextmanager
async def _opened(server: Server[ServedTools]) -> AsyncGenerator[ServedTools]:
    if not isinstance(server, CribServer):
        raise TypeError("this is the lifespan of a CribServer")
    options = server.options
    async with server.toolset.open(hide_unavailable=False) as bound:
        yield ServedTools(Pipeline(bound, sinks=options.sinks, executor=options.executor))

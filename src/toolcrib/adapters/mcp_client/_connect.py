"""Toolset of an MCP server, made by `connect`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, Unpack

import httpx2

from toolcrib.adapters.mcp_client._options import Approval, ConnectOptions, Options, Source, read_source, server_name
from toolcrib.adapters.mcp_client._remote_server import RemoteServer
from toolcrib.adapters.mcp_client._source import ServerSource
from toolcrib.adapters.mcp_client._values import Prompt, ServerStatus, messages_of, prompt_of, resource_of
from toolcrib.toolsets import Toolset, sources_of

__all__ = ["ServerToolset", "connect", "server_statuses"]


def connect(
    source: Source,
    *,
    prefix: str = "",
    tool_names: Collection[str] | None = None,
    include_resources: bool | Collection[str] = True,
    descriptions: Mapping[str, str] | None = None,
    return_schemas: Mapping[str, Any] | None = None,
    approval: Approval = False,
    headers: Mapping[str, str] | None = None,
    auth: httpx2.Auth | None = None,
    **more: Unpack[ConnectOptions],
) -> ServerToolset:
    """Return the tools of an MCP server; opening the toolset connects to it, and closing it disconnects.

    An option names a tool as the server does, without the prefix.

    Args:
        source: A command line, as text or in parts, which is started and reached over its standard input and output;
            a URL; or a client, session, or server of the SDK.
        prefix: What every name begins with.
        tool_names: The tools to take; all of them when None.
        include_resources: Whether resources are tools, `read_*`, and templates, `query_*`; or the names or URIs of
            those that are.
        descriptions: Descriptions in place of those of the server.
        return_schemas: JSON schemas or types of results in place of those of the server; a text is then read as JSON.
        approval: Which tools need it: all, those named, or those for which a function of `RemoteTool` returns True.
        headers: Headers of each request to a URL.
        auth: Signs requests to a URL, as the SDK's `OAuthClientProvider` does.
        more: See `Options`.

    Raises:
        TypeError: The source is of another type, or an option does not go with it.
    """
    if isinstance(tool_names, str):
        raise TypeError(f"tool_names takes a list of names; write tool_names=[{tool_names!r}]")
    if isinstance(approval, str):
        raise TypeError(f"approval takes a list of names; write approval=[{approval!r}]")
    options = Options(
        prefix,
        tool_names,
        include_resources,
        descriptions or {},
        return_schemas or {},
        approval,
        headers,
        auth,
        **more,
    )
    target = read_source(source, options)
    return ServerToolset(ServerSource(target, options.name or server_name(target), options))


def server_statuses(toolset: Toolset) -> list[ServerStatus]:
    """Return how each MCP server of a toolset is, in order, while the toolset is open.

    Args:
        toolset: The one with the servers, not what its `open` gives.
    """
    return [source.status() for source in sources_of(toolset) if isinstance(source, ServerSource)]


class ServerToolset(Toolset):
    """The tools of one server, as any toolset; and its prompts. Made by `connect`.

    A view of it has its tools, and not these methods.
    """

    def __init__(self, source: ServerSource) -> None:
        super().__init__([source], toolset_id=source.server)
        self._source = source

    def status(self) -> ServerStatus:
        """Return how the server is where it was opened last."""
        return self._source.status()

    async def list_prompts(self) -> list[Prompt]:
        """Return the prompts that the server offers, without their messages."""
        async with self._remote() as remote:
            return [prompt_of(prompt) for prompt in await remote.list_prompts()]

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Prompt:
        """Return a prompt with its messages.

        Raises:
            RemoteToolError: The server does not have it, or does not take these arguments.
        """
        given = dict(arguments or {})
        async with self._remote() as remote:
            result = await remote.get_prompt(name, given)
        return Prompt(name, result.description or "", dict(given), (), messages_of(result.messages))

    async def read_resource(self, uri: str) -> Any:
        """Return the contents of a resource, listed or not."""
        async with self._remote() as remote:
            return resource_of(await remote.read_resource(uri, None))

    @asynccontextmanager
    async def _remote(self) -> AsyncGenerator[RemoteServer]:
        """Give the server that was opened last, or open it for this request alone."""
        if self._source.opened:
            yield self._source.opened[-1]
            return
        async with self._source.connect() as (remote, _):
            yield remote

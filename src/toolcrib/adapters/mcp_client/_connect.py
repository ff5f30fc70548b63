"""Toolset of an MCP server, made by `connect`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar, Unpack, cast

import httpx2
import mcp_types as types

from toolcrib.adapters.mcp_client._listing import Change
from toolcrib.adapters.mcp_client._options import Approval, ConnectOptions, Options, Source, read_source, server_name
from toolcrib.adapters.mcp_client._remote_server import RemoteServer
from toolcrib.adapters.mcp_client._source import ServerSource
from toolcrib.adapters.mcp_client._values import Prompt, ServerStatus, messages_of, prompt_of, resource_of
from toolcrib.approvals import ToolPins
from toolcrib.errors import explain_options, refuse_unknown_options, require_choice
from toolcrib.toolsets import Toolset, sources_of

F = TypeVar("F", bound=Callable[..., Any])

_SOURCES = "connect(['python', 'server.py']), or connect('https://example.org/mcp')"
_OF_OTHERS = {  # what other frameworks call an option of `connect`
    **dict.fromkeys(("tool_name_prefix", "tool_prefix"), "prefix"),
    **dict.fromkeys(("allowed_tools", "tool_filter", "tools"), "tool_names"),
    **dict.fromkeys(("require_approval", "requires_approval"), "approval"),
    **dict.fromkeys(("client_session_timeout_seconds", "read_timeout", "timeout_seconds"), "timeout"),
    **dict.fromkeys(("args", "command", "url"), f"a part of the source: {_SOURCES}"),
    "transport": "the source: a command line, or a URL",
}


def _explain_source(connect: F) -> F:
    """Return the function, which refuses more values than one source, and none, with how a source is written."""

    @wraps(connect)
    def explained(*sources: Any, **options: Any) -> Any:
        if len(sources) + ("source" in options) != 1:
            parts = sources or (options.get("command"), *(options.get("args") or ()))
            mend = f"connect({[*map(str, parts)]!r})" if len(parts) > 1 else _SOURCES
            raise TypeError(f"connect() takes one source, and options by name: {mend}")
        return connect(*sources, **options)

    return cast("F", explained)


@_explain_source
@explain_options()
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
        prefix: The prefix of every name.
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
    if tool_names is not None:
        require_choice("connect()", "tool_names", tool_names)
    require_choice("connect()", "approval", approval, ())
    refuse_unknown_options("connect()", more, _OPTIONS, _OF_OTHERS)
    texts, schemas = descriptions or {}, return_schemas or {}
    options = Options(prefix, tool_names, include_resources, texts, schemas, approval, headers, auth, **more)
    target = read_source(source, options)
    return ServerToolset(ServerSource(target, options.name or server_name(target), options))


def server_statuses(toolset: Toolset) -> list[ServerStatus]:
    """Return how each MCP server of a toolset is, in order, while the toolset is open.

    Args:
        toolset: The one with the servers, not what its `open` gives.
    """
    return [source.status() for source in sources_of(toolset) if isinstance(source, ServerSource)]


def server_of(toolset: Toolset, tool: str) -> str | None:
    """Return the name of the MCP server that a tool of a toolset is from, while the toolset is open.

    Args:
        toolset: The one with the servers, not what its `open` gives.
        tool: The tool's name, as models call it.
    """
    sources = (source for source in sources_of(toolset) if isinstance(source, ServerSource))
    return next((source.server for source in sources if tool in source.tool_names), None)


def pinned_changes(toolset: Toolset) -> list[Change]:
    """Return the changes of an open toolset's MCP servers since a person accepted them.

    Args:
        toolset: The one with the servers, not what its `open` gives.
    """
    sources = [source for source in sources_of(toolset) if isinstance(source, ServerSource)]
    return [change for source in sources if source.opened for change in source.opened[-1].changes()]


def pin_stores(toolset: Toolset) -> list[ToolPins]:
    """Return where what the MCP servers of a toolset have is kept as it was at first; each store once."""
    stores: dict[Path, ToolPins] = {}
    for source in sources_of(toolset):
        pins = source.pins if isinstance(source, ServerSource) else None
        if pins is not None:
            store = pins if isinstance(pins, ToolPins) else ToolPins(pins)
            stores.setdefault(store.path, store)
    return [*stores.values()]


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
        values = dict(arguments or {})
        async with self._remote() as remote:
            result = await remote.get_prompt(name, values)
        return Prompt(name, result.description or "", dict(values), (), messages_of(result.messages))

    async def complete(self, of: str, argument: str, value: str, others: Mapping[str, str] | None = None) -> list[str]:
        """Return the completions of an argument of a prompt, or of a template of resources.

        Args:
            of: The prompt's name, or the template's URI.
            value: The beginning of the argument.
            others: The other arguments, as far as they are known.
        """
        async with self._remote() as remote:
            is_template = any(of == template.uri_template for template in remote.listing.templates)
            reference = types.ResourceTemplateReference(uri=of) if is_template else types.PromptReference(name=of)
            return (await remote.complete(reference, argument, value, others or {})).values

    async def read_resource(self, uri: str) -> Any:
        """Return the contents of a resource, listed or not."""
        async with self._remote() as remote:
            return resource_of(await remote.read_resource(uri, None))

    @asynccontextmanager
    async def subscribe(self, *uris: str) -> AsyncGenerator[AsyncIterator[str]]:
        """Yield the URIs of resources as they are updated; those of several updates that were not taken yet once.

        Where the server was lost and is there again, each counts as updated.

        Raises:
            RemoteToolError: The server does not announce updates.
        """
        updates = _Updates()
        async with self._remote() as remote:
            subscribed: list[str] = []
            try:
                for uri in uris:
                    await remote.subscribe(uri, updates.put)
                    subscribed.append(uri)
                yield updates
            finally:
                for uri in subscribed:
                    await remote.unsubscribe(uri, updates.put)

    @asynccontextmanager
    async def _remote(self) -> AsyncGenerator[RemoteServer]:
        """Yield the server that was opened last, or open it for this request alone."""
        if self._source.opened:
            yield self._source.opened[-1]
            return
        async with self._source.connect() as (remote, _):
            yield remote


class _Updates:
    """The URIs that are updated and were not taken yet, each once."""

    def __init__(self) -> None:
        self._uris: dict[str, None] = {}
        self._is_some = asyncio.Event()

    def put(self, uri: str) -> None:
        self._uris[uri] = None
        self._is_some.set()

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        while not self._uris:
            self._is_some.clear()
            await self._is_some.wait()
        uri = next(iter(self._uris))
        del self._uris[uri]
        return uri


_OPTIONS = ConnectOptions.__optional_keys__ | signature(connect).parameters.keys() - {"source", "more"}

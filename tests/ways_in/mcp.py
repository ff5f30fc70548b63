"""Ways in that need the extra `mcp`: a toolset served over it, called by a client of the SDK's."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, ClassVar

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_PARAMS, CallToolResult, TextContent, jsonrpc_message_adapter
from mcp_types.version import LATEST_MODERN_VERSION

from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_server import HttpApp, McpServer, ServerOptions, build_server, http_app
from toolcrib.approvals import MemoryApprovalStore, MemorySuspendedCalls, SuspendedCall
from toolcrib.calls import Completed, Failed, Outcome, Suspended, outcome_from_dict
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Run
from toolcrib.testing import RecordingSink
from toolcrib.testing._ways import Ability, Way, WayRequest
from toolcrib.toolsets import Toolset

__all__ = ["McpHttpWay", "McpWay", "NestedMcpWay", "mcp_ways", "over_http", "pipe_client", "piped"]

_URL = "http://127.0.0.1:8000/mcp"
_REQUEST_META = "toolcrib/request"  # where a client names the approval request of the call to go on with


@asynccontextmanager
async def piped(server: McpServer) -> AsyncGenerator[tuple[Any, Any]]:
    """Serve over a pair of pipes in this process, framed as over the standard streams, and give the client's end.

    It is a transport for `mcp.client.client.Client`, and much cheaper than a process.
    """
    (to_server, from_client), (to_client, from_server) = os.pipe(), os.pipe()
    server_in = os.fdopen(to_server, encoding="utf-8", errors="replace")
    server_out = os.fdopen(from_server, "w", encoding="utf-8")

    async def serve() -> None:
        with server_in, server_out:
            async with stdio_server(anyio.wrap_file(server_in), anyio.wrap_file(server_out)) as (read, write):
                await server.run(read, write, server.create_initialization_options())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        async with pipe_client(to_client, from_client) as streams:
            yield streams


@asynccontextmanager
async def pipe_client(from_server: int, to_server: int) -> AsyncGenerator[tuple[Any, Any]]:
    """Give the client's end of two pipes to a server: a transport like `piped`."""
    client_in = os.fdopen(from_server, encoding="utf-8")
    client_out = os.fdopen(to_server, "w", encoding="utf-8")
    received, send_received = _stream()
    sent, send_sent = _stream()

    async def receive() -> None:
        async with send_received:
            async for line in anyio.wrap_file(client_in):
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the client has gone; read on
                    await send_received.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))

    async def send() -> None:
        async for message in sent:
            client_out.write(message.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n")
            client_out.flush()

    with client_in, received, sent, send_sent:
        async with anyio.create_task_group() as tasks:
            for task in (receive, send):
                tasks.start_soon(task)
            try:
                yield received, send_sent
            finally:
                send_sent.close()
                client_out.close()  # the server then ends and closes its side, and so ends what is received


def _stream() -> tuple[MemoryObjectReceiveStream[SessionMessage], MemoryObjectSendStream[SessionMessage]]:
    send, receive = anyio.create_memory_object_stream[SessionMessage](0)
    return receive, send


@asynccontextmanager
async def over_http(app: HttpApp) -> AsyncGenerator[tuple[Any, Any]]:
    """Serve over HTTP in this process, without a socket, and give the client's end, a transport like `piped`."""
    to_app = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.running(),
        httpx2.AsyncClient(transport=to_app) as client,
        streamable_http_client(_URL, http_client=client) as streams,
    ):
        yield streams


class _Store(MemoryApprovalStore):
    """The approval requests and the suspended calls of the servers of one run."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = MemorySuspendedCalls()

    def suspended_calls(self) -> MemorySuspendedCalls:
        """Return the suspended calls."""
        return self.calls


class McpWay(Way):
    """A server and a client of the SDK's, with a pair of pipes between them.

    A call that is suspended is answered in the store of the server, and the client calls another server once more.

    Args:
        generation: `legacy` for a session that begins with a handshake; else a version of the stateless protocol.
    """

    abilities: ClassVar[frozenset[Ability]] = frozenset(
        {"model", "run", "answer", "stored", "concurrent", "cancel", "media"}
    )

    def __init__(self, generation: str) -> None:
        self._generation = generation
        self._stores: dict[str, _Store] = {}  # of the servers of each run
        self._suspended: dict[str, tuple[_Store, WayRequest, SuspendedCall]] = {}  # by approval request
        self.title = "mcp over stdio" + (", older" if generation == "legacy" else "")

    def transport(
        self, request: WayRequest, options: ServerOptions, outer: RecordingSink
    ) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        """Return how a client reaches a server of the tools."""
        return piped(build_server(request.toolset, options))

    async def carry(self, request: WayRequest) -> Outcome:
        if isinstance(request.call, Suspended):
            return await self._answered(request, request.call)
        store = self._stores.setdefault(request.run.id, _Store())
        return await self._kept(request, store, await self._called(request, store, None))

    async def _kept(self, request: WayRequest, store: _Store, outcome: Outcome) -> Outcome:
        """Return the outcome; of a call that was suspended, as the server has kept it."""
        if not isinstance(outcome, Suspended):
            return outcome
        kept = await store.calls.find_request(request.run.principal or "ann", outcome.request.id)
        if kept is None:
            raise AssertionError("the server has not kept the suspended call")
        self._suspended[outcome.request.id] = store, request, kept
        return outcome_from_dict(kept.state)

    async def _answered(self, request: WayRequest, waiting: Suspended) -> Outcome:
        """Answer a suspended call, and have the client call once more, as after a crash that left the call kept."""
        store, first, kept = self._suspended[waiting.request.id]
        await store.calls.keep(replace(kept, state=waiting.to_dict()))
        refused: ApprovalError | None = None
        try:
            if request.answer is not None:
                await store.answer(request.answer)
        except ApprovalError as error:
            refused = error
        again = replace(request, call=first.new)
        outcome = await self._called(again, store, waiting.request.id)
        if refused is None or isinstance(outcome, Completed):
            return await self._kept(again, store, outcome)
        return Failed(waiting.tool, waiting.call_id, refused.code, str(refused), "ApprovalError", exception=refused)

    async def _called(self, request: WayRequest, store: _Store, continues: str | None) -> Outcome:
        """Have a client call the tool; `continues` is the approval request of the call to go on with."""
        watch = RecordingSink()
        run = request.run.with_sinks(watch)
        principal = request.run.principal or "ann"
        options = ServerOptions(
            run=lambda name: run, principal=principal, approvals=store, errors=request.run.channel.errors
        )
        outer = RecordingSink()
        transport = self.transport(request, options, outer)
        meta: Any = None if continues is None else {_REQUEST_META: continues}
        async with Client(transport, mode=self._generation, cache=None) as client:
            try:
                result = await client.call_tool(request.new.name, request.json_arguments, meta=meta)
            except MCPError as error:
                result = error
        request.shown.append(str(result) if isinstance(result, MCPError) else result.model_dump_json())
        if isinstance(result, MCPError) and continues is not None and not watch.records:
            if result.error.code != INVALID_PARAMS:
                raise result
            return Failed(request.new.name, request.new.id, "approval_error", result.error.message)  # taken up before
        if not watch.records:  # the outer pipeline refused it; its records do not know what is secret
            return _refused(request, outcome_from_dict(outer.record.outcome))
        outcome = outcome_from_dict(watch.records[-1].outcome)
        self.compare(outcome, result)
        return outcome

    def compare(self, outcome: Outcome, result: CallToolResult | MCPError) -> None:
        """Raise an AssertionError when the client got something else than the outcome of the call."""
        _compare(outcome, result)


class McpHttpWay(McpWay):
    """The same over HTTP."""

    def __init__(self, generation: str) -> None:
        super().__init__(generation)
        self.title = self.title.replace("stdio", "http")

    def transport(
        self, request: WayRequest, options: ServerOptions, outer: RecordingSink
    ) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        """Return how a client reaches a server of the tools."""
        return over_http(http_app(request.toolset, options))


class NestedMcpWay(McpWay):
    """A toolset served over MCP, whose tools are those of an MCP server: a toolset of ours served over MCP."""

    abilities: ClassVar[frozenset[Ability]] = frozenset({"model", "concurrent", "cancel", "media"})

    def __init__(self) -> None:
        super().__init__(LATEST_MODERN_VERSION)
        self.title = "mcp in mcp"
        self._outside: dict[str, Run] = {}  # by the run inside

    def transport(
        self, request: WayRequest, options: ServerOptions, outer: RecordingSink
    ) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        """Return how a client reaches a server of the tools of a server of the tools."""
        outside = ServerOptions(run=lambda name: run.view(sinks=(outer,)))
        run = self._outside.setdefault(request.run.id, Run())
        inner = Toolset([connect(build_server(request.toolset, options))])
        return super().transport(replace(request, toolset=inner), outside, outer)

    def compare(self, outcome: Outcome, result: CallToolResult | MCPError) -> None:
        """Raise an AssertionError when the client got a success for a call that failed, or the other way."""
        succeeded = isinstance(result, CallToolResult) and not result.is_error
        if succeeded != isinstance(outcome, Completed):
            raise AssertionError(f"the client got {result} for {outcome}")


def _compare(outcome: Outcome, result: CallToolResult | MCPError) -> None:
    """Raise an AssertionError when the client got something else than the outcome of the call."""
    if isinstance(result, MCPError):
        message = outcome.message if isinstance(outcome, Failed) and outcome.code == "unknown_tool" else None
        if (result.error.code, result.error.message) != (INVALID_PARAMS, message):
            raise AssertionError(f"the client got the error {result} for {outcome}")
        return
    text = "\n".join(part.text if isinstance(part, TextContent) else f"[{part.type}]" for part in result.content)
    if len(result.content) > 1 and not result.is_error:
        return  # with media, of which a record has the facts
    fits = text.startswith(outcome.text()) if isinstance(outcome, Suspended) else text == outcome.text()
    if result.is_error == isinstance(outcome, Completed) or not fits:
        raise AssertionError(f"the client got {result} for {outcome}")


def _refused(request: WayRequest, outcome: Outcome) -> Outcome:
    """Return the outcome of the outer pipeline, to which a tool that is not listed does not exist."""
    unknown = isinstance(outcome, Failed) and outcome.code == "unknown_tool" and outcome.tool in request.toolset
    return replace(outcome, code="not_available") if unknown else outcome


mcp_ways: tuple[Way, ...] = (
    McpWay("legacy"),
    McpWay(LATEST_MODERN_VERSION),
    McpHttpWay("legacy"),
    McpHttpWay(LATEST_MODERN_VERSION),
    NestedMcpWay(),
)

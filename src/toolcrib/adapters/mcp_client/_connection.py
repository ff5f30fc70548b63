"""Connection to an MCP server, in a task of its own, since different tasks may open and close it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Final, cast
from urllib.request import getproxies

import httpx2
import mcp_types as types
from mcp.client import Client, ClientSession, IncomingMessage
from mcp.client.extension import ClientExtension
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolcrib._tls import shared_tls
from toolcrib.adapters.mcp_client._checking import check_results, check_tools_one_by_one
from toolcrib.adapters.mcp_client._command import ErrorOutput, command_streams
from toolcrib.adapters.mcp_client._messages import PLAIN, RepeatedKeys, limited_responses
from toolcrib.adapters.mcp_client._options import Options
from toolcrib.adapters.mcp_client._pace import Announcements, PacedMessages
from toolcrib.adapters.mcp_client._server_requests import ServerRequests, current_call
from toolcrib.adapters.mcp_client._task_calls import TasksExtension
from toolcrib.credentials import PrincipalAuth
from toolcrib.errors import ServerError

_log = logging.getLogger("toolcrib.mcp")
_CONNECT, _READ = 30.0, 300.0  # seconds, as the SDK's own client has them; a call may have longer for its answer
_LIST_CHANGES = (
    types.ToolListChangedNotification,
    types.ResourceListChangedNotification,
    types.PromptListChangedNotification,
)
_CLOSE_SECONDS: Final = 5.0  # that a server has to let its session end; a command has two of its own to stop in, twice
_CLOSED: Final = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError)
"""The errors of a request on a connection that the other end closes."""


class Connection:
    """A connection to a server.

    Attributes:
        client: The client of the session, which answers requests for input; None for a session that was given.
        fault: The fault of the server, where it is known.
    """

    session: ClientSession
    client: Client | None = None

    def __init__(
        self, target: Any, server: str, options: Options, requests: ServerRequests, announced: Announcements
    ) -> None:
        self._target, self._server, self._options = target, server, options
        self._requests, self._announced = requests, announced
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._errors: ErrorOutput | None = None
        self.broken, self.fault, self._ready = False, "", False
        self.on_end: Callable[[Connection], None] = lambda connection: None

    # --- from outside

    async def start(self) -> None:
        """Connect and shake hands.

        Raises:
            ServerError: There is no connection; the error has the last lines of a command's error output.
        """
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(ready), name=f"mcp: {self._server}")
        try:
            async with asyncio.timeout(self._options.connect_timeout):
                await asyncio.shield(ready)
        except TimeoutError:
            problem = f"did not answer within {self._options.connect_timeout:g} s"
            raise ServerError(self._server, await self.reason(problem)) from None
        except Exception as error:  # the transport's, the SDK's
            failure = "did not start" if isinstance(self._target, StdioServerParameters) else "cannot be connected to"
            problem = f"{failure}: {_error_text(error)}"
            raise ServerError(self._server, await self.reason(problem)) from error
        except BaseException:
            self._task.cancel()
            raise

    async def set_log_level(self, level: types.LoggingLevel) -> None:
        """Set the level from which on an older server sends log lines; a newer one gets the level with each request."""
        session = self.session
        known = session.server_capabilities or types.ServerCapabilities()
        if known.logging is None or session.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        request = types.SetLevelRequest(params=types.SetLevelRequestParams(level=level))
        seconds = self._options.connect_timeout
        await session.send_request(request, types.EmptyResult, request_read_timeout_seconds=seconds)

    def _ended(self, fault: str) -> None:
        self.fault = self.fault or fault
        if not self.broken:  # before it is ready, `start` raises an error that says so
            level = logging.WARNING if self._ready else logging.DEBUG
            _log.log(level, "%s: %s", self._server, fault or "the server has ended")
        self.drop()

    def drop(self) -> None:
        self.broken = True
        self._stop.set()

    async def close(self) -> None:
        """Close it, and wait until it is closed; a server that does not let its session end is left after a while."""
        self.drop()
        if self._task is not None and not (await asyncio.wait({self._task}, timeout=_CLOSE_SECONDS))[0]:
            await self._cancel()

    async def reason(self, problem: str = "") -> str:
        """Return why it ended, after a problem: the fault, and the last lines of a command's error output."""
        await self._cancel()
        lines = [] if self._errors is None else await self._errors.last()
        if self.fault:
            problem = f"{problem}: {self.fault}" + ("" if lines else ".")
        return problem + (". Its last words:\n  " + "\n  ".join(lines) if lines else "")

    async def _cancel(self) -> None:
        self.drop()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    # --- the task

    async def _run(self, ready: asyncio.Future[None]) -> None:
        current_call.set(None)
        try:
            async with self._connected():
                self._ready = True
                if not ready.done():
                    ready.set_result(None)
                await self._stop.wait()
        except Exception as error:  # the transport's, the SDK's; the session raises it in pending requests
            if not ready.done():
                ready.set_exception(error)
            else:
                _log.info("%s: the connection ended: %s", self._server, _error_text(error))
        finally:
            self.broken = True
            if not ready.done():
                ready.cancel()
            if self._errors is not None:
                self._errors.close()
            self.on_end(self)

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[None]:
        target = self._target
        if isinstance(target, ClientSession):
            self._use(target)
            yield
            return
        async with AsyncExitStack() as stack:
            self.client = client = await self._enter_client(stack)
            self._use(client.session)  # a client that was given is entered
            listening = asyncio.create_task(self._listen(client), name=f"mcp: {self._server}: changes")
            try:
                yield
            finally:
                listening.cancel()
                await asyncio.wait({listening})

    def _use(self, session: ClientSession) -> None:
        check_results(session)
        check_tools_one_by_one(session)
        self.session = session

    async def _enter_client(self, stack: AsyncExitStack) -> Client:
        target = self._target
        if isinstance(target, Client) and _is_entered(target):
            return target  # its owner closes it
        if self._options.mode != "older":
            return await self._handshake(stack, self._options.mode)
        try:
            return await self._handshake(stack, "legacy")
        except Exception as error:  # the transport's, the SDK's
            cause = _first_of(error)
            if not isinstance(cause, MCPError) or cause.code == types.CONNECTION_CLOSED:
                raise
        return await self._handshake(stack, "auto")

    async def _handshake(self, stack: AsyncExitStack, mode: str) -> Client:
        """Enter a client; once more where the server closed an idle HTTP connection just as a request came on it."""
        try:
            return await stack.enter_async_context(self._client(mode))
        except Exception as error:  # the transport's, the SDK's
            if not isinstance(self._target, str) or not isinstance(_first_of(error), _CLOSED):
                raise
        return await stack.enter_async_context(self._client(mode))

    def _client(self, mode: str) -> Client:
        """Return a new client of the target; for a client that was given, one with its settings."""
        target, options, requests = self._target, self._options, self._requests
        opened = target if isinstance(target, Client) else Client(target, mode=mode, cache=None)
        sampling = options.sampling or (requests.sample if options.may_ask("sampling") else None)
        with_tools = types.SamplingCapability(tools=types.SamplingToolsCapability())
        offered = with_tools if sampling is not None and options.sampling is None else None
        roots = requests.roots if options.roots is not None or options.may_ask("roots") else None
        client = replace(
            opened,
            server=self._transport(opened.server),
            elicitation_callback=opened.elicitation_callback or requests.elicit,
            sampling_callback=opened.sampling_callback or sampling,
            sampling_capabilities=opened.sampling_capabilities or offered,
            list_roots_callback=opened.list_roots_callback or roots,
            logging_callback=opened.logging_callback or requests.log,
            log_level=opened.log_level or options.log_level,
            message_handler=self._message_handler(opened),
            extensions=_with_tasks(opened.extensions) if options.tasks else opened.extensions,
        )
        internals: Any = client  # the SDK has no public way to check what a server says in its handshake
        build = internals._build_session

        async def build_checked(stack: AsyncExitStack) -> ClientSession:
            session: ClientSession = await build(stack)
            check_tools_one_by_one(session)
            return session

        internals._build_session = build_checked
        return client

    def _transport(self, server: Any) -> Any:
        if isinstance(server, StdioServerParameters):
            self._errors = ErrorOutput(self._server)
            repeated, most = RepeatedKeys(self._server), self._options.max_message
            return self._paced(command_streams(server, self._errors.file, most, repeated, self._ended))
        return self._paced(_http(server, self._server, self._options)) if isinstance(server, str) else server

    @asynccontextmanager
    async def _paced(self, transport: AbstractAsyncContextManager[Any]) -> AsyncGenerator[Any]:
        async with transport as (received, sending):
            yield PacedMessages(received, self._server, self._announced, self._options.clock), sending

    # --- what changes

    def _message_handler(self, client: Client) -> Callable[[IncomingMessage], Awaitable[None]]:
        theirs = client.message_handler

        async def handle(message: IncomingMessage) -> None:
            match message:
                case types.ResourceUpdatedNotification():
                    self._announced.updated(message.params.uri)
                case types.ElicitCompleteNotification():
                    self._announced.elicitation_completed(message.params.elicitation_id)
                case _ if isinstance(message, _LIST_CHANGES):
                    self._announced.list_changed()
                case _:
                    pass
            if theirs is not None:
                await theirs(message)

        return handle

    async def _listen(self, client: Client) -> None:
        """Listen for changes of a server of the stateless generation."""
        capabilities = client.server_capabilities
        tools = bool(capabilities.tools and capabilities.tools.list_changed)
        resources = bool(capabilities.resources and capabilities.resources.list_changed)
        prompts = bool(capabilities.prompts and capabilities.prompts.list_changed)
        if not (tools or resources or prompts):
            return
        try:
            async with client.listen(
                tools_list_changed=tools, resources_list_changed=resources, prompts_list_changed=prompts
            ) as events:
                async for _ in events:
                    self._announced.list_changed()
        except (ListenNotSupportedError, MCPError, SubscriptionLost, TimeoutError) as error:
            _log.debug("%s: it does not announce changes: %s", self._server, error)


@asynccontextmanager
async def _http(url: str, server: str, options: Options) -> AsyncGenerator[Any]:
    headers, limit = {**PLAIN, **(options.headers or {})}, options.max_message
    hooks = {"response": [limited_responses(server, limit)]}
    read = None if options.timeout is None else max(_READ, options.timeout)
    timeout = httpx2.Timeout(_CONNECT, read=read)
    auth = options.auth
    tls = shared_tls()
    signed: dict[str, Any] = auth.client_options() if isinstance(auth, PrincipalAuth) else {"auth": auth}
    if "transport" not in signed and not getproxies():  # a client with a transport of its own knows no proxy
        # a socket that notices within a minute when nothing is at its other end any more
        seconds = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
        known = {getattr(socket, name, None): value for name, value in seconds.items()}  # not each system has each
        alive = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
        alive += [(socket.IPPROTO_TCP, option, value) for option, value in known.items() if option is not None]
        signed["transport"] = httpx2.AsyncHTTPTransport(verify=tls, socket_options=alive)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks=hooks, verify=tls, **signed) as http,
        streamable_http_client(url, http_client=http, max_sse_event_size=limit) as streams,
    ):
        yield streams


def _with_tasks(extensions: Sequence[ClientExtension] | None) -> list[ClientExtension]:
    """Return the extensions of a client, and that for tasks where it has none of its own."""
    present = [*(extensions or ())]
    return (
        present
        if any(extension.identifier == TasksExtension.identifier for extension in present)
        else [*present, TasksExtension()]
    )


def _is_entered(client: Client) -> bool:
    try:
        return bool(client.session)
    except RuntimeError:
        return False


def _error_text(error: BaseException) -> str:
    """Return the text of an error; of a group, that of the first error in it."""
    first = _first_of(error)
    return str(first) or type(first).__name__


def _first_of(error: BaseException) -> BaseException:
    """Return the first error of a group, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error

"""MCP server over HTTP, the SDK's streamable transport behind the checks of `serving.http`, and over stdio."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from anyio import wrap_file
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import AnyHttpUrl, ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib._run_sync import run_sync
from toolcrib._subject_tokens import subject_tokens
from toolcrib.adapters.mcp_server._bearer import (
    BearerAuth,
    Challenge,
    ScopeChallenge,
    VerifiedAccess,
    principal_of,
)
from toolcrib.adapters.mcp_server._http_options import HttpOptions
from toolcrib.adapters.mcp_server._incoming import UniqueKeys, UniqueLines, stdin_of_client
from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._server import McpServer, build_server
from toolcrib.adapters.mcp_server._session_limit import SessionLimit
from toolcrib.approvals import SqliteApprovalStore, SuspendedCall, SuspendedCallStore, suspended_calls_beside
from toolcrib.errors import ToolcribError, explain_options
from toolcrib.serving.http import BodyDeadline, HttpGuard, HttpLimits, Site, TokenTable, listen, serve_app
from toolcrib.serving.oauth import TokenCheck, TokenRefused, metadata_path, metadata_url, token_check
from toolcrib.toolsets import ToolsetLike


class HttpApp:
    """A toolset over HTTP, as an ASGI application. Made by `http_app`."""

    def __init__(self, server: McpServer, options: HttpOptions) -> None:
        self.options, self._server = options, server
        self._manager = StreamableHTTPSessionManager(
            server,
            session_idle_timeout=options.idle_seconds,
            max_request_body_size=options.max_body,
            max_sessions=options.max_sessions,
        )
        self._sessions = SessionLimit(
            self._manager.asgi_app,
            server.principals.name,
            options.sessions_each,
            options.max_sessions,
            options.idle_seconds,
        )
        server.middleware.append(self._sessions.count_calls)
        self._callers = KnownCallers(options) if options.known_callers else None
        site = Site(options.host, options.names, [*options.allowed_origins, *_own_pages(options)], local_pages=True)
        self._guard = HttpGuard(self._starlette(), site, options.max_headers)
        self._health = _Health(lambda: self._guard.is_open, self.is_ready)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await self._health.answer(scope) or self._guard
        await answer(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Serve while the body runs, once; for the lifespan of an application that this one is mounted in."""
        try:
            async with self._manager.run():
                yield
        finally:
            if self._callers is not None:
                await self._callers.close()

    async def close(self) -> None:
        """End the open requests, so that the server can stop: streams at once, calls after `grace_seconds`."""
        await self._guard.close(self.options.grace_seconds)

    async def is_ready(self) -> bool:
        """Return whether calls can be served now."""
        return self._server.tools is not None and (self._callers is None or await self._callers.is_ready())

    def _starlette(self) -> Starlette:
        options, callers = self.options, self._callers
        endpoint: ASGIApp = UniqueKeys(self._sessions, options.max_body)
        routes: list[Route] = [*options.routes]
        if callers is not None:
            endpoint = ScopeChallenge(endpoint, self._server.request_scopes, callers.challenge, options.max_body)
        endpoint = BodyDeadline(endpoint, options.body_seconds)
        if callers is not None:
            endpoint = BearerAuth(endpoint, callers.check, callers.challenge)
            routes += _metadata_routes(callers, options)
        routes.append(Route(options.path, endpoint=endpoint))
        cors = Middleware(
            CORSMiddleware,
            allow_origins=list(options.allowed_origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*", "Authorization"],
            expose_headers=["Mcp-Session-Id", "WWW-Authenticate"],
        )
        middleware = [cors] if options.allowed_origins else []

        def nothing_here(request: Request, error: Exception) -> PlainTextResponse:
            where = f"{request.scope.get('root_path', '')}{options.path}"
            return PlainTextResponse(f"There is nothing here: MCP is served at {where}\n", 404)

        return Starlette(
            routes=routes,
            middleware=middleware,
            exception_handlers={404: nothing_here},
            lifespan=lambda _: self.running(),
        )


class _Health:
    """Answers `/healthz` and `/readyz`. What is answered says nothing of what is served, or to whom.

    Args:
        is_ready: Returns whether calls can be served now. An MCP server behind this one that is down does not count:
            its tools alone are missing.
    """

    def __init__(self, is_open: Callable[[], bool], is_ready: Callable[[], Awaitable[bool]]) -> None:
        self._is_open, self._is_ready = is_open, is_ready

    async def answer(self, scope: Scope) -> ASGIApp | None:
        """Return the answer to a request; None for one that is about something else."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            return None
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path not in ("/healthz", "/readyz"):
            return None
        good = self._is_open() and (path == "/healthz" or await self._is_ready())
        return JSONResponse({"status": "ok" if good else "unavailable"}, 200 if good else 503)


@explain_options()
def http_app(toolset: ToolsetLike, options: ServerOptions | None = None, http: HttpOptions | None = None) -> HttpApp:
    """Return a toolset as an ASGI application, for a server of your own.

    An application that it is mounted in runs it in its own lifespan: `async with app.running(): yield`.

    Args:
        toolset: The tools.
        options: How they are served.
        http: Who may use it; `host` is here the address at which clients reach the application.
    """
    server_options = options or ServerOptions()
    served = server_options if server_options.errors is not None else replace(server_options, errors="masked")
    return HttpApp(build_server(toolset, served), http or HttpOptions())


@dataclass(frozen=True, slots=True)
class HttpEndpoint:
    """A toolset at a path of its own.

    Attributes:
        toolset: The tools.
        options: How they are served.
        http: Where, and who may use it.
    """

    toolset: ToolsetLike
    options: ServerOptions | None = None
    http: HttpOptions = field(default_factory=HttpOptions)


class _CallsOfPath:
    """The suspended calls and tasks of one of several endpoints, in the store of all: no other one finds them."""

    def __init__(self, path: str, store: SuspendedCallStore) -> None:
        self._prefix, self._store = f"{path}:", store

    async def keep(self, call: SuspendedCall) -> None:
        await self._store.keep(replace(call, key=self._prefix + call.key))

    async def replace(self, call: SuspendedCall, before: SuspendedCall | None) -> bool:
        earlier = None if before is None else replace(before, key=self._prefix + before.key)
        return await self._store.replace(replace(call, key=self._prefix + call.key), earlier)

    async def find(self, key: str) -> SuspendedCall | None:
        return self._without_prefix(await self._store.find(self._prefix + key))

    async def find_request(self, principal: str, request_id: str) -> SuspendedCall | None:
        return self._without_prefix(await self._store.find_request(principal, request_id))

    async def drop(self, key: str, requests: Collection[str]) -> bool:
        return await self._store.drop(self._prefix + key, requests)

    async def tools(self) -> frozenset[str]:
        return await self._store.tools()

    def _without_prefix(self, call: SuspendedCall | None) -> SuspendedCall | None:
        if call is None or not call.key.startswith(self._prefix):
            return None
        return replace(call, key=call.key.removeprefix(self._prefix))


def _of_path(endpoint: HttpEndpoint) -> ServerOptions:
    """Return the options of one of several endpoints, with suspended calls of its own."""
    options = endpoint.options or ServerOptions()
    store = options.suspended_calls or suspended_calls_beside(options.approvals)
    return replace(options, suspended_calls=_CallsOfPath(endpoint.http.path, store))


class _HttpApps:
    """Several toolsets over HTTP, each at its path, as one ASGI application."""

    def __init__(self, apps: Sequence[HttpApp]) -> None:
        self._apps = apps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self._app_of(scope["path"]))(scope, receive, send)

    async def close(self) -> None:
        """End the open requests of all."""
        await asyncio.gather(*(app.close() for app in self._apps))

    async def _app_of(self, path: str) -> HttpApp:
        """Return the one whose path a path ends with, or whose metadata it is of; for anything else, the first.

        Of the health of all, one that is not ready answers.
        """
        if path == "/readyz":
            for app in self._apps:
                if not await app.is_ready():
                    return app
        for app in self._apps:
            if path == metadata_path(app.options.resource):  # as clients write it, behind a proxy
                return app
        found = [app for app in self._apps if path.endswith(app.options.path)]
        return max(found, key=lambda app: len(app.options.path), default=self._apps[0])


@explain_options()
async def serve_http(
    toolset: ToolsetLike,
    options: ServerOptions | None = None,
    http: HttpOptions | None = None,
    *,
    started: Callable[[str], object] | None = None,
) -> None:
    """Serve a toolset over HTTP until this is cancelled; open requests are ended first.

    Args:
        toolset: The tools.
        options: How they are served.
        http: Where the server listens, and who may use it.
        started: Receives the URL when the server listens.

    Raises:
        OSError: The server cannot listen there.
    """
    await serve_endpoints([HttpEndpoint(toolset, options, http or HttpOptions())], started=started)


@explain_options()
async def serve_endpoints(endpoints: Sequence[HttpEndpoint], *, started: Callable[[str], object] | None = None) -> None:
    """Serve several toolsets over HTTP from one port, each at its path, until this is cancelled.

    Args:
        endpoints: The toolsets. They have the address of the first, and its limits of connections.
        started: Receives the URL of each when the server listens.

    Raises:
        OSError: The server cannot listen there.
        ValueError: Two have one path, or there is none.
    """
    paths = [endpoint.http.path for endpoint in endpoints]
    if not paths or len({*paths}) < len(paths):
        raise ValueError(f"each endpoint has a path of its own, and they have {', '.join(paths) or 'none'}")
    first = endpoints[0].http
    limits = HttpLimits(first.max_connections, first.body_seconds, first.read_seconds)
    with listen(first.host, first.port) as listener:
        port = listener.socket.getsockname()[1]
        plain = [endpoint.options for endpoint in endpoints]
        options = plain if len(endpoints) == 1 else [_of_path(endpoint) for endpoint in endpoints]
        apps = [
            http_app(endpoint.toolset, of_path, replace(endpoint.http, host=first.host, port=port))
            for endpoint, of_path in zip(endpoints, options, strict=True)
        ]

        def say() -> None:
            for path in paths:
                if started is not None:
                    started(f"{listener.url}{path}")

        async with AsyncExitStack() as stack:
            for app in apps:
                await stack.enter_async_context(app.running())
            await serve_app(apps[0] if len(apps) == 1 else _HttpApps(apps), listener, limits, started=say)


def _own_pages(options: HttpOptions) -> list[str]:
    """Return the origin of this server's pages, as a proxy has it."""
    if options.public_url is None:
        return []
    parts = urlsplit(options.public_url)
    return [urlunsplit((parts.scheme, parts.netloc, "", "", ""))]


def _metadata_routes(callers: KnownCallers, options: HttpOptions) -> list[Route]:
    """Return the metadata at the paths where clients look for it, and at those that a proxy may make of them."""
    if callers.metadata is None:
        return []
    metadata = callers.metadata

    async def answer(request: Request) -> JSONResponse:
        return JSONResponse(metadata, headers={"access-control-allow-origin": "*", "cache-control": "max-age=300"})

    places = [metadata_path(str(metadata["resource"])), metadata_path(options.path), metadata_path("")]
    return [Route(place, answer, methods=["GET"]) for place in dict.fromkeys(places)]


class KnownCallers:
    """The check of the tokens of requests.

    Attributes:
        challenge: The answer to a client without a valid token.
        metadata: The metadata of the authorization server for clients (RFC 9728); None where there is no such server.
    """

    def __init__(self, options: HttpOptions) -> None:
        self.challenge = Challenge()
        self.metadata: dict[str, Any] | None = None
        self._held, self._verifier = TokenTable(options.tokens), options.token_verifier
        self._tokens: TokenCheck | None = None
        self._resource: AnyHttpUrl | None = None  # that a verifier's tokens have to be for
        auth = options.auth
        if options.authorization_server is not None:
            server = options.authorization_server
            self._tokens = token_check(server, options.resource)
            self._describe(options.resource, server.issuer, tuple(server.scopes))
        elif options.token_verifier is not None:
            is_checked = auth is not None and auth.validate_token_resource is not False  # unset counts as True here
            self._resource = auth.resource_server_url if auth is not None and is_checked else None
            scopes = () if auth is None else tuple(auth.required_scopes or ())
            self.challenge = Challenge(scopes=scopes)
            if auth is not None and auth.resource_server_url is not None:
                self._describe(str(auth.resource_server_url), str(auth.issuer_url), scopes)

    async def check(self, token: str) -> AccessToken:
        """Return the access token of a bearer token; raises TokenRefused, or AuthorizationServerUnavailable."""
        if self._tokens is not None:
            return await self._checked(token, self._tokens)
        if self._verifier is not None:
            return await self._verified(token, self._verifier)
        holder = self._held.holder(token)
        if holder is None:
            raise TokenRefused("the token is not known")
        return AccessToken(token="", client_id=holder, scopes=[])

    async def _checked(self, token: str, tokens: TokenCheck) -> AccessToken:
        known = await tokens.check(token)
        subject_tokens.keep(known.principal, token, known.expires_at)
        return VerifiedAccess(
            token="",
            client_id=known.client_id,
            subject=known.subject,
            scopes=sorted(known.access.scopes),
            claims={"iss": known.issuer},
            principal=known.principal,
            access=known.access,
        )

    async def _verified(self, token: str, verifier: TokenVerifier) -> AccessToken:
        found = await verifier.verify_token(token)
        if found is None:
            raise TokenRefused("the token is not valid")
        if found.expires_at is not None and found.expires_at < time.time():
            raise TokenRefused("the token has expired")
        if self._resource is not None and not _is_for(found.resource, self._resource):
            raise TokenRefused("the token is for another audience")
        subject_tokens.keep(principal_of(found), token, found.expires_at)
        return found

    async def is_ready(self) -> bool:
        return self._tokens is None or await self._tokens.is_ready()

    async def close(self) -> None:
        if self._tokens is not None:
            await self._tokens.close()

    def _describe(self, resource: str, issuer: str, scopes: tuple[str, ...]) -> None:
        self.challenge = Challenge(metadata_url(resource), scopes)
        self.metadata = {
            "resource": resource,
            "authorization_servers": [issuer],
            **({"scopes_supported": list(scopes)} if scopes else {}),
            "bearer_methods_supported": ["header"],
        }


def _is_for(resource: str | None, url: AnyHttpUrl) -> bool:
    try:
        address = str(AnyHttpUrl(resource or ""))
    except ValidationError:
        return False
    return address.removesuffix("/") == str(url).removesuffix("/")


_log = logging.getLogger("toolcrib.adapters")


_OF_OTHERS = {"transport": "serve(toolset) over stdio, or serve(toolset, http=HttpOptions(port=...))"}


@explain_options(_OF_OTHERS)
def serve(toolset: ToolsetLike, options: ServerOptions | None = None, *, http: HttpOptions | None = None) -> None:
    """Serve a toolset until the client disconnects, or over HTTP until Ctrl-C; see `serve_async`."""
    with suppress(KeyboardInterrupt):
        run_sync(serve_async(toolset, options, http=http), "write `await serve_async(toolset)`")


@explain_options(_OF_OTHERS)
async def serve_async(
    toolset: ToolsetLike, options: ServerOptions | None = None, *, http: HttpOptions | None = None
) -> None:
    """Serve a toolset over stdio until the client disconnects; what tools print goes to stderr.

    Args:
        toolset: The tools.
        options: How they are served. Without a store in them, approvals are kept in the file that the environment
            variable TOOLCRIB_DATABASE names, or `toolcrib.db` in the current folder, where `toolcrib approvals` looks.
        http: Serve over HTTP instead, with these options, until this is cancelled.
    """
    server_options = options or ServerOptions()
    if server_options.approvals is None:
        path = os.environ.get("TOOLCRIB_DATABASE") or "toolcrib.db"
        server_options = replace(server_options, approvals=SqliteApprovalStore(path.removeprefix("sqlite:///")))
    if http is None:
        await serve_stdio(build_server(toolset, server_options))
    else:
        await serve_http(toolset, server_options, http)


@explain_options()
async def serve_stdio(server: McpServer, *, ended: Callable[[ToolcribError | None], object] | None = None) -> None:
    """Serve one client over stdin and stdout until it disconnects; what tools print goes to stderr.

    Args:
        server: The server.
        ended: Called when all is closed but stdin, with the error for which the toolset did not open: the thread that
            waits for a line cannot be stopped, so that this ends, after that or when it was cancelled, with the next
            line or the end of stdin.
    """
    try:
        await _serve_streams(server, ended)
    except* BrokenPipeError:  # the client went before it was answered
        _log.info("the client went before it was answered")


async def _serve_streams(server: McpServer, ended: Callable[[ToolcribError | None], object] | None) -> None:
    fault: ToolcribError | None = None
    try:
        with stdin_of_client() as stdin:
            lines = UniqueLines(wrap_file(stdin))
            async with stdio_server(lines.as_file()) as (read, write):
                lines.replies = write
                try:
                    with redirect_stdout(sys.stderr):
                        await server.run(read, write, server.create_initialization_options())
                except ToolcribError as error:
                    fault = error
                    raise
                finally:
                    if ended is not None:
                        ended(fault)
    except ExceptionGroup:
        if fault is None:
            raise
        raise fault from None  # the toolset does not open, which is no matter of the streams

"""Serving over HTTP: the SDK's streamable transport, behind a front door."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager

import uvicorn
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._server import CribServer, build_server
from toolcrib.serving._http_checks import FrontDoor, Punctual
from toolcrib.serving._http_options import HttpOptions
from toolcrib.serving._http_timeouts import punctual_protocol
from toolcrib.serving._session_limit import SessionShares
from toolcrib.serving._tokens import TokenTable
from toolcrib.toolsets import ToolsetLike

__all__ = ["HttpApp", "http_app", "serve_http"]

_BACKLOG = 512  # connections that may wait to be taken in
_MOST_HEADER_BYTES = 64 * 1024
_KEEP_ALIVE = 75  # seconds that a connection may be idle; clients think longer than the few that are usual


class HttpApp:
    """A toolset over HTTP, as an ASGI application. Made by `http_app`."""

    def __init__(self, server: CribServer, options: HttpOptions) -> None:
        self.options, self._server = options, server
        self._manager = StreamableHTTPSessionManager(
            server,
            session_idle_timeout=options.idle_seconds,
            max_request_body_size=options.max_body,
            max_sessions=options.max_sessions,
        )
        self._door = FrontDoor(self._starlette(), options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._door(scope, receive, send)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Serve while the body runs; for the lifespan of an application that this one is mounted in. Once."""
        return self._manager.run()

    async def close(self) -> None:
        """End what is open, so that the server can be stopped: streams at once, calls after their time of grace."""
        await self._door.close(self.options.grace_seconds)

    def _starlette(self) -> Starlette:
        options = self.options
        each = SessionShares(
            self._manager.asgi_app, self._server.principals.name, options.sessions_each, options.idle_seconds
        )
        endpoint: ASGIApp = Punctual(each, options.body_seconds)
        verifier = TokenTable(options.tokens) if options.tokens else options.token_verifier
        middleware = [_cors(options)] if options.allowed_origins else []
        routes: list[Route] = []
        if verifier is not None:
            middleware += _authentication(verifier, options)
            endpoint = _guarded(endpoint, options)
        if options.auth is not None and options.auth.resource_server_url is not None:
            auth = options.auth
            routes += create_protected_resource_routes(
                resource_url=options.auth.resource_server_url,
                authorization_servers=[auth.issuer_url],
                scopes_supported=auth.required_scopes,
            )
        routes.append(Route(options.path, endpoint=endpoint))
        return Starlette(routes=routes, middleware=middleware, lifespan=lambda _: self._manager.run())


def http_app(toolset: ToolsetLike, options: ServerOptions | None = None, http: HttpOptions | None = None) -> HttpApp:
    """Return a toolset as an ASGI application, for a server of your own.

    Whoever mounts it in an application runs it in that one's lifespan: `async with app.running(): yield`.

    Args:
        toolset: The tools.
        options: How they are served.
        http: Who may come; `host` and `port` say here what the application is reached by.
    """
    return HttpApp(build_server(toolset, options), http or HttpOptions())


async def serve_http(
    toolset: ToolsetLike,
    options: ServerOptions | None = None,
    http: HttpOptions | None = None,
    *,
    started: Callable[[str], object] | None = None,
) -> None:
    """Serve a toolset over HTTP until this is cancelled; what is open then is ended in an orderly way.

    Args:
        toolset: The tools.
        options: How they are served.
        http: Where the server listens, and who may come.
        started: Told the URL once the server listens there.

    Raises:
        OSError: It cannot listen there.
    """
    given = http or HttpOptions()
    app = http_app(toolset, options, given)
    with _listening(given) as listener:
        url = _url(given, listener)
        server = _Server(app, given, lambda: started and started(url))
        async with app.running():
            serving = asyncio.create_task(server.serve([listener]))
            try:
                await asyncio.shield(serving)
            finally:
                server.should_exit = True
                await asyncio.wait([serving])


class _Server(uvicorn.Server):
    """uvicorn, as one part of a program: it leaves signals to the others, and ends open streams before it waits."""

    def __init__(self, app: HttpApp, options: HttpOptions, ready: Callable[[], object]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=punctual_protocol(
                    options.body_seconds, options.read_seconds
                ),  # h11 bounds what it reads before anybody looks at it
                ws="none",
                lifespan="off",  # `running` does it, and says what goes wrong
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE,
                limit_concurrency=options.max_connections,
                backlog=_BACKLOG,
                h11_max_incomplete_event_size=_MOST_HEADER_BYTES,
                timeout_graceful_shutdown=2,
            )
        )
        self._app, self._ready = app, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._app.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@contextmanager
def _listening(options: HttpOptions) -> Generator[socket.socket]:
    found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        yield listener


def _url(options: HttpOptions, listener: socket.socket) -> str:
    host = f"[{options.host}]" if ":" in options.host else options.host
    return f"http://{host}:{listener.getsockname()[1]}{options.path}"


def _authentication(verifier: TokenVerifier, options: HttpOptions) -> list[Middleware]:
    auth = options.auth
    resource = auth.resource_server_url if auth is not None and auth.validate_token_resource else None
    backend = BearerAuthBackend(verifier, resource_server_url=resource)
    return [Middleware(AuthenticationMiddleware, backend=backend), Middleware(AuthContextMiddleware)]


def _guarded(endpoint: ASGIApp, options: HttpOptions) -> ASGIApp:
    auth = options.auth
    told = None if auth is None or auth.resource_server_url is None else auth.resource_server_url
    metadata = None if told is None else build_resource_metadata_url(told)
    return RequireAuthMiddleware(endpoint, [] if auth is None else auth.required_scopes or [], metadata)


def _cors(options: HttpOptions) -> Middleware:
    return Middleware(
        CORSMiddleware,
        allow_origins=list(options.allowed_origins),
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*", "Authorization"],
        expose_headers=["Mcp-Session-Id"],
    )

"""MCP server over HTTP: the SDK's streamable transport, behind the checks of `serving.http`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib.adapters.mcp_server._http_options import HttpOptions
from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._server import McpServer, build_server
from toolcrib.adapters.mcp_server._session_limit import SessionLimit
from toolcrib.serving.http import BodyDeadline, HttpGuard, HttpLimits, Site, TokenTable, listen, serve_app
from toolcrib.toolsets import ToolsetLike

__all__ = ["HttpApp", "http_app", "serve_http"]


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
        site = Site(options.host, options.allowed_hosts, options.allowed_origins, local_pages=True)
        self._guard = HttpGuard(self._starlette(), site, options.max_headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guard(scope, receive, send)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Serve while the body runs, once; for the lifespan of an application that this one is mounted in."""
        return self._manager.run()

    async def close(self) -> None:
        """End the open requests, so that the server can stop: streams at once, calls after `grace_seconds`."""
        await self._guard.close(self.options.grace_seconds)

    def _starlette(self) -> Starlette:
        options = self.options
        sessions = SessionLimit(
            self._manager.asgi_app, self._server.principals.name, options.sessions_each, options.idle_seconds
        )
        endpoint: ASGIApp = BodyDeadline(sessions, options.body_seconds)
        verifier = _TokenVerifier(options.tokens) if options.tokens else options.token_verifier
        middleware = [_cors(options)] if options.allowed_origins else []
        routes: list[Route] = []
        if verifier is not None:
            middleware += _authentication(verifier, options)
            endpoint = _with_token_required(endpoint, options)
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

    An application that it is mounted in runs it in its own lifespan: `async with app.running(): yield`.

    Args:
        toolset: The tools.
        options: How they are served.
        http: Who may use it; `host` is here the address at which clients reach the application.
    """
    given = options or ServerOptions()
    served = given if given.errors is not None else replace(given, errors="masked")
    return HttpApp(build_server(toolset, served), http or HttpOptions())


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
    given = http or HttpOptions()
    app = http_app(toolset, options, given)
    limits = HttpLimits(given.max_connections, given.body_seconds, given.read_seconds)
    with listen(given.host, given.port) as listener:
        url = f"{listener.url}{given.path}"
        async with app.running():
            await serve_app(app, listener, limits, started=lambda: started and started(url))


class _TokenVerifier:
    """Verifies the bearer tokens of `HttpOptions.tokens`, as the SDK asks."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._tokens = TokenTable(tokens)

    async def verify_token(self, token: str) -> AccessToken | None:
        holder = self._tokens.holder(token)
        return None if holder is None else AccessToken(token="", client_id=holder, scopes=[])


def _authentication(verifier: TokenVerifier, options: HttpOptions) -> list[Middleware]:
    auth = options.auth
    is_checked = auth is not None and auth.validate_token_resource is not False  # unset counts as True here
    resource = auth.resource_server_url if auth is not None and is_checked else None
    backend = BearerAuthBackend(verifier, resource_server_url=resource)
    return [Middleware(AuthenticationMiddleware, backend=backend), Middleware(AuthContextMiddleware)]


def _with_token_required(endpoint: ASGIApp, options: HttpOptions) -> ASGIApp:
    auth = options.auth
    resource = None if auth is None else auth.resource_server_url
    metadata = None if resource is None else build_resource_metadata_url(resource)
    return RequireAuthMiddleware(endpoint, [] if auth is None else auth.required_scopes or [], metadata)


def _cors(options: HttpOptions) -> Middleware:
    return Middleware(
        CORSMiddleware,
        allow_origins=list(options.allowed_origins),
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*", "Authorization"],
        expose_headers=["Mcp-Session-Id"],
    )

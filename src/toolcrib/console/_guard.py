"""Guard: what every request has to pass before it is answered, and what every reply says to the browser."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Container
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcrib.console._options import ConsoleOptions, is_address, is_loopback
from toolcrib.console._sessions import Sessions

__all__ = ["Guard", "Visitor"]

_SECURITY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_MOST_BODY = 4_000_000  # bytes of a request


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks.

    Attributes:
        name: The name that the token is held by; empty where people say their name themselves.
        by_header: Whether the token came in a header, which no page of somebody else's can send.
        session: What the browser keeps of the login; empty without one.
    """

    name: str
    by_header: bool = False
    session: str = ""


class Guard:
    """Lets in whom the options let in; wraps the application.

    Whatever a browser shows, from wherever, can send requests here: so the host has to be one that the console goes by
    (a name can be made to lead here), whoever changes something has to come from the console's own page, and beyond
    this machine nobody is let in without a token.

    Args:
        app: The application.
        options: Whom it lets in.
        page: The paths of the page itself, which holds nothing and is for everybody.

    Attributes:
        csrf: What a page has to send back to change something; only a page of this console can read it.
        sessions: Who is logged in.
    """

    def __init__(self, app: ASGIApp, options: ConsoleOptions, page: Container[str]) -> None:
        self._app, self._options, self._page = app, options, page
        self.csrf = secrets.token_urlsafe(24)
        self.sessions = Sessions(options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_SECURITY)
            await send(message)

        refusal = self._refusal(scope)
        await (self._app if refusal is None else refusal)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        path, method = _path_of(scope), str(scope["method"])
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._goes_by(_host_of(hosts[0])):
            return _refused(421, "host", "The console does not go by the name in the header Host; see --allow-host.")
        visitor = scope["visitor"] = self._visitor(headers)
        if path in self._page and method in ("GET", "HEAD"):
            return None
        if visitor is None and path != "/api/login":
            return _refused(401, "token", "Log in with a token.")
        if method not in ("GET", "HEAD"):
            return self._change_refused(headers, hosts[0], visitor, path)
        return None

    def _change_refused(self, headers: Headers, host: str, visitor: Visitor | None, path: str) -> ASGIApp | None:
        """Return why a request may not change anything, if so."""
        if not _from_here(headers, host):
            return _refused(403, "origin", "Only the console's own page may ask for this.")
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _refused(415, "type", "Send application/json.")
        if not headers.get("content-length", "").isdecimal() or int(headers["content-length"]) > _MOST_BODY:
            return _refused(413, "size", f"A request says how long it is, and has {_MOST_BODY} bytes at most.")
        known = path == "/api/login" or (visitor is not None and visitor.by_header)
        if not known and not hmac.compare_digest(headers.get("x-toolcrib-csrf", "").encode(), self.csrf.encode()):
            return _refused(403, "csrf", "The page is older than the server; load it again.")
        return None

    def _goes_by(self, name: str) -> bool:
        if name in self._options.names:
            return True
        return is_address(name) and (not self._options.local or is_loopback(name))

    def _visitor(self, headers: Headers) -> Visitor | None:
        options = self._options
        if not options.tokens:
            return Visitor("")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            holder = options.holder(token.strip())
            return None if holder is None else Visitor(holder, by_header=True)
        cookies = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except CookieError:
            return None
        kept = cookies.get(options.cookie)
        holder = None if kept is None else self.sessions.holder(kept.value)
        return None if kept is None or holder is None else Visitor(holder, session=kept.value)


def _from_here(headers: Headers, host: str) -> bool:
    """Return whether a browser says that a page of this very host asks; what is no browser says nothing."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origins = headers.getlist("origin")
    try:
        return all(urlsplit(origin).netloc.lower() == host.lower() for origin in origins)
    except ValueError:
        return False


def _path_of(scope: Scope) -> str:
    """Return the path inside the console, which may be mounted in another application."""
    path, before = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    inside = path.removeprefix(before)
    return inside if inside == "" or inside.startswith("/") else path


def _host_of(value: str) -> str:
    """Return the name in a Host header, without the port."""
    try:
        return (urlsplit(f"//{value}").hostname or "").lower()
    except ValueError:
        return ""


def _refused(status: int, code: str, why: str) -> ASGIApp:
    return JSONResponse({"error": why, "code": code}, status)

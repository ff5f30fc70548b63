"""Guard of the console: the login of a request, the origin of a change, and the headers of every reply."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Container
from dataclasses import dataclass
from ipaddress import ip_network

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcrib.calls import Identity, now
from toolcrib.console._options import ConsoleOptions, Role
from toolcrib.serving.http import refusal

SESSION_SECONDS = 7 * 24 * 3600
"""The time for which a login is valid."""


class Sessions:
    """Makes the cookie of a login, and checks it.

    A cookie does not reveal the token, and belongs to one login. It is valid for a week, also after a restart of the
    server, while the token is the same and until the browser logs out; a restart forgets which logins have ended.
    """

    def __init__(self, options: ConsoleOptions) -> None:
        self._options = options
        self._ended: dict[str, int] = {}
        self._rounds: Counter[str] = Counter()

    def begin(self, holder: str) -> str:
        """Return the cookie of a new login of a token's holder."""
        signed = f"{secrets.token_hex(8)}.{int(time.time()) + SESSION_SECONDS}"
        return f"{signed}.{self._signature(holder, signed)}"

    def holder(self, session: str) -> str | None:
        """Return the holder of a login; None when the cookie is invalid or has ended."""
        signed, _, signature = session.rpartition(".")
        name, _, until = signed.partition(".")
        found = None
        for holder in self._options.tokens:
            if hmac.compare_digest(signature.encode("utf-8", "replace"), self._signature(holder, signed).encode()):
                found = holder
        if found is None or int(until) <= time.time() or name in self._ended:
            return None
        return found

    def end(self, session: str) -> None:
        if self.holder(session) is not None:
            name, until, _ = session.split(".")
            self._ended = {token: over for token, over in self._ended.items() if over > time.time()}
            self._ended[name] = int(until)

    def end_of(self, holder: str) -> bool:
        """End the logins of a token's holder; return whether there is such a holder."""
        if holder not in self._options.tokens:
            return False
        self._rounds[holder] += 1
        return True

    def _signature(self, holder: str, signed: str) -> str:
        return _signature(self._options.tokens[holder], signed, self._rounds[holder])


def _signature(token: str, signed: str, round: int = 0) -> str:
    """Return the signature of a login; each time the logins of a holder are ended, a new round begins."""
    text = f"toolcrib console session {round} {signed}".encode("utf-8", "replace")
    return hmac.new(token.encode(), text, hashlib.sha256).hexdigest()


_SECURITY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
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
_OF_VIEWERS = ("/api/login", "/api/logout", "/api/check")  # which change nothing for others
_log = logging.getLogger("toolcrib.console")
_MAX_BODY = 4_000_000  # bytes of a request
_MOST_TRIES, _TRIES_SECONDS = 10, 60.0  # wrong tokens of one address
_MOST_ADDRESSES = 10_000  # that are remembered


@dataclass(frozen=True, slots=True)
class Visitor:
    """The user that a request is from.

    Attributes:
        name: The name of the token's holder; empty where users type their name themselves.
        by_header: Whether the token came in a header, which no other page can send.
        session: The cookie of the login; empty without one.
        role: The rights of the user.
        identity: Who they are, by a login elsewhere; None for the holder of a token.
    """

    name: str
    by_header: bool = False
    session: str = ""
    role: Role = "approver"
    identity: Identity | None = None

    def is_of(self, person: str) -> bool:
        """Return whether an id is one of the user's."""
        return person == self.name or (self.identity is not None and person in self.identity.aliases)


class LoginLimit:
    """Counts wrong tokens by the address that they come from; ten in a minute are the most.

    The addresses of one IPv6 network (/64) count as one: its owner can use any of them. Browsers that are logged in are
    not affected.
    """

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()

    def wait(self, address: str) -> int:
        """Return the seconds until the address may try a token again; 0 when it may now."""
        tries = self._recent(_counted(address))
        return 0 if len(tries) < _MOST_TRIES else max(1, round(tries[0] + _TRIES_SECONDS - time.monotonic()))

    def wrong(self, address: str) -> None:
        """Count a wrong token."""
        address = _counted(address)
        tries = self._recent(address)
        tries.append(time.monotonic())
        self._wrong[address] = tries
        self._wrong.move_to_end(address)
        while len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)

    def _recent(self, address: str) -> deque[float]:
        tries = self._wrong.get(address, deque[float](maxlen=_MOST_TRIES))
        while tries and tries[0] < time.monotonic() - _TRIES_SECONDS:
            tries.popleft()
        return tries


class Guard:
    """ASGI middleware: lets in users with a token, and takes changes from the console's own page alone.

    Args:
        app: The application, behind the `HttpGuard` that checks Host and Origin.
        page: The paths of the page itself, which holds no data and needs no token.

    Attributes:
        csrf: The secret that a page sends with a change; only a page of this console can read it.
        limit: How many wrong tokens an address may send.
    """

    def __init__(self, app: ASGIApp, options: ConsoleOptions, page: Container[str]) -> None:
        self._app, self._options, self._page = app, options, page
        self.csrf = secrets.token_urlsafe(24)
        self.sessions, self.limit = Sessions(options), LoginLimit()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_SECURITY)
            await send(message)

        refusal = await self._refusal(scope)
        await (self._app if refusal is None else refusal)(scope, receive, guarded)

    async def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        path, method = _path_of(scope), str(scope["method"])
        if path in self._page and method in ("GET", "HEAD"):
            scope["visitor"] = None
            return None
        wait = self.limit.wait(self.address_of(scope)) if path == "/api/login" or "authorization" in headers else 0
        if wait:
            return refusal(429, "tries", f"There were too many wrong tokens. Try again in {wait} s.")
        visitor = scope["visitor"] = await self._visitor(headers)
        if visitor is None and "authorization" in headers:
            self.refused(scope)
        if visitor is None and path != "/api/login":
            code = "token" if self._options.login is None else "either" if self._options.tokens else "login"
            return refusal(401, code, "Log in with a token." if code == "token" else "Log in.")
        return None if method in ("GET", "HEAD") else self._change_refusal(headers, visitor, path)

    def _change_refusal(self, headers: Headers, visitor: Visitor | None, path: str) -> ASGIApp | None:
        """Return the refusal of a request that may not change anything."""
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return refusal(403, "origin", "Only the console's own page may ask for this.")
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return refusal(415, "type", "Send application/json.")
        if not headers.get("content-length", "").isdecimal() or int(headers["content-length"]) > _MAX_BODY:
            return refusal(413, "size", f"A request states its length, of at most {_MAX_BODY} bytes.")
        if visitor is not None and visitor.role == "viewer" and path not in _OF_VIEWERS:
            return refusal(403, "role", "You may look here, and answer nothing.")
        known = path == "/api/login" or (visitor is not None and visitor.by_header)
        if not known and not hmac.compare_digest(headers.get("x-toolcrib-csrf", "").encode(), self.csrf.encode()):
            return refusal(403, "csrf", "The page is older than the server; load it again.")
        return None

    async def _visitor(self, headers: Headers) -> Visitor | None:
        options = self._options
        if options.is_open:
            return Visitor("")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return await self._holder(token.strip())
        session = cookie_parser(headers.get("cookie", "")).get(options.cookie)
        return None if session is None else self.user_of(session)

    async def _holder(self, token: str) -> Visitor | None:
        """Return the user whose token came in a header."""
        options, holder = self._options, self._options.holder(token)
        if holder is not None:
            return Visitor(holder, by_header=True, role=options.role(holder))
        return None if options.login is None else await options.login.of_token(token)

    def user_of(self, session: str) -> Visitor | None:
        """Return the user of a login, by its cookie; None when that is invalid, or the login has ended."""
        options, holder = self._options, self.sessions.holder(session)
        if holder is not None:
            return Visitor(holder, session=session, role=options.role(holder))
        return None if options.login is None else options.login.of_session(session)

    def is_valid(self, visitor: Visitor) -> bool:
        """Return whether a user is still let in: until the session ends, or the token that came in a header."""
        if visitor.session:
            return self.user_of(visitor.session) is not None
        until = None if visitor.identity is None else visitor.identity.until
        return until is None or until > now()

    def end(self, session: str) -> None:
        self.sessions.end(session)
        if self._options.login is not None:
            self._options.login.end(session)

    def end_of(self, person: str) -> bool:
        """End all sessions of a person; return whether there is a token or a session of that name."""
        is_holder, login = self.sessions.end_of(person), self._options.login
        return (login is not None and login.end_of(person) > 0) or is_holder

    def refused(self, scope: Scope) -> None:
        address = self.address_of(scope)
        self.limit.wrong(address)
        _log.warning("a wrong token came from %s", address)

    def address_of(self, scope: Scope) -> str:
        """Return the address that a request came from, as far as trusted proxies tell it."""
        return self._options.proxies.client_address(scope)


def _counted(address: str) -> str:
    """Return the key under which wrong tokens are counted: an address, or the network of an IPv6 address."""
    return str(ip_network(f"{address}/64", strict=False)) if ":" in address else address


def _path_of(scope: Scope) -> str:
    """Return the path inside the console, which may be mounted in another application."""
    path, before = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    inside = path.removeprefix(before)
    return inside if inside == "" or inside.startswith("/") else path

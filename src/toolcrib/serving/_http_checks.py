"""What is checked of every request over HTTP before anything reads it, and its end when the server stops."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcrib.serving._http_options import HttpOptions, host_of, is_loopback

__all__ = ["FrontDoor", "Punctual"]


class FrontDoor:
    """Lets in what this server is meant by, and holds it to its limits; wraps another ASGI application.

    A page that a browser shows, from wherever, can have its own name lead to this machine: so `Host` has to be a name
    that this server goes by, and `Origin`, which only browsers send, a page that may use it.
    """

    def __init__(self, app: ASGIApp, options: HttpOptions) -> None:
        self._app, self._options = app, options
        self._local = is_loopback(options.host)
        self._names = _names(options)
        self._origins = frozenset(origin.rstrip("/").lower() for origin in options.allowed_origins)
        self._calls: set[anyio.CancelScope] = set()
        self._streams: set[anyio.CancelScope] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, send)
            return
        await self._served(scope, receive, send)

    async def close(self, grace: float) -> None:
        """Take nothing more in, end streams that wait for news, and after `grace` seconds the calls that still run."""
        self._closing = True
        for stream in tuple(self._streams):
            stream.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._idle.wait()
        for call in tuple(self._calls):
            call.cancel()
        await asyncio.sleep(0)

    # --- before

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        if len(headers.raw) > self._options.max_headers:
            return _refused(431, f"a request has {self._options.max_headers} headers at most")
        if "content-length" in headers and "transfer-encoding" in headers:  # a proxy may have read it otherwise
            return _refused(400, "a request says how long it is in one way")
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._goes_by(host_of(hosts[0])):
            return _refused(421, "this server does not go by the name in the header Host")
        if not all(self._welcome(origin, hosts[0]) for origin in headers.getlist("origin")):
            return _refused(403, "pages of the Origin of this request may not use this server")
        if self._closing:
            return _refused(503, "this server is being stopped")
        return None

    def _goes_by(self, name: str) -> bool:
        if name in self._names:
            return True
        return _is_address(name) and (not self._local or is_loopback(name))  # no name can be made to lead elsewhere

    def _welcome(self, origin: str, host: str) -> bool:
        if origin.lower() in self._origins:
            return True
        try:
            page = urlsplit(origin)
            name = page.hostname or ""
        except ValueError:
            return False
        if page.scheme not in ("http", "https") or page.path or page.query:
            return False
        return page.netloc.lower() == host.lower() or (self._local and is_loopback(name))

    # --- meanwhile

    async def _served(self, scope: Scope, receive: Receive, send: Send) -> None:
        cancel, reply = anyio.CancelScope(), _Reply(send)
        held = self._streams if scope["method"] == "GET" else self._calls
        held.add(cancel)
        self._idle.clear()
        try:
            with cancel:
                await self._app(scope, receive, reply)
        finally:
            held.discard(cancel)
            if not self._calls and not self._streams:
                self._idle.set()
        if cancel.cancelled_caught:
            await reply.end()


class _Reply:
    """Sends a reply, and can end one that was broken off."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = self._ended = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
        elif message["type"] == "http.response.body":
            self._ended = not message.get("more_body", False)
        await self._send(message)

    async def end(self) -> None:
        if not self._begun:
            await self({"type": "http.response.start", "status": 503, "headers": [(b"content-length", b"0")]})
        if not self._ended:
            await self({"type": "http.response.body", "body": b""})


class Punctual:
    """Gives a request so many seconds to arrive; wraps what reads it.

    Args:
        seconds: Until its body is there.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        deadline = asyncio.get_running_loop().time() + self._seconds
        arrived = False

        async def timely() -> Message:
            nonlocal arrived
            if arrived:  # what still comes is that the client has gone
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise _LateError from None
            arrived = not message.get("more_body", False)
            return message

        try:
            await self._app(scope, timely, send)
        except _LateError:
            await _refused(408, f"the request did not arrive within {self._seconds:g} s")(scope, receive, send)


class _LateError(Exception):
    """The body of a request did not arrive in time."""


def _refused(status: int, why: str) -> ASGIApp:
    return JSONResponse({"error": why}, status, {"connection": "close"})


def _names(options: HttpOptions) -> frozenset[str]:
    beyond = () if is_loopback(options.host) else (socket.gethostname(),)
    named = (options.host, *beyond, *options.allowed_hosts)
    return frozenset({"localhost", *(name.strip("[]").lower() for name in named)})


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True

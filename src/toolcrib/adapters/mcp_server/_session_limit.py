"""Limits of sessions: of one principal, and of all. Idle sessions give way to new ones."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcrib._numbers import count_text
from toolcrib.serving.http import refusal

_ID = "mcp-session-id"


@dataclass(slots=True)
class _Session:
    """An open session, as far as its requests show.

    Attributes:
        known: The owner of the session, as the session manager knows it.
        requests: The number that is handled now.
        calls: How many messages of it are handled now; a call goes on when its request is broken off.
    """

    principal: str
    known: dict[str, Any]
    requests: int = 0
    calls: int = 0
    since: float = field(default_factory=time.monotonic)

    @property
    def is_idle(self) -> bool:
        return not self.requests and not self.calls

    def end_call(self) -> None:
        self.calls -= 1
        self.since = time.monotonic()


class _OpenRequest:
    """A request of a session, which is open until the last of its answer goes out."""

    def __init__(self, session: _Session) -> None:
        self._session: _Session | None = session
        session.requests += 1

    def note(self, message: Message) -> None:
        """Count a part of the answer."""
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.end()

    def end(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.requests -= 1
            session.since = time.monotonic()


class SessionLimit:
    """ASGI middleware: limits the sessions at a time, of each principal and of all; wraps the SDK's session manager.

    Where there are too many, the longest idle session ends: one of the same principal where that has too many, else one
    of the principal with the most idle sessions. A session with an open request or a running call does not end.

    Args:
        idle_seconds: The session manager ends a session that has had no request for this long.
    """

    def __init__(self, app: ASGIApp, principal: Callable[[], str], limit: int, total: int, idle_seconds: float) -> None:
        self._app, self._principal = app, principal
        self._limit, self._total, self._idle_seconds = limit, total, idle_seconds
        self._sessions: dict[str, _Session] = {}
        self._ending: set[str] = set()
        self._opening = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        session_id, version = headers.get(_ID, ""), headers.get("mcp-protocol-version")
        session = self._sessions.get(session_id)
        if session is not None:

            async def note_end(message: Message) -> None:
                if message["type"] == "http.response.start":
                    is_gone = message["status"] == 404 and session.principal == self._principal()
                    if is_gone or (scope["method"] == "DELETE" and message["status"] < 300):
                        self._sessions.pop(session_id, None)
                request.note(message)
                await send(message)

            request = _OpenRequest(session)
            try:
                await self._app(scope, receive, note_end)
            finally:
                request.end()
        elif session_id in self._ending:
            await refusal(404, "session", "the session has ended: open a new one")(scope, receive, send)
        elif _ID in headers or (version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS):
            await self._app(scope, receive, send)  # an unknown session, or a client of the generation without sessions
        else:
            await self._open_session(self._principal(), scope, receive, send)

    async def count_calls(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Count a message of a session while it is handled; a middleware of the SDK's server."""
        request: Any = ctx.request
        session = None if request is None else self._sessions.get(request.headers.get(_ID, ""))
        if session is None:
            return await call_next(ctx)
        session.calls += 1
        try:
            return await call_next(ctx)
        finally:
            session.end_call()

    async def _open_session(self, principal: str, scope: Scope, receive: Receive, send: Send) -> None:
        since = time.monotonic() - self._idle_seconds
        for key in [
            key for key, open_session in self._sessions.items() if open_session.is_idle and open_session.since <= since
        ]:
            del self._sessions[key]  # the session manager has ended it
        open_now = Counter(session.principal for session in self._sessions.values()) + self._opening
        idle = [key for key, session in self._sessions.items() if session.is_idle]
        leaving: str | None = None
        if open_now[principal] >= self._limit:
            leaving = self._longest_idle([key for key in idle if self._sessions[key].principal == principal])
            if leaving is None:
                error = (
                    f"{principal} has {count_text(self._limit, 'session')} in use, the most for one principal "
                    "(max_sessions_each): end one"
                )
                await refusal(429, "sessions", error)(scope, receive, send)
                return
        elif open_now.total() >= self._total:
            leaving = self._longest_idle(self._of_most(idle))
            if leaving is None:
                await refusal(503, "sessions", "all sessions of this server are in use")(scope, receive, send)
                return
        self._opening[principal] += 1
        try:
            if leaving is not None:
                await self._end(leaving, self._sessions.pop(leaving))
            await self._pass_opening(principal, scope, receive, send)
        finally:
            self._opening[principal] -= 1

    async def _pass_opening(self, principal: str, scope: Scope, receive: Receive, send: Send) -> None:
        opened: list[_OpenRequest] = []

        async def note_session(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400 and not opened:
                session_id = Headers(raw=message["headers"]).get(_ID)
                if session_id is not None:
                    known = {key: scope[key] for key in ("user", "auth") if key in scope}
                    session = self._sessions[session_id] = _Session(principal, known)
                    opened.append(_OpenRequest(session))
                    self._opening[principal] -= 1
            for request in opened:
                request.note(message)
            await send(message)

        try:
            await self._app(scope, receive, note_session)
        finally:
            for request in opened:
                self._opening[principal] += 1
                request.end()

    # --- ending sessions

    def _longest_idle(self, keys: list[str]) -> str | None:
        return min(keys, key=lambda key: self._sessions[key].since, default=None)

    def _of_most(self, idle: list[str]) -> list[str]:
        """Return those of the sessions whose principal has the most of them."""
        counts = Counter(self._sessions[key].principal for key in idle)
        return [key for key in idle if counts[self._sessions[key].principal] == max(counts.values())]

    async def _end(self, session_id: str, session: _Session) -> None:
        """End a session as its client would."""

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            return

        scope = {"type": "http", "http_version": "1.1", "method": "DELETE", "path": "/", "query_string": b""}
        self._ending.add(session_id)
        try:
            await self._app({**scope, "headers": [(_ID.encode(), session_id.encode())], **session.known}, receive, send)
        finally:
            self._ending.discard(session_id)

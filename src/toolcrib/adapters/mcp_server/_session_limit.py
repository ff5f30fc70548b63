"""Limit of the sessions of one principal, so that a client that opens many leaves room for the others."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcrib.serving.http import refusal

__all__ = ["SessionLimit"]

_ID = "mcp-session-id"


@dataclass(slots=True)
class _Session:
    """An open session, as far as its requests show.

    Attributes:
        requests: How many are handled now.
        since: When the last one ended.
    """

    principal: str
    requests: int = 1
    since: float = field(default_factory=time.monotonic)

    def end_request(self) -> None:
        self.requests -= 1
        self.since = time.monotonic()


class SessionLimit:
    """ASGI middleware: limits the sessions that each principal has at a time; wraps the SDK's session manager.

    Args:
        app: The session manager.
        principal: Returns the principal of the request that is handled now.
        limit: Sessions of one principal.
        idle_seconds: The session manager ends a session that has had no request for this long.
    """

    def __init__(self, app: ASGIApp, principal: Callable[[], str], limit: int, idle_seconds: float) -> None:
        self._app, self._principal = app, principal
        self._limit, self._idle_seconds = limit, idle_seconds
        self._sessions: dict[str, _Session] = {}
        self._opening = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        session = self._sessions.get(headers.get(_ID, ""))
        version = headers.get("mcp-protocol-version")
        if session is not None:
            await self._continue_session(session, headers[_ID], scope, receive, send)
        elif _ID in headers or (version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS):
            await self._app(scope, receive, send)  # an unknown session, or a client of the generation without sessions
        else:
            await self._open_session(self._principal(), scope, receive, send)

    async def _open_session(self, principal: str, scope: Scope, receive: Receive, send: Send) -> None:
        if self._opening[principal] + self._count(principal) >= self._limit:
            error = (
                f"{principal} has {self._limit} sessions open, the most for one principal (max_sessions_each): end one"
            )
            await refusal(429, "sessions", error)(scope, receive, send)
            return
        opened: list[_Session] = []

        async def note_session(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400 and not opened:
                session_id = Headers(raw=message["headers"]).get(_ID)
                if session_id is not None:
                    opened.append(_Session(principal))
                    self._sessions[session_id] = opened[0]
            await send(message)

        self._opening[principal] += 1
        try:
            await self._app(scope, receive, note_session)
        finally:
            self._opening[principal] -= 1
            for session in opened:
                session.end_request()

    async def _continue_session(
        self, session: _Session, session_id: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        async def note_end(message: Message) -> None:
            if message["type"] == "http.response.start":
                gone = message["status"] == 404 and session.principal == self._principal()
                if gone or (scope["method"] == "DELETE" and message["status"] < 300):
                    self._sessions.pop(session_id, None)
            await send(message)

        session.requests += 1
        try:
            await self._app(scope, receive, note_end)
        finally:
            session.end_request()

    def _count(self, principal: str) -> int:
        """Return how many sessions a principal has, and forget those that the session manager has ended."""
        since = time.monotonic() - self._idle_seconds
        ended = [key for key, session in self._sessions.items() if not session.requests and session.since <= since]
        for key in ended:
            del self._sessions[key]
        return sum(session.principal == principal for session in self._sessions.values())

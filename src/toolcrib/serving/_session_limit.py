"""How many sessions one principal may have: whoever opens many leaves room for the others."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["SessionShares"]

_ID = "mcp-session-id"


@dataclass(slots=True)
class _Session:
    """One that is open, as far as can be told from its requests."""

    principal: str
    used: int = 1
    since: float = field(default_factory=time.monotonic)


class SessionShares:
    """Lets each principal have so many sessions at a time; wraps what opens and keeps them.

    Args:
        principal: Says on whose behalf the request comes that is handled.
        most: Sessions of one of them.
        idle_seconds: After that time without a request, what keeps the sessions ends one.
    """

    def __init__(self, app: ASGIApp, principal: Callable[[], str], most: int, idle_seconds: float) -> None:
        self._app, self._principal = app, principal
        self._most, self._idle_seconds = most, idle_seconds
        self._open: dict[str, _Session] = {}
        self._opening = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        session = self._open.get(headers.get(_ID, ""))
        version = headers.get("mcp-protocol-version")
        if session is not None:
            await self._use(session, headers[_ID], scope, receive, send)
        elif _ID in headers or (version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS):
            await self._app(scope, receive, send)  # no session of ours, or of the generation that has none
        else:
            await self._begin(self._principal(), scope, receive, send)

    async def _begin(self, principal: str, scope: Scope, receive: Receive, send: Send) -> None:
        if self._opening[principal] + self._count(principal) >= self._most:
            why = f"{principal} has {self._most} sessions open, the most for one principal (max_sessions_each): end one"
            await JSONResponse({"error": why}, 429, {"connection": "close"})(scope, receive, send)
            return
        made: list[_Session] = []

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400 and not made:
                session_id = Headers(raw=message["headers"]).get(_ID)
                if session_id is not None:
                    made.append(_Session(principal))
                    self._open[session_id] = made[0]
            await send(message)

        self._opening[principal] += 1
        try:
            await self._app(scope, receive, noting)
        finally:
            self._opening[principal] -= 1
            for session in made:
                _rest(session)

    async def _use(self, session: _Session, session_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                gone = message["status"] == 404 and session.principal == self._principal()
                if gone or (scope["method"] == "DELETE" and message["status"] < 300):
                    self._open.pop(session_id, None)
            await send(message)

        session.used += 1
        try:
            await self._app(scope, receive, noting)
        finally:
            _rest(session)

    def _count(self, principal: str) -> int:
        """Return how many sessions somebody has, of which those are forgotten that have ended by themselves."""
        since = time.monotonic() - self._idle_seconds
        ended = [key for key, session in self._open.items() if not session.used and session.since <= since]
        for key in ended:
            del self._open[key]
        return sum(session.principal == principal for session in self._open.values())


def _rest(session: _Session) -> None:
    session.used -= 1
    session.since = time.monotonic()

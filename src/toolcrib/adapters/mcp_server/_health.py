"""Health: whether the server lives, and whether it can serve; for a supervisor or a proxy, without a token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Scope

__all__ = ["Health"]


class Health:
    """Answers `/healthz` and `/readyz`. What is answered says nothing of what is served, or to whom.

    Args:
        is_open: Returns whether requests are taken.
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

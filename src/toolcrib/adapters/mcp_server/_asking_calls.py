"""Calls whose tool asks its client and waits: open in this process while a stateless client fetches the answer."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Coroutine, Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from toolcrib._numbers import count_text
from toolcrib.serving import OpenCall, OpenCalls

ASKING = "asking"
"""The kind of open calls whose client comes back with a state."""

_QUIET_SECONDS = 0.03  # after a question: what a tool asks within them goes out in the same reply
_MAX_CHANGES = 50  # of a call, until its reply goes out though it asks for more
_GIVES_WAY = 0.1  # of the time that a call may wait: from then on it ends for a later one of its principal


def call_asked_for(text: str | None) -> str | None:
    """Return the id of the call that a client's state asks for; None for a state of another kind."""
    if text is None:
        return None
    state: Any = json.loads(text)  # it was sealed by this server
    return state.get("asking")


class AskingCalls:
    """The calls that ask their clients, each run once, in a task that outlives the request.

    Args:
        seconds: How long one waits; then it is stopped.
    """

    def __init__(self, calls: OpenCalls, seconds: float) -> None:
        self._calls, self._seconds = calls, seconds
        self._mark = secrets.token_urlsafe(6)  # of this process

    async def run(self, call: OpenCall, work: Coroutine[Any, Any, Any]) -> Any:
        """Run the work of a call, and return what it comes to; or what it asks the client."""
        call.start(work)
        return await self._next_reply(call)

    async def go_on(
        self, call_id: str, tool: str, principal: str, ctx: ServerRequestContext[Any, Any], responses: Any
    ) -> Any:
        """Resume a call with the answers of its client, and return as `run` does; what is not answered is asked again.

        Raises:
            MCPError: The call is not open: whether it took effect is not known.
        """
        call = self._calls.find(principal, call_id)
        if call is None or call.kind != ASKING or call.tool != tool:
            raise MCPError(INVALID_PARAMS, self._in_doubt(call_id, tool), {"reason": "in_doubt", "tool": tool})
        self._calls.take(call)  # the state was used
        call.ctx = ctx
        if call.answer(responses or {}) or not call.questions:
            await _let_run(call)
        return await self._next_reply(call)

    async def _next_reply(self, call: OpenCall) -> Any:
        """Wait until a call has ended or asks for something, and return the reply."""
        try:
            while call.state in ("running", "asking"):
                if call.state == "running":
                    await call.wait()
                    await _let_run(call)
                if call.state == "asking" and self._has_room(call):
                    return self._asked(call)
        except BaseException:  # the client has gone, or the server ends
            await call.stop()
            raise
        if isinstance(call.error, asyncio.CancelledError):
            raise MCPError(INTERNAL_ERROR, f"`{call.tool}` was stopped")
        if call.error is not None:
            raise call.error
        return call.result

    def _has_room(self, call: OpenCall) -> bool:
        """Return whether a call may wait for its client; else its questions are refused."""
        if not self._calls.is_full(call.principal, ASKING):
            return True
        others = self._calls.of(call.principal, ASKING)
        oldest = min(others, key=lambda other: other.since, default=None)
        if oldest is not None and _clock() - oldest.since >= self._seconds * _GIVES_WAY:
            self._calls.forget(oldest)  # a client that has left does not say so
            return True
        most = self._calls.limits[ASKING].per_principal
        waiting = count_text(len(others), "call")
        why = f"{call.principal} has {waiting} without an answer already, and may have {most} (max_asking)"
        call.refuse(why)
        return False

    def _asked(self, call: OpenCall) -> types.InputRequiredResult:
        """Return the reply with the questions of a call, which waits for the client from now on."""
        call.id, call.ctx, call.since = f"{self._mark}.{secrets.token_urlsafe(16)}", None, _clock()
        self._calls.add(call, self._seconds)
        asked = {key: question.request for key, question in call.questions.items()}
        state = json.dumps({"asking": call.id})
        return types.InputRequiredResult(input_requests=asked, request_state=state, _meta=_meta_of(asked))

    def _in_doubt(self, call_id: str, tool: str) -> str:
        if call_id.startswith(f"{self._mark}."):
            why = (
                f"this state was used before, or was not answered within {self._seconds:g} s (sooner where others ask, "
                "too), and the call was stopped"
            )
        else:
            why = "the process that ran it has ended"
        return (
            f"`{tool}` had begun when it asked you, and cannot go on: {why}. It is in doubt: it may have taken effect. "
            "Find out before you call it again"
        )


def _clock() -> float:
    return asyncio.get_running_loop().time()


def _meta_of(asked: Mapping[str, types.InputRequest]) -> dict[str, Any] | None:
    """Return the `_meta` of requests, which have none in the newer generation: by its names, then by their keys."""
    merged: dict[str, dict[str, Any]] = {}
    for key, request in asked.items():
        meta = None if request.params is None else request.params.meta
        for name, value in (meta or {}).items():
            merged.setdefault(name, {})[key] = value
    return merged or None


async def _let_run(call: OpenCall) -> None:
    """Wait until a call has ended, or has asked nothing for a moment."""
    for _ in range(_MAX_CHANGES):
        if call.state == "ended":
            return
        try:
            await asyncio.wait_for(call.changed.wait(), _QUIET_SECONDS)
        except TimeoutError:
            return

"""Calls whose tool asks its client and waits: kept in this process while a stateless client fetches the answer."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from toolcrib.errors import ClientUnavailable

__all__ = ["AskingCall", "AskingCalls", "call_asked_for"]

_TURNS = 5  # of the event loop in which a tool may ask for more, so that it goes out in one reply
_MOST = 1_000  # of all principals
_GIVES_WAY = 0.1  # of the time that a call may wait: from then on it ends for a later one of its principal
_KINDS: Mapping[type[Any], tuple[str, tuple[type[Any], ...]]] = {
    types.ElicitRequest: ("elicit", (types.ElicitResult,)),
    types.CreateMessageRequest: ("sample", (types.CreateMessageResult, types.CreateMessageResultWithTools)),
    types.ListRootsRequest: ("roots", (types.ListRootsResult,)),
}


def call_asked_for(text: str | None) -> str | None:
    """Return the id of the call that a client's state asks for; None for a state of another kind."""
    if text is None:
        return None
    state: Any = json.loads(text)  # it was sealed by this server
    return state.get("asking")


@dataclass(slots=True, eq=False)
class AskingCall:
    """A call that may ask its client.

    Attributes:
        tool: Its tool.
        principal: On whose behalf it is made.
        ctx: The request that it is handled in now; None while it waits for the next one.
        questions: What it has asked and has no answer to, by the key that the client answers by.
        since: The time at which its client was asked last.
    """

    tool: str
    principal: str
    ctx: ServerRequestContext[Any, Any] | None
    questions: dict[str, tuple[types.InputRequest, asyncio.Future[Any]]] = field(
        default_factory=dict[str, tuple[types.InputRequest, "asyncio.Future[Any]"]]
    )
    since: float = 0.0
    task: asyncio.Task[Any] | None = None
    timer: asyncio.TimerHandle | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _numbers: count[int] = field(default_factory=lambda: count(1))

    async def ask(self, request: types.InputRequest, name: str = "") -> Any:
        """Return the client's answer to a request, which goes to it in the reply to the request of its own.

        Args:
            request: The request.
            name: The key that the client answers by, unless another question has it.
        """
        made = f"{_KINDS[type(request)][0]}_{next(self._numbers)}"
        key = name if name and name not in self.questions else made
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.questions[key] = request, answer
        self.wake.set()
        try:
            return await answer
        finally:
            self.questions.pop(key, None)

    def take(self, responses: Mapping[str, Any] | None) -> bool:
        """Take the answers that fit a question; return whether there was one."""
        found = False
        for key, response in (responses or {}).items():
            request, answer = self.questions.get(key, (None, None))
            if request is None or answer is None or answer.done() or not isinstance(response, _KINDS[type(request)][1]):
                continue
            answer.set_result(response)
            del self.questions[key]
            found = True
        return found

    def refuse(self, why: str) -> None:
        """Fail what it has asked."""
        for request, answer in self.questions.values():
            if not answer.done():
                answer.set_exception(ClientUnavailable(self.tool, _KINDS[type(request)][0], why))
        self.questions.clear()

    async def stop(self) -> None:
        """Stop it, and wait until it has stopped."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            await asyncio.wait({self.task})


class AskingCalls:
    """The calls of one server that may ask their clients, each run once, in a task that outlives the request.

    Args:
        most: Calls of one principal that may wait for an answer at a time.
        seconds: How long one waits; then it is stopped.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._waiting: dict[str, AskingCall] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._mark = secrets.token_urlsafe(6)  # of this process

    async def run(self, call: AskingCall, work: Coroutine[Any, Any, Any]) -> Any:
        """Run the work of a call, and return what it comes to; or what it asks the client."""
        call.task = asyncio.create_task(work)
        call.task.add_done_callback(lambda _: call.wake.set())
        return await self._next_reply(call)

    async def go_on(
        self, call_id: str, tool: str, principal: str, ctx: ServerRequestContext[Any, Any], responses: Any
    ) -> Any:
        """Give a call the answers of its client, and return as `run` does; what is not answered is asked again.

        Raises:
            MCPError: The call is not kept: whether it took effect is not known.
        """
        call = self._waiting.get(call_id)
        if call is None or call.principal != principal or call.tool != tool:
            raise MCPError(INVALID_PARAMS, self._in_doubt(call_id, tool), {"reason": "in_doubt", "tool": tool})
        self._forget(call_id)
        call.ctx = ctx
        if call.take(responses) or not call.questions:
            await _let_run(call)
            if not call.questions:
                call.wake.clear()
        return await self._next_reply(call)

    async def _next_reply(self, call: AskingCall) -> Any:
        """Wait until a call has ended or asks for something, and return the reply."""
        try:
            while True:
                if not (call.questions or _is_done(call)):
                    await call.wake.wait()
                    await _let_run(call)
                if _is_done(call):
                    return _result_of(call)
                call.wake.clear()
                if call.questions and not self._is_full_for(call):
                    return self._keep(call)
        except BaseException:  # the client has gone, or the server ends
            await call.stop()
            raise

    def _is_full_for(self, call: AskingCall) -> bool:
        mine = [call_id for call_id, kept in self._waiting.items() if kept.principal == call.principal]
        own = len(mine)
        if own < self._most and len(self._waiting) < _MOST:
            return False
        oldest = min(mine, key=lambda call_id: self._waiting[call_id].since, default=None)
        if oldest is not None and time.monotonic() - self._waiting[oldest].since >= self._seconds * _GIVES_WAY:
            self._give_up(oldest)  # a client that has left does not say so
            return False
        call.refuse(f"{own} calls of {call.principal} wait for an answer already, and {self._most} may (max_asking)")
        return True

    def _keep(self, call: AskingCall) -> types.InputRequiredResult:
        call_id = f"{self._mark}.{secrets.token_urlsafe(16)}"
        call.ctx, call.since = None, time.monotonic()
        call.timer = asyncio.get_running_loop().call_later(self._seconds, self._give_up, call_id)
        self._waiting[call_id] = call
        asked = {key: request for key, (request, _) in call.questions.items()}
        state = json.dumps({"asking": call_id})
        return types.InputRequiredResult(input_requests=asked, request_state=state, _meta=_meta_of(asked))

    def _forget(self, call_id: str) -> AskingCall:
        call = self._waiting.pop(call_id)
        if call.timer is not None:
            call.timer.cancel()
            call.timer = None
        return call

    def _give_up(self, call_id: str) -> None:
        stopping = asyncio.create_task(self._forget(call_id).stop())
        self._stopping.add(stopping)
        stopping.add_done_callback(self._stopping.discard)

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

    async def close(self) -> None:
        """Stop all calls that wait."""
        calls = [self._forget(call_id) for call_id in [*self._waiting]]
        await asyncio.gather(*(call.stop() for call in calls), *self._stopping)


def _meta_of(asked: Mapping[str, types.InputRequest]) -> dict[str, Any] | None:
    """Return the `_meta` of requests, which have none in the newer generation: by its names, then by their keys."""
    made: dict[str, dict[str, Any]] = {}
    for key, request in asked.items():
        given = None if request.params is None else request.params.meta
        for name, value in (given or {}).items():
            made.setdefault(name, {})[key] = value
    return made or None


async def _let_run(call: AskingCall) -> None:
    for _ in range(_TURNS):
        if _is_done(call):
            return
        await asyncio.sleep(0)


def _is_done(call: AskingCall) -> bool:
    return call.task is not None and call.task.done()


def _result_of(call: AskingCall) -> Any:
    if call.task is None or call.task.cancelled():
        raise MCPError(INTERNAL_ERROR, f"`{call.tool}` was stopped")
    return call.task.result()

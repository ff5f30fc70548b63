"""What every way of serving has in common: a call from its request to its result, also where it waits for a person."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from toolcrib.adapters.mcp_server._elicitation import (
    Halted,
    Waits,
    answers_in,
    asked_through,
    can_elicit,
    forms_for,
    is_stateless,
    is_waiting,
    waiting_result,
)
from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._replies import clean
from toolcrib.approvals import SuspendedCall, SuspendedCallStore, digest
from toolcrib.calls import ApprovalRequest, Denial, Grant, now
from toolcrib.pipeline import Run
from toolcrib.record import ActivityTrace, trace_activity
from toolcrib.serving._principals import Principal
from toolcrib.serving._single_flight import SingleFlight

__all__ = ["REQUEST_META", "Served", "Visit"]

REQUEST_META = "toolcrib/request"
"""Where in the `_meta` of a call a client may say which question it is about; its arguments then do not count."""

_KEEP_ALIVE = 5.0  # seconds between two words to a client whose call waits
_LEGS = 4  # requests that a client of the stateless generation waits in
_INLINE = 60_000  # characters of a state that travels with the client; a longer one is kept here


@dataclass(slots=True)
class Visit:
    """One request to call a tool.

    Attributes:
        run: The run of its principal, with the client as the approver where it can be asked meanwhile.
        key: The same for the same call on behalf of the same principal.
        requests: The questions of the call that it takes up, if it takes one up.
        done: Progress so far; it only ever grows.
        leave: To be called when it is known that the call does not wait, so that others like it are not held back.
    """

    ctx: ServerRequestContext[Any, Any]
    params: types.CallToolRequestParams
    principal: Principal
    run: Run
    key: str
    requests: tuple[str, ...] = ()
    done: float = 0
    leave: Callable[[], None] | None = None

    async def progress(self, message: str | None, done: float | None = None, total: float | None = None) -> None:
        """Tell the client, if it wants to know, that something happened, and how far the call has come.

        Args:
            done: How much is done, where that is known; less than before counts as one step more.
            total: What that grows to.
        """
        grows = done is not None and done > self.done
        self.done = done if done is not None and grows else self.done + 1
        await self.ctx.session.report_progress(self.done, total if grows else None, message)


class Served(ABC):
    """What is served from one open toolset, for all principals."""

    def __init__(self, options: ServerOptions, waiting: SuspendedCallStore) -> None:
        self._options, self._waiting = options, waiting
        self._alike = SingleFlight()

    @abstractmethod
    async def list(self, principal: Principal) -> Sequence[types.Tool]:
        """Return the tools that a principal is shown now."""

    @abstractmethod
    async def instructions(self, principal: Principal) -> Sequence[str]:
        """Return what the tools that a principal is shown have to say."""

    @abstractmethod
    async def begin(self, visit: Visit) -> types.CallToolResult | Halted:
        """Make a new call."""

    @abstractmethod
    async def go_on(
        self, visit: Visit, state: Mapping[str, Any], answers: Sequence[Grant | Denial]
    ) -> types.CallToolResult | Halted:
        """Take up a call that waited, with the answers that came with the request; others are looked for."""

    @abstractmethod
    def may_wait(self, visit: Visit) -> bool:
        """Return whether a call like this may be waiting, so that it is worth looking."""

    async def look_again(self) -> None:
        """Learn of calls that other servers keep, before it is told whether one like them may be waiting."""
        return

    def named_request(self, visit: Visit) -> Any:
        """Return the question that the client says its call is about, as it says so; None when it does not."""
        return visit.params.meta.get(REQUEST_META) if visit.params.meta else None

    # --- a request

    async def call(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams, principal: Principal
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Make a call or take up the same one that waits, and return what the client is answered."""
        key = digest(params.name, {"principal": principal.name, "arguments": params.arguments or {}})
        visit = Visit(ctx, params, principal, self._scope(ctx, principal), key)
        run = trace_activity("request", "tools/call", visit.run, self._options.sinks, about=lambda: _about(visit))
        before = len(principal.run.revealed)
        if run is None:
            result = await self._answer(visit)
        else:
            result = await _followed(run, self._answer(visit))
        if len(principal.run.revealed) > before:
            await principal.tell_changed(ctx)
        return result

    async def _answer(self, visit: Visit) -> types.CallToolResult | types.InputRequiredResult:
        if visit.params.request_state is not None:
            return await self._come_back(visit, visit.params.request_state)
        await self.look_again()
        if not self.may_wait(visit):
            return await self._settled(visit, await self._made(visit), asks=True)
        async with self._alike.one(visit.key) as visit.leave:
            made = await self._made(visit)
        return await self._settled(visit, made, asks=True)

    async def _made(self, visit: Visit) -> types.CallToolResult | Halted:
        """Make a call, or take up the same one that waits; one that waits now is kept."""
        kept = await self._kept(visit)
        made = await (self.begin(visit) if kept is None else self.go_on(visit, kept.state, ()))
        if isinstance(made, Halted):
            await self._keep(visit, made)
        return made

    def _scope(self, ctx: ServerRequestContext[Any, Any], principal: Principal) -> Run:
        run = principal.run
        if self._options.approve_by == "store" or run.approver is not None or is_stateless(ctx):
            return run
        return replace(run, approver=asked_through(ctx, principal.pending)) if can_elicit(ctx) else run

    async def _kept(self, visit: Visit) -> SuspendedCall | None:
        """Return the call that waits and is made again: the same one, or the one whose question the client names."""
        asked = self.named_request(visit)
        if isinstance(asked, str):
            kept = await self._waiting.find_request(visit.principal.name, asked)
            if kept is None or kept.tool != visit.params.name:
                raise MCPError(INVALID_PARAMS, clean(f"no call of `{visit.params.name}` waits for the request {asked}"))
            visit.key = kept.key
        else:
            kept = await self._waiting.find(visit.key) if self.may_wait(visit) else None
        if kept is not None and kept.since + self._options.kept_for <= now():
            await self._waiting.drop(kept.key, kept.requests)
            if isinstance(asked, str):
                raise MCPError(INVALID_PARAMS, clean(f"the call that waited for {asked} is not kept any more"))
            return None
        visit.requests = () if kept is None else kept.requests
        return kept

    async def _settled(
        self, visit: Visit, made: types.CallToolResult | Halted, *, asks: bool, until: float = 0.0
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Return what a client is answered; a call that waits is kept by now, and asked about.

        Args:
            asks: Whether the client may be asked; not when it has just left the same question open.
            until: When a client that has waited in several requests is told to come back; 0 when it begins to.
        """
        if not isinstance(made, Halted):
            if visit.requests:  # the same call, made once more meanwhile, may wait under its key by now
                await self._waiting.drop(visit.key, visit.requests)
            return made
        elicits = self._options.approve_by == "elicit"
        if elicits and is_stateless(visit.ctx) and can_elicit(visit.ctx):
            if asks:
                return await self._input_required(visit, made, forms_for(made.requests), until)
        elif self._options.wait:
            return await self._wait(visit, made, until)
        return self._told(visit, made)

    def _told(self, visit: Visit, made: Halted) -> types.CallToolResult:
        because = ""
        if self._options.approve_by == "elicit":
            able = can_elicit(visit.ctx)
            because = (
                "Its form was closed without an answer. " if able else "This client cannot ask its user by a form. "
            )
        return waiting_result(made, self._options.approve_with, because=because)

    async def _keep(self, visit: Visit, made: Halted) -> None:
        ids = tuple(request.id for request in made.requests)
        call = SuspendedCall(visit.key, visit.principal.name, visit.params.name, ids, made.state)
        await self._waiting.keep(call)

    # --- waiting for the store

    async def _wait(self, visit: Visit, made: Halted, until: float) -> types.CallToolResult | types.InputRequiredResult:
        """Wait for the answers, in several requests where the client comes back by itself; then take the call up."""
        seconds, until = self._options.wait, until or time.time() + self._options.wait
        stateless = is_stateless(visit.ctx)
        leg = min(seconds / _LEGS if stateless else seconds, until - time.time())
        if await self._answered(visit, made, leg):
            again = await self.go_on(visit, made.state, ())
            if not isinstance(again, Halted):
                await self._waiting.drop(visit.key, [request.id for request in made.requests])
                return again
            made = again  # the next question of a program
            await self._keep(visit, made)
        if stateless and until - time.time() > 0:
            return await self._input_required(visit, made, None, until)
        return self._told(visit, made)

    async def _answered(self, visit: Visit, made: Halted, seconds: float) -> bool:
        """Return whether all questions are answered within so many seconds, with a word to the client meanwhile."""
        store, end = visit.principal.pending.store, time.monotonic() + seconds
        if not isinstance(store, Waits):
            return False
        for request in made.requests:
            while await store.wait(request.id, max(0.0, min(_KEEP_ALIVE, end - time.monotonic()))) is None:
                if time.monotonic() >= end:
                    return False
                await visit.progress(f"`{request.tool}` waits for approval (request {request.id})")
        return True

    # --- input that the client comes back with

    async def _input_required(
        self, visit: Visit, made: Halted, forms: dict[str, types.InputRequest] | None, until: float
    ) -> types.InputRequiredResult:
        """Return what asks the client to come back, with a state that the SDK seals and binds to call and principal."""
        said: dict[str, Any] = {"requests": [request.to_dict() for request in made.requests], "until": until}
        state = json.dumps({**said, "state": made.state})
        if len(state) > _INLINE:
            state = json.dumps(said)
        return types.InputRequiredResult(input_requests=forms, request_state=state)

    async def _come_back(self, visit: Visit, text: str) -> types.CallToolResult | types.InputRequiredResult:
        """Go on with a call whose client has come back; the SDK has checked the state's seal before it is read here."""
        sealed = cast("dict[str, Any]", json.loads(text))
        requests = [ApprovalRequest.from_dict(data) for data in sealed["requests"]]
        state: Mapping[str, Any] | None = sealed.get("state")
        if state is None:  # it was too long to travel
            kept = await self._waiting.find(visit.key)
            if kept is None or set(kept.requests) != {request.id for request in requests}:
                raise MCPError(INVALID_PARAMS, "the call that waited is not kept any more; make it anew")
            state = kept.state
        may_answer = self._options.approve_by == "elicit"  # else only the store's answers count
        answers = answers_in(requests, visit.params.input_responses) if may_answer else []
        visit.requests = tuple(request.id for request in requests)
        made = await self.go_on(visit, state, answers)
        if isinstance(made, Halted):
            await self._keep(visit, made)
        return await self._settled(visit, made, asks=bool(answers), until=sealed["until"])


async def _followed(
    run: ActivityTrace, answer: Coroutine[Any, Any, types.CallToolResult | types.InputRequiredResult]
) -> types.CallToolResult | types.InputRequiredResult:
    """Return an answer, and tell whoever follows the request how it went."""
    try:
        with run.within():
            result = await answer
    except BaseException as error:
        run.broken_off(error)
        raise
    if isinstance(result, types.InputRequiredResult) or is_waiting(result):
        run.closed("suspended")
    else:
        run.closed("error" if result.is_error else "completed")
    return result


def _about(visit: Visit) -> dict[str, Any]:
    """Return what is told of a request."""
    said = {"method": "tools/call", "protocol_version": visit.ctx.protocol_version, "tool": clean(visit.params.name)}
    request = None if is_stateless(visit.ctx) else visit.ctx.request
    session = None if request is None else request.headers.get("mcp-session-id")  # the transport has checked it
    return {**said, "principal": visit.principal.name, **({} if session is None else {"session_id": session})}

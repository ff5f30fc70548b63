"""Tool server: one call from its request to its result, also when it is suspended or asks its client."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from toolcrib.adapters.mcp_server._client_link import (
    ASKING,
    AskingCalls,
    LogLevels,
    McpClientLink,
    call_asked_for,
    may_ask,
)
from toolcrib.adapters.mcp_server._elicitation import (
    Suspension,
    answers_from_forms,
    can_elicit,
    counts_alone,
    form_approver,
    forms_for,
    is_stateless,
    is_suspended_result,
    suspended_result,
)
from toolcrib.adapters.mcp_server._incoming import refused_arguments
from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._replies import clean
from toolcrib.approvals import SuspendedCall, WaitableApprovalStore, digest
from toolcrib.calls import ApprovalRequest, Denial, Grant, Outcome, now
from toolcrib.clock import first_of
from toolcrib.errors import NewerForm, exception_of
from toolcrib.pipeline import Run
from toolcrib.record import ActivityTrace, trace_activity
from toolcrib.serving import Flight, OpenCall, OpenCalls, Principal, SingleFlight
from toolcrib.tools import BaseTool
from toolcrib.toolsets import ToolEntry, Toolset

T = TypeVar("T")

_log = logging.getLogger("toolcrib.adapters")

REQUEST_META = "toolcrib/request"
"""The entry in the `_meta` of a call by which a client names the approval request of the suspended call to continue."""

PROGRESS_SECONDS = 5.0  # between two progress notifications to a client whose call is suspended
_LEGS = 4  # requests that a client of the stateless generation waits in
_INLINE = 60_000  # characters of a state that travels with the client; a longer one stays in the store

SUSPENDED = -32_010  # of what is read by a call that waits for a person

CallReply: TypeAlias = types.CallToolResult | types.ReadResourceResult | types.GetPromptResult
AnswerOf: TypeAlias = Callable[[Outcome, Any], CallReply]
"""Makes a reply of an outcome, and of the result of another server that it was made of, where there is one."""


@dataclass(slots=True)
class ToolRequest:
    """One request that is answered by a call.

    Attributes:
        call: The call as far as it outlives the request; it knows the request that is open now.
        run: The run of its principal, with the client as the approver where it can be asked during the call.
        key: The call and its principal, see `request_key`.
        continues: The approval requests of the suspended call that it continues, if it continues one.
        progressed: Progress so far; it only grows.
        flight: A lock that equal calls wait for, until this one is known not to be suspended.
        answer: Makes the reply where the request is not `tools/call`.
        link: The client, as the tool may ask it.
        text: The arguments as JSON text, where they cannot be taken; such a call is refused, and continues no other.
    """

    ctx: ServerRequestContext[Any, Any]
    params: types.CallToolRequestParams = field(repr=False)
    principal: Principal
    run: Run
    key: str
    call: OpenCall
    continues: tuple[str, ...] = ()
    progressed: float = 0
    flight: Flight | None = None
    answer: AnswerOf | None = None
    link: McpClientLink | None = None
    text: str | None = field(default_factory=refused_arguments.get, repr=False)

    async def progress(self, message: str | None, done: float | None = None, total: float | None = None) -> None:
        """Report progress to the client, if it asked for it and a request is open; to its task else.

        Args:
            done: How much is done, where that is known; less than before counts as one step more.
            total: The value that it grows to.
        """
        ctx = self.call.ctx
        if ctx is None:
            amount = "" if done is None else f"{done:g}" if total is None else f"{done:g} of {total:g}"
            self.call.change(": ".join(part for part in (amount, message) if part))
            return
        grows = done is not None and done > self.progressed
        self.progressed = done if done is not None and grows else self.progressed + 1
        await ctx.session.report_progress(self.progressed, total if grows else None, message)


class ToolServer(ABC):
    """Serves one open toolset to all principals."""

    def __init__(self, options: ServerOptions, calls: OpenCalls, levels: LogLevels) -> None:
        self._options, self._calls, self._levels = options, calls, levels
        self._suspended = calls.suspended
        self._flights = SingleFlight()
        self._asking = AskingCalls(calls, options.state_seconds)

    @abstractmethod
    async def list(self, principal: Principal, *, stateless: bool) -> Sequence[types.Tool]:
        """Return the tools that a principal is shown now by a client, of the stateless generation or the older one."""

    @abstractmethod
    async def instructions(self, principal: Principal) -> Sequence[str]:
        """Return the instructions of the tools that a principal is shown."""

    @abstractmethod
    async def start(self, request: ToolRequest) -> CallReply | Suspension:
        """Make a new call."""

    @abstractmethod
    async def resume(
        self, request: ToolRequest, state: Mapping[str, Any], answers: Sequence[Grant | Denial]
    ) -> CallReply | Suspension:
        """Continue a suspended call with the answers that came with the request; others are looked up."""

    @abstractmethod
    def may_be_suspended(self, request: ToolRequest) -> bool:
        """Return whether an equal call may be suspended, so that the store has to be searched."""

    @abstractmethod
    def renewed(self) -> None:
        """Serve the tools that the toolset has now; called when they have changed."""

    @abstractmethod
    def asks(self, name: str) -> bool:
        """Return whether the tool of this name may ask its client for something."""

    @property
    @abstractmethod
    def toolset(self) -> Toolset:
        """The tools that calls are made of."""

    @property
    def entries(self) -> Mapping[str, ToolEntry]:
        """The tools that are served one by one, by name."""
        return {}

    async def refresh(self) -> None:
        """Learn of suspended calls that other servers keep, before `may_be_suspended` is asked."""
        return

    def named_approval(self, request: ToolRequest) -> Any:
        """Return the approval request that the client names, as it names it; None when it names none."""
        return request.params.meta.get(REQUEST_META) if request.params.meta else None

    # --- a request

    async def call(
        self,
        ctx: ServerRequestContext[Any, Any],
        params: types.CallToolRequestParams,
        principal: Principal,
        answer: AnswerOf | None = None,
    ) -> CallReply | types.InputRequiredResult:
        """Make a call or continue the equal one that is suspended, and return the reply to the client.

        Args:
            answer: Makes the reply to a request that is not `tools/call`.
        """
        if refused_arguments.get() is not None:
            params = params.model_copy(update={"request_state": None, "input_responses": None})
        known = call_asked_for(params.request_state)
        if known is not None:
            return await self._asking.go_on(known, params.name, principal.name, ctx, params.input_responses)
        key = request_key(params, principal, None if answer is None else ctx.method)
        call = OpenCall(ASKING, principal.name, params.name, self, ctx)
        request = ToolRequest(ctx, params, principal, principal.run, key, call, answer=answer)
        self._open(request, by_form=not is_stateless(ctx))
        work = self._traced(request, self._reply_to(request))
        if request.link is None or not (is_stateless(ctx) and may_ask(ctx)):
            return await work
        return await self._asking.run(call, work)

    async def perform(self, request: ToolRequest) -> types.CallToolResult | Suspension:
        """Make a call or continue the equal one that is suspended, for a caller that waits as long as it takes."""
        self._open(request, by_form=True)
        result = await self._traced(request, self._in_turn(request))
        return cast("types.CallToolResult | Suspension", result)  # a request of `tools/call` has no other

    async def _traced(self, request: ToolRequest, reply: Coroutine[Any, Any, T]) -> T:
        method = "tools/call" if request.answer is None else request.ctx.method
        activity = trace_activity(
            "request", method, request.run, self._options.sinks, about=lambda: _request_data(request)
        )
        return await (reply if activity is None else _traced(activity, reply))

    def _open(self, request: ToolRequest, *, by_form: bool) -> None:
        """Open the run that a request's call is made in, with what may be asked of its client.

        Args:
            by_form: Whether the client can be asked for approval during the call.
        """
        ctx, run, options = request.ctx, request.principal.run, dict[str, Any]()
        link = McpClientLink(request.call, ctx, self._options.ask_client, self._levels)
        if self.asks(request.params.name):
            request.link = options["client"] = link
        if by_form and self._options.approve_by == "elicit" and run.approver is None and can_elicit(ctx):
            pending, longest = request.principal.pending, self._options.elicit_always
            options["approver"] = form_approver(link, pending, longest)
        if options:
            request.run = run.view(**options)

    async def close(self) -> None:
        await self._calls.close(self)

    async def _reply_to(self, request: ToolRequest) -> CallReply | types.InputRequiredResult:
        try:
            if request.params.request_state is not None:
                # the SDK has checked the seal of the state
                sealed = cast("dict[str, Any]", json.loads(request.params.request_state))
                asked = [ApprovalRequest.from_dict(data) for data in sealed["requests"]]
                state: Mapping[str, Any] | None = sealed.get("state")
                if state is None:  # it was too long to travel
                    found = await self._suspended.find(request.key)
                    if found is None or set(found.requests) != {approval.id for approval in asked}:
                        raise MCPError(INVALID_PARAMS, "the call that waited is no longer stored; make it again")
                    state = found.state
                may_answer = self._options.approve_by == "elicit"  # else only the store's answers count
                shown = {id: Grant.from_dict(data) for id, data in sealed.get("unconfirmed", {}).items()}
                answers, unconfirmed = list[Grant | Denial](), dict[str, Grant]()
                if may_answer:
                    responses, longest = request.params.input_responses, self._options.elicit_always
                    answers, unconfirmed = answers_from_forms(asked, responses, longest, shown)
                request.continues = tuple(approval.id for approval in asked)
                result = await self._stored(request, await self.resume(request, state, answers))
                goes_on = bool(answers or unconfirmed)
                return await self._reply(
                    request, result, may_elicit=goes_on, until=sealed["until"], unconfirmed=unconfirmed
                )
            return await self._reply(request, await self._in_turn(request))
        except NewerForm as error:  # of what is stored nothing has changed
            raise MCPError(INTERNAL_ERROR, clean(f"the call waits as before, and was not made: {error}")) from error

    async def _in_turn(self, request: ToolRequest) -> CallReply | Suspension:
        """Make a call, or continue the equal one; of several equal calls one after another where they may wait."""
        await self.refresh()
        if not self.may_be_suspended(request):
            return await self._start_or_resume(request)
        async with self._flights.flight(request.key) as request.flight:
            return await self._start_or_resume(request)

    async def _start_or_resume(self, request: ToolRequest) -> CallReply | Suspension:
        found = await self._find_suspended(request) if request.text is None else None
        result = await (self.start(request) if found is None else self.resume(request, found.state, ()))
        return await self._stored(request, result)

    async def _stored(self, request: ToolRequest, result: CallReply | Suspension) -> CallReply | Suspension:
        """Keep a call that is suspended now, and drop one that has ended; return its result."""
        if isinstance(result, Suspension):
            name, tool = request.principal.name, request.params.name
            await self._suspended.keep(SuspendedCall(request.key, name, tool, result.ids, result.state))
            request.continues = result.ids
        elif request.continues:  # an equal call, made once more meanwhile, may be suspended under its key by now
            await self._suspended.drop(request.key, request.continues)
        return result

    async def _find_suspended(self, request: ToolRequest) -> SuspendedCall | None:
        """Return the suspended call to continue: the one whose approval request the client names, or the equal one."""
        named, tool = self.named_approval(request), request.params.name
        if isinstance(named, str):
            found = await self._suspended.find_request(request.principal.name, named)
            if found is None or found.tool != tool:
                raise MCPError(INVALID_PARAMS, clean(f"no call of `{tool}` waits for the request {named}"))
            request.key = found.key
        else:
            found = await self._suspended.find(request.key) if self.may_be_suspended(request) else None
        if found is not None and found.since + self._options.kept_for <= now():
            await self._suspended.drop(found.key, found.requests)
            if isinstance(named, str):
                raise MCPError(INVALID_PARAMS, clean(f"the call that waited for {named} is no longer stored"))
            return None
        request.continues = () if found is None else found.requests
        return found

    async def _reply(
        self,
        request: ToolRequest,
        result: CallReply | Suspension,
        *,
        may_elicit: bool = True,
        until: float = 0.0,
        unconfirmed: Mapping[str, Grant] | None = None,
    ) -> CallReply | types.InputRequiredResult:
        """Return the reply to the client; a suspended call is kept by now.

        Args:
            may_elicit: Whether the client may be asked; False when it has just left the same request unanswered.
            until: The time until which a client waits in several requests; 0 when it begins to wait.
            unconfirmed: The standing grants that the client has to confirm, by request.
        """
        if not isinstance(result, Suspension):
            return result
        if self._options.approve_by == "elicit" and is_stateless(request.ctx) and can_elicit(request.ctx):
            if may_elicit and all(map(counts_alone, result.requests)):
                forms = forms_for(result.requests, self._options.elicit_always, unconfirmed)
                return await self._input_required(result, forms, until, unconfirmed)
        elif self._options.wait:
            return await self._wait_for_answers(request, result, until)
        return self._suspended_reply(request, result)

    def _suspended_reply(self, request: ToolRequest, suspension: Suspension) -> types.CallToolResult:
        """Return the result for a suspended call; raises MCPError where the protocol has no result that says so."""
        because = ""
        if self._options.approve_by == "elicit":
            if not can_elicit(request.ctx):
                because = "This client cannot ask its user by a form. "
            elif all(map(counts_alone, suspension.requests)):
                because = "Its form was closed without an answer. "
            else:
                because = "The user of this client cannot approve it alone. "
        result = suspended_result(suspension, self._options.answered_in, because=because)
        if request.answer is None:
            return result
        text = next(part.text for part in result.content if isinstance(part, types.TextContent))
        raise MCPError(SUSPENDED, text, result.structured_content)

    # --- answers in the store

    async def is_settled(self, asked: ApprovalRequest) -> bool:
        """Return whether a suspended call can go on though its request is open, as its tool's source says."""
        return await self._settler(asked, lambda source: source.get_settler(asked)) is not None

    async def is_answered(self, store: WaitableApprovalStore, asked: ApprovalRequest, seconds: float) -> bool:
        """Return whether a request is answered, or its call can go on without, within so many seconds."""
        found = await first_of(store.wait(asked.id, max(0.0, seconds)), self._until_settled(asked))
        return any(by is not None for by in found)

    async def _until_settled(self, asked: ApprovalRequest) -> str:
        """Return who has settled what a call is suspended for, once someone has."""
        by = await self._settler(asked, lambda source: source.wait_for_settler(asked))
        return await asyncio.Future[str]() if by is None else by

    async def _settler(self, asked: ApprovalRequest, ask: Callable[[BaseTool], Awaitable[str | None]]) -> str | None:
        entry = self.toolset.entries.get(asked.tool)
        try:
            return None if entry is None or entry.tool.source is None else await ask(entry.tool.source)
        except BaseException as error:  # the source's own code; the call waits on
            _log.error("it cannot be asked whether the request %s is settled", asked.id, exc_info=exception_of(error))
            return None

    async def _wait_for_answers(
        self, request: ToolRequest, suspension: Suspension, until: float
    ) -> CallReply | types.InputRequiredResult:
        """Wait for the answers, in several requests where the client comes back by itself; then continue the call."""
        seconds, until = self._options.wait, until or time.time() + self._options.wait
        stateless = is_stateless(request.ctx)
        leg = min(seconds / _LEGS if stateless else seconds, until - time.time())
        if await self._are_answered(request, suspension, leg):
            result = await self._stored(request, await self.resume(request, suspension.state, ()))
            if not isinstance(result, Suspension):
                return result
            suspension = result  # the next request of a program
        if stateless and until - time.time() > 0:
            return await self._input_required(suspension, None, until)
        return self._suspended_reply(request, suspension)

    async def _are_answered(self, request: ToolRequest, suspension: Suspension, seconds: float) -> bool:
        """Return whether all requests are answered or settled within so many seconds; report progress meanwhile."""
        store, end = request.principal.pending.store, time.monotonic() + seconds
        if not isinstance(store, WaitableApprovalStore):
            return False
        for asked in suspension.requests:
            while not await self.is_answered(store, asked, min(PROGRESS_SECONDS, end - time.monotonic())):
                if time.monotonic() >= end:
                    return False
                await request.progress(f"`{asked.tool}` is suspended until a person answers (request {asked.id})")
        return True

    # --- a state that the client hands back

    async def _input_required(
        self,
        suspension: Suspension,
        forms: dict[str, types.InputRequest] | None,
        until: float,
        unconfirmed: Mapping[str, Grant] | None = None,
    ) -> types.InputRequiredResult:
        """Return the reply that has the client come back, with a state that the SDK seals to call and principal."""
        data: dict[str, Any] = {"requests": [asked.to_dict() for asked in suspension.requests], "until": until}
        if unconfirmed:
            data["unconfirmed"] = {id: grant.to_dict() for id, grant in unconfirmed.items()}
        state = json.dumps({**data, "state": suspension.state})
        if len(state) > _INLINE:
            state = json.dumps(data)
        return types.InputRequiredResult(input_requests=forms, request_state=state)


def request_key(params: types.CallToolRequestParams, principal: Principal, method: str | None = None) -> str:
    """Return a key of the call and its principal: equal for equal calls of one principal, different for all others.

    Args:
        method: The request's, where it is not `tools/call`.
    """
    asked: dict[str, Any] = {"principal": principal.name, "arguments": params.arguments or {}}
    return digest(params.name, asked if method is None else {**asked, "method": method})


async def _traced(activity: ActivityTrace, reply: Coroutine[Any, Any, T]) -> T:
    """Return a reply, and close the activity of its request."""
    try:
        with activity.within():
            result = await reply
    except BaseException as error:
        activity.broken_off(error)
        raise
    if isinstance(result, Suspension | types.InputRequiredResult):
        activity.closed("suspended")
    elif isinstance(result, types.CallToolResult):
        suspended = is_suspended_result(result)
        activity.closed("suspended" if suspended else "error" if result.is_error else "completed")
    else:
        activity.closed("completed")
    return result


def _request_data(request: ToolRequest) -> dict[str, Any]:
    """Return the data of a request for events."""
    http = None if is_stateless(request.ctx) else request.ctx.request
    session = None if http is None else http.headers.get("mcp-session-id")  # the transport has checked it
    return {
        "method": request.ctx.method,
        "protocol_version": request.ctx.protocol_version,
        "tool": clean(request.params.name),
        "principal": request.principal.name,
        **({} if session is None else {"session_id": session}),
    }

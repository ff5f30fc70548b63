"""Sessions of a front end: kept between the requests of a person, and run as a stream of events."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from inspect import isawaitable
from typing import Any, TypeAlias, cast
from uuid import uuid4

from toolcrib._numbers import count_text, require_numbers, span_text
from toolcrib._processes import is_running, this_process
from toolcrib.approvals import (
    ApprovalStore,
    GrantForm,
    MemoryApprovalStore,
    SuspendedCall,
    SuspendedCallStore,
    digest,
    suspended_calls_beside,
)
from toolcrib.calls import ApprovalRequest, CallEvent, Grant, Identity, now
from toolcrib.errors import (
    ApprovalError,
    FrontEndError,
    ResultNotSerializable,
    RoundError,
    exception_of,
    explain_options,
)
from toolcrib.hooks import require_parameters
from toolcrib.rounds import Continue, Finished, NeedsTools, Session, Stopped, ToolRound, ToolRoundPlan, Usage
from toolcrib.serving._front_end_events import (
    ApprovalAsked,
    CallEnded,
    CallShown,
    ExchangeEnded,
    FrontEndAnswer,
    FrontEndEvent,
    FrontEndRequest,
    ReplyBegan,
    ReplyText,
)
from toolcrib.serving._principals import ListsRequests, PendingApprovals, check_countable

_CLAIMED_FOR = timedelta(minutes=10)  # after which an exchange is taken for one of a dead process on another machine
_PENDING_FOR = timedelta(days=7)  # for which an approval request counts
_NO_FUNCTION = "this tool has no function here, so it was not executed"
_NOT_HERE = "this front end has no way to do that"
_log = logging.getLogger("toolcrib.serving")

OpenSession: TypeAlias = Callable[[str], Any]
"""Returns a new `Session` for a principal; it may be async. It is asked for every request."""


@explain_options()
@dataclass(frozen=True, slots=True)
class FrontEndLimits:
    """Limits of what a front end may send and start.

    Attributes:
        request_bytes: The size of a request, which holds the whole conversation.
        message_chars: The length of a message.
        exchanges: Requests that are answered at a time.
        rounds: How often the model may ask for tools before it has to answer.
        pending: Approval requests of one principal that may wait for an answer.
        always: The longest time for which a person may let further calls run, within bounds that they choose and that
            are shown to them again word for word. None where they answer for each call alone.
    """

    request_bytes: int = 4_000_000
    message_chars: int = 100_000
    exchanges: int = 100
    rounds: int = 10
    pending: int = 100
    always: timedelta | None = None

    def __post_init__(self) -> None:
        sizes = ("request_bytes", "message_chars", "exchanges", "rounds", "pending")
        require_numbers(
            "FrontEndLimits", self, dict.fromkeys(sizes, 1), spans=() if self.always is None else ("always",)
        )


class FrontEndSessions:
    """The sessions of one front end, each of one principal, kept beside the approval requests of their calls.

    Of what a client sends, a session takes the person's new message alone: the transcript is the one kept here.

    Args:
        entry: Which way the calls come, for the record.
        open_session: Opens a new session.
        approvals: Where approval requests are kept, and the sessions beside them; in memory when None.
        limits: The limits.

    Attributes:
        running: The exchanges that run, also those whose client has left.

    Raises:
        ValueError: The store cannot list its requests.
    """

    def __init__(
        self, entry: str, open_session: OpenSession, approvals: ApprovalStore | None, limits: FrontEndLimits
    ) -> None:
        self.entry, self.limits = entry, limits
        self.approvals: ApprovalStore = MemoryApprovalStore() if approvals is None else approvals
        check_countable(self.approvals, limits.pending)
        require_parameters("function open_session", open_session, "principal", result="a session")
        self._open_session = open_session
        self.kept: SuspendedCallStore = suspended_calls_beside(self.approvals)
        self._active: set[str] = set()
        self.running: set[asyncio.Task[None]] = set()

    async def open(self, principal: str, request: FrontEndRequest) -> Exchange:
        """Return the exchange that a request begins; nothing of it has run, and no other one may begin meanwhile.

        Raises:
            FrontEndError: The conversation is answered at the moment, or the request asks for nothing that can be done.
        """
        if len(request.text) > self.limits.message_chars:
            raise FrontEndError(f"a message has at most {self.limits.message_chars} characters", 413)
        key = digest("front end", {"entry": self.entry, "principal": principal, "id": request.conversation})
        if key in self._active:
            raise FrontEndError("this conversation is being answered; wait for the end, and ask again", 409)
        if len(self._active) >= self.limits.exchanges:
            raise FrontEndError("too many conversations are being answered; ask again later", 503)
        self._active.add(key)
        try:
            stored = await self.kept.find(key)
            state: Mapping[str, Any] = {} if stored is None else stored.state
            is_gone = is_running(state.get("process", "")) is False
            if stored is not None and state["claimed"] and not is_gone and now() - stored.since < _CLAIMED_FOR:
                raise FrontEndError("this conversation is being answered elsewhere; ask again later", 409)
            exchange = Exchange(self, request, principal, key)
            exchange.shown = {id: Grant.from_dict(grant) for id, grant in state.get("unconfirmed", {}).items()}
            exchange.session = session = await self._session(exchange, state)
            if session.open_round is None:
                exchange.message = _take_message(session, request, state)
            elif request.answers or request.message_id == state["message"]:
                exchange.message = state["message"]
            else:
                raise FrontEndError("a call waits for approval: answer it first, then write again", 409)
            claim = await exchange.state(
                claimed=True, text=state["session"] if session.open_round is not None else None
            )
            if not await self.kept.replace(claim, stored):
                raise FrontEndError("this conversation is being answered elsewhere; ask again later", 409)
            return exchange
        except BaseException:
            self._active.discard(key)
            raise

    def start(self, exchange: Exchange) -> asyncio.Task[None]:
        """Run an exchange to its end, also where its client has left."""
        task = asyncio.create_task(exchange.run())
        self.running.add(task)
        task.add_done_callback(self.running.discard)
        return task

    def end(self, key: str) -> None:
        """Release the conversation for another exchange."""
        self._active.discard(key)

    async def _session(self, exchange: Exchange, state: Mapping[str, Any]) -> Session:
        """Return the session that is kept, or a new one, with calls on behalf of the principal of an exchange."""
        principal, limits = exchange.principal, self.limits
        fresh = self._open_session(principal)
        session: Session = await fresh if isawaitable(fresh) else fresh
        if not isinstance(cast("object", session), Session):
            raise TypeError(
                f"open_session returned {session!r:.80}; return a session, as in Session(model, tools=tools)"
            )
        run = session.host_run
        if run.approvals not in (None, self.approvals):
            raise ValueError("give the approval store to the front end, approvals=..., and not to the session's run")
        run = run.view(
            principal=principal,
            conversation_id=exchange.request.conversation,
            approvals=PendingApprovals(self.approvals, principal, limits.pending, _PENDING_FOR),
            sinks=(*run.sinks, exchange),
            recorder=exchange if run.durability.recorder is None else run.durability.recorder,
            hook_errors="fail",
            entry=self.entry,
        )
        if state:
            return await Session.from_json(session.model, state["session"], run=run, **session.defaults)
        return Session(
            session.model,
            format=session.format,
            system=session.system,
            transcript=session.transcript,
            run=run,
            **session.defaults,
        )


def _take_message(session: Session, request: FrontEndRequest, state: Mapping[str, Any]) -> str:
    """Add the person's new message to the session, and return its id; one that is not answered is asked again."""
    if not request.text:
        raise FrontEndError("nothing waits for an answer, and there is no new message", 409)
    if request.message_id and request.message_id == state.get("message"):
        if state["answered"]:
            mend = "open the conversation again, or write a new message"
            raise FrontEndError(f"this was answered before, maybe on another page: {mend}", 409)
        return request.message_id
    session.say(request.text)
    return request.message_id


class Exchange:
    """One request of a person at a front end, until the session has answered or a call is suspended.

    It is a sink and the recorder of its calls. The session is kept before each call begins: where the process dies, the
    call is in doubt.

    Attributes:
        session: The session that goes on.
        message: The client's id of the last message that the session heard.
        shown: The yeses for further calls that the person was shown before, by request.
    """

    session: Session
    shown: Mapping[str, Grant]

    def __init__(self, sessions: FrontEndSessions, request: FrontEndRequest, principal: str, key: str) -> None:
        self.request, self.principal, self.message = request, principal, request.message_id
        self._sessions, self._key = sessions, key
        self._events: asyncio.Queue[FrontEndEvent | None] = asyncio.Queue()
        self._arguments: dict[str, Any] = {}
        self._unconfirmed: dict[str, Grant] = {}
        self._problems: dict[str, str] = {}
        self._asking: asyncio.Future[Any] | None = None
        self._stopped = self._answered = False
        self._before = Usage()

    async def events(self) -> AsyncGenerator[FrontEndEvent]:
        """Run the exchange, and give its events; where the listener leaves, the model is asked nothing any more.

        Calls that were begun go on to their end, and their results are kept.
        """
        self._sessions.start(self)
        try:
            while (event := await self._events.get()) is not None:
                yield event
        finally:
            self._stopped = True
            if self._asking is not None:
                self._asking.cancel()

    async def run(self) -> None:
        """Run the exchange, keep the session, and only then say that it has ended."""
        last: list[FrontEndEvent] = []
        try:
            last = await self._go_on()
        except BaseException as error:  # the model, the tools' hosts and the stores are the user's code
            reference = uuid4().hex[:8]
            _log.error("a request of a front end failed (%s)", reference, exc_info=exception_of(error))
            last = [self._ended("error", f"something went wrong; the log has it under {reference}")]
        finally:
            try:
                await self.save(claimed=False)
            finally:
                self._sessions.end(self._key)
            for event in (*last, None):
                self._events.put_nowait(event)

    # --- events of the run

    def emit(self, event: CallEvent) -> None:
        """Keep the arguments of a call as they may be shown."""
        if event.kind == "received":
            self._arguments[event.call_id] = event.data["arguments"]

    async def begin(self, call: Any) -> None:
        """Keep that a call begins, so that it is in doubt where this process dies before it ends."""
        try:
            await self.save(claimed=True)
        except ResultNotSerializable:
            _log.warning("the call %s begins unrecorded: a result beside it has no JSON form", call.id)

    async def save(self, *, claimed: bool) -> None:
        """Keep the session; of a claimed one, no other process may go on with it."""
        await self._sessions.kept.keep(await self.state(claimed=claimed))

    async def state(self, *, claimed: bool, text: str | None = None) -> SuspendedCall:
        """Return the session as it is kept.

        Args:
            claimed: No other process may go on with it.
            text: Its stored text, if there is one: writing it again tells sinks that it is paused.
        """
        session = self.session
        asked: list[ApprovalRequest] = []
        if session.open_round is not None:
            asked = [waiting.request for waiting in (await session.open_round.apply_hooks()).suspended]
        answered = self._answered or bool(asked)
        text = session.to_json() if text is None else text
        state = {
            "session": text,
            "message": self.message,
            "answered": answered,
            "claimed": claimed,
            "unconfirmed": {id: grant.to_dict() for id, grant in self._unconfirmed.items()},
            "process": this_process(),
        }
        requests = (f"claim_{uuid4().hex}",) if claimed else tuple(waiting.id for waiting in asked)
        tool = asked[0].tool if asked else ""
        return SuspendedCall(self._key, self.principal, tool, requests, json.loads(json.dumps(state)))

    # --- the loop

    async def _go_on(self) -> list[FrontEndEvent]:
        """Answer the open round, ask the model until it has answered, and return the last events."""
        session = self.session
        self._before = session.usage
        if session.open_round is not None:
            plan = await session.follow(self._resume(session.open_round))
            if plan.suspended:
                return self._asks(plan)
        for _ in range(self._sessions.limits.rounds):
            step = await self._step()
            match step:
                case None:
                    return [self._ended("stopped")]
                case Finished():
                    self._answered = True
                    return [self._ended("finished")]
                case Stopped():
                    problem = "; ".join(step.problems) or f"the model's reply ended early ({step.reason})"
                    return [self._ended(step.reason, problem)]
                case Continue():
                    continue
                case NeedsTools(round=round):
                    plan = await session.follow(self._take(round))
                    if plan.suspended:
                        return self._asks(plan)
        problem = f"the model still asks for tools after {count_text(self._sessions.limits.rounds, 'round')}"
        session.break_off(RoundError((problem,)))
        return [self._ended("unknown", problem)]

    async def _step(self) -> NeedsTools | Continue | Finished[Any] | Stopped | None:
        """Ask the model once, and show its text; None where the listener has left."""
        if self._stopped:
            return None
        self._events.put_nowait(ReplyBegan())

        def show(text: str) -> None:
            self._events.put_nowait(ReplyText(text))

        self._asking = asyncio.ensure_future(self.session.step(on_text=show))
        try:
            return await self._asking
        except asyncio.CancelledError:
            if self._stopped:
                return None
            raise
        finally:
            self._asking = None

    async def _take(self, round: ToolRound) -> ToolRoundPlan:
        """Ask the gates of a round's calls, and execute them unless one waits for the person."""
        plan = await round.apply_hooks()
        unread = [issue.metadata for issue in plan.issues]
        listed = {call.id: call.metadata for call in round.tool_calls} | {about.id: about for about in unread}
        for about in listed.values():
            shown = self._arguments.get(about.id, about.arguments)
            self._events.put_nowait(CallShown(about.id, about.name, shown))
        await self._execute(plan)
        return plan

    async def _resume(self, round: ToolRound) -> ToolRoundPlan:
        """Resume a round when each of its requests is answered, here or elsewhere."""
        plan = await round.apply_hooks()
        for suspended in plan.suspended:
            answer = self.request.answers.get(suspended.request.id)
            if answer is not None:
                await self._answer(suspended.request, answer)
        store = cast("PendingApprovals", self.session.host_run.approvals).store
        pending = {entry.request.id for entry in await cast("ListsRequests", store).list(pending=True)}
        if not any(waiting.request.id in pending for waiting in plan.suspended):
            await plan.resolve()
            await self._execute(plan)
        return plan

    async def _answer(self, request: ApprovalRequest, answer: FrontEndAnswer) -> None:
        """Keep the person's answer; the first that a request got counts.

        A yes for further calls is kept when the words come back that the person was shown for it.
        """
        who, store = Identity(self.principal), cast("ApprovalStore", self.session.host_run.approvals)
        if answer.approved and (answer.further is not None or answer.words):
            try:
                decision = self._further(request, answer)
            except ValueError as error:
                self._problems[request.id] = f"Nothing was approved: {error}."
                return
            if answer.further is not None:
                self._unconfirmed[request.id] = decision
                return
        elif answer.done is not None:
            decision = request.done(answer.done.value, who, answer.reason)
        elif answer.approved:
            decision = request.grant(who, message=answer.reason, override_args=answer.arguments)
        else:
            decision = request.deny(message=answer.reason, by=who)
        try:
            await store.answer(decision)
        except ApprovalError as error:
            _log.info("the answer of %s was not taken: %s", who, error)
            self._problems[request.id] = f"Nothing was approved: {error}."

    def _further(self, request: ApprovalRequest, answer: FrontEndAnswer) -> Grant:
        """Return the yes for further calls that an answer asks for, or whose words it has.

        Raises:
            ValueError: The host's limits do not allow it, or it makes no sense.
        """
        longest, shown = self._sessions.limits.always, self.shown.get(request.id)
        if longest is None or answer.arguments is not None:
            raise ValueError("this request is answered for its call alone")
        if answer.further is not None:
            return answer.further.grant(request, Identity(self.principal), answer.reason, longest=longest)
        if shown is None or answer.words != shown.text():
            raise ValueError("these are not the words that were shown last")
        if shown.expires_at is None or shown.expires_at - shown.at > longest:  # the limit was another one then
            raise ValueError(f"it may hold for {span_text(longest.total_seconds())} at most; choose again")
        return shown

    async def _execute(self, plan: ToolRoundPlan) -> None:
        results = [] if plan.suspended else await plan.run_pending()
        if plan.suspended:  # a tool may ask itself
            return
        ran = {result.call_id for result in results}
        others = [call.reject(_NO_FUNCTION) for call in plan.pending if call.id not in ran]
        refused = [waiting.refuse(_NOT_HERE) for waiting in plan.unhandled]
        await plan.commit(self.session, [*results, *others, *refused])
        for id, outcome in plan.outcomes.items():
            self._events.put_nowait(CallEnded(id, outcome))

    def _asks(self, plan: ToolRoundPlan) -> list[FrontEndEvent]:
        return [*(self._approval_event(waiting.request) for waiting in plan.suspended), self._ended("suspended")]

    def _approval_event(self, request: ApprovalRequest) -> ApprovalAsked:
        longest, shown = self._sessions.limits.always, self._unconfirmed.get(request.id)
        further = None if longest is None or not GrantForm.fits(request) else GrantForm.schema(request, longest)
        return ApprovalAsked(
            request, further, "" if shown is None else shown.text(), self._problems.get(request.id, "")
        )

    def _ended(self, reason: Any, problem: str = "") -> ExchangeEnded:
        return ExchangeEnded(reason, problem, self.session.usage - self._before)

"""Step 5: whether a person has to approve the call, the search for their answer, and what it does to the call."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from toolcrib import approvals, calls, tools
from toolcrib._processes import is_running
from toolcrib.calls import Failed, Outcome, Rejected, Suspended, revived
from toolcrib.errors import ApprovalError, InvalidArguments, InvalidOutput, SchemaError
from toolcrib.hooks import Occasion
from toolcrib.pipeline._failures import failure, stored_error
from toolcrib.pipeline._finish import set_result
from toolcrib.pipeline._gates import override, reasons_for
from toolcrib.pipeline._live_call import LiveCall, ask_about, request_for
from toolcrib.tools import stopped_clocks

_EXECUTED_NOW = "the call is executed now, since {since}: nothing is to be answered; come back for its result"
_MOST_NAMED = 3  # equal calls in a question; of more, the last

Answer: TypeAlias = "calls.Grant | calls.Denial"
"""The answer of a person to a request."""


class Begun(NamedTuple):
    """Entry of the run's store by which a call has begun: in another process, or earlier in this one.

    Attributes:
        entry: The entry of the store, of the call or of an equal one.
        attached: The answer that came with the call.
    """

    entry: approvals.ApprovalEntry
    attached: Answer | None = None


def is_earlier(grant: calls.Grant, request: calls.ApprovalRequest) -> bool:
    """Return whether a grant is a standing one, which was given before this request, or for another."""
    return grant.standing and grant.request_id != request.id


async def approve(
    call: LiveCall, attached: Answer | None, used: calls.Grant | None = None, *, occasion: Occasion = "new"
) -> Outcome | None:
    """Return the outcome of a call that a person must approve and has not; None when it may go on.

    Args:
        attached: The answer that came with the call.
        used: The grant by which it was begun before, which serves it again as long as it fits.
        occasion: Why the call passes its gates.
    """
    reasons = await reasons_for(call, occasion)
    if not isinstance(reasons, list):
        return reasons
    if reasons:
        return await settle(call, reasons, attached, used)
    if not call.has_noted_effect:
        return None
    store = call.run.approvals
    try:
        equal = await equal_call(call)
    except Exception as error:  # the store is the user's code; a gate that fails is shut
        return call.hook_failure("approval", store, error)
    if equal is None:
        return None
    return await settle(call, [], None, begun=Begun(equal) if equal.execution_state == "in doubt" else None)


async def settle(
    call: LiveCall,
    reasons: list[str],
    attached: Answer | None,
    used: calls.Grant | None = None,
    *,
    lapsed: bool = False,
    begun: Begun | None = None,
) -> Outcome | None:
    """Find an answer for these reasons and apply it; None when the call may continue.

    A call in doubt that was done, as the approver says, is `executed` then, with their result.

    Args:
        attached: The answer that came with the call.
        used: The grant by which it was begun before.
        lapsed: Whether these are reasons from before, and nothing asks about the call any more: then what they are
            about may be settled by other means.
        begun: The entry of the store by which the call, or an equal one, has begun.
    """
    with call.activate():
        if begun is None:
            answer = await _find_answer(call, reasons, attached, used, lapsed=lapsed)
        else:
            answer = await _begun_before(call, begun)
        return await _apply(call, answer) if isinstance(answer, calls.Grant) else answer


async def _find_answer(
    call: LiveCall, reasons: list[str], attached: Answer | None, used: calls.Grant | None, *, lapsed: bool
) -> Outcome | calls.Grant | None:
    """Return the grant that lets the call go on, or the outcome that ends it here; None when it was executed before."""
    question = Question(call, attached, used, lapsed=lapsed)
    try:
        answer = await question.find_answer(reasons)
        return await _begun_before(call, answer) if isinstance(answer, Begun) else answer
    except InvalidArguments as error:
        return failure(call, error)
    except ApprovalError as error:
        return Failed(call.name, call.id, error.code, str(error), "ApprovalError", exception=error)
    except BaseException as error:  # tool, store and approver are the user's code; a gate that fails is shut
        return call.hook_failure("approval", question.asked, error)


async def _begun_before(call: LiveCall, begun: Begun) -> Outcome | calls.Grant | None:
    """Continue a call that was started before, as the run's store knows: in another process, or earlier in this one.

    Where it has ended with a result, the call is executed, with that. Where it is executed now, the call stays
    suspended. Else it is in doubt: it begins once more by the same grant if its tool is idempotent, and is asked about
    if it is not, with the arguments that an approver gave for it.
    """
    entry, attached = begun
    execution, request = entry.execution, entry.request
    if execution is None or call.approval.waits_for:
        raise ApprovalError(call.name, "the call went on by this request before, and may have been done")
    state = execution.state
    if state == "ended" and execution.result is not None:
        grant = entry.answer if isinstance(entry.answer, calls.Grant) else None
        _take_result(call, execution.result, grant)
        return None
    if state == "running":
        since = execution.begun_at.isoformat(timespec="seconds")
        request = replace(request, reason=_EXECUTED_NOW.format(since=since))
        return replace(call.suspend(request), executed_since=execution.begun_at)
    if call.tool.options.idempotent and isinstance(entry.answer, calls.Grant) and state == "in doubt":
        return entry.answer
    edited = entry.answer.override_args if isinstance(entry.answer, calls.Grant) else None
    if edited is not None and (refused := await override(call, edited)) is not None:
        return refused
    if call.state != "executing":  # else this doubt is counted
        call.history = replace(call.history, doubts=call.history.doubts + 1)
    following = request.next_in_doubt(call.digest, call.run.principal, call.plan.definition)
    call.approval = replace(call.approval, request=following)
    call.state = "suspended"  # so that each process asks the same
    if attached is not None and attached.request_id != following.id:
        attached = None  # it let the call begin, and says nothing of the doubt
    return await _find_answer(call, [reason_of_doubt(call, ended=state == "ended")], attached, None, lapsed=False)


def _take_result(call: LiveCall, result: Mapping[str, Any], grant: calls.Grant | None) -> None:
    """Move a call to `executed` with the result that the run's store has of it, and by the grant that it began by."""
    error = result.get("error")
    call.approval = replace(call.approval, grant=grant)
    call.execution = replace(call.execution, noted="ended")
    call.history = replace(call.history, trace=call.history.trace or {})
    call.begun = True
    failed = None if error is None else stored_error(error)
    set_result(call, revived(result.get("value")), failed, delivered=call.plan.streaming)


async def _apply(call: LiveCall, grant: calls.Grant) -> Outcome | None:
    """Apply a grant to its call: the arguments or the result that it gives, and what its approver typed."""
    if grant.override_args is not None:
        refused = await override(call, grant.override_args)
        if refused is not None:
            return refused
    if call.request is None or not is_earlier(grant, call.request):  # a standing grant may be taken back, or end
        for name, origins in call.approval.origins.items():
            if (state := call.run.feature(name)) is not None:
                state.approve(call, origins)
    call.approval = replace(call.approval, digest=call.digest, grant=grant)
    if grant.done is not None:
        call.begun = (call.history.original or call).begun = True
        set_result(call, tools.checked_output(call.tool, call.name, grant.done.value))
    return await _take_input(call, grant)


async def _take_input(call: LiveCall, grant: calls.Grant) -> Outcome | None:
    """Hand what the approver typed to the context, by the tool's own `process_user_input`."""
    ctx, source = call.ctx, call.tool.source
    if ctx is None:
        return None
    ctx.approved, ctx.approved_by, ctx.user_input = True, grant.by, grant.user_input
    if source is None or grant.user_input is None:
        return None
    try:
        processed = source.process_user_input(ctx, grant.user_input)
        ctx.user_input = await processed if isinstance(processed, Awaitable) else processed
    except BaseException as error:  # the tool's own code, before it runs: the call fails and nothing was done
        return call.hook_failure("method", "process_user_input", error)
    return None


# --- the search for an answer


class Question:
    """A question about a call, and the search for its answer.

    The answer is looked for in this order: what the run's store knows of an execution, the answer attached to the call,
    an answer or standing grant in the store, a standing grant of the run itself, the grant by which the call was begun
    before, a person who has settled it by other means, the run's approver. With none of them the call is suspended, by
    the request that the store has of it, where a process put one there and died before it kept the call. A call in
    doubt is answered by its own request alone, and no approver is asked at once.

    Attributes:
        asked: Whose code runs: a store, an approver, or the name of a tool's method.
        request: The request as it stands, once the call is asked about.
    """

    request: calls.ApprovalRequest

    def __init__(self, call: LiveCall, attached: Answer | None, used: calls.Grant | None, *, lapsed: bool) -> None:
        self._call, self._attached, self._used, self._lapsed = call, attached, used, lapsed
        self._before = call.request
        self._is_stored = False  # whether the answer is the store's
        self.asked: object = "get_call_metadata"

    async def find_answer(self, reasons: list[str]) -> Outcome | calls.Grant | Begun:
        """Ask for these reasons, find an answer and use it up: the grant, the outcome, or how the call has begun."""
        call, store = self._call, self._call.run.approvals
        call.validate()
        known = None if store is None else await _stored_execution(call, store)
        if isinstance(known, approvals.ApprovalEntry):
            return Begun(known, self._attached)
        if known is not None and self._before is not None:
            self.request, self._is_stored = self._before, True
            return await self._use(known)
        self.request = ask_about(call, reasons)
        approvals.require_own_answer(self._attached, self._before, self.request)
        answer = None if approvals.is_outdated(self._attached, self.request) else self._attached
        if store is not None:
            answer = await self._stored_answer(store, answer)
        if isinstance(answer, approvals.ApprovalEntry):
            return Begun(answer, self._attached)
        if answer is None:
            answer = call.run.standing_grant(self.request)
        if (doubt := await self._doubt_about_equal(answer)) is not None:
            return Begun(doubt)
        if answer is None and self._used is not None and not approvals.misfit(self._used, self.request):
            _note(call, self.request, self._used)
            return self._used
        answer = answer or await self._settler_grant() or await self._approver_answer()
        return await _suspend(call, self.request) if answer is None else await self._use(answer)

    async def _stored_answer(
        self, store: approvals.ApprovalStore, answer: Answer | None
    ) -> Answer | approvals.ApprovalEntry | None:
        """Return the answer that counts, of the attached one and the store's; the entry by which the call has begun."""
        self.asked = store
        stored = await store.take(self.request)
        if isinstance(stored, approvals.ApprovalEntry):
            if stored.execution is not None:
                return stored
            # under the id of an equal one, which is pending since a process that died asked it
            self.request = replace(self.request, id=stored.request.id, created_at=stored.request.created_at)
            self._call.approval = replace(self._call.approval, request=self.request)
        elif answer is None or (stored is not None and approvals.counts_before(stored, answer)):
            self._is_stored = stored is not None
            return stored
        return answer

    async def _doubt_about_equal(self, answer: Answer | None) -> approvals.ApprovalEntry | None:
        """Return the entry of an equal call in doubt, which this one may be, made once more.

        An answer to this very request, and a call that was begun or asked about before, are beyond that.
        """
        is_new = answer is None and self._used is None and self._before is None
        is_older = isinstance(answer, calls.Grant) and is_earlier(answer, self.request)
        store = self._call.run.approvals
        if store is None or self._call.tool.options.idempotent or not (is_new or is_older):
            return None
        return next((entry for entry in await store.like(self.request) if entry.execution_state == "in doubt"), None)

    async def _settler_grant(self) -> calls.Grant | None:
        """Return the grant of a person who settled it by other means, where nothing else asks about the call."""
        before, source = self._before, self._call.tool.source
        if not self._lapsed or before is None or before.digest != self.request.digest or source is None:
            return None
        self.asked = "get_settler"
        by = await source.get_settler(before)
        return None if by is None else self.request.grant(by)

    async def _approver_answer(self) -> Answer | None:
        """Return the answer of the run's approver, who is told which equal calls may have been done."""
        run, store = self._call.run, self._call.run.approvals
        self.asked = store
        if store is not None and not self.request.in_doubt and (equal := await store.like(self.request)):
            lines = [entry.equal_call_text() for entry in equal[-_MOST_NAMED:]]
            reason = "; ".join([*lines, *filter(None, [self.request.reason])])
            self.request = replace(self.request, reason=reason)
        self._call.approval = replace(self._call.approval, request=self.request)
        if run.approver is None or self.request.in_doubt:
            return None
        self.asked = run.approver
        with stopped_clocks():
            return await approvals.answer_of(run.approver, self.request)

    async def _use(self, answer: Answer) -> Outcome | calls.Grant | Begun:
        """Record an answer and use it up: it lets one call go on, or ends it."""
        call, request = self._call, self.request
        if isinstance(answer, calls.Grant) and (why := wrong_edit(call, answer)):
            store = call.run.approvals
            if not (self._is_stored and isinstance(store, approvals.ReviewableApprovalStore)):
                raise ApprovalError(request.tool, why)
            await store.revoke(answer)
            return await _suspend(call, replace(request, reason="; ".join(filter(None, [request.reason, why]))))
        _note(call, request, answer)
        _use_up(call, self._before, request, answer)
        if not self._is_stored:
            store = self.asked = call.run.approvals
            if store is not None:
                if (begun := await store.use(request, answer)) is not None:
                    return Begun(begun, self._attached)
            elif isinstance(answer, calls.Grant) and answer.standing:
                call.run.add_standing_grant(answer)
        elif isinstance(answer, calls.Grant) and (why := _wrong_result(call, answer)):
            return await _ask_again(call, request, answer, why)
        if isinstance(answer, calls.Grant):
            return answer
        by = "" if answer.by in ("host", "deny_all") else f" by {answer.by}"
        return Rejected(request.tool, request.call_id, answer.message or f"`{request.tool}` was denied{by}", "user")


async def _stored_execution(
    call: LiveCall, store: approvals.ApprovalStore
) -> approvals.ApprovalEntry | calls.Denial | None:
    """Return the store's entry of the execution of a call that comes back as begun; None without one.

    Where it was denied after all, it was kept as begun before it asked: the denial.
    """
    if call.state != "executing" or call.request is None:
        return None
    try:
        found = await store.take(call.request)
    except ApprovalError:  # its request is closed, and no execution by it was noted
        return None
    if isinstance(found, approvals.ApprovalEntry):
        return None if found.execution is None else found
    return found if isinstance(found, calls.Denial) else None


def wrong_edit(call: LiveCall, answer: calls.Grant) -> str:
    """Return why the tool does not take the arguments of an answer; empty when it does, or when there are none."""
    try:
        if answer.override_args is not None:
            call.args.overridden(answer.override_args)
    except (InvalidArguments, SchemaError) as error:
        return f"the edit of {answer.by} does not fit the tool: {error}"
    return ""


def _wrong_result(call: LiveCall, answer: calls.Grant) -> str:
    """Return why the result that an answer gives is not the tool's; empty when it is, or when there is none."""
    try:
        if answer.done is not None:
            tools.checked_output(call.tool, call.name, answer.done.value)
    except InvalidOutput as error:
        return str(error)
    return ""


async def _ask_again(call: LiveCall, request: calls.ApprovalRequest, answer: calls.Grant, why: str) -> Suspended:
    """Suspend a call in doubt whose stored result is not of its tool: another request says why."""
    if call.run.approvals is not None:
        await call.run.approvals.begin(request, answer)
        await call.run.approvals.end(request, answer)
    following = request.next_in_doubt(call.digest, call.run.principal, call.plan.definition)
    return await _suspend(call, replace(following, reason="; ".join([request.reason, why])))


async def _suspend(call: LiveCall, request: calls.ApprovalRequest) -> Suspended:
    if call.run.approvals is not None:
        await call.run.approvals.put(request)
    return call.suspend(request)


def _note(call: LiveCall, request: calls.ApprovalRequest, answer: Answer) -> None:
    """Record an answer; raise TypeError for another type, since `True` does not say who approved what."""
    if not isinstance(answer, calls.Grant | calls.Denial):  # pyright: ignore[reportUnnecessaryIsInstance] -- a store is the user's code
        raise TypeError(f"it answered {type(answer).__name__}, which is neither a grant nor a denial")
    call.note_answer({**_recorded(answer), "digest": request.digest, "request_id": request.id})


def _use_up(
    call: LiveCall, before: calls.ApprovalRequest | None, request: calls.ApprovalRequest, answer: Answer
) -> None:
    """Use up an answer to a request for one call of this process; ApprovalError for one that does not fit."""
    if isinstance(answer, calls.Grant) and (why := approvals.misfit(answer, request)):
        raise ApprovalError(request.tool, why)
    if call.run.approvals is not None:  # it lets one call begin, also of other processes
        return
    if isinstance(answer, calls.Grant) and (why := call.run.use_standing_grant(answer, request)):
        raise ApprovalError(request.tool, f"{why}. Ask again")
    word, answer_id = "denied", answer.request_id
    if isinstance(answer, calls.Grant):  # one that names no request is known by its call in the run
        by_call = f"{call.run.id}:{answer.call_id}:{answer.digest}"
        word, answer_id = "used", None if answer.standing else answer_id or by_call
    resumed = before.id if before is not None and call.state == "suspended" else None
    for mark in {resumed, answer_id} - {None}:
        earlier = approvals.used_answers.add(str(mark), word)
        if earlier is not None:
            raise ApprovalError(request.tool, f"it was {earlier} before; ask again")


def _recorded(answer: Answer) -> dict[str, Any]:
    data = answer.to_dict()
    is_done = data.get("done") is not None
    for name in ("user_input", "override_args", "done"):  # what a person typed may be a secret; the record has what
        data.pop(name, None)  # came of it, redacted
    fields = {key: value for key, value in data.items() if value not in (None, "")}
    return {**fields, "done": True} if is_done else fields


# --- a call in doubt


async def equal_call(call: LiveCall) -> approvals.ApprovalEntry | None:
    """Return the store's entry of an equal call, where that may have been executed for who makes this one.

    That is one in doubt, or the last one where its process is gone: who made it may not have had its result.
    """
    store = call.run.approvals
    entries = () if store is None else await store.like(request_for(call, []))
    entry = next((known for known in entries if known.execution_state == "in doubt"), None)
    if entry is not None or not entries:
        return entry
    last = entries[-1].execution
    is_lost = last is not None and last.state == "ended" and is_running(last.process) is False
    return entries[-1] if is_lost else None


def reason_of_doubt(call: LiveCall, *, ended: bool = False) -> str:
    """Return why a person is asked about a call in doubt, and what they may answer.

    Args:
        ended: Whether the call is known to have ended, and only its result is not.
    """
    error = call.run.durability.begun.get(call.id, {}).get("failed with")
    return calls.doubt_reason(error, call.history.mismatch, ended=ended)

"""ToolRoundPlan: the calls of a round after their gates were asked, and the commit of all their results at once."""

from __future__ import annotations

from asyncio import Semaphore, TaskGroup
from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    MutableSequence,
    Sequence,
)
from contextvars import Context, copy_context
from inspect import iscoroutine
from types import coroutine
from typing import Any, Protocol, Self, TypeAlias, cast, runtime_checkable

from toolcrib._numbers import require_number
from toolcrib._run_sync import run_sync
from toolcrib.approvals import is_answer_to, joined_answers
from toolcrib.calls import Completed, Denial, Failed, Grant, Outcome, Rejected, Suspended, cut
from toolcrib.errors import ApprovalError, CommitError
from toolcrib.formats import PROVIDERS, Item, ProviderFormat, WireResult, canonical
from toolcrib.rounds._call import (
    OUTCOMES,
    Answer,
    CallGroup,
    DecodedCall,
    HandledTool,
    RejectedTool,
    RoundHooks,
    Standing,
    SuspendedTool,
    answered_call,
    ask,
    ask_now,
    check_answer,
    edited_arguments,
    execute,
    executed_call,
    finish,
    has_begun,
    hooks_of,
    is_executable,
    readable_call,
    required_call,
    resolve,
    standing_of,
)
from toolcrib.rounds._results import ToolCallIssue, ToolResult, rendered
from toolcrib.rounds._round_json import StoredRound
from toolcrib.rounds._round_state import RoundState
from toolcrib.rounds._transcript import Transcript, ids_in, known_of, shapes
from toolcrib.rounds._unhandled import Unhandled, answers_to_unhandled, unhandled_in


@runtime_checkable
class HasTranscript(Protocol):
    """Something that a round can be committed to: a session, for one."""

    @property
    def transcript(self) -> MutableSequence[Any]:
        """The provider's message list."""
        ...


_ANSWERED = (Completed, Rejected)  # outcomes that need no result of the host's
TranscriptLike: TypeAlias = "MutableSequence[Any] | HasTranscript"


class ToolRoundPlan(StoredRound):
    """The steps to take for each call of a round.

    Nothing is executed unless the host does it, or asks for it with `run_pending`.
    """

    def _in(self, group: CallGroup) -> list[DecodedCall[Any]]:
        kind = OUTCOMES[group]
        return [call for call in self._state.calls if type(call.outcome) is kind]

    @property
    def pending(self) -> list[DecodedCall[Any]]:
        """The calls that are `ready`; those that wait for a person are `suspended`."""
        return self._in("pending")

    @property
    def ready(self) -> list[DecodedCall[Any]]:
        """The calls that may run now: the host gives commit a result of each; in the assistant's order."""
        return self.pending

    @property
    def handled(self) -> list[HandledTool[Any]]:
        """The calls that hooks answered; commit adds their results."""
        return [call for call in self._standing() if isinstance(call, HandledTool)]

    @property
    def rejected(self) -> list[RejectedTool[Any]]:
        """The calls that were refused, by hooks, people or limits; commit adds their results."""
        return [call for call in self._standing() if isinstance(call, RejectedTool)]

    @property
    def suspended(self) -> list[SuspendedTool[Any]]:
        """The calls that are suspended until a person answers; nothing can be committed before `resolve`."""
        return [call for call in self._standing() if isinstance(call, SuspendedTool)]

    @property
    def issues(self) -> list[ToolCallIssue]:
        """The calls that cannot be made, or that a broken gate stopped; commit adds their results."""
        calls = ((call.metadata, call.outcome) for call in self._state.calls)
        return [ToolCallIssue(metadata, outcome) for metadata, outcome in calls if isinstance(outcome, Failed)]

    def _standing(self) -> Iterator[Standing[Any]]:
        return map(standing_of, self._state.calls)

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """The outcome of each call by its id, in the assistant's order; of a pending one, once it was committed."""
        calls = [(call.id, call.outcome, readable_call(call)) for call in self._state.calls]
        outcomes = [(id, ended if live is None else ended or live.outcome) for id, ended, live in calls]
        return {id: outcome for id, outcome in outcomes if outcome is not None}

    @property
    def unhandled(self) -> list[Unhandled]:
        """The requests in the reply besides calls of tools; commit takes the result of `answer` or `refuse`."""
        return unhandled_in(self._state.others, self._state.reply, self._state.format)

    @property
    def continue_suggestion(self) -> str | None:
        """The reason to ask the model to go on, when calls of it could not be made."""
        return suggestion(self.issues)

    # --- before anything runs

    async def apply_hooks(self, hooks: RoundHooks = None) -> ToolRoundPlan:
        """Ask more hooks about the calls that are still pending, and return the plan.

        About input that the host edited every gate is asked again: hooks given here and before, the pipeline's and the
        toolset's, pre hooks, and approval.

        Raises:
            InvalidArguments: The input of a call was edited to what its tool does not take.
        """
        self._state.require_open()
        hook_set = hooks_of(hooks, {call.id: call for call in self._state.calls})
        for call in self._state.calls:
            if hook_set is not None or not ask_now(call):
                await ask(call, hook_set)
        return self

    async def resolve(self, grants: Iterable[Grant] = (), denials: Iterable[Denial] = ()) -> Self:
        """Resume the suspended calls with people's answers, and return the plan.

        With no answers at all, the run's store and approver are asked again.

        Raises:
            ApprovalError: An answer is for none of the suspended calls, or has arguments that its tool does not take;
                nothing was resolved.
            InvalidOutput: The result of a call in doubt is not of the type of its tool; nothing was resolved.
            TypeError: One is not an answer, or stands alone in the place of a list.
        """
        self._state.require_open()
        answers = joined_answers("plan.resolve()", grants, denials)
        calls = self._in("suspended")
        requests = {call.id: call.outcome.request for call in calls if isinstance(call.outcome, Suspended)}
        chosen = {
            key: next((a for a in answers if is_answer_to(a, request)), None) for key, request in requests.items()
        }
        stray = next((a for a in answers if not any(is_answer_to(a, request) for request in requests.values())), None)
        if stray is not None:
            raise ApprovalError(stray.tool, f"no call of this round waits for it (call {stray.call_id})")
        for call in calls:
            check_answer(call, chosen[call.id])
        for call in calls:
            if not answers or chosen[call.id] is not None:
                await resolve(call, chosen[call.id])
        return self

    def resolve_sync(self, grants: Iterable[Grant] = (), denials: Iterable[Denial] = ()) -> Self:
        """Resume the suspended calls as `resolve` does, from plain code; RuntimeError where an event loop runs."""
        return run_sync(self.resolve(grants, denials), instead="await plan.resolve(...)")

    # --- running

    async def run_pending(self, *, concurrency: int | None = None) -> list[ToolResult]:
        """Execute the pending calls whose tools are functions, and return their results for `commit`.

        A call is executed once, however often this is called. Calls of declared inputs are left to the host's own code;
        those of tools that ask for approval themselves move to `suspended`. Every gate is asked again about input that
        was edited since.

        Args:
            concurrency: How many run at a time; all of them when None.

        Raises:
            ValueError: The concurrency is less than one; nothing ran.
            InvalidArguments: The input of a call was edited to what its tool does not take; that call was not executed.
            Exception: The exception of an observer; its call has ended, and is among the issues.
        """
        self._state.require_open()
        require_number("run_pending", "concurrency", concurrency, least=1)
        await _execute_together(list(filter(is_executable, self._in("pending"))), concurrency)
        executed = [(call.id, call.name, required_call(call)) for call in self._in("pending")]
        return [ToolResult(id, name, live.value, live.error) for id, name, live in executed if live.state == "executed"]

    # --- the end

    async def commit(self, transcript: TranscriptLike, results: Iterable[Answer] = ()) -> list[Item]:
        """Add the assistant's turn and one result for each of its calls to the transcript, all or nothing.

        Results of handled and rejected calls and of issues are added; what `call.hook` returned may be given, too,
        and an explicit result for an issue wins. The order is the assistant's, whose turn stays as the model sent it.
        Where the host executed a call itself with input that it edited, every gate is asked about that input first.
        Post hooks see what the host's own code computed, and the records are closed.

        Args:
            transcript: The provider's message list, or a session.
            results: One for each pending call: `call.complete(...)`, `call.fail(...)`, `call.reject(...)`, or what
                `run_pending` returned.

        Returns:
            The items that were added.

        Raises:
            CommitError: A result is missing, superfluous, there twice or for another tool, a call is suspended, a gate
                refuses edited input, or the transcript would not be valid. The transcript is as it was.
            InvalidArguments: The input of a call was edited to what its tool does not take.
            TypeError: The results are a coroutine.
        """
        state = self._state
        state.require_open(CommitError)
        if iscoroutine(results):
            results.close()
            raise TypeError("the results are not awaited: write commit(transcript, await plan.run_pending())")
        target = _list_of(transcript, state.format)
        to_unhandled, others = answers_to_unhandled(state.others, state.reply, results)
        answers = _paired(state.calls, others)
        known, length = known_of(target), len(target)
        rest = list(known.rest_by(state.format, target))
        _require_valid(state, target, shapes(rest), known.ids)
        await _ask_about_edits(state.calls, answers)
        wire_results: list[WireResult] = []
        for call in state.calls:
            answer = answers.get(call.id)
            wire_results.append(_result_at_once(state, call, answer) or await _result_for_model(state, call, answer))
        state.require_open(CommitError)  # it may have been committed while post hooks ran
        if len(target) != length:
            raise CommitError(("the transcript was changed meanwhile",))
        added = [*state.reply.items, *_answering(state, wire_results, to_unhandled)]
        target.extend(added)
        if isinstance(target, Transcript):
            known.add([*rest, *added], [*ids_in(state.format, rest), *[call.id for call in state.reply.calls]])
        state.end("committed")
        return added

    def __repr__(self) -> str:
        counted = Counter(call.group for call in self._state.calls)
        counts = ", ".join(f"{count} {state}" for state, count in counted.items()) or "no calls"
        return f"<{type(self).__name__}: {counts}>"


def suggestion(issues: Sequence[ToolCallIssue]) -> str | None:
    """Return why the model should be asked to go on; None when there are no issues."""
    if not issues:
        return None
    reasons = "; ".join(issue.reason for issue in issues)
    return f"Ask the model to go on: {len(issues)} of its calls could not be made ({reasons})"


# --- inside


def functionless(plan: ToolRoundPlan) -> list[str]:
    """Return the tools of pending calls that only the host's own code can execute."""
    calls = plan._in("pending")  # pyright: ignore[reportPrivateUsage] -- used in this package alone
    return [call.name for call in calls if not (has_begun(call) or is_executable(call))]


async def _execute_together(calls: Iterable[DecodedCall[Any]], most: int | None = None) -> None:
    """Execute calls at the same time, each in a context of its own.

    They are executed one after the other, as long as none waits. When one does, all that follow are started.

    Args:
        calls: The calls.
        most: How many are executed at a time; all of them when None.

    Raises:
        Exception: The exception of a call; the others are cancelled.
    """
    execution = execute if most is None else _within(Semaphore(most))
    rest = iter(calls)
    for call in rest:
        work, context = execution(call), copy_context()
        try:
            waits_for = context.run(work.send, None)
        except StopIteration:
            continue
        try:
            async with TaskGroup() as group:
                for following in rest:
                    group.create_task(execution(following))
                await _resumed(work, context, waits_for)
        except ExceptionGroup as several:
            raise several.exceptions[0] from None  # the host sees it as it was raised


def _within(limit: Semaphore) -> Callable[[DecodedCall[Any]], Coroutine[Any, Any, None]]:
    async def execute_within(call: DecodedCall[Any]) -> None:
        async with limit:
            await execute(call)

    return execute_within


@coroutine
def _resumed(work: Coroutine[Any, Any, None], context: Context, waits_for: Any) -> Generator[Any, Any, None]:
    """Resume a coroutine that was started in a context and waits, in the task of the caller."""
    step: Callable[[Any], Any]
    while True:
        try:
            sent = yield waits_for
            step = work.send
        except BaseException as error:  # a cancellation, which the coroutine has to see
            step, sent = work.throw, error
        try:
            waits_for = context.run(step, sent)
        except StopIteration:
            return


def _paired(calls: Sequence[DecodedCall[Any]], results: Sequence[Answer]) -> dict[str, Answer]:
    """Return the results by call id; raise CommitError, which names everything that is wrong with them."""
    known = {call.id: call for call in calls}
    answers: dict[str, Answer] = {}
    problems: list[str] = []
    for result in results:
        if isinstance(result, ToolResult):
            id, name = result.call_id, result.name
        else:
            answered = answered_call(result)
            id, name = answered.id, answered.name
        call = known.get(id)
        if call is None:
            problems.append(f"the result for `{name}` ({id}) answers no call of this round")
        elif id in answers:
            problems.append(f"there are two results for `{call.name}` ({id})")
        elif name != call.name:
            problems.append(f"the result for {id} comes from `{name}`, and the call is to `{call.name}`")
        elif call.outcome is not None and isinstance(call.outcome, _ANSWERED) and not _is_outcome(result, call.outcome):
            problems.append(f"`{name}` ({id}) was {call.group} before; leave its result out")
        answers[id] = result
    for call in calls:
        if call.outcome is None:
            if call.id not in answers:
                lacking = f"there is no result for `{call.name}` ({call.id})"
                problems.append(f"{lacking}: answer it with the call's `complete`, `fail` or `reject`")
        elif isinstance(call.outcome, _ANSWERED):
            answers.pop(call.id, None)
        elif isinstance(call.outcome, Suspended):
            problems.append(f"`{call.name}` ({call.id}) is suspended; resolve it first")
    if problems:
        raise CommitError(tuple(problems))
    return answers


async def _ask_about_edits(calls: Sequence[DecodedCall[Any]], answers: Mapping[str, Answer]) -> None:
    """Ask every gate about input that the host edited and executed itself; raise CommitError where one refuses it."""
    edited = [
        call for call in calls if isinstance(answers.get(call.id), ToolResult) and edited_arguments(call) is not None
    ]
    for call in edited:
        await ask(call)
    refused = [
        f"`{call.name}` ({call.id}) is {call.group} with the input that was edited" for call in edited if call.outcome
    ]
    if refused:
        raise CommitError((*refused, "leave its result out, or resolve it first"))


def _is_outcome(answer: Answer, outcome: Outcome | None) -> bool:
    """Return whether an answer says once more what a call came to: what `hook` returned for it."""
    match answer, outcome:
        case HandledTool(output=output), Completed(value=value):
            return output is value
        case RejectedTool(reason=reason, source=source), Rejected():
            return (reason, source) == (outcome.reason, outcome.source)
        case _:
            return False


def _list_of(transcript: object, rules: ProviderFormat) -> MutableSequence[Any]:
    """Return the message list; CommitError where it is known to be in another format than the round."""
    if type(transcript) is list:  # asked first: what a protocol costs is more than all of the rest here
        return cast("list[Any]", transcript)
    target: object = transcript
    if not isinstance(transcript, Transcript) and isinstance(transcript, HasTranscript):
        target = transcript.transcript
    if not isinstance(target, MutableSequence):
        kind = type(target).__qualname__
        raise TypeError(f"a round is committed to a message list, a Transcript or a session, and this is a {kind}")
    if isinstance(target, Transcript) and PROVIDERS[target.format] is not rules:
        problem = f"the round is in the format `{rules.title}`, and the transcript in `{target.format}`"
        raise CommitError((problem, "say which it is with `format=`"))
    return cast("MutableSequence[Any]", target)


def _require_valid(
    state: RoundState, target: Sequence[Any], rest: Sequence[Mapping[str, Any]], known_ids: Collection[str]
) -> None:
    """Raise CommitError when the provider would refuse the transcript with this round at its end.

    Args:
        rest: The part of the transcript that is not known to be in order; the round's own calls follow, in order.
        known_ids: The ids of the calls in what is.
    """
    rules, calls = state.format, state.reply.calls
    if _is_in_order(state, rest, known_ids):
        return
    blank = [WireResult(call, "") for call in calls]
    in_transcript = rules.check([*shapes(target), *state.reply.items, *rules.answer(blank)])
    problems = [problem for problem in in_transcript if problem.kind != "order"]  # of turns, which are the host's own
    if problems:
        mend = "decode with `transcript=`, or repair the earlier messages with `repair`"
        if rules.unanswered(shapes(target)):
            mend = "commit adds the assistant's turn itself, so leave it out of the list; " + mend
        raise CommitError((*map(str, problems), mend))


def _is_in_order(state: RoundState, rest: Sequence[Mapping[str, Any]], known_ids: Collection[str]) -> bool:
    """Return whether the calls of a round wait at the end of a transcript, and nothing else; as `_require_valid`."""
    rules, reply = state.format, state.reply
    if reply.is_ordered and not rest and not (rules.layout.unique and known_ids):
        return True
    keys = [rules.key_of(call) for call in reply.calls]
    if reply.is_ordered and not rest:
        return not any(key in known_ids for key in keys)
    return rules.unanswered([*rest, *reply.items], known_ids) == keys


def _answering(state: RoundState, results: Sequence[WireResult], to_unhandled: Mapping[str, WireResult]) -> list[Item]:
    """Return the items that answer a turn, in its order, with what the host says to unknown items at the end."""
    rules = state.format
    answers = {**to_unhandled, **{result.call.id: result for result in results}}
    shown = [answers[call.id] for call in state.reply.calls]
    items = rules.answer(shown)
    more = [dict(result.fields) for result in (to_unhandled[call.id] for call in state.reply.unknown) if result.fields]
    if more:
        items = rules.pack([*(raw for item in items for raw in rules.raw_results(item)), *more])
    is_text = not more and not [result for result in shown if result.fields is not None or result.parts]
    return items if is_text else cast("list[Item]", canonical(items))


def _result_at_once(state: RoundState, call: DecodedCall[Any], answer: Answer | None) -> WireResult | None:
    """Return the result for the model of a call that ran and whose tool has no post hooks; None for any other."""
    if call.outcome is not None or not isinstance(answer, ToolResult):
        return None
    outcome = state.pipeline.finish_now(executed_call(call, answer.output, answer.error))
    return None if outcome is None else rendered(call.wire, outcome, ran=True)


async def _result_for_model(state: RoundState, call: DecodedCall[Any], answer: Answer | None) -> WireResult:
    """Return the result of one call for the model."""
    outcome: Outcome
    if answer is None and call.outcome is not None:
        outcome = call.outcome
    elif call.outcome is not None:  # an issue, which the host answers itself
        outcome = await _explicit(state, call, answer)
    else:
        match answer:
            case ToolResult(output=output, error=error):
                outcome = await finish(call, output, error)
            case _:
                outcome = state.pipeline.answer(required_call(call), await _explicit(state, call, answer))
    return rendered(call.wire, outcome, ran=has_begun(call) or answer is not None)


async def _explicit(state: RoundState, call: DecodedCall[Any], answer: Answer | None) -> Outcome:
    """Return the outcome that the host gives in the place of the tool's, which is shown as the tool's own would be."""
    id, name, toolset = call.id, call.name, state.pipeline.toolset
    most = toolset[name].max_result_chars if name in toolset else None
    match answer:
        case RejectedTool(reason=reason):
            return Rejected(name, id, reason, "user")
        case ToolResult(error=Exception() as error):
            return Failed(name, id, "tool_error", cut(str(error), most), type(error).__name__, exception=error)
        case ToolResult(output=output) | HandledTool(output=output):
            return await state.pipeline.completed(name, id, output, state.run)
        case _:
            raise CommitError((f"there is no result for `{name}` ({id})",))

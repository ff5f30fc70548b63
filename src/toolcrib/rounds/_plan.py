"""ToolRoundPlan: the calls of a round after their gates were asked, and the commit of all their answers at once."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, MutableSequence, Sequence
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from toolcrib.calls import Completed, Denial, Failed, Grant, Outcome, Rejected, Suspended, cut
from toolcrib.errors import ApprovalError, CommitError
from toolcrib.formats import PROVIDERS, Item, ProviderFormat, WireResult
from toolcrib.pipeline import Pipeline, Run
from toolcrib.rounds._call import (
    Answer,
    DecodedCall,
    HandledTool,
    RejectedTool,
    RoundHooks,
    SuspendedTool,
    answered_call,
    hooks_of,
)
from toolcrib.rounds._results import ToolCallIssue, ToolResult, rendered
from toolcrib.rounds._round_call import Work
from toolcrib.rounds._round_json import loaded, saved
from toolcrib.rounds._state import RoundState
from toolcrib.rounds._transcript import Transcript, ids_in, known_of, shapes
from toolcrib.toolsets import ToolsetLike

__all__ = ["HasTranscript", "ToolRoundPlan", "TranscriptLike", "functionless", "suggestion"]


@runtime_checkable
class HasTranscript(Protocol):
    """Something that a round can be committed to: a session, for one."""

    @property
    def transcript(self) -> MutableSequence[Any]:
        """The provider's message list."""
        ...


TranscriptLike: TypeAlias = "MutableSequence[Any] | HasTranscript"


class ToolRoundPlan:
    """What is to be done for each call of a round.

    Nothing is executed unless the host does it, or asks for it with `run_pending`.
    """

    def __init__(self, paper: RoundState) -> None:
        self._paper = paper

    def _in(self, state: str) -> list[Work]:
        return [work for work in self._paper.works if work.state == state]

    @property
    def pending(self) -> list[DecodedCall[Any]]:
        """The calls that need a result from the host, in the assistant's order."""
        return [DecodedCall(work) for work in self._in("pending")]

    @property
    def handled(self) -> list[HandledTool[Any]]:
        """The calls that hooks answered; commit adds their results."""
        found = ((work, work.outcome) for work in self._paper.works)
        return [HandledTool(DecodedCall(work), made.value) for work, made in found if isinstance(made, Completed)]

    @property
    def rejected(self) -> list[RejectedTool[Any]]:
        """The calls that were refused, by hooks, people or limits; commit adds their results."""
        found = ((work, work.outcome) for work in self._paper.works)
        return [
            RejectedTool(DecodedCall(work), made.reason, made.source)
            for work, made in found
            if isinstance(made, Rejected)
        ]

    @property
    def suspended(self) -> list[SuspendedTool[Any]]:
        """The calls that wait for a person; nothing can be committed until `resolve` has their answers."""
        found = ((work, work.outcome) for work in self._paper.works)
        return [SuspendedTool(DecodedCall(work), made.request) for work, made in found if isinstance(made, Suspended)]

    @property
    def issues(self) -> list[ToolCallIssue]:
        """The calls that cannot be made, or that a broken gate stopped; commit adds their results."""
        found = ((work.metadata, work.outcome) for work in self._paper.works)
        return [ToolCallIssue(metadata, made) for metadata, made in found if isinstance(made, Failed)]

    @property
    def continue_suggestion(self) -> str | None:
        """Why the model should be asked to go on, when calls of it could not be made."""
        return suggestion(self.issues)

    # --- before anything runs

    async def apply_hooks(self, hooks: RoundHooks = None) -> ToolRoundPlan:
        """Ask more hooks about the calls that are still pending, and return the plan.

        Raises:
            InvalidArguments: The input of a call was edited to what its tool does not take.
        """
        self._paper.open()
        given = hooks_of(hooks, {work.wire.id: work for work in self._paper.works})
        for work in self._paper.works:
            await work.ask(given)
        return self

    async def resolve(self, grants: Iterable[Grant] = (), denials: Iterable[Denial] = ()) -> ToolRoundPlan:
        """Take up the calls that wait with what people said, and return the plan.

        With no answers at all, the run's store and approver are asked again.

        Raises:
            ApprovalError: An answer is for none of the calls that wait; nothing was resolved.
        """
        self._paper.open()
        answers: list[Grant | Denial] = [*grants, *denials]
        works = self._in("suspended")
        chosen = {work.wire.id: next((a for a in answers if _answers(a, work)), None) for work in works}
        stray = next((answer for answer in answers if not any(_answers(answer, work) for work in works)), None)
        if stray is not None:
            raise ApprovalError(stray.tool, f"no call of this round waits for it (call {stray.call_id})")
        for work in works:
            if not answers or chosen[work.wire.id] is not None:
                await work.resolve(chosen[work.wire.id])
        return self

    # --- running

    async def run_pending(self, *, concurrency: int | None = None) -> list[ToolResult]:
        """Execute the pending calls whose tools are functions, and return their results for `commit`.

        A call is executed once, however often this is called. Calls of declared inputs are left to the host's own code;
        those of tools that ask for approval themselves move to `suspended`.

        Args:
            concurrency: How many run at a time; all of them when None.

        Raises:
            ValueError: The concurrency is less than one; nothing ran.
            Exception: What an observer raised; calls that it broke off are not executed again.
        """
        self._paper.open()
        if concurrency is not None and concurrency < 1:
            raise ValueError(f"at least one call runs at a time, and the concurrency is {concurrency}")
        most = asyncio.Semaphore(concurrency) if concurrency is not None else None
        works = [work for work in self._in("pending") if _runs(work)]
        if len(works) == 1 or concurrency == 1:
            for work in works:
                await work.perform()
        else:
            await _together(works, most)
        made = ((work, work.performed) for work in self._in("pending"))
        return [ToolResult(w.wire.id, w.wire.name, p.value, p.error) for w, p in made if p is not None]

    # --- the end

    async def commit(self, transcript: TranscriptLike, results: Iterable[Answer] = ()) -> list[Item]:
        """Add the assistant's turn and one result for each of its calls to the transcript, all or nothing.

        Results of handled and rejected calls and of issues are added; what `call.hook` returned may be given, too,
        and an explicit result for an issue wins. The order is the assistant's, whose turn stays as the model sent it.
        Post hooks see what the host's own code computed, and the records are closed.

        Args:
            transcript: The provider's message list, or a session.
            results: One for each pending call: `call.complete(...)`, `call.fail(...)`, `call.reject(...)`, or what
                `run_pending` returned.

        Returns:
            The items that were added.

        Raises:
            CommitError: A result is missing, superfluous, there twice or for another tool, a call still waits for a
                person, or the transcript would not be valid. Everything is as it was.
        """
        paper = self._paper
        paper.open(CommitError)
        target = _list_of(transcript, paper.format)
        answers = _paired(paper.works, list(results))
        known, length = known_of(target), len(target)
        rest = list(known.rest_of(target, paper.format))
        _require_valid(paper, target, shapes(rest), known.ids)
        found = [(work, answers.get(work.wire.id)) for work in paper.works]
        shown = [_settled_at_once(*one) or await _settled(*one) for one in found]
        paper.open(CommitError)  # it may have been committed while post hooks ran
        if len(target) != length:
            raise CommitError(("the transcript was changed meanwhile",))
        added = [*paper.reply.items, *paper.format.answer(shown)]
        target.extend(added)
        if isinstance(target, Transcript):
            known.add([*rest, *added], [*ids_in(paper.format, rest), *(work.wire.id for work in paper.works)])
        paper.settled = "committed"
        return added

    def discard(self) -> None:
        """Drop the assistant's turn; the records of calls that were not answered are closed as cancelled."""
        self._paper.discard()

    # --- another process

    def to_json(self) -> str:
        """Return the plan as JSON, from which `from_json` goes on, in another process perhaps.

        It holds the real arguments, so it belongs in safe keeping and never in a log.

        Raises:
            RoundError: The round is over, or the input of a call was edited since its gates were asked.
            ResultNotSerializable: What a tool returned has no JSON form; commit first.
        """
        return json.dumps(saved(self._paper), ensure_ascii=False)

    @classmethod
    async def from_json(
        cls,
        tools: Pipeline | ToolsetLike,
        text: str | bytes,
        *,
        run: Run | None = None,
        format: ProviderFormat | None = None,
    ) -> ToolRoundPlan:
        """Return the plan that `to_json` described.

        Hooks are not asked about a call a second time, and no tool is run a second time. Availability and approval of
        what is pending are asked again: a yes that was given for one call alone does not come along.

        Args:
            tools: The toolset, or a pipeline of it; of tools that have changed, calls may become issues.
            text: What `to_json` returned.
            run: The run that goes on; what was counted in it before is added. One of the same id when None.
            format: What the round was decoded with, where that is no provider's name.

        Raises:
            ValueError: The text is no plan.
        """
        return cls(await loaded(tools, json.loads(text), run, format))

    def __repr__(self) -> str:
        counted = Counter(work.state for work in self._paper.works)
        return f"<ToolRoundPlan: {', '.join(f'{count} {state}' for state, count in counted.items()) or 'no calls'}>"


def suggestion(issues: Sequence[ToolCallIssue]) -> str | None:
    """Return why the model should be asked to go on; None when there are no issues."""
    if not issues:
        return None
    told = "; ".join(issue.reason for issue in issues)
    return f"Ask the model to go on: {len(issues)} of its calls could not be made ({told})"


# --- inside


def _answers(answer: Grant | Denial, work: Work) -> bool:
    outcome = work.outcome
    if not isinstance(outcome, Suspended):
        return False
    if answer.request_id is not None and answer.request_id == outcome.request.id:
        return True
    return answer.call_id == work.wire.id or (answer.call_id is None and answer.tool == work.wire.name)


def functionless(plan: ToolRoundPlan) -> list[str]:
    """Return the tools of pending calls that only the host's own code can execute."""
    works = plan._in("pending")  # pyright: ignore[reportPrivateUsage] -- this module's own, and no business of a host's
    return [work.wire.name for work in works if not work.begun and not _runs(work)]


def _runs(work: Work) -> bool:
    """Return whether the pipeline can execute a call: a declared input has no function, unless something wraps it."""
    return not work.begun and work.ready.is_executable


async def _together(works: list[Work], most: asyncio.Semaphore | None) -> None:
    async def one(work: Work) -> None:
        if most is None:
            await work.perform()
        else:
            async with most:
                await work.perform()

    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(one(work))
    except ExceptionGroup as several:
        raise several.exceptions[0] from None  # the host sees it as it was raised


def _paired(works: Sequence[Work], results: Sequence[Answer]) -> dict[str, Answer]:
    """Return the results by call id; raise CommitError, which names everything that is wrong with them."""
    known = {work.wire.id: work for work in works}
    found: dict[str, Answer] = {}
    problems: list[str] = []
    for result in results:
        if isinstance(result, ToolResult):
            id, name = result.call_id, result.name
        else:
            call = answered_call(result)
            id, name = call.id, call.name
        work = known.get(id)
        if work is None:
            problems.append(f"the result for `{name}` ({id}) answers no call of this round")
        elif id in found:
            problems.append(f"there are two results for `{work.wire.name}` ({id})")
        elif name != work.wire.name:
            problems.append(f"the result for {id} is of `{name}`, and the call is of `{work.wire.name}`")
        elif work.state in ("handled", "rejected") and not _is_outcome(result, work.outcome):
            problems.append(f"`{name}` ({id}) was {work.state} before; leave its result out")
        found[id] = result
    for work in works:
        if work.state == "suspended":
            problems.append(f"`{work.wire.name}` ({work.wire.id}) waits for approval; resolve it first")
        elif work.outcome is None and work.wire.id not in found:
            told = f"there is no result for `{work.wire.name}` ({work.wire.id})"
            problems.append(f"{told}: answer it with the call's `complete`, `fail` or `reject`")
    if problems:
        raise CommitError(tuple(problems))
    return {id: result for id, result in found.items() if known[id].state not in ("handled", "rejected")}


def _is_outcome(answer: Answer, outcome: Outcome | None) -> bool:
    """Return whether an answer says once more what a call came to: what `hook` returned for it."""
    match answer, outcome:
        case HandledTool(output=output), Completed(value=value):
            return output is value
        case RejectedTool(reason=reason, source=source), Rejected():
            return (reason, source) == (outcome.reason, outcome.source)
        case _:
            return False


def _list_of(given: object, rules: ProviderFormat) -> MutableSequence[Any]:
    """Return the message list; CommitError where it is known to be in another format than the round."""
    if type(given) is list:  # asked first: what a protocol costs is more than all of the rest here
        return cast("list[Any]", given)
    target: object = given.transcript if isinstance(given, HasTranscript) else given
    if not isinstance(target, MutableSequence):
        what = type(target).__qualname__
        raise TypeError(f"a round is committed to a message list, a Transcript or a session, and this is a {what}")
    if isinstance(target, Transcript) and PROVIDERS[target.format] is not rules:
        told = f"the round is in the format `{rules.title}`, and the transcript in `{target.format}`"
        raise CommitError((told, "say which it is with `format=`"))
    return cast("MutableSequence[Any]", target)


def _require_valid(
    paper: RoundState, target: Sequence[Any], rest: Sequence[Mapping[str, Any]], taken: Collection[str]
) -> None:
    """Raise CommitError when the provider would refuse the transcript with this round at its end.

    Args:
        rest: What of the transcript is not known to be in order; the round's own calls wait after it, in their order.
        taken: The ids of the calls in what is.
    """
    rules, works = paper.format, paper.works
    if rules.unanswered([*rest, *paper.reply.items], taken) == [rules.key_of(work.wire) for work in works]:
        return
    blank = [WireResult(work.wire, "") for work in works]
    problems = rules.check([*shapes(target), *paper.reply.items, *rules.answer(blank)])
    if problems:
        mend = "decode with `transcript=`, or mend what came before with `repair`"
        if rules.unanswered(shapes(target)):
            mend = "commit adds the assistant's turn itself, so leave it out of the list; " + mend
        raise CommitError((*map(str, problems), mend))


def _settled_at_once(work: Work, answer: Answer | None) -> WireResult | None:
    """Return what the model is shown for a call that ran and whose tool has no post hooks; None for any other."""
    if work.outcome is not None or not isinstance(answer, ToolResult):
        return None
    outcome = work.finish_at_once(answer.output, answer.error)
    return None if outcome is None else rendered(work.wire, outcome, ran=True)


async def _settled(work: Work, answer: Answer | None) -> WireResult:
    """Return what the model is shown for one call."""
    outcome: Outcome
    if answer is None and work.outcome is not None:
        outcome = work.outcome
    elif work.outcome is not None:  # an issue, which the host answers itself
        outcome = _explicit(work, answer)
    else:
        match answer:
            case ToolResult(output=output, error=error):
                outcome = await work.finish(output, error)
            case _:
                outcome = work.end(_explicit(work, answer))
    return rendered(work.wire, outcome, ran=work.begun or answer is not None)


def _explicit(work: Work, answer: Answer | None) -> Outcome:
    """Return the outcome that the host gives in the place of the tool's, which is cut as the tool's own would be."""
    id, name, toolset = work.wire.id, work.wire.name, work.desk.pipeline.toolset
    most = toolset[name].tool.options.max_result_chars if name in toolset else None
    match answer:
        case RejectedTool(reason=reason):
            return Rejected(name, id, reason, "user")
        case ToolResult(error=Exception() as error):
            return Failed(name, id, "tool_error", cut(str(error), most), type(error).__name__, exception=error)
        case ToolResult(output=output) | HandledTool(output=output):
            return Completed(name, id, output, "hook", most)
        case _:
            raise CommitError((f"there is no result for `{name}` ({id})",))

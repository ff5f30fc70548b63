"""Replay: recorded calls at the gates of other tools or another policy; their results stand in for executions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from toolcrib._numbers import count_text
from toolcrib.calls import Ask, CallMetadata, Complete, Decision, Failed, Outcome, Reject, Suspended, ToolCall
from toolcrib.errors import ModelRetry, explain_options
from toolcrib.hooks import HookSet, ModelInput
from toolcrib.pipeline import Access, Call, Channel, Run, is_call
from toolcrib.provenance import Provenance
from toolcrib.record import EventLog, RecordedAttempt, RecordedCall, RecordedCalls, read_calls
from toolcrib.replay._answers import RecordedAnswers
from toolcrib.replay._rehearsal import Rehearsal, Rehearsed
from toolcrib.replay._verdict import (
    APPROVED,
    RETRIES,
    RUNS,
    SAID_DONE,
    WAITS,
    Difference,
    ReplayVerdict,
    differ,
    predicted,
    recorded,
)
from toolcrib.schema import hidden_paths
from toolcrib.toolsets import ToolsetLike

_CUT = 99_000  # characters, about, of a result that the record has cut
_PASSES = (RUNS, APPROVED, WAITS)
_UNKNOWN = "the record has no arguments of it"
_SECRET = "the record hides a secret in its arguments ({})"
_NO_FORM = "an argument is a Python object that the record does not have"
_OPEN = "it was broken off in the record, or goes on, before its tool began"
_ELSEWHERE = "its run has read texts that are not in the record"
_UNFOLLOWED = "a program made it without a policy, and what it passed on was not recorded"
_NOT_MADE = "the call that made it would not run"


@explain_options()
@dataclass(frozen=True, slots=True)
class Replay:
    """The findings of a replay.

    Attributes:
        calls: How many calls were replayed.
        runs: Of how many runs.
        differences: The calls that would go another way, in the order they came.
        undecided: The calls of which the record does not say enough, each with the reason in `why`.
        remarks: The facts that were not on record for all of them.
    """

    calls: int
    runs: int
    differences: tuple[Difference, ...]
    undecided: tuple[Difference, ...]
    remarks: tuple[str, ...] = ()

    def summary(self) -> dict[tuple[str, str], int]:
        """Return how many calls differ, by tool and kind of change, the most first."""
        counted = Counter((difference.call.tool, difference.change) for difference in self.differences)
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        return {
            "calls": self.calls,
            "runs": self.runs,
            "summary": [{"tool": t, "change": change, "calls": n} for (t, change), n in self.summary().items()],
            "differences": [difference.to_dict() for difference in self.differences],
            "undecided": [call.to_dict() for call in self.undecided],
            "remarks": list(self.remarks),
        }


@explain_options()
async def replay(
    log: EventLog,
    tools: ToolsetLike,
    *,
    provenance: Provenance | None = None,
    hooks: HookSet | None = None,
    asks_hooks: bool = True,
    deps: Any = None,
    since: datetime | None = None,
    limit: int | None = None,
) -> Replay:
    """Replay recorded calls through the gates of `tools`, in their order, and return what would differ.

    Every gate before a tool is asked: validation, decision hooks, pre hooks, the policy, approval. No tool is executed,
    and no post hook or observer runs; what was recorded stands in. What the host decided is as it was recorded: what it
    offered, its budget, its hooks for one call, its people's answers to the same final arguments.

    Args:
        log: Where the calls are recorded.
        tools: The tools as they would be.
        provenance: The policy as it would be; what a policy decided is as it was recorded when None.
        hooks: Decision hooks as the host's pipeline would have them.
        asks_hooks: Whether decision hooks and pre hooks run. They are gates, and yours: they may do anything.
        deps: The value that hooks find as `ctx.deps`.
        since: Only runs with a call that came then or later.
        limit: Only the runs of the latest so many calls.
    """
    rehearsal = Rehearsal(tools, hooks=hooks, asks_hooks=asks_hooks)
    recording = read_calls(log, since=since, limit=limit)
    return await _Replay(recording, rehearsal, provenance, deps, asks_hooks=asks_hooks).result()


@dataclass(slots=True)
class _Run:
    """The run of a replay: its counters and memory, and standing answers.

    Attributes:
        answers: Standing grants that were given in it.
        unread: Why its memory lacks what the recorded run knew; empty while it lacks nothing.
    """

    run: Run
    answers: RecordedAnswers
    unread: str = ""


@dataclass(slots=True)
class _Progress:
    """The extent to which a call was replayed.

    Attributes:
        admitted: The admitted call, or what a gate gave.
        asked: Whether a person was asked.
        undecided: Why it is undecided what would become of it.
        unread: The texts that its run had read when it came, and that are not in the record.
    """

    admitted: Call | Outcome | None = None
    asked: bool = False
    undecided: str = ""
    unread: str = ""
    by: str = ""
    arguments: Mapping[str, Any] | None = None
    concluded: Outcome | None = None

    def take(self, found: Rehearsed, *, asked: bool) -> None:
        """Collect what the gates gave."""
        self.admitted, self.arguments = found.result, found.arguments
        self.asked = self.asked or asked or isinstance(found.result, Suspended)
        self.by = next((note.hook for note in reversed(found.notes) if note.decision != "run"), self.by)


@dataclass(slots=True)
class _Replay:
    recording: RecordedCalls
    rehearsal: Rehearsal
    policy: Provenance | None
    deps: Any
    asks_hooks: bool = field(kw_only=True)
    runs: dict[str, _Run] = field(default_factory=dict[str, _Run])
    progress: dict[int, _Progress] = field(default_factory=dict[int, _Progress])
    stopped: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    runs_with_words: set[str] = field(default_factory=set[str])

    async def result(self) -> Replay:
        differences: list[Difference] = []
        undecided: list[Difference] = []
        for kind, subject, more in self.recording.steps:
            if kind == "program":
                self._run(subject).run.read_input(ModelInput("program", more))
            elif kind == "came":
                await self._arrive(subject, more)
            else:
                self._ended(subject, more)
        for call in self.recording.calls:
            found = self._difference(call)
            if found is not None:
                (undecided if found.now is None else differences).append(found)
        runs = len({call.run_id for call in self.recording.calls})
        return Replay(len(self.recording.calls), runs, tuple(differences), tuple(undecided), self._remarks())

    def _remarks(self) -> tuple[str, ...]:
        silent = len(self.runs.keys() - self.runs_with_words)
        if self.policy is None or not silent:
            return ()
        of = f"{silent:,} of {count_text(len(self.runs), 'run')}"
        return (f"no word of a user is on record for {of}: what a user wrote there counts as the model's",)

    # --- the gates

    def _run(self, run_id: str) -> _Run:
        found = self.runs.get(run_id)
        if found is None:
            features = () if self.policy is None else (self.policy,)
            run = Run(run_id, deps=self.deps, features=features, channel=Channel(hook_errors="fail"))
            found = self.runs[run_id] = _Run(run, RecordedAnswers())
        return found

    async def _arrive(self, call: RecordedCall, attempt: RecordedAttempt) -> None:
        """Pass a call through the gates when it comes, or is resumed."""
        replayed = self._run(call.run_id)
        for text in attempt.arrival.get("heard", ()):
            self.runs_with_words.add(call.run_id)
            replayed.run.add_user_message(str(text))
        if attempt.arrival.get("weighed") is False and not replayed.unread:
            replayed.unread = _ELSEWHERE
        replayed.answers.follow(attempt)
        before = self.progress.get(id(call))
        if before is None:
            progress = self.progress[id(call)] = _Progress(unread=replayed.unread)
            await self._admit(call, attempt, replayed, progress)
        elif isinstance(before.admitted, Suspended):
            found = await self.rehearsal.admit(before.admitted, self._view(call, call.attempts[0], replayed))
            before.take(found, asked=replayed.answers.asked)
        key = (call.run_id, call.id)
        if self._stops(call):
            self.stopped.add(key)
        else:
            self.stopped.discard(key)

    async def _admit(self, call: RecordedCall, attempt: RecordedAttempt, replayed: _Run, progress: _Progress) -> None:
        if self._is_inside_stopped(call):
            progress.undecided = _NOT_MADE
            return
        progress.undecided = self._lacks(call, attempt)
        if progress.undecided:
            return
        hooks = host_hooks(attempt, with_policy=self.policy is None)
        run = self._view(call, attempt, replayed)
        found = await self.rehearsal.admit(self._request(call, attempt), run, hooks=hooks)
        progress.take(found, asked=replayed.answers.asked)
        admitted = found.result
        had_failed = any((attempt.outcome or {}).get("code") == "hook_error" for attempt in call.attempts)
        if isinstance(admitted, Failed) and admitted.code == "hook_error" and not had_failed:
            progress.undecided = str(admitted.exception)

    def _lacks(self, call: RecordedCall, attempt: RecordedAttempt) -> str:
        """Return the facts missing in the record of a call that the gates would need, in words; empty when complete."""
        if call.tool not in self.rehearsal.toolset or attempt.arrival.get("offered") is False:
            return ""
        if attempt.arrival.get("without_form"):
            return _NO_FORM
        if attempt.arguments is None:
            return _UNKNOWN
        hidden = hidden_paths(attempt.arguments)
        return _SECRET.format(", ".join(hidden)) if hidden else ""

    def _request(self, call: RecordedCall, attempt: RecordedAttempt) -> ToolCall:
        arrival = attempt.arrival
        arguments: Any = arrival.get("arguments", attempt.arguments)
        origin: Any = arrival.get("origin", "model")
        if origin == "host" and isinstance(arguments, Mapping) and call.tool in self.rehearsal.toolset:
            arguments = self._known_arguments(call.tool, cast("Mapping[str, Any]", arguments))
        text = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments)
        return ToolCall(call.tool, text, call.id, origin, arrival.get("fault", ""), arrival.get("caller", ""))

    def _known_arguments(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments of a host's call that a tool takes: it ignores others."""
        parameters = self.rehearsal.toolset[tool].parameters
        if parameters.get("additionalProperties") is not False:
            return arguments
        return {name: value for name, value in arguments.items() if name in parameters.get("properties", {})}

    def _view(self, call: RecordedCall, attempt: RecordedAttempt, replayed: _Run) -> Run:
        arrival = attempt.arrival
        options: dict[str, Any] = {"approvals": replayed.answers, "principal": call.principal, "entry": call.entry}
        if "offered" in arrival:
            options["available"] = frozenset({call.tool} if arrival["offered"] else ())
        if "scopes" in arrival:
            options["access"] = Access(scopes=frozenset(arrival["scopes"]))
        return replayed.run.view(**options)

    def _is_inside_stopped(self, call: RecordedCall) -> bool:
        """Return whether a call that would not run now has made this one."""
        parent, known = call.parent_id, set[str]()
        while parent is not None and parent not in known:
            if (call.run_id, parent) in self.stopped:
                return True
            known.add(parent)
            parent = self.recording.parents.get(parent)
        return False

    # --- what stands in for executions

    def _ended(self, call: RecordedCall, attempt: RecordedAttempt) -> None:
        progress, replayed = self.progress[id(call)], self._run(call.run_id)
        admitted = progress.admitted
        if attempt is not call.attempts[-1]:
            return
        began = any(attempt.final is not None for attempt in call.attempts)
        if (admitted is None and progress.undecided != _NOT_MADE) or (
            admitted is not None and is_call(admitted) and not began
        ):
            replayed.unread = replayed.unread or _ELSEWHERE
        if admitted is None or not is_call(admitted) or admitted.state != "admitted" or not began:
            return
        outcome = attempt.outcome or {}
        value, error = outcome.get("value"), _error_of(outcome)
        if isinstance(value, str) and len(value) > _CUT:
            replayed.unread = replayed.unread or _ELSEWHERE
        if outcome.get("kind") in ("completed", "failed"):
            progress.concluded = self.rehearsal.stand_in(admitted, value, error)

    # --- what differs

    def _stops(self, call: RecordedCall) -> bool:
        """Return whether a call would not run now."""
        progress = self.progress[id(call)]
        return progress.undecided == _NOT_MADE or (progress.admitted is not None and not is_call(progress.admitted))

    def _difference(self, call: RecordedCall) -> Difference | None:
        progress, was = self.progress[id(call)], recorded(call)
        if was is None:
            return Difference(call, ReplayVerdict("not known"), None, _OPEN)
        if was.kind == "rejected" and (call.attempts[-1].outcome or {}).get("source") == "limit":
            return None
        if progress.undecided == _NOT_MADE:
            return Difference(call, was, ReplayVerdict("not made", _NOT_MADE), _NOT_MADE)
        if progress.undecided:
            return Difference(call, was, None, progress.undecided)
        now = self._now(call, progress)
        if _is_hosts(call, was) and now.kind in _PASSES:
            return None
        why = differ(was, now)
        if was.kind == now.kind and not why:
            may_ask = self.policy is not None and now.kind in _PASSES  # about what is not in the record
            return Difference(call, was, None, progress.unread) if progress.unread and may_ask else None
        unsure = self._unsure(call, was, now)
        return Difference(call, was, None, unsure) if unsure else Difference(call, was, now, why)

    def _now(self, call: RecordedCall, progress: _Progress) -> ReplayVerdict:
        admitted = progress.admitted
        if admitted is None:
            raise RuntimeError("an undecided call has no verdict")
        if not is_call(admitted):
            return predicted(admitted, progress.by)
        ended = progress.concluded
        if isinstance(ended, Failed) and ended.code in RETRIES:
            return ReplayVerdict(ended.code, ended.message, arguments=progress.arguments)
        return ReplayVerdict(APPROVED if progress.asked else RUNS, arguments=progress.arguments)

    def _unsure(self, call: RecordedCall, was: ReplayVerdict, now: ReplayVerdict) -> str:
        """Return why a difference cannot be relied on; empty for one that can."""
        unread = self.progress[id(call)].unread
        weighs = self.policy is not None and "provenance" in (was.by, now.by)
        if unread and weighs:
            return unread
        if weighs and call.parent_id in self.recording.programs and "weighed" not in call.attempts[0].arrival:
            return _UNFOLLOWED
        notes = [note for attempt in call.attempts for note in attempt.notes]
        if any(note.get("given") for note in notes):
            return "hooks of the host for this call alone may have edited it"
        acted = any(note["hook"] not in ("provenance", "approver") for note in notes)
        return "hooks decided about it, which were not asked" if acted and not self.asks_hooks else ""


def _error_of(outcome: Mapping[str, Any]) -> Exception | None:
    """Return an exception that stands for what a tool raised."""
    if outcome.get("kind") != "failed":
        return None
    is_retry = outcome.get("code") in RETRIES
    return ModelRetry(str(outcome["message"])) if is_retry else RuntimeError(str(outcome["message"]))


def _is_hosts(call: RecordedCall, was: ReplayVerdict) -> bool:
    """Return whether the outcome of a call was for its principal to state, or for a person who knows if it was done."""
    request = call.attempts[-1].request or {}
    return bool(request.get("consent") or request.get("in_doubt")) or was.kind in ("approval_error", SAID_DONE)


def host_hooks(attempt: RecordedAttempt, *, with_policy: bool) -> HookSet | None:
    """Return decision hooks that say again what the host said; None where it said nothing.

    Args:
        attempt: The call, as received.
        with_policy: Whether what a policy of provenance decided is said again, too.
    """
    attempts = [
        (str(note["hook"]), _decision(note, attempt.outcome or {}))
        for note in attempt.notes
        if note["decision"] != "run" and (note.get("given") or (with_policy and note["hook"] == "provenance"))
    ]
    if attempt.arrival.get("asks"):
        attempts.append(("host", Ask("")))
    if not attempts:
        return None
    hooks = HookSet()
    for name, decision in attempts:
        hooks.register(_saying(name, decision))
    return hooks


def _decision(note: Mapping[str, Any], outcome: Mapping[str, Any]) -> Decision:
    match note["decision"]:
        case "ask":
            return Ask(str(note["reason"]))
        case "reject":
            return Reject(str(note["reason"]))
        case _:
            return Complete(outcome.get("value"))


def _saying(name: str, decision: Decision) -> Any:
    async def say(call: CallMetadata, input: Any) -> Decision:
        return decision

    say.__name__ = name
    return say

"""Recorded calls: the events of a log put together again, call by call, in the order in which things happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from toolcrib._numbers import require_number, time_text
from toolcrib.record._event_log import EventLog, KeptEvent


@dataclass(slots=True)
class RecordedAttempt:
    """One arrival of a call: the first, or one with which it was resumed after a person was asked.

    Attributes:
        resumed: Whether it was resumed.
        arguments: The arguments as the record has them when it came; None where it has none.
        arrival: The host's facts about it; see `Trace.received`.
        notes: The decisions of hooks, in order.
        answers: Who said yes or no before the tool began, in order.
        request: Why a person was asked, where the call was suspended: `id`, `reason`, `consent`, `in_doubt`.
        final: The arguments that the tool began with; None where it did not begin.
        outcome: Its outcome as JSON shapes, without a request or traceback; None where it has not ended.
    """

    resumed: bool = False
    arguments: Any = None
    arrival: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    answers: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    request: Mapping[str, Any] | None = None
    final: Mapping[str, Any] | None = None
    outcome: Mapping[str, Any] | None = None


@dataclass(slots=True)
class RecordedCall:
    """One call, with each time that it came.

    Attributes:
        parent_id: The activity or call that made it.
        at: When it came, as ISO text.
    """

    id: str
    tool: str
    run_id: str
    entry: str
    parent_id: str | None
    at: str
    principal: str | None = None
    attempts: list[RecordedAttempt] = field(default_factory=list[RecordedAttempt])


@dataclass(slots=True)
class RecordedCalls:
    """Recorded calls, and what happened when.

    Attributes:
        calls: Every call, in the order they came.
        steps: The events, in order: an attempt that `came`, one that `ended`, or a `program` that began, with its
            run and text.
        parents: The activity around each activity.
        programs: The ids of the activities that are programs.
    """

    calls: list[RecordedCall] = field(default_factory=list[RecordedCall])
    steps: list[tuple[str, Any, Any]] = field(default_factory=list[tuple[str, Any, Any]])
    parents: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    programs: set[str] = field(default_factory=set[str])


def read_calls(log: EventLog, *, since: datetime | None = None, limit: int | None = None) -> RecordedCalls:
    """Return the calls of a log, whole runs at a time: what a call may do depends on those before it.

    Args:
        log: The log.
        since: Only runs with a call that came then or later.
        limit: Only the runs of the latest so many calls.
    """
    require_number("read_calls", "limit", limit, least=1)
    runs, first = _wanted(log, since, limit)
    recording, latest = RecordedCalls(), dict[tuple[str, str], RecordedCall]()
    for event in log.all(first):
        if event.source == "run":
            _take_activity(recording, event, runs)
        elif runs is None or event.run_id in runs:
            _take(recording, latest, event)
    return recording


def _wanted(log: EventLog, since: datetime | None, limit: int | None) -> tuple[set[str] | None, int]:
    """Return the runs that are wanted, None for all of them, and the position of their first event."""
    if since is None and limit is None:
        return None, 0
    chosen = "SELECT run_id FROM toolcrib_activities WHERE source = 'call' AND started_at >= ?"
    values: tuple[Any, ...] = ("" if since is None else time_text(since),)
    if limit is not None:
        chosen, values = f"{chosen} ORDER BY first_position DESC LIMIT ?", (*values, limit)
    runs = {str(run_id) for (run_id,) in log.rows(chosen, values)}
    starts = log.rows(
        "SELECT run_id, MIN(first_position) FROM toolcrib_activities WHERE source = 'call' GROUP BY run_id", ()
    )
    first = min((int(position) for run_id, position in starts if run_id in runs), default=0)
    return runs, max(0, first - 1)


def _take_activity(recording: RecordedCalls, event: KeptEvent, runs: Iterable[str] | None) -> None:
    data: Mapping[str, Any] = event.data["data"]
    recording.parents[event.id] = event.data["parent_id"]
    source = data.get("source")
    if event.data["activity"] == "program":
        recording.programs.add(event.id)
    if event.kind == "opened" and event.data["activity"] == "program" and isinstance(source, str):
        run_id = str(data.get("run_id") or "")
        if runs is None or run_id in runs:
            recording.steps.append(("program", run_id, source))


def _take(recording: RecordedCalls, latest: dict[tuple[str, str], RecordedCall], event: KeptEvent) -> None:
    """Merge one event of a call; an id that came before, and was not resumed, is of another call."""
    data: Mapping[str, Any] = event.data["data"]
    call = latest.get((event.run_id, event.id))
    ended = call is not None and call.attempts[-1].outcome is not None
    if call is None or (ended and event.kind == "received" and "resumed" not in data):
        call = latest[event.run_id, event.id] = RecordedCall(
            event.id, event.name, event.run_id, event.data["entry"], event.data["parent_id"], event.at
        )
        recording.calls.append(call)
    if event.kind == "received" or not call.attempts or call.attempts[-1].outcome is not None:
        call.attempts.append(RecordedAttempt(resumed="resumed" in data))
        recording.steps.append(("came", call, call.attempts[-1]))
    _fill(call, call.attempts[-1], event, data)
    if event.kind == "ended":
        recording.steps.append(("ended", call, call.attempts[-1]))


def _fill(call: RecordedCall, attempt: RecordedAttempt, event: KeptEvent, data: Mapping[str, Any]) -> None:
    match event.kind:
        case "received":
            attempt.arguments, attempt.arrival = data.get("arguments"), data.get("came") or {}
            call.principal = attempt.arrival.get("principal") or call.principal
        case "decided" if "approval" in data:
            if attempt.final is None:  # else the tool asked, when it had begun
                attempt.answers.append(data["approval"])
        case "decided":
            attempt.notes.append(data)
        case "suspended":
            request: Mapping[str, Any] = data["request"]
            attempt.request = {name: request.get(name) for name in ("id", "reason", "consent", "in_doubt")}
            call.principal = data["request"]["principal"] or call.principal
        case "started":
            attempt.final = data["arguments"]
        case "ended":
            record: Mapping[str, Any] = event.data["record"] or {}
            outcome: Mapping[str, Any] = data["outcome"]
            attempt.outcome = {name: value for name, value in outcome.items() if name not in ("request", "traceback")}
            call.principal = record.get("principal") or call.principal
        case _:
            pass

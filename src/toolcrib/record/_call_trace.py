"""Trace: the events of one call and the record that closes it, made only where there are sinks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from toolcrib import schema
from toolcrib._cut import cut_shapes
from toolcrib.calls import (
    ApprovalRequest,
    CallEvent,
    CallRecord,
    DecisionNote,
    EventKind,
    Outcome,
    ToolCall,
    calling_line,
    lenient,
    lenient_later,
    record_of,
    rendered,
)
from toolcrib.errors import ApprovalError, exception_of
from toolcrib.record._activity_trace import Within, carried, parent_of
from toolcrib.record._sinks import RecordedRun, Sink, tracing_sinks

_VALUE_CHARS = 100_000  # of one value in an event or a record
_TEXT_CHARS = 2_000  # of what is asked
_LINE_CHARS = 10_000  # of one line that a tool logs
_MAX_ASKED = 100  # questions of one call that are kept
_PROGRESS_SECONDS = 0.1  # between two reports
_MAX_LINES = 1_000  # of one call that are kept
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_log = logging.getLogger("toolcrib.calls")


class Trace:
    """Sends the events of one call to the sinks, whichever way it came in.

    Attributes:
        closed: Whether the record was made.
        hide: Hides the secrets of the call in JSON shapes.
    """

    __slots__ = (
        "_begun", "_call", "_description", "_earlier_runs", "_lines", "_next_progress", "_parent", "_questions", "_run",
        "_run_id", "_sinks", "_started_at", "_tracing", "approval", "arguments", "closed", "decisions", "hide",
        "requested",
    )  # fmt: skip

    def __init__(self, call: ToolCall, run: RecordedRun, sinks: tuple[Sink, ...], description: str = "") -> None:
        self._call, self._run, self._sinks, self._description = call, run, sinks, description
        self._run_id = run.id
        self._parent, self._tracing = parent_of(run), tracing_sinks(sinks)
        self._begun = time.perf_counter()
        self._started_at: Any = time.time()  # a time is made of it where one is read
        self.decisions: tuple[DecisionNote, ...] = ()
        self.approval: dict[str, Any] | None = None
        self.arguments: Any = None
        self.requested: Any = None
        self.closed = False
        self.hide: Callable[[Any, int | None], Any] = cut_shapes
        self._questions: tuple[dict[str, Any], ...] = ()
        self._lines, self._next_progress = 0, 0.0
        self._earlier_runs: tuple[str, ...] = ()

    def received(
        self,
        requested: Any,
        came: Any = None,
        resumed: Mapping[str, str] | None = None,
        earlier_runs: tuple[str, ...] = (),
    ) -> None:
        """Record the arguments, and how the call came.

        Args:
            requested: The arguments, as they may be shown; like `came`, it may be a `partial` that returns them.
            came: The other facts that a replay needs: those of the host, and not of the tool.
            resumed: The value of `carry` when the call was suspended, if it was.
            earlier_runs: The ids of the runs that the call came through before this one.
        """
        self.requested = requested
        if earlier_runs:
            self._earlier_runs = tuple(run_id for run_id in earlier_runs if run_id != self._run_id)
        more = _NOTHING if resumed is None else {"resumed": resumed}
        if resumed is None and (line := calling_line.get()):
            calling_line.set(0)  # what the tool calls in turn is not made there
            more = {"line": line}
        self._emit("received", partial(_arrival, requested, came, more), self._started_at)

    def within(self) -> Within:
        """Return the context manager around the tool and the hooks of the call."""
        return Within("call", self._call.id, self._run_id, self._tracing)

    def carry(self) -> dict[str, str]:
        """Return the data for the sinks of the process that resumes the call."""
        return carried(self._tracing, "call", self._call.id, self._run_id)

    def decided(self, note: DecisionNote, *, given: bool = False) -> None:
        """Record the verdict of a decision hook, or one that the host gave for this call alone."""
        self.decisions = (*self.decisions, note)
        self._emit("decided", {**note.to_dict(), "given": True} if given else note.to_dict())

    def overridden(self, arguments: Mapping[str, Any]) -> None:
        """Record the arguments that an approver gave in the place of the call's, as they may be shown."""
        self._emit(
            "decided", {"hook": "approver", "decision": "run", "reason": "gave other arguments", "arguments": arguments}
        )

    def answered(self, answer: dict[str, Any]) -> None:
        """Record who said yes or no."""
        self.approval = answer
        self._emit("decided", {"approval": answer})

    def suspended(self, request: ApprovalRequest) -> None:
        """Record that a person is asked."""
        self._emit("suspended", {"request": request.to_record()})

    def started(self, arguments: Any) -> None:
        """Record that the tool begins, with its final arguments, or a `partial` that returns them."""
        self.arguments = arguments
        self._emit("started", partial(_with_arguments, arguments))

    def yielded(self, value: Any) -> None:
        """Record one value of a stream, or how far the call has come."""
        if type(value) is schema.Progress:
            self._progressed(value)
            return
        self._emit("yielded", partial(_with_value, lenient_later(value, _VALUE_CHARS, self.hide)))

    def _progressed(self, progress: schema.Progress) -> None:
        at, is_last = time.perf_counter(), progress.progress == progress.total
        if self.closed or (at < self._next_progress and not is_last):
            return
        self._next_progress = at + _PROGRESS_SECONDS
        message = None if progress.message is None else self.hide(progress.message, None)[:_TEXT_CHARS]
        self._emit("progressed", {"progress": progress.progress, "total": progress.total, "message": message})

    def asked(self, about: Mapping[str, Any]) -> int | None:
        """Record a question of the tool; return the number for `was_answered`, None for a question that is not kept."""
        if self.closed or len(self._questions) >= _MAX_ASKED:
            return None
        hides = {"text": self.hide, "page": self.hide}  # the others are no words of the tool's
        carried = {
            name: lenient(value, limit=_TEXT_CHARS, hide=hides.get(name, cut_shapes))
            for name, value in about.items()
            if value not in (None, "")
        }
        self._questions = (*self._questions, carried)
        number = len(self._questions)
        self._emit("asked", {"number": number, **carried})
        return number

    def was_answered(self, number: int, said: Mapping[str, Any], duration_ms: float) -> None:
        """Record the answer to a question."""
        result = {name: value for name, value in said.items() if value} | {"duration_ms": round(duration_ms, 3)}
        asked = self._questions[number - 1]
        asked |= result
        if not self.closed:
            self._emit("answered", {"number": number, "what": asked["what"], "of": asked["of"], **result})

    def logged(self, level: str, data: Any, logger: str) -> None:
        """Record a line that the tool logs."""
        self._lines += 1
        if self.closed or self._lines > _MAX_LINES + 1:
            return
        if self._lines > _MAX_LINES:
            level, data = "warning", f"it logged more than {_MAX_LINES} lines; the rest is left out"
        shown = lenient(data, limit=_LINE_CHARS, hide=self.hide)
        self._emit("logged", {"level": level, "data": shown, "logger": logger})

    def ended(self, outcome: Outcome) -> None:
        """Close the call with its outcome; what a suspension is resumed from stays out."""
        self._close(record_of(outcome, _VALUE_CHARS, self.hide))

    def cancelled(self) -> None:
        """Close the call as cancelled."""
        self._close({"kind": "cancelled"})

    def _close(self, outcome: Any) -> None:
        if self.closed:
            return
        self.closed = True
        run, call, arguments, requested = self._run, self._call, self.arguments, self.requested
        ended_at: Any = time.time()
        duration_ms = (time.perf_counter() - self._begun) * 1000
        record = CallRecord(  # by position, which costs half
            call.id,
            call.name,
            self._run_id,
            run.channel.entry,
            run.principal,
            arguments,
            None if requested is arguments else _unless_equal(requested, arguments),
            self.decisions,
            self.approval,
            outcome,
            self._started_at,
            ended_at,
            duration_ms,
            self._parent,
            self._questions,
        )
        earlier = self._earlier_runs if self._earlier_runs and self._goes_on(record.outcome) else ()
        self._emit("ended", partial(_end, record, earlier), ended_at, record)

    def _goes_on(self, outcome: Mapping[str, Any]) -> bool:
        """Return whether the call, which came back, waits no more where it was: else it may be answered there still."""
        answered = self.approval is not None and outcome.get("code") != ApprovalError.code
        return answered or self.arguments is not None or outcome["kind"] in ("completed", "suspended")

    def _emit(self, kind: EventKind, data: Any, at: Any = None, record: CallRecord | None = None) -> None:
        call, run, at = self._call, self._run, at or time.time()
        event = CallEvent(
            kind, call.id, call.name, self._run_id, run.channel.entry, at, data, record, self._parent, self._description
        )
        for sink in self._sinks:
            try:
                sink.emit(event)
            except BaseException as error:  # the sink is the user's code, and watching must not change what is watched
                cause = exception_of(error)
                _log.error("the sink %s failed on %s of %s", type(sink).__name__, kind, call.name, exc_info=cause)


# --- payloads, made when a sink reads them


def _arrival(requested: Any, arrival: Any, more: Mapping[str, Any]) -> dict[str, Any]:
    how = rendered(arrival)
    return {"arguments": rendered(requested), **({"came": how} if how else {}), **more}


def _with_arguments(arguments: Any) -> dict[str, Any]:
    return {"arguments": rendered(arguments)}


def _with_value(value: Any) -> dict[str, Any]:
    return {"value": rendered(value)}


def _end(record: CallRecord, earlier_runs: tuple[str, ...]) -> dict[str, Any]:
    return {"outcome": record.outcome, **({"earlier_runs": list(earlier_runs)} if earlier_runs else {})}


def _unless_equal(requested: Any, arguments: Any) -> Any:
    shown = rendered(requested)
    return None if shown == rendered(arguments) else shown

"""Traces of activities (an agent's run, a program, a session), and which call belongs to which."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from contextvars import ContextVar, Token
from typing import Any
from uuid import uuid4

from toolcrib.calls import ActivityEvent, ActivityEventKind, ActivityKind, now
from toolcrib.errors import exception_of
from toolcrib.record._sinks import (
    ActivitySink,
    Followed,
    RecordedRun,
    Sink,
    TracingSink,
    activity_sinks,
    merged_sinks,
    tracing_sinks,
)

_log = logging.getLogger("toolcrib.calls")
_here: ContextVar[str | None] = ContextVar("toolcrib_here", default=None)


def current_activity() -> str | None:
    """Return the id of the run or the call that the current code goes on in, as far as a sink follows it."""
    return _here.get()


def parent_of(run: RecordedRun) -> str | None:
    """Return the parent of a run's calls: its given parent, or the activity of the current code."""
    return _here.get() if run.channel.parent_id is None else run.channel.parent_id


class Within:
    """Entered where a tool's body or a run's code executes, so that what they start is known to be theirs.

    Entered and left by one piece of code in one task; for another, make another.
    """

    __slots__ = ("_entered", "_id", "_kind", "_run_id", "_sinks", "_token")

    def __init__(self, kind: Followed, activity_id: str, run_id: str, sinks: tuple[TracingSink, ...]) -> None:
        self._kind: Followed = kind
        self._id, self._run_id, self._sinks = activity_id, run_id, sinks
        self._entered: list[AbstractContextManager[object]] | None = None
        self._token: Token[str | None] | None = None

    def __enter__(self) -> None:
        self._token = _here.set(self._id)
        for sink in self._sinks:
            try:
                context = sink.around(self._kind, self._id, self._run_id)
                context.__enter__()
            except BaseException as error:  # a sink is the user's code, and watching must not change what is watched
                name = type(sink).__name__
                _log.error("the sink %s failed around %s", name, self._id, exc_info=exception_of(error))
            else:
                self._entered = [*(self._entered or ()), context]

    def __exit__(self, *error: object) -> None:
        while self._entered:
            try:
                self._entered.pop().__exit__(None, None, None)
            except BaseException as raised:  # as above
                _log.error("a sink failed to leave %s", self._id, exc_info=exception_of(raised))
        if self._token is not None:
            try:  # noqa: SIM105 -- `suppress` costs more than all the rest here
                _here.reset(self._token)
            except ValueError:  # thrown away unfinished, and closed by the garbage collector somewhere else
                pass


class Stepped:
    """A stream, each step of which is made within something: between them, the consumer of the values runs."""

    __slots__ = ("_stream", "_values", "_within")

    def __init__(
        self,
        stream: AbstractAsyncContextManager[AsyncIterator[Any]],
        within: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._stream, self._within = stream, within
        self._values: AsyncIterator[Any] | None = None

    async def __aenter__(self) -> Stepped:
        with self._within():
            self._values = await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        with self._within():
            return await self._stream.__aexit__(*error)

    def __aiter__(self) -> Stepped:
        return self

    async def __anext__(self) -> Any:
        if self._values is None:
            raise RuntimeError("the stream was not entered")
        with self._within():
            return await anext(self._values)


class ActivityTrace:
    """Follows one run; made by `trace_activity`.

    Attributes:
        id: Names the run.
    """

    __slots__ = ("_began", "_closed", "_kind", "_name", "_parent", "_run", "_sinks", "_tracing", "id")

    def __init__(
        self, kind: ActivityKind, name: str, run: RecordedRun, activity_id: str, sinks: tuple[Sink | ActivitySink, ...]
    ) -> None:
        self._kind: ActivityKind = kind
        self.id, self._name, self._run, self._parent = activity_id, name, run, parent_of(run)
        self._sinks, self._tracing = activity_sinks(sinks), tracing_sinks(sinks)
        self._began, self._closed = time.perf_counter(), False

    def changed(self, **data: Any) -> None:
        """Emit that something about the run is different now: its `state`, and what it waits for."""
        self._emit("changed", data)

    def closed(self, outcome: str, error: str | None = None, **data: Any) -> None:
        """Emit how the run ended, once."""
        if not self._closed:
            self._closed = True
            took = round((time.perf_counter() - self._began) * 1000, 3)
            self._emit("closed", {"outcome": outcome, "error": error, "duration_ms": took, **data})

    def broken_off(self, error: BaseException, **data: Any) -> None:
        """Emit that an exception ended the run: its own, or a cancellation."""
        if isinstance(error, Exception):
            self.closed("error", f"{type(error).__name__}: {error}", error_type=type(error).__qualname__, **data)
        else:
            self.closed("cancelled", **data)

    def within(self) -> Within:
        """Return the context manager around the run's code; see `Within`."""
        return Within(self._kind, self.id, self._run.id, self._tracing)

    def carry(self) -> dict[str, str]:
        """Return the data for the sinks of the process that resumes the activity."""
        return carried(self._tracing, self._kind, self.id, self._run.id)

    def opened(self, data: Mapping[str, Any]) -> None:
        """Emit that the run begins."""
        self._emit("opened", data)

    def _emit(self, kind: ActivityEventKind, data: Mapping[str, Any]) -> None:
        emit_activity_event(
            self._sinks, ActivityEvent(kind, self._kind, self.id, self._parent, self._name, now(), data)
        )


def trace_activity(
    kind: ActivityKind,
    name: str,
    run: RecordedRun,
    sinks: tuple[Sink, ...] = (),
    *,
    activity_id: str | None = None,
    about: Callable[[], Mapping[str, Any]] = dict[str, Any],
) -> ActivityTrace | None:
    """Emit that an activity begins, and return its trace; None, at no cost, when no sink wants it.

    Args:
        kind: The kind of activity.
        name: Its name.
        run: The run that its calls belong to, with its sinks, and in `parent_id` what it goes on in.
        sinks: More sinks, of the toolkit or pipeline.
        activity_id: Its id, when it has one.
        about: Returns what events say of it, as JSON shapes with secrets hidden; called only when a sink wants it.
    """
    several = merged_sinks(sinks, run.sinks)
    if not several or not activity_sinks(several):
        return None
    trace = ActivityTrace(kind, name, run, activity_id or f"{kind}_{uuid4().hex}", several)
    trace.opened({**about(), "run_id": run.id, "entry": run.channel.entry})
    return trace


def emit_activity_event(sinks: Iterable[ActivitySink], event: ActivityEvent) -> None:
    """Hand an event to sinks; the only place where that is done."""
    for sink in sinks:
        try:
            sink.emit_activity(event)
        except BaseException as error:  # a sink is the user's code, and watching must not change what is watched
            subject = f"{event.kind} of the {event.activity} {event.name}"
            _log.error("the sink %s failed on %s", type(sink).__name__, subject, exc_info=exception_of(error))


def carried(sinks: Iterable[TracingSink], kind: Followed, activity_id: str, run_id: str) -> dict[str, str]:
    """Return the sinks' data by which they find a suspended run or call again."""
    found: dict[str, str] = {}
    for sink in sinks:
        try:
            found.update(sink.carry(kind, activity_id, run_id))
        except BaseException as error:  # as above
            name = type(sink).__name__
            _log.error("the sink %s has nothing to carry for %s", name, activity_id, exc_info=exception_of(error))
    return found

"""Sinks of call events: a logger, a list, a file."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from inspect import iscoroutinefunction
from pathlib import Path
from typing import IO, Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

from toolcrib._numbers import count_text
from toolcrib.calls import ActivityEvent, ActivityKind, CallEvent, CallRecord
from toolcrib.errors import explain_options

Followed: TypeAlias = ActivityKind | Literal["call"]
"""The things that a sink can follow: a call, or the activity around it."""

calls_log = logging.getLogger("toolcrib.calls")
"""The logger that gets each record, `toolcrib.calls`."""
_WIDE = 1000  # characters of the arguments, or of the reason, in a line of the log


class RecordedChannel(Protocol):
    """The channel of a run as events describe it."""

    @property
    def entry(self) -> str: ...
    @property
    def parent_id(self) -> str | None: ...


class RecordedRun(Protocol):
    """A run as its events describe it: a `Run`, or a view of one."""

    @property
    def id(self) -> str: ...
    @property
    def principal(self) -> str | None: ...
    @property
    def channel(self) -> RecordedChannel: ...
    @property
    def sinks(self) -> tuple[Sink, ...]: ...


@runtime_checkable
class Sink(Protocol):
    """Receives the events of calls as they happen; it must be quick, and must not call tools."""

    def emit(self, event: CallEvent) -> None:
        """Receive one event."""
        ...


def require_sinks(who: str, sinks: Iterable[object]) -> tuple[Sink, ...]:
    """Return sinks as a tuple; raises TypeError for one alone, for the path of a file, and for another object.

    Args:
        who: The owner of the option `sinks`, as `Run`.
    """
    mend = "as in sinks=[ListSink()], or sinks=[SqliteSink('toolcrib.db')] for a file"
    if isinstance(sinks, str | bytes) or not isinstance(sinks, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
        raise TypeError(f"{who}: sinks must be a list of them, {mend}, and not {sinks!r:.80}")
    found = tuple(sinks)
    for sink in found:
        if isinstance(sink, type) or not (_is_sink(type(sink)) or isinstance(sink, Sink)):
            raise TypeError(f"{who}: sinks has {sink!r:.80}; give sinks, {mend}")
    return cast("tuple[Sink, ...]", found)


@lru_cache(maxsize=256)
def _is_sink(cls: type) -> bool:
    """Return whether the objects of a class are sinks: a protocol takes long to say so.

    Raises:
        TypeError: One of the methods is async; nothing awaits it.
    """
    for name in ("emit", "emit_activity"):
        if iscoroutinefunction(getattr(cls, name, None)):
            raise TypeError(f"`{name}` of the sink {cls.__name__} is async, and nothing awaits it; write a plain `def`")
    return issubclass(cls, Sink)


@runtime_checkable
class ActivitySink(Protocol):
    """A sink that also gets events of what makes the calls: agents, turns, programs, sessions, requests."""

    def emit_activity(self, event: ActivityEvent) -> None:
        """Receive one event."""
        ...


@runtime_checkable
class TracingSink(Protocol):
    """A sink that other code asks what it is part of, such as a tracing library in a tool's body."""

    def around(self, kind: Followed, activity_id: str, run_id: str) -> AbstractContextManager[object]:
        """Return a context manager that is entered around a tool's body, or a run's code; for each step of a stream.

        What is left was entered in the same task, unless the code was thrown away unfinished.
        """
        ...

    def carry(self, kind: Followed, activity_id: str, run_id: str) -> Mapping[str, str]:
        """Return data for the sinks of the process where a suspended call or paused program goes on.

        There it is in `data["resumed"]` of the event that begins it.
        """
        ...


_runs: dict[type[Any], bool] = {}
_traces: dict[type[Any], bool] = {}


def activity_sinks(sinks: Iterable[object]) -> tuple[ActivitySink, ...]:
    """Return those that want to know of runs; each class is looked at once."""
    return tuple(cast("ActivitySink", sink) for sink in sinks if _is(sink, ActivitySink, _runs))


def wants_activities(*several: tuple[Sink, ...]) -> bool:
    """Return whether one of these sinks wants to know of runs."""
    return any(sinks and activity_sinks(sinks) for sinks in several)


def tracing_sinks(sinks: Sequence[object]) -> tuple[TracingSink, ...]:
    """Return those that are entered around what they follow; each class is looked at once."""
    for sink in sinks:  # asked for every call that is followed, and mostly without a sink
        if _traces.get(type(sink)) is not False:
            break
    else:
        return ()
    return tuple(cast("TracingSink", sink) for sink in sinks if _is(sink, TracingSink, _traces))


def _is(sink: object, protocol: type[Any], known: dict[type[Any], bool]) -> bool:
    kind = type(sink)
    if kind not in known:
        known[kind] = isinstance(sink, protocol)
    return known[kind]


def merged_sinks(first: tuple[Sink, ...], more: tuple[Sink, ...]) -> tuple[Sink, ...]:
    """Return all of them, each once: one that is given to a pipeline and to a run gets each event once."""
    if not first or not more:
        return first or more
    return (*first, *(sink for sink in more if not any(sink is known for known in first)))


class LogSink:
    """Writes to the logger `toolcrib.calls`: ends at INFO with what went wrong, everything else at DEBUG.

    Every pipeline has one, so that configuring the logger is all it takes.
    """

    def emit(self, event: CallEvent) -> None:
        """Log one event, with the record as `record.toolcrib`."""
        record = event.record
        if record is None:
            calls_log.debug("%s %s %s", event.kind, _line(event.tool), event.call_id, extra={"toolcrib": event})
            return
        arguments = record.requested if record.arguments is None else record.arguments
        why = record.outcome.get("message") or record.outcome.get("reason")
        calls_log.info(
            "%s(%s) %s in %.1f ms%s",
            _line(record.tool),
            _line(arguments),
            record.outcome["kind"],
            record.duration_ms,
            f": {_line(why)}" if why else "",
            extra={"toolcrib": record},
        )


def _line(value: Any) -> str:
    """Return arguments or words as one line of a log, which a model's own line ends cannot break."""
    if isinstance(value, Mapping):
        text = ", ".join(f"{name}={item!r}" for name, item in cast("Mapping[str, Any]", value).items())
    else:
        text = " ".join(value.split()) if isinstance(value, str) else repr(value)
    text = text if len(text) <= _WIDE else text[: _WIDE - 1] + "…"
    return text if text.isprintable() else repr(text)[1:-1]


class ListSink:
    """Keeps events in a list.

    Attributes:
        events: Everything that happened, in order.
    """

    def __init__(self) -> None:
        self.events: list[CallEvent] = []

    def emit(self, event: CallEvent) -> None:
        """Keep one event."""
        self.events.append(event)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {count_text(len(self.events), 'event')}>"

    @property
    def records(self) -> list[CallRecord]:
        """The records of the calls that ended, in the order they ended."""
        return [event.record for event in self.events if event.record is not None]


@explain_options()
class JsonLinesSink:
    """Appends one JSON object per line to a file: the record of each call that ended, or every event.

    Args:
        path: The file; it is made when missing, and appended to.
        events: Write every event of calls and of runs, not only the records; one of a run has a `activity_id`.
    """

    def __init__(self, path: str | Path, *, events: bool = False) -> None:
        self._events = events
        self._lock = threading.Lock()  # programs and agents may run in several threads
        # half a surrogate pair, which is not UTF-8, becomes the escape that JSON has for it; close() closes the file
        self._file: IO[str] = Path(path).open("a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115

    def emit(self, event: CallEvent) -> None:
        """Write the event's record, or the event itself."""
        if not self._events and event.record is None:
            return
        self._add(event.to_dict() if self._events or event.record is None else event.record.to_dict())

    def emit_activity(self, event: ActivityEvent) -> None:
        """Write the event, where events are wanted."""
        if self._events:
            self._add(event.to_dict())

    def _add(self, data: Mapping[str, Any]) -> None:
        line = json.dumps(data, ensure_ascii=False)
        with self._lock:
            self._file.write(line + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> JsonLinesSink:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class SelectingSink:
    """Gives another sink the events of those calls whose tool is wanted, and of all activities.

    Args:
        sink: The other sink.
        wants: Returns whether the calls of a tool are wanted, given its name.
    """

    def __init__(self, sink: Sink, wants: Callable[[str], bool]) -> None:
        self.sink, self._wants = sink, wants

    def emit(self, event: CallEvent) -> None:
        """Write an event of a call."""
        if self._wants(event.tool):
            self.sink.emit(event)

    def emit_activity(self, event: ActivityEvent) -> None:
        """Write an event of an activity."""
        if isinstance(self.sink, ActivitySink):
            self.sink.emit_activity(event)

    def around(self, kind: Followed, activity_id: str, run_id: str) -> AbstractContextManager[object]:
        """Return the other sink's context manager for a tool's body, or a run's code."""
        return self.sink.around(kind, activity_id, run_id) if isinstance(self.sink, TracingSink) else nullcontext()

    def carry(self, kind: Followed, activity_id: str, run_id: str) -> Mapping[str, str]:
        """Return the other sink's data for the process where a call or program goes on."""
        return self.sink.carry(kind, activity_id, run_id) if isinstance(self.sink, TracingSink) else {}

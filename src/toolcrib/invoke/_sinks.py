"""Where call events go: a logger, a list, a file."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Protocol, cast

from toolcrib.calls import CallEvent, CallRecord

__all__ = ["JsonLinesSink", "ListSink", "LogSink", "Sink"]

calls_log = logging.getLogger("toolcrib.calls")
_WIDE = 1000  # characters of the arguments, or of the reason, in a line of the log


class Sink(Protocol):
    """Receives the events of calls as they happen; it must be quick, and must not call tools."""

    def emit(self, event: CallEvent) -> None:
        """Take one event."""
        ...


class LogSink:
    """Writes to the logger `toolcrib.calls`: ends at INFO with what went wrong, everything else at DEBUG.

    Every pipeline has one, so that configuring the logger is all it takes.
    """

    def emit(self, event: CallEvent) -> None:
        """Log one event, with the record as `record.toolcrib`."""
        record = event.record
        if record is None:
            calls_log.debug("%s %s %s", event.kind, event.tool, event.call_id, extra={"toolcrib": event})
            return
        given = record.requested if record.arguments is None else record.arguments
        why = record.outcome.get("message") or record.outcome.get("reason")
        calls_log.info(
            "%s(%s) %s in %.1f ms%s",
            record.tool,
            _line(given),
            record.outcome["kind"],
            record.duration_ms,
            f": {_line(why)}" if why else "",
            extra={"toolcrib": record},
        )


def _line(value: Any) -> str:
    """Return arguments or words as one line of a log, which a model's own line ends cannot break."""
    if isinstance(value, Mapping):
        text = ", ".join(f"{name}={held!r}" for name, held in cast("Mapping[str, Any]", value).items())
    else:
        text = " ".join(value.split()) if isinstance(value, str) else repr(value)
    return text if len(text) <= _WIDE else text[: _WIDE - 1] + "…"


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

    @property
    def records(self) -> list[CallRecord]:
        """The records of the calls that ended, in the order they ended."""
        return [event.record for event in self.events if event.record is not None]


class JsonLinesSink:
    """Appends one JSON object per line to a file: the record of each call that ended, or every event.

    Args:
        path: The file; it is made when missing, and appended to.
        events: Write every event, not only the records.
    """

    def __init__(self, path: str | Path, *, events: bool = False) -> None:
        self._events = events
        self._lock = threading.Lock()  # programs and agents may run in several threads
        # half a surrogate pair, which is no UTF-8, becomes the escape that JSON has for it; close() closes the file
        self._file: IO[str] = Path(path).open("a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115

    def emit(self, event: CallEvent) -> None:
        """Write the event's record, or the event itself."""
        if not self._events and event.record is None:
            return
        data = event.to_dict() if self._events or event.record is None else event.record.to_dict()
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

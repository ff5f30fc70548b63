"""Sink of a worker, and the events of calls and runs in the database of durable work."""

from __future__ import annotations

from dataclasses import replace

from toolcrib.calls import ActivityEvent, CallEvent
from toolcrib.database import Database, PostgresTables, SqliteTables, Tables
from toolcrib.errors import SandboxLost
from toolcrib.record import POSTGRES_EVENT_TABLES, PostgresSink, SqliteSink, sqlite_event_tables

INTERRUPTED = "interrupted"
"""The state of a turn or program whose worker was stopped, or whose process was lost; any worker takes it up again."""


class WorkerSink:
    """A sink of a worker, which calls work `interrupted`, and not cancelled, when the worker is stopped.

    Attributes:
        sink: Keeps the events.
        leaving: Whether the worker stops, and cuts off what does not end in time.
        lost: Whether its work was handed over to others, which emit its events now.
    """

    def __init__(self, sink: SqliteSink | PostgresSink) -> None:
        self.sink = sink
        sink.process = ""  # another worker takes the work up
        self.leaving = self.lost = False

    def emit(self, event: CallEvent) -> None:
        """Write an event of a call."""
        cut_off = self.leaving and event.kind == "ended" and event.data["outcome"]["kind"] == "cancelled"
        if not (self.lost or cut_off):
            self.sink.emit(event)

    def emit_activity(self, event: ActivityEvent) -> None:
        """Write an event of a run."""
        if self.lost:
            return
        is_cut_off = event.kind == "closed" and (
            (self.leaving and event.data["outcome"] == "cancelled")
            or event.data.get("error_type") == SandboxLost.__qualname__  # it is run again
        )
        if is_cut_off:
            event = replace(event, kind="changed", data={"state": INTERRUPTED})
        self.sink.emit_activity(event)


def open_sink(database: Database) -> WorkerSink:
    """Return a worker's sink that keeps events of calls and runs in a database; missing tables are made.

    Raises:
        DatabaseError: No connection is available.
    """
    return WorkerSink(PostgresSink(database) if database.path is None else SqliteSink(database.path))


def keeps_events_in(sink: object, database: Database) -> bool:
    """Return whether a sink keeps events in this database."""
    if isinstance(sink, WorkerSink):
        sink = sink.sink
    if isinstance(sink, PostgresSink):
        return sink.database == database
    return isinstance(sink, SqliteSink) and database.path is not None and sink.path.resolve() == database.path.resolve()


def event_tables(database: Database) -> Tables:
    """Return the tables of events in a database; missing ones are made.

    Raises:
        DatabaseError: No connection is available.
    """
    if database.path is not None:
        return SqliteTables(database.path, *sqlite_event_tables())
    return PostgresTables(database, *POSTGRES_EVENT_TABLES, pool=1)

"""The approval store of a database, and its sink, whichever kind it is."""

from __future__ import annotations

from pathlib import Path

from toolcrib.adapters.dbos._database import Database
from toolcrib.adapters.dbos._postgres_store import PostgresApprovalStore
from toolcrib.adapters.dbos._sink import PostgresSink
from toolcrib.adapters.dbos._worker_sink import WorkerSink
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.record import SqliteSink

__all__ = ["keeps_events_in", "open_sink", "open_store"]


def open_store(database: str | Path | Database | None = None) -> SqliteApprovalStore | PostgresApprovalStore:
    """Return the approvals that are kept in a database, made when there are none yet.

    Raises:
        DatabaseError: No connection can be had.
    """
    named = database if isinstance(database, Database) else Database.named(database)
    return PostgresApprovalStore(named) if named.path is None else SqliteApprovalStore(named.path)


def open_sink(database: Database) -> WorkerSink:
    """Return a worker's sink that keeps events of calls and runs in a database; missing tables are made.

    Raises:
        DatabaseError: No connection can be had.
    """
    return WorkerSink(PostgresSink(database) if database.path is None else SqliteSink(database.path))


def keeps_events_in(sink: object, database: Database) -> bool:
    """Return whether a sink keeps events in this database."""
    if isinstance(sink, WorkerSink):
        sink = sink.kept
    if isinstance(sink, PostgresSink):
        return sink.database == database
    return isinstance(sink, SqliteSink) and database.path is not None and sink.path.resolve() == database.path.resolve()

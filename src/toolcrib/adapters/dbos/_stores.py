"""The approval store of a database, whichever kind it is."""

from __future__ import annotations

from pathlib import Path
from weakref import WeakKeyDictionary

from toolcrib.adapters.dbos._database import Database
from toolcrib.adapters.dbos._engine import Engine
from toolcrib.adapters.dbos._postgres_store import PostgresApprovalStore
from toolcrib.approvals import SqliteApprovalStore

__all__ = ["open_store", "store_of"]

_stores: WeakKeyDictionary[Engine, SqliteApprovalStore | PostgresApprovalStore] = WeakKeyDictionary()


def open_store(database: str | Path | Database | None = None) -> SqliteApprovalStore | PostgresApprovalStore:
    """Return the approvals that are kept in a database, made when there are none yet.

    Raises:
        DatabaseError: No connection can be had.
    """
    named = database if isinstance(database, Database) else Database.named(database)
    return PostgresApprovalStore(named) if named.path is None else SqliteApprovalStore(named.path)


def store_of(engine: Engine) -> SqliteApprovalStore | PostgresApprovalStore:
    """Return the approvals in an engine's database: one store for all its work."""
    if engine not in _stores:
        _stores[engine] = open_store(engine.database)
    return _stores[engine]

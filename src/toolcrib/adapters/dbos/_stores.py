"""The approval store of a database, whichever kind it is."""

from __future__ import annotations

from pathlib import Path

from toolcrib.adapters.dbos._database import Database
from toolcrib.adapters.dbos._postgres_store import PostgresApprovalStore
from toolcrib.approvals import SqliteApprovalStore

__all__ = ["open_store"]


def open_store(database: str | Path | Database | None = None) -> SqliteApprovalStore | PostgresApprovalStore:
    """Return the approvals that are kept in a database, made when there are none yet.

    Raises:
        DatabaseError: No connection can be had.
    """
    named = database if isinstance(database, Database) else Database.named(database)
    return PostgresApprovalStore(named) if named.path is None else SqliteApprovalStore(named.path)

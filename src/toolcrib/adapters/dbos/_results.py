"""Results that are too long for a model, on a Postgres server, for processes on many hosts."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Unpack

from toolcrib._tables import Execute
from toolcrib.adapters.dbos._database import Database, PostgresTables
from toolcrib.results import ResultStore, ResultStoreOptions, result_tables

__all__ = ["POSTGRES_RESULT_TABLES", "PostgresResultStore"]

_LOCK = "toolcrib: results"
POSTGRES_RESULT_TABLES = result_tables("BYTEA")
"""The tables of `PostgresResultStore`."""


class PostgresResultStore(ResultStore):
    """A result store on a Postgres server; it does what `SqliteResultStore` does.

    Args:
        database: Its URL, or what `Database.named` made of one. Missing tables are made.
        options: Those of `ResultStore`.

    Raises:
        DatabaseError: It is no Postgres database, or no connection can be had.
    """

    def __init__(self, database: str | Path | Database, **options: Unpack[ResultStoreOptions]) -> None:
        super().__init__(**options)
        self._tables = PostgresTables(database, POSTGRES_RESULT_TABLES)

    @property
    def database(self) -> Database:
        """The database."""
        return self._tables.database

    def close(self) -> None:
        """Close the connections; the store opens others when it is used again."""
        self._tables.close()

    def _transaction(self, *, write: bool) -> AbstractContextManager[Execute]:
        return self._tables.transaction(_LOCK if write else None)

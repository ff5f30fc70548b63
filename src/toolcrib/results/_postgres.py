"""Results on a Postgres server, for processes on many hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from toolcrib.database import Database, PostgresTables
from toolcrib.results._store import RESULT_TABLES, ResultStore, ResultStoreOptions


class PostgresResultStore(ResultStore):
    """A result store on a Postgres server; it does what `SqliteResultStore` does, and needs the extra `postgres`.

    Args:
        database: Its URL, or what `Database.named` made of one. Missing tables are made.
        options: Those of `ResultStore`.

    Raises:
        DatabaseError: It is not a Postgres database, or it cannot be connected to.
    """

    def __init__(self, database: str | Path | Database, **options: Unpack[ResultStoreOptions]) -> None:
        tables = PostgresTables(database, RESULT_TABLES)
        super().__init__(tables, **options)
        self.database = tables.database

    def close(self) -> None:
        """Close the connections; the store opens others when it is used again."""
        self._tables.close()

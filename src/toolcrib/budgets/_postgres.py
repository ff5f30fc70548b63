"""Used amounts of limits, on a Postgres server, for processes on many hosts."""

from __future__ import annotations

from pathlib import Path

from toolcrib.budgets._store import USAGE_TABLES, UsageStore
from toolcrib.database import Database, PostgresTables


class PostgresUsageStore(UsageStore):
    """A store on a Postgres server; it does what `SqliteUsageStore` does, and needs the extra `postgres`.

    Args:
        database: Its URL, or what `Database.named` made of one. Missing tables are made.

    Raises:
        DatabaseError: It is not a Postgres database, or it cannot be connected to.
    """

    def __init__(self, database: str | Path | Database) -> None:
        tables = PostgresTables(database, USAGE_TABLES)
        super().__init__(tables)
        self.database = tables.database

    def close(self) -> None:
        """Close the connections; the store opens others when it is used again."""
        self._tables.close()

"""Approval requests, answers and standing grants on a Postgres server, for processes on many hosts."""

from __future__ import annotations

from pathlib import Path

from toolcrib.approvals._sql_store import POSTGRES_APPROVAL_TABLES, TABLES_BESIDE, SqlApprovalStore
from toolcrib.clock import WALL_CLOCK, Clock
from toolcrib.database import Database, PostgresTables


class PostgresApprovalStore(SqlApprovalStore):
    """An approval store on a Postgres server; it does what `SqliteApprovalStore` does.

    It needs the extra `postgres`.

    Args:
        database: Its URL, or what `Database.named` made of one. Missing tables are made.
        clock: The clock by which requests expire, whose seconds are those since 1970.

    Raises:
        DatabaseError: It is not a Postgres database, or it cannot be connected to.
    """

    def __init__(self, database: str | Path | Database, *, clock: Clock = WALL_CLOCK) -> None:
        tables = PostgresTables(database, POSTGRES_APPROVAL_TABLES, *TABLES_BESIDE)
        super().__init__(tables, "toolcrib_", clock=clock)
        self.database = tables.database
        self.place = str(tables.database)

    def close(self) -> None:
        """Close the connections; the store opens others when it is used again."""
        self._tables.close()

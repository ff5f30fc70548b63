"""Saved programs on a Postgres server, for processes on many hosts."""

from __future__ import annotations

from pathlib import Path

from toolcrib.code._program_store import PROGRAM_TABLES, ProgramStore
from toolcrib.database import Database, PostgresTables


class PostgresProgramStore(ProgramStore):
    """A store on a Postgres server; it does what `SqliteProgramStore` does, and needs the extra `postgres`.

    Args:
        database: Its URL, or the result of `Database.named`. Missing tables are created.

    Raises:
        DatabaseError: It is not a Postgres database, or it cannot be connected to.
    """

    def __init__(self, database: str | Path | Database) -> None:
        tables = PostgresTables(database, PROGRAM_TABLES)
        super().__init__(tables)
        self.database = tables.database

    def close(self) -> None:
        """Close the connections; the store opens others when it is used again."""
        self._tables.close()

"""Database: a SQLite file or a Postgres server, its connections, and the tables of the stores in it.

A Postgres server needs the extra `postgres`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.database._connections import given_up, limit_answers, unhurried
    from toolcrib.database._database import Database, PostgresTables, transaction
    from toolcrib.database._files import MemoryTables, SqliteTables, connect_file, file_version, make_file
    from toolcrib.database._outage import OUTAGE, DatabaseAway, error_text, is_outage
    from toolcrib.database._sqlite import SqliteConnection, SqliteError, is_unavailable
    from toolcrib.database._tables import Execute, StoreTables, Tables, TablesVersion
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._connections": "given_up limit_answers unhurried",
            "._database": "Database PostgresTables transaction",
            "._files": "MemoryTables SqliteTables connect_file file_version make_file",
            "._outage": "OUTAGE DatabaseAway error_text is_outage",
            "._sqlite": "SqliteConnection SqliteError is_unavailable",
            "._tables": "Execute StoreTables Tables TablesVersion",
        },
    )

__all__ = [
    "OUTAGE",
    "Database",
    "DatabaseAway",
    "Execute",
    "MemoryTables",
    "PostgresTables",
    "SqliteConnection",
    "SqliteError",
    "SqliteTables",
    "StoreTables",
    "Tables",
    "TablesVersion",
    "connect_file",
    "error_text",
    "file_version",
    "given_up",
    "is_outage",
    "is_unavailable",
    "limit_answers",
    "make_file",
    "transaction",
    "unhurried",
]

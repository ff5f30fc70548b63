"""Database: a SQLite file or a Postgres server, its connections, and the tables of the stores in it.

A Postgres server needs the extra `postgres`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.database._connections import given_up, limit_answers, unhurried
    from toolcrib.database._database import Database, PostgresTables, statements, take_lock, transaction
    from toolcrib.database._files import (
        NOT_A_DATABASE,
        MemoryTables,
        SqliteTables,
        connect_file,
        file_version,
        make_file,
    )
    from toolcrib.database._lines import JOURNAL_LINES, JOURNAL_TABLES, LineTable
    from toolcrib.database._outage import OUTAGE, DatabaseAway, error_text, is_outage
    from toolcrib.database._sqlite import SqliteConnection, SqliteError, is_unavailable
    from toolcrib.database._tables import Execute, StoreTables, Tables, TablesVersion
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._connections": "given_up limit_answers unhurried",
            "._database": "Database PostgresTables statements take_lock transaction",
            "._files": "NOT_A_DATABASE MemoryTables SqliteTables connect_file file_version make_file",
            "._lines": "JOURNAL_LINES JOURNAL_TABLES LineTable",
            "._outage": "OUTAGE DatabaseAway error_text is_outage",
            "._sqlite": "SqliteConnection SqliteError is_unavailable",
            "._tables": "Execute StoreTables Tables TablesVersion",
        },
    )

__all__ = [
    "JOURNAL_LINES",
    "JOURNAL_TABLES",
    "NOT_A_DATABASE",
    "OUTAGE",
    "Database",
    "DatabaseAway",
    "Execute",
    "LineTable",
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
    "statements",
    "take_lock",
    "transaction",
    "unhurried",
]

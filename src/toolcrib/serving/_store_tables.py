"""Tables of the stores that share one database, for the commands that make them and look at their versions."""

from __future__ import annotations

from toolcrib.approvals import POSTGRES_APPROVAL_TABLES, SQLITE_APPROVAL_TABLES, TABLES_BESIDE
from toolcrib.budgets import USAGE_TABLES
from toolcrib.code import PROGRAM_TABLES
from toolcrib.database import StoreTables
from toolcrib.record import POSTGRES_EVENT_TABLES, sqlite_event_tables
from toolcrib.results import RESULT_TABLES


def store_tables(*, on_server: bool) -> tuple[StoreTables, ...]:
    """Return the tables of all stores but those of durable work, in a SQLite file or on a Postgres server."""
    return (
        POSTGRES_APPROVAL_TABLES if on_server else SQLITE_APPROVAL_TABLES,
        *TABLES_BESIDE,
        *(POSTGRES_EVENT_TABLES if on_server else sqlite_event_tables()),
        RESULT_TABLES,
        USAGE_TABLES,
        PROGRAM_TABLES,
    )

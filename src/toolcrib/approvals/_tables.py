"""Tables of an approval store, in a SQLite file and on a Postgres server."""

from __future__ import annotations

from toolcrib.approvals._suspended_calls import SUSPENDED_CALL_TABLES
from toolcrib.database import JOURNAL_TABLES, StoreTables


def _approval_tables(prefix: str) -> StoreTables:
    requests, standing = f"{prefix}requests", f"{prefix}standing"
    return StoreTables(
        "approvals",
        (
            (
                f"""CREATE TABLE IF NOT EXISTS {requests} (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
                    call_id TEXT NOT NULL, request TEXT NOT NULL, answer TEXT, used_at TEXT)""",
                f"CREATE INDEX IF NOT EXISTS {requests}_by_call ON {requests} (call_id)",
                f"CREATE INDEX IF NOT EXISTS {requests}_unused ON {requests} (number) WHERE used_at IS NULL",
                f"""CREATE TABLE IF NOT EXISTS {standing} (
                    number INTEGER PRIMARY KEY, tool TEXT NOT NULL, answer TEXT NOT NULL)""",
                f"CREATE INDEX IF NOT EXISTS {standing}_by_tool ON {standing} (tool)",
            ),
            (
                f"ALTER TABLE {requests} ADD COLUMN in_doubt INTEGER NOT NULL DEFAULT 0",
                f"""UPDATE {requests} SET in_doubt = 1 WHERE used_at IS NULL AND request LIKE '%"in_doubt": true%'""",
                f"""CREATE INDEX {requests}_unanswered ON {requests} (in_doubt)
                    WHERE used_at IS NULL AND answer IS NULL""",
                f"""CREATE INDEX {requests}_answered ON {requests} (number)
                    WHERE used_at IS NULL AND answer IS NOT NULL""",
            ),
            (f"CREATE TABLE {prefix}approvers (name TEXT PRIMARY KEY, token TEXT NOT NULL UNIQUE)",),
            (
                f"ALTER TABLE {requests} ADD COLUMN execution TEXT",
                f"ALTER TABLE {requests} ADD COLUMN digest TEXT NOT NULL DEFAULT ''",
                f"ALTER TABLE {requests} ADD COLUMN unended INTEGER NOT NULL DEFAULT 0",
                f"CREATE INDEX {requests}_begun ON {requests} (digest) WHERE execution IS NOT NULL",
                f"CREATE INDEX {requests}_unended ON {requests} (number) WHERE unended = 1",
                f"CREATE TABLE {prefix}claims (work TEXT PRIMARY KEY, claim TEXT NOT NULL, ended_at TEXT)",
            ),
            (
                f"""CREATE TABLE {prefix}sessions (id TEXT PRIMARY KEY, number INTEGER NOT NULL, state TEXT NOT NULL,
                    is_open INTEGER NOT NULL, saved_at TEXT NOT NULL)""",
            ),
        ),
    )


SQLITE_APPROVAL_TABLES = _approval_tables("")
"""The tables of `SqliteApprovalStore`."""
POSTGRES_APPROVAL_TABLES = _approval_tables("toolcrib_")
"""The tables of `PostgresApprovalStore`."""
TABLES_BESIDE = (  # not versions of `approvals`: processes of the version before go on
    JOURNAL_TABLES,
    StoreTables(
        "grant uses",
        (("CREATE TABLE IF NOT EXISTS toolcrib_grant_uses (request TEXT PRIMARY KEY, used TEXT NOT NULL)",),),
    ),
    StoreTables(
        "digest keys",
        (("CREATE TABLE IF NOT EXISTS toolcrib_digest_keys (number INTEGER PRIMARY KEY, key TEXT NOT NULL)",),),
    ),
    StoreTables(
        "expiry",
        (
            (
                "CREATE TABLE IF NOT EXISTS toolcrib_expiry (request TEXT PRIMARY KEY, closes_at TEXT NOT NULL)",
                "CREATE INDEX IF NOT EXISTS toolcrib_expiry_by_time ON toolcrib_expiry (closes_at)",
            ),
        ),
    ),
    StoreTables(
        "notices",
        (
            (
                """CREATE TABLE IF NOT EXISTS toolcrib_notices (request TEXT NOT NULL, address TEXT NOT NULL,
                    name TEXT NOT NULL, PRIMARY KEY (request, address, name))""",
            ),
        ),
    ),
    SUSPENDED_CALL_TABLES,
)
"""The tables beside those of the approvals, which a store has in a file and on a server."""

"""Tables of durable work beside those of DBOS: workers, stopped queues, contexts, programs, marks of schedules."""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa

from toolcrib.database import LineTable, StoreTables

WORK_TABLES = StoreTables(
    "work",
    (
        (
            "CREATE TABLE IF NOT EXISTS toolcrib_stopped_queues (queue TEXT PRIMARY KEY)",
            """CREATE TABLE IF NOT EXISTS toolcrib_workers (
                id TEXT PRIMARY KEY, token TEXT NOT NULL, host TEXT NOT NULL, pid BIGINT NOT NULL,
                started_at DOUBLE PRECISION NOT NULL, seen_at DOUBLE PRECISION NOT NULL, state TEXT NOT NULL)""",
            """CREATE TABLE IF NOT EXISTS toolcrib_served_queues (
                worker TEXT NOT NULL, queue TEXT NOT NULL, PRIMARY KEY (worker, queue))""",
            """CREATE TABLE IF NOT EXISTS toolcrib_contexts (
                agent TEXT PRIMARY KEY, version BIGINT NOT NULL, context TEXT NOT NULL)""",
            "CREATE TABLE IF NOT EXISTS toolcrib_context_changes (work_id TEXT PRIMARY KEY, agent TEXT NOT NULL)",
            """CREATE TABLE IF NOT EXISTS toolcrib_programs (
                run TEXT PRIMARY KEY, toolkit TEXT NOT NULL, queue TEXT NOT NULL, generation INTEGER NOT NULL,
                state TEXT NOT NULL, result TEXT, updated_at DOUBLE PRECISION NOT NULL)""",
            "CREATE INDEX IF NOT EXISTS ix_toolcrib_programs_state ON toolcrib_programs (state)",
            """CREATE TABLE IF NOT EXISTS toolcrib_program_lines (
                run TEXT NOT NULL, number INTEGER NOT NULL, line TEXT NOT NULL, PRIMARY KEY (run, number))""",
        ),
    ),
)


REQUEST_TABLES = StoreTables(  # not a version of `work`: a worker of the version before goes on beside this one
    "program requests",
    (
        (
            """CREATE TABLE IF NOT EXISTS toolcrib_program_requests (
                request TEXT NOT NULL, run TEXT NOT NULL, PRIMARY KEY (request, run))""",
            "CREATE INDEX IF NOT EXISTS toolcrib_program_requests_run ON toolcrib_program_requests (run)",
        ),
    ),
)

MARK_TABLES = StoreTables(
    "schedule marks",
    (
        (
            """CREATE TABLE IF NOT EXISTS toolcrib_schedule_marks (
                schedule TEXT PRIMARY KEY, until DOUBLE PRECISION NOT NULL)""",
        ),
    ),
)


def _table(name: str, *columns: str) -> sa.TableClause:
    return sa.table(f"toolcrib_{name}", *(cast("sa.ColumnClause[Any]", sa.column(column)) for column in columns))


stopped_queues = _table("stopped_queues", "queue")
workers = _table("workers", "id", "token", "host", "pid", "started_at", "seen_at", "state")
served_queues = _table("served_queues", "worker", "queue")
contexts = _table("contexts", "agent", "version", "context")
applied_changes = _table("context_changes", "work_id", "agent")
programs = _table("programs", "run", "toolkit", "queue", "generation", "state", "result", "updated_at")
"""The programs; `generation` says how often one was taken up after a pause, and once more."""
PROGRAM_LINES = LineTable("toolcrib_program_lines", "run")
"""The journals of programs."""
program_lines = _table("program_lines", "run", "number", "line")
program_requests = _table("program_requests", "request", "run")
"""The requests that paused programs wait for."""
schedule_marks = _table("schedule_marks", "schedule", "until")
"""The schedules that make up for missed ticks; their ticks are there until a time, in seconds since the epoch."""

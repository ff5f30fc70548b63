"""Approval requests, answers and standing grants on a Postgres server, for processes on many hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from toolcrib.approvals._ledger_store import LedgerStore
from toolcrib.approvals._sql_store import SqlApprovalStore
from toolcrib.approvals._tables import POSTGRES_APPROVAL_TABLES, TABLES_BESIDE
from toolcrib.clock import WALL_CLOCK, Clock
from toolcrib.database import Database, PostgresTables

_CHANNEL = "toolcrib_answers"
_LOOK_SECONDS = 2.0  # between two looks where answers are announced: versions before announce none


class PostgresApprovalStore(SqlApprovalStore):
    """An approval store on a Postgres server; it does what `SqliteApprovalStore` does.

    It needs the extra `postgres`. What waits for an answer is notified of it by the server, over one connection of the
    store; behind a pooler that passes no notifications on, it looks for the answer ten times a second.

    Args:
        database: Its URL, or what `Database.named` made of one. Missing tables are made.
        clock: The clock by which requests expire, whose seconds are those since 1970.

    Raises:
        DatabaseError: It is not a Postgres database, or it cannot be connected to.
    """

    announcement = f" RETURNING pg_notify('{_CHANNEL}', id)"

    def __init__(self, database: str | Path | Database, *, clock: Clock = WALL_CLOCK) -> None:
        tables = PostgresTables(database, POSTGRES_APPROVAL_TABLES, *TABLES_BESIDE)
        super().__init__(tables, "toolcrib_", clock=clock)
        self.database = tables.database
        self.place = str(tables.database)
        self._answers = tables.listener(_CHANNEL)

    @contextmanager
    def _waiter(self, request_id: str) -> Generator[asyncio.Event]:
        loop = asyncio.get_running_loop()

        def receive(payload: str) -> None:
            if payload in (request_id, ""):
                with suppress(RuntimeError):  # its loop has been closed
                    loop.call_soon_threadsafe(written.set)

        with super()._waiter(request_id) as written, self._answers.receiving(receive):
            yield written

    async def _pause(self, written: asyncio.Event, closes_at: datetime | None) -> None:
        self._answers.start()
        self._polling = _LOOK_SECONDS if self._answers.hears else LedgerStore._polling
        await super()._pause(written, closes_at)

    def close(self) -> None:
        """Close the connections; the store opens others when it is used again."""
        self._answers.close()
        self._tables.close()

"""Suspended calls on a Postgres server."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from toolcrib.adapters.dbos._database import Database
from toolcrib.adapters.dbos._pool import Pool
from toolcrib.serving import SUSPENDED_CALL_TABLES, Execute, SqlSuspendedCalls

__all__ = ["PostgresSuspendedCalls"]


class PostgresSuspendedCalls(SqlSuspendedCalls):
    """Suspended calls on a Postgres server: for processes on many hosts. Made by `PostgresApprovalStore`."""

    def __init__(self, database: Database) -> None:
        self._pool = Pool(database, SUSPENDED_CALL_TABLES, size=2)
        super().__init__(self._open)

    @contextmanager
    def _open(self) -> Generator[Execute]:
        with self._pool.transaction() as connection:

            def execute(sql: str, values: Sequence[Any]) -> Any:
                return connection.execute(cast("Any", sql.replace("?", "%s")), values)

            yield execute

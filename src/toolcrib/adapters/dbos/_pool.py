"""Pool: a few connections to a Postgres server that threads take and give back, and that a fork does not share."""

from __future__ import annotations

import os
import weakref
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import psycopg
import sqlalchemy as sa

from toolcrib.adapters.dbos._database import Database
from toolcrib.errors import DatabaseError

__all__ = ["Connection", "Pool"]

Connection = psycopg.Connection[tuple[Any, ...]]


class Pool:
    """Connections to a Postgres database, made when they are needed.

    Args:
        database: Its URL, or what `Database.named` made of one.
        tables: Statements that make the tables; each may be run again.
        size: The most connections at a time.

    Raises:
        DatabaseError: It is no Postgres database, or no connection can be had.
    """

    def __init__(self, database: str | Path | Database, tables: Iterable[str], *, size: int = 4) -> None:
        self.database = database if isinstance(database, Database) else Database.named(database)
        if self.database.kind != "postgresql":
            raise DatabaseError(
                str(self.database), "it is a file, and this is for a Postgres server", "Give a postgresql:// URL"
            )
        self._engine: sa.Engine = self.database.engine(pool=size)
        self._pid = os.getpid()
        weakref.finalize(self, _dispose, self._engine, self._pid)
        with self.transaction(lock="toolcrib: tables") as connection:  # two that make one at once fail
            for statement in tables:
                connection.execute(cast("Any", statement))

    @contextmanager
    def transaction(self, *, lock: str | None = None) -> Generator[Connection]:
        """Give a connection for one transaction, which is taken back when the block raises.

        Args:
            lock: What nobody else may hold meanwhile, in any process.
        """
        if self._pid != os.getpid():  # a forked child: the connections are its parent's
            self._engine.dispose(close=False)
            self._pid = os.getpid()
        pooled = self._engine.raw_connection()
        try:
            connection = cast("Connection", pooled.driver_connection)
            with connection.transaction():
                if lock is not None:
                    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (lock,))
                yield connection
        finally:
            pooled.close()

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()


def _dispose(engine: sa.Engine, pid: int) -> None:
    engine.dispose(close=pid == os.getpid())  # in a fork they are the parent's to close

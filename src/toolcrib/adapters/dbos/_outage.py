"""Outages: a database that is away, locked or full is waited for, and what it answers then is never an outcome."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, TypeVar

import dbos._sys_db as dbos_database
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import TimeoutError as PoolTimeout

from toolcrib._passwords import hide_passwords
from toolcrib._sqlite import is_unavailable

__all__ = ["DatabaseAway", "Notice", "WaitedTime", "error_text", "is_outage", "name_outages", "outlast"]

T = TypeVar("T")

_FIRST, _LONGEST = 0.1, 5.0  # seconds between two tries
_QUIET = 2 * _LONGEST  # seconds without an error, after which it is back: a full disk takes a write now and then
_POSTGRES = ("08", "25006", "53", "57P", "58")  # no connection, a standby, no room, a server that stops, its disk
_log = logging.getLogger("toolcrib.durable")


def _pause(seconds: float) -> None:
    time.sleep(min(seconds, _LONGEST))


# DBOS would wait up to 90 seconds between two tries, in its own threads, and has no option for it
dbos_database.time = SimpleNamespace(**{**vars(time), "sleep": _pause})  # pyright: ignore[reportPrivateImportUsage]


class DatabaseAway(PoolTimeout, ConnectionError):
    """The database cannot be used now. DBOS tries again, however long it takes, when it meets this error; so do we."""


def is_outage(error: BaseException) -> bool:
    """Return whether an error says that the database cannot be used now, and nothing about what was asked of it."""
    return isinstance(error, PoolTimeout) or is_unavailable(error)


async def outlast(work: Callable[[], Awaitable[T]]) -> T:
    """Return what `work` returns, tried again for as long as the database is away; `work` may be done twice."""
    pause = _FIRST
    while True:
        try:
            return await work()
        except Exception as error:
            if not is_outage(error):
                raise
            _notice.away(error)
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, _LONGEST)


class WaitedTime:
    """Counts the seconds in which a piece of work waits for its database, however many of its parts wait at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting, self._since, self._before = 0, 0.0, 0.0

    @property
    def seconds(self) -> float:
        """The seconds so far."""
        return self._before + (self._clock() - self._since if self._waiting else 0.0)

    @contextmanager
    def counted(self) -> Generator[None]:
        """Count the time of the body."""
        if not self._waiting:
            self._since = self._clock()
        self._waiting += 1
        try:
            yield
        finally:
            self._before = self.seconds if self._waiting == 1 else self._before
            self._waiting -= 1


def name_outages(engine: sa.Engine, notice: Notice | None = None) -> None:
    """Have an engine raise `DatabaseAway` for each error that says that its database cannot be used now."""
    said = notice or _notice

    def named(context: Any) -> BaseException | None:
        return _named(context, said)

    def worked(connection: sa.Connection) -> None:
        _worked(connection, said)

    event.listen(engine, "handle_error", named, retval=True)
    event.listen(engine, "commit", worked)
    logging.getLogger("dbos").addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Database connection")  # DBOS says so at each try, and guesses why


def _worked(connection: sa.Connection, notice: Notice) -> None:
    if connection.dialect.name != "sqlite" or _wrote(connection):
        notice.back()


def _wrote(connection: sa.Connection) -> bool:
    """Return whether a transaction on a file has written; a file that is locked or full can still be read."""
    return bool(getattr(connection.connection.dbapi_connection, "in_transaction", True))


def _named(context: Any, notice: Notice) -> BaseException | None:
    error = context.original_exception
    state = getattr(error, "sqlstate", None) or ""
    if context.is_pre_ping or not (
        context.is_disconnect or is_unavailable(error) or state.startswith(_POSTGRES) or context.connection is None
    ):
        return None
    notice.away(error)
    return DatabaseAway(error_text(error))


def error_text(error: BaseException) -> str:
    """Return what an error of a database says, in one line and without passwords."""
    return hide_passwords(" ".join(str(error).split()))


class Notice:
    """What the log says of an outage: one line when it begins, and one when it is over."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._is_away, self._lock = False, threading.Lock()
        self._clock, self._failed_at = clock, 0.0

    def away(self, error: BaseException) -> None:
        """Say that the database cannot be used, unless that was said."""
        with self._lock:
            known, self._is_away, self._failed_at = self._is_away, True, self._clock()
        if not known:
            _log.error(
                "the database cannot be used now (%s): work waits for it, and nothing is given up", error_text(error)
            )

    def back(self) -> None:
        """Say that it can be used again, where that was not said and nothing has failed for a while."""
        if self._is_away and self._clock() - self._failed_at > _QUIET:
            with self._lock:
                self._is_away = False
            _log.error("the database can be used again: work goes on")


_notice = Notice()

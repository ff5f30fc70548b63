"""Outages of a database: errors that say that it cannot be used now, and one line in the log for each outage."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from toolcrib._extras import Extra

with Extra("a Postgres database", "postgres", ("sqlalchemy",)):
    import sqlalchemy as sa
    from sqlalchemy import event
    from sqlalchemy.exc import TimeoutError as PoolTimeout

from toolcrib._passwords import hide_passwords
from toolcrib.database._sqlite import is_unavailable

_QUIET = 10.0  # seconds without an error, after which it is back: a full disk takes a write now and then
_POSTGRES = ("08", "25006", "53", "55P03", "57014", "57P", "58")
"""The states of errors: no connection, read only, no room, two limits of time, a server that stops, its disk."""
_log = logging.getLogger("toolcrib.durable")


class DatabaseAway(PoolTimeout, ConnectionError):
    """The database cannot be used now. What meets this error tries again."""


def is_outage(error: BaseException) -> bool:
    """Return whether an error says that the database cannot be used now, and nothing about what was asked of it."""
    return isinstance(error, PoolTimeout) or is_unavailable(error)


def name_outages(engine: sa.Engine, notice: Notice | None = None) -> None:
    """Configure an engine to raise `DatabaseAway` for each error that says that its database cannot be used now."""
    lines = notice or OUTAGE

    def on_error(context: Any) -> BaseException | None:
        error = context.original_exception
        state = getattr(error, "sqlstate", None) or ""
        if context.is_pre_ping or not (
            context.is_disconnect or is_unavailable(error) or state.startswith(_POSTGRES) or context.connection is None
        ):
            return None
        lines.away(error)
        return DatabaseAway(error_text(error))

    def on_commit(connection: sa.Connection) -> None:
        if connection.dialect.name != "sqlite" or _wrote(connection):
            lines.back()

    event.listen(engine, "handle_error", on_error, retval=True)
    event.listen(engine, "commit", on_commit)


def _wrote(connection: sa.Connection) -> bool:
    """Return whether a transaction on a file has written; a file that is locked or full can still be read."""
    return bool(getattr(connection.connection.dbapi_connection, "in_transaction", True))


def error_text(error: BaseException) -> str:
    """Return the message of a database error, in one line and without passwords."""
    return hide_passwords(" ".join(str(error).split()))


class Notice:
    """The lines in the log about an outage: one when it begins, and one when it is over."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._is_away, self._lock = False, threading.Lock()
        self._clock, self._failed_at = clock, 0.0

    def away(self, error: BaseException) -> None:
        """Log that the database cannot be used, unless that was said."""
        with self._lock:
            known, self._is_away, self._failed_at = self._is_away, True, self._clock()
        if not known:
            _log.error(
                "the database cannot be used now (%s): work waits for it, and nothing is given up", error_text(error)
            )

    def back(self) -> None:
        """Log that it can be used again, where that was not said and nothing has failed for a while."""
        if self._is_away and self._clock() - self._failed_at > _QUIET:
            with self._lock:
                self._is_away = False
            _log.error("the database can be used again: work goes on")


OUTAGE = Notice()
"""The notice of this process."""

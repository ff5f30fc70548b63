"""Listener to the notifications of a Postgres server, by one connection for all that wait in a process."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import Any, cast

from toolcrib._extras import Extra

with Extra("a Postgres database", "postgres", ("psycopg", "sqlalchemy")):
    import psycopg
    import sqlalchemy as sa
    from psycopg import sql
    from sqlalchemy.exc import SQLAlchemyError

from toolcrib.clock import SYSTEM_CLOCK, Clock
from toolcrib.database._outage import error_text

_LOOK_SECONDS = 0.2  # between two looks whether it is to end
_IDLE_SECONDS = 10.0  # for which it listens on when nothing waits any more
_RETRY_SECONDS = 5.0  # after which it connects again where it has failed
_log = logging.getLogger("toolcrib.database")


class Listener:
    """A listener to one channel of a database: a thread with a connection of its own, while something waits.

    A pooler that lends its connections for one transaction passes no notification on. So the listener notifies itself,
    by another connection, and `hears` no earlier than that has arrived.

    Args:
        engine: Opens the connections.
        channel: The name of the channel.
        clock: The clock by which it ends when nothing waits, and connects again.
    """

    def __init__(self, engine: sa.Engine, channel: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._engine, self._channel, self._clock = engine, channel, clock
        self._receivers: set[Callable[[str], None]] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._hears = self._is_closed = False
        self._next_try: float | None = None

    @property
    def is_running(self) -> bool:
        """True if its thread runs; a process that was forked has none."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def hears(self) -> bool:
        """True if notifications arrive."""
        return self._hears and self.is_running

    @contextmanager
    def receiving(self, receive: Callable[[str], None]) -> Generator[None]:
        """Call a function with the payload of each notification until the body ends, in the listener's thread.

        An empty payload says that notifications may have been missed before it.
        """
        self._receivers.add(receive)
        try:
            yield
        finally:
            self._receivers.discard(receive)

    def start(self) -> None:
        """Start to listen, unless it does, or has failed a moment ago. What waits calls it before each pause."""
        with self._lock:
            is_due = self._next_try is None or self._clock.monotonic() >= self._next_try
            if is_due and not self.is_running:
                self._is_closed = False
                self._thread = threading.Thread(target=self._run, name="toolcrib-listener", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Close its connection; another is opened when it is started again."""
        self._is_closed = True
        if self._thread is not None and self.hears:
            self._thread.join()

    def _run(self) -> None:
        try:
            pooled = self._engine.raw_connection()
            connection = cast("psycopg.Connection[Any]", pooled.driver_connection)
            pooled.detach()  # the pool opens another in its place
            with closing(connection):
                self._listen(connection)
        except (SQLAlchemyError, psycopg.Error) as error:
            self._next_try = self._clock.monotonic() + _RETRY_SECONDS
            _log.debug("no notifications are heard now: %s", error_text(error))
        finally:
            self._hears = False
            self._tell("")

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        probe = secrets.token_hex(8)
        connection.autocommit = True
        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        with self._engine.connect() as other:
            other.detach()  # the pool may have been closed meanwhile, and none is left in it
            other.execute(sa.select(sa.func.pg_notify(self._channel, probe)))
            other.commit()
        until = self._clock.monotonic() + _IDLE_SECONDS
        while not self._is_closed and (self._receivers or self._clock.monotonic() < until):
            for notification in connection.notifies(timeout=_LOOK_SECONDS):
                is_probe = notification.payload == probe
                self._hears = self._hears or is_probe
                self._tell("" if is_probe else notification.payload)
            if self._receivers:
                until = self._clock.monotonic() + _IDLE_SECONDS

    def _tell(self, payload: str) -> None:
        for receive in tuple(self._receivers):
            receive(payload)

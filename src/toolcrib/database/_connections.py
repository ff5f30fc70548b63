"""Connections to a Postgres server, of which none waits forever on a network that loses what is sent."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from toolcrib._extras import Extra

with Extra("a Postgres database", "postgres", ("psycopg", "sqlalchemy")):
    import psycopg
    import sqlalchemy as sa
    from psycopg.pq import TransactionStatus
    from sqlalchemy import event

ANSWER_TIMEOUT: Final = "answer_timeout"
"""The setting of a URL that is ours: seconds in which a server has to answer; 0 for no such limit."""

CONNECTION_SETTINGS: Final[Mapping[str, Any]] = {
    "connect_timeout": 10,
    # a peer that acknowledges nothing is given up after 10 seconds, and looked for after 10 in which nothing came
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    # a standby shows neither the locks of those who write, before which a follower stops, nor all that is written
    "target_session_attrs": "primary",
}
"""The settings of libpq for every connection; those of a URL take their place."""

# A proxy acknowledges also what it passes on to nobody. A lock of a transaction that stands still is freed after 60 s.
_ANSWER_SECONDS: Final = 75.0

_unhurried: ContextVar[bool] = ContextVar("toolcrib_unhurried", default=False)
_open: weakref.WeakSet[AnsweredConnection] = weakref.WeakSet()
_open_lock = threading.Lock()
_given_up: list[sa.URL] = []


class AnsweredConnection(psycopg.Connection[Any]):
    """A connection that ends, as if the server had, when the answer to a statement does not come in time.

    Attributes:
        answer_seconds: How long nothing may come while a statement is answered; None for no limit.
        server: The database that it leads to.
    """

    answer_seconds: float | None = _ANSWER_SECONDS
    server: sa.URL | None = None

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        """Wait for an answer; see psycopg."""
        return super().wait(gen if _unhurried.get() else self._answered(gen), *args, **kwargs)

    def _answered(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Pass on what a generator waits for, and look at the time when psycopg says that nothing came."""
        heard_at = time.monotonic()
        try:
            awaited = next(gen)
            while True:
                ready = yield awaited
                if ready:
                    heard_at = time.monotonic()
                else:
                    self._check_answer(time.monotonic() - heard_at)
                awaited = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _check_answer(self, silence: float) -> None:
        """End the connection where a statement waits for too long; one that listens waits for as long as it likes."""
        if self.answer_seconds is None or silence <= self.answer_seconds:
            return
        if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
            self.pgconn.finish()
            raise psycopg.OperationalError(
                f"the server has not answered for {silence:.0f} s: the connection is given up"
            )


def open_answered(engine: sa.Engine, seconds: float | None) -> None:
    """Configure an engine to open such connections.

    Args:
        seconds: Their `answer_seconds`; the default when None, and 0 for no limit.
    """

    def connect(dialect: Any, record: Any, arguments: Any, settings: Any) -> AnsweredConnection:
        if engine.url in _given_up:
            raise psycopg.OperationalError("the server did not answer, and is not asked again: this worker stops")
        connection = AnsweredConnection.connect(*arguments, **settings)
        if seconds is not None:
            connection.answer_seconds = seconds or None
        connection.server = engine.url
        with _open_lock:
            _open.add(connection)
        return connection

    event.listen(engine, "do_connect", connect)


def limit_answers(server: sa.URL, seconds: float) -> None:
    """End what waits in this process for an answer of a database for longer than so many seconds, also from now on."""
    with _open_lock:
        found = [connection for connection in _open if connection.server == server]
    for connection in found:
        connection.answer_seconds = seconds


@contextmanager
def given_up(server: sa.URL) -> Generator[None]:
    """Open no connection to a database in this process until the body ends, and wait for no answer of it."""
    with _open_lock:
        _given_up.append(server)
    limit_answers(server, 0.0)
    try:
        yield
    finally:
        _given_up.remove(server)


@contextmanager
def unhurried() -> Generator[None]:
    """Lift the limits of time for the statements of the body: they change tables, or remove much."""
    token = _unhurried.set(True)
    try:
        yield
    finally:
        _unhurried.reset(token)

"""A standby in place of a server: nobody reads from it, and what is to be written waits until it is promoted."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from tests.postgres import Postgres, running
from toolcrib.calls import CallEvent
from toolcrib.database import Database
from toolcrib.errors import DatabaseError
from toolcrib.record import PostgresSink, postgres_events


@pytest.fixture
def server(postgres: Postgres) -> Iterator[Postgres]:
    """A server that a test may make a standby, and that no other test has."""
    with running() as own:
        yield own


def make_standby(server: Postgres) -> None:
    """Restart a server as a standby, which can be read from."""
    with server.connect() as connection:
        ((folder,),) = connection.execute("SHOW data_directory").fetchall()
    server.control.stop()
    signal = Path(folder, "standby.signal")
    signal.touch()
    if server.control.owner is not None:
        os.chown(signal, *server.control.owner)
    server.control.start()
    while True:
        try:
            return server.connect().close()
        except psycopg.OperationalError:
            time.sleep(0.02)


def event(id: str) -> CallEvent:
    return CallEvent("received", id, "add", "run_1", "test", datetime.now(UTC), {})


def test_a_standby_is_not_read_from(server: Postgres) -> None:
    url = server.url("standby")
    PostgresSink(url).close()

    make_standby(server)

    with pytest.raises(DatabaseError, match=r"hot standby mode\. Name the primary server in the URL"):
        postgres_events(url)
    Database.named(f"{url}?target_session_attrs=any").engine().dispose()  # by one who asks for it


def test_events_wait_for_a_standby_to_be_promoted(server: Postgres, caplog: pytest.LogCaptureFixture) -> None:
    url = server.url("standby")
    with PostgresSink(url) as sink:
        sink.emit(event("before"))
        sink.flush()
        make_standby(server)
        sink.emit(event("meanwhile"))
        while "events cannot be written now" not in caplog.text:
            time.sleep(0.02)
        with server.connect() as connection:
            connection.execute("SELECT pg_promote()")
        sink.flush()

        assert [found.id for found in sink.log().all()] == ["before", "meanwhile"]

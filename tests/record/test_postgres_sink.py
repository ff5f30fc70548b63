"""Order of events on a Postgres server: several processes write at a time, and a follower misses none."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.postgres import Postgres
from toolcrib.calls import ActivityEvent, CallEvent
from toolcrib.database import PostgresTables
from toolcrib.record import POSTGRES_EVENT_TABLES, EventLog, KeptEvent, PostgresSink, postgres_events, prune_events

AT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
WAITING = """SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE %s"""
_PROCESS = "from toolcrib._processes import this_process; print(this_process())"
CHANGES, TAKES_THE_LOCK = "INSERT INTO toolcrib_activities%", "%pg_advisory_xact_lock_shared(hashtextextended%"


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.url(f"order_{uuid4().hex[:8]}")


@pytest.fixture
def server(postgres: Postgres, url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection of somebody else to the database of the tests."""
    with postgres.connect(url.rpartition("/")[2]) as connection:
        yield connection


def event(call_id: str, kind: Any = "received", **data: Any) -> CallEvent:
    return CallEvent(kind, call_id, "add", "run_1", "test", AT, data)


def write(url: str, *events: CallEvent) -> None:
    with PostgresSink(url) as sink:
        for one in events:
            sink.emit(one)


def waiting(url: str, query: str) -> None:
    """Wait until a session of the database waits for a lock in such a statement."""
    end = time.monotonic() + 60
    with psycopg.connect(url, autocommit=True) as connection:  # in a transaction each look would find the same
        while connection.execute(WAITING, [query]).fetchone() is None:
            assert time.monotonic() < end
            time.sleep(0.02)


@contextmanager
def batch_held(url: str, server: psycopg.Connection[Any], event_held: CallEvent) -> Generator[None]:
    """Hold up the transaction of a batch, which has its positions and has written its events, until the block ends."""
    write(url, event(event_held.call_id))
    with ExitStack() as stack:
        sink = stack.enter_context(PostgresSink(url))
        with server.transaction():
            server.execute("SELECT 1 FROM toolcrib_activities WHERE id = %s FOR UPDATE", [event_held.call_id])
            sink.emit(event_held)
            waiting(url, CHANGES)
            yield


def old_writer(server: psycopg.Connection[Any], *ids: str) -> None:
    """Write a batch in a transaction as version 0.2 does."""
    server.execute("SELECT pg_advisory_xact_lock(hashtextextended('toolcrib: events', 0))")
    ((first,),) = server.execute("SELECT COALESCE(MAX(position), 0) + 1 FROM toolcrib_events").fetchall()
    names = "position, source, run_id, id, kind, name, at, data"
    for position, id in enumerate(ids, first):
        row = (position, "call", "run_1", id, "received", "add", AT.isoformat(), "{}")
        server.execute(f"INSERT INTO toolcrib_events ({names}) VALUES ({', '.join(['%s'] * 8)})".encode(), row)


def ids(events: Iterator[KeptEvent] | list[KeptEvent]) -> list[str]:
    return [one.id for one in events]


def test_a_follower_stops_before_a_batch_that_is_being_written(url: str, server: psycopg.Connection[Any]) -> None:
    with batch_held(url, server, event("held", "started")):
        log = postgres_events(url)
        start = log.last()
        write(url, event("later"))

        followed, there = log.since(start), ids(log.all())

    assert (start, followed, there) == (1, [], ["held", "later"])
    assert [(one.position, one.id) for one in log.since(start)] == [(2, "held"), (3, "later")]
    assert [one.id for one in log.changed(start)] == ["held", "later"]


def test_a_batch_that_is_taken_back_holds_up_nobody(url: str, server: psycopg.Connection[Any]) -> None:
    log = postgres_events(url)
    write(url, event("first"))
    with server.transaction(force_rollback=True):
        server.execute("SELECT pg_advisory_xact_lock_shared('toolcrib_events'::regclass::int, 1)")
        server.execute("SELECT nextval('toolcrib_event_positions')")
        write(url, event("later"))

        meanwhile = ids(log.since(0))

    assert (meanwhile, [(one.position, one.id) for one in log.since(0)]) == (["first"], [(1, "first"), (3, "later")])


def test_a_long_transaction_of_somebody_else_holds_up_nobody(url: str, server: psycopg.Connection[Any]) -> None:
    write(url, event("first"))
    with server.transaction():
        server.execute("CREATE TABLE of_somebody_else (number BIGINT)")
        server.execute("SELECT pg_advisory_xact_lock(1), pg_advisory_xact_lock('toolcrib_versions'::regclass::int, 0)")
        write(url, event("second"))

        found = ids(postgres_events(url).since(0))

    assert found == ["first", "second"]


def test_what_a_follower_has_seen_does_not_become_unseen(url: str, server: psycopg.Connection[Any]) -> None:
    log = postgres_events(url)
    write(url, event("first"), event("second"))
    last = log.last()
    with server.transaction():  # of one who was shown its position late
        server.execute("SELECT pg_advisory_xact_lock_shared('toolcrib_events'::regclass::int, 1)")

        assert (log.last(), postgres_events(url).last()) == (last, 1)


def test_a_database_in_place_of_another_begins_anew(url: str, postgres: Postgres) -> None:
    log = postgres_events(url)
    write(url, *(event(f"c{number}") for number in range(5)))
    before = log.last()

    postgres.empty(url.rpartition("/")[2])
    write(url, event("new"))

    assert (before, log.last(), ids(log.since(0))) == (5, 1, ["new"])


def test_no_follower_misses_an_event_of_many_writers_or_reads_it_twice(url: str) -> None:
    writers, each, seen, over = 6, 30, list[KeptEvent](), threading.Event()

    def tell(name: str) -> None:
        with PostgresSink(url) as sink:
            for number in range(each):
                sink.emit(event(f"{name}{number}"))
                sink.flush()

    def follow(log: EventLog) -> None:
        is_over = False
        while not is_over:
            is_over = over.is_set()
            seen.extend(log.since(seen[-1].position if seen else 0))

    with ThreadPoolExecutor(writers + 1) as pool:
        following = pool.submit(follow, postgres_events(url))
        for told in [pool.submit(tell, name) for name in "abcdef"[:writers]]:
            told.result()
        over.set()
        following.result()

    assert len(seen) == len(set(ids(seen))) == writers * each
    assert [one.position for one in seen] == sorted(one.position for one in seen)
    assert [id for id in ids(seen) if id.startswith("a")] == [f"a{number}" for number in range(each)]


def test_a_worker_of_the_version_before_writes_beside_these(url: str, server: psycopg.Connection[Any]) -> None:
    log = postgres_events(url)
    for number in range(3):
        with server.transaction():
            old_writer(server, f"old{number}.0", f"old{number}.1")
        write(url, event(f"new{number}"))

    found = log.since(0)

    assert ids(found) == [name for n in range(3) for name in (f"old{n}.0", f"old{n}.1", f"new{n}")]
    assert [one.position for one in found] == list(range(1, 10))


def test_nobody_writes_while_a_worker_of_the_version_before_does(url: str, server: psycopg.Connection[Any]) -> None:
    log = postgres_events(url)
    with ExitStack() as stack:
        sink = stack.enter_context(PostgresSink(url))
        with server.transaction():
            old_writer(server, "old")
            sink.emit(event("new"))
            waiting(url, TAKES_THE_LOCK)
            meanwhile = log.since(0)

    assert (meanwhile, ids(log.since(0))) == ([], ["old", "new"])


def test_the_state_of_a_call_is_that_of_its_later_event_whichever_is_written_last(
    url: str, server: psycopg.Connection[Any]
) -> None:
    with batch_held(url, server, event("held", "started")):
        server.execute(  # by a process that took a later position, and was done before
            "UPDATE toolcrib_activities SET status = 'completed', ended_at = %s, last_position = 9", [AT.isoformat()]
        )

    (call,) = postgres_events(url).activities()
    assert (call.status, call.ended_at, call.last_position) == ("completed", AT.isoformat(), 9)


def test_batches_that_wait_for_each_other_are_both_written(url: str, server: psycopg.Connection[Any]) -> None:
    def turn(id: str, kind: Any = "opened") -> ActivityEvent:
        return ActivityEvent(kind, "turn", id, None, "add", AT, {})

    with PostgresSink(url) as sink:
        for id in "ab":
            sink.emit_activity(turn(id))
        sink.flush()
        with server.transaction():
            server.execute("SET LOCAL deadlock_timeout = '1min'")  # it is the other one that is told of it
            server.execute("SELECT 1 FROM toolcrib_activities WHERE id = 'b' FOR UPDATE")
            for id in "ab":
                sink.emit_activity(turn(id, "changed"))
            waiting(url, CHANGES)
            server.execute("SELECT 1 FROM toolcrib_activities WHERE id = 'a' FOR UPDATE")

    assert ids(postgres_events(url).since(0)) == ["a", "b", "a", "b"]


# --- old calls and runs are removed beside those who write


REMOVES = "DELETE FROM toolcrib_activities%"


def ended_turns(url: str, *ids: str) -> None:
    with PostgresSink(url) as sink:
        for id in ids:
            for kind in ("opened", "closed"):
                sink.emit_activity(ActivityEvent(kind, "turn", id, None, "add", AT, {}))
            sink.flush()


def prune(url: str) -> int:
    return prune_events(PostgresTables(url, *POSTGRES_EVENT_TABLES), AT + timedelta(days=1))


def test_what_begins_again_while_it_is_to_be_removed_stays(url: str, server: psycopg.Connection[Any]) -> None:
    ended_turns(url, "turn", "another", "the latest event stays")
    with ThreadPoolExecutor(1) as pool, server.transaction():
        server.execute("UPDATE toolcrib_activities SET status = 'running', ended_at = NULL WHERE id = 'turn'")
        pruned = pool.submit(prune, url)
        waiting(url, REMOVES)

    log = postgres_events(url)
    assert (pruned.result(), [turn.id for turn in log.activities()]) == (2, ["turn"])
    assert ids(log.since(0))[:2] == ["turn", "turn"]


def test_what_is_removed_waits_for_a_batch_that_waits_for_nothing_of_it(
    url: str, server: psycopg.Connection[Any]
) -> None:
    ended_turns(url, "b", "a")
    with ThreadPoolExecutor(1) as pool, server.transaction():  # a batch changes its calls in the order of their ids
        server.execute("SET LOCAL deadlock_timeout = '1min'")
        server.execute("SELECT 1 FROM toolcrib_activities WHERE id = 'a' FOR UPDATE")
        pruned = pool.submit(prune, url)
        waiting(url, REMOVES)
        server.execute("SELECT 1 FROM toolcrib_activities WHERE id = 'b' FOR UPDATE")

    assert pruned.result() == 2


# --- what an administrator set for the database, and this process did not


def set_for_all(server: psycopg.Connection[Any], setting: str) -> None:
    """Change a setting of the database for the connections that are opened from now on."""
    server.execute(f'ALTER DATABASE "{server.info.dbname}" SET {setting}'.encode())


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_batch_is_written_whatever_isolation_transactions_have_by_default(
    url: str, server: psycopg.Connection[Any], level: str
) -> None:
    write(url, event("call"))
    set_for_all(server, f"default_transaction_isolation = '{level}'")

    with PostgresSink(url) as sink, server.transaction():
        server.execute("UPDATE toolcrib_activities SET words = ''")
        sink.emit(event("call", "started"))
        waiting(url, CHANGES)

    assert ids(postgres_events(url).since(0)) == ["call", "call"]


@pytest.mark.parametrize("setting", ["lock_timeout = '20ms'", "statement_timeout = '2s'"])
def test_a_batch_waits_where_the_server_limits_how_long_a_statement_takes(
    url: str, server: psycopg.Connection[Any], setting: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(url, event("call"))
    set_for_all(server, setting)
    server.execute("SET statement_timeout = 0")

    with PostgresSink(url) as sink, server.transaction():
        server.execute("SELECT 1 FROM toolcrib_activities FOR UPDATE")
        sink.emit(event("call", "started"))
        while not caplog.records:
            time.sleep(0.02)

    assert "events cannot be written now" in caplog.text
    assert ids(postgres_events(url).since(0)) == ["call", "call"]


def test_a_log_that_may_only_be_read_is_read(url: str, server: psycopg.Connection[Any]) -> None:
    ended = subprocess.run([sys.executable, "-c", _PROCESS], capture_output=True, text=True, check=True).stdout.strip()
    write(url, event("call"))
    server.execute("UPDATE toolcrib_activities SET process = %s", [ended])
    set_for_all(server, "default_transaction_read_only = on")

    log = postgres_events(url)

    assert [(call.id, call.status) for call in log.activities()] == [("call", "running")]

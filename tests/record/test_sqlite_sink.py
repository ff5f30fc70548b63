"""Events in a SQLite file: nothing is lost at a normal end, several processes write, and what is read back is right."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from toolcrib.approvals import MemoryApprovalStore, SqliteApprovalStore
from toolcrib.calls import ActivityEvent, CallEvent, Suspended, ToolCall, now
from toolcrib.database import StoreTables, make_file
from toolcrib.database._sqlite import sqlite3
from toolcrib.errors import DatabaseError
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import ActivityFilter, BatchSink, EventLog, SqliteSink, sqlite_events
from toolcrib.record._event_tables import EVENT_TABLES
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset

AT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def event(call_id: str, kind: Any = "received", **data: Any) -> CallEvent:
    return CallEvent(kind, call_id, "add", "run_1", "test", AT, data)


def ended(call_id: str, outcome: str = "completed") -> CallEvent:
    return event(call_id, "ended", outcome={"kind": outcome})


def run_event(kind: Any, activity_id: str = "p1", run: Any = "program", **data: Any) -> ActivityEvent:
    return ActivityEvent(kind, run, activity_id, None, "program", AT, data)


def toolset() -> Toolset:
    @tool()
    async def add(a: int, b: int) -> int:
        return a + b

    @tool(requires_approval=True)
    async def refund(cents: int) -> str:
        return f"refunded {cents}"

    return Toolset([add, refund])


async def test_the_events_of_a_call_are_read_back_in_order(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "events.db") as sink:
        scope = Run(sinks=(sink,), principal="bob")
        await Pipeline(toolset()).run(ToolCall("add", {"a": 1, "b": 2}, "c1"), scope)

        kept = sink.log().since(0)

    assert [event.kind for event in kept] == ["received", "started", "ended"]
    assert [event.position for event in kept] == [1, 2, 3]
    assert kept[-1].data["record"]["outcome"]["value"] == 3


async def test_an_activity_says_how_a_call_stands(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "events.db") as sink:
        scope = Run(sinks=(sink,), principal="bob")
        pipeline = Pipeline(toolset())
        await pipeline.run(ToolCall("add", {"a": 1, "b": 2}, "c1"), scope)
        await pipeline.run(ToolCall("refund", {"cents": 5}, "c2"), scope)

        waiting, done = sink.log().activities()

    assert (done.source, done.id, done.name, done.status, done.principal) == ("call", "c1", "add", "completed", "bob")
    assert (done.first_position, done.last_position) == (1, 3)
    assert done.ended_at is not None
    assert (waiting.id, waiting.status, waiting.ended_at, waiting.principal) == ("c2", "suspended", None, "bob")


async def test_a_call_that_is_resumed_is_the_same_activity(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "events.db") as sink:
        scope = Run(sinks=(sink,), approvals=MemoryApprovalStore())
        pipeline = Pipeline(toolset())
        outcome = await pipeline.run(ToolCall("refund", {"cents": 5}, "c1"), scope)
        assert isinstance(outcome, Suspended)
        await pipeline.run(outcome, scope, grant=outcome.request.grant("ann"))

        found = sink.log().activities()

    assert [(one.id, one.status) for one in found] == [("c1", "completed")]


def test_runs_are_kept_beside_calls(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "events.db") as sink:
        sink.emit_activity(run_event("opened", source="print(1)"))
        sink.emit_activity(run_event("changed", line=3))
        log = sink.log()
        running = log.activity("program", "p1")
        sink.emit_activity(run_event("closed", outcome="completed", duration_ms=5.0))
        over = sink.log().activity("program", "p1")

    assert running is not None
    assert running.status == "running"
    assert over is not None
    assert (over.status, over.duration_ms) == ("completed", 5.0)
    opened = log.latest(over, "opened")
    assert opened is not None
    assert opened.data["data"]["source"] == "print(1)"


def test_a_run_that_pauses_is_not_over(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "events.db") as sink:
        sink.emit_activity(run_event("opened"))
        sink.emit_activity(run_event("closed", outcome="paused"))
        paused = sink.log().activity("program", "p1")
        sink.emit_activity(run_event("opened"))
        again = sink.log().activity("program", "p1")

    assert paused is not None
    assert (paused.status, paused.ended_at) == ("suspended", None)
    assert again is not None
    assert again.status == "running"


def test_events_are_found_by_every_filter(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "events.db") as sink:
        sink.emit(event("c1", arguments={"note": "a 100% Smörgåsbord"}))
        sink.emit(event("c2", arguments={"note": "1000"}))
        sink.emit(ended("c2", "failed"))
        sink.emit_activity(run_event("opened"))
        log = sink.log()

    def found(**wanted: Any) -> list[str]:
        return [one.id for one in log.activities(ActivityFilter(**wanted))]

    assert found() == ["p1", "c2", "c1"]
    assert found(text="100%") == ["c1"]
    assert found(text="SMÖRGÅSBORD add") == ["c1"]
    assert found(statuses=("failed",)) == ["c2"]
    assert found(sources=("program",)) == ["p1"]
    assert found(name="add", run_id="run_1") == ["c2", "c1"]
    assert found(name="ad") == []
    assert log.counts() == {("call", "running"): 1, ("call", "failed"): 1, ("program", "running"): 1}
    assert log.names() == ["add", "program"]


def test_pages_follow_each_other(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "events.db") as sink:
        for number in range(7):
            sink.emit(event(f"c{number}"))
        log = sink.log()

    first = log.activities(limit=3)
    second = log.activities(before=first[-1].first_position, limit=3)

    assert [one.id for one in (*first, *second)] == ["c6", "c5", "c4", "c3", "c2", "c1"]
    assert [one.position for one in log.since(2, limit=2)] == [3, 4]
    assert [one.id for one in log.changed(5)] == ["c5", "c6"]
    assert log.last() == 7


def test_one_call_id_in_two_runs_is_two_calls(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "events.db") as sink:
        sink.emit(event("call_1"))
        sink.emit(CallEvent("received", "call_1", "add", "run_2", "test", AT))
        log = sink.log()

    assert sorted(one.run_id for one in log.activities()) == ["run_1", "run_2"]
    one = log.activity("call", "call_1", "run_2")
    assert one is not None
    assert [event.position for event in log.events(one)] == [2]


def test_text_that_no_database_takes_is_kept_escaped(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "events.db") as sink:
        sink.emit(event("c\ud800\x00", arguments={"half": "\ud800", "object": object(), "nan": float("nan")}))
        (kept,) = sink.log().since(0)

    assert kept.id == "c\\ud800\\x00"
    assert kept.data["data"]["arguments"]["half"] == "\ud800"


def test_threads_may_tell_at_once(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "events.db") as sink:
        threads = [
            threading.Thread(target=lambda n=n: [sink.emit(event(f"{n}.{i}")) for i in range(200)]) for n in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kept = sink.log().since(0, 10_000)

    assert [one.position for one in kept] == list(range(1, 801))
    for n in range(4):
        assert [one.id for one in kept if one.id.startswith(f"{n}.")] == [f"{n}.{i}" for i in range(200)]


_PROGRAM = """
import sys, os, signal
from datetime import datetime, UTC
from toolcrib.calls import CallEvent
from toolcrib.record import SqliteSink
sink = SqliteSink(sys.argv[1])
for number in range(int(sys.argv[3])):
    sink.emit(CallEvent("received", f"{sys.argv[2]}.{number}", "add", "run", "test", datetime.now(UTC)))
if sys.argv[4] == "kill":
    sink.flush()
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[4] == "fork":
    child = os.fork()
    sink.emit(CallEvent("received", "child" if child == 0 else "parent", "add", "run", "test", datetime.now(UTC)))
    if child:
        os.waitpid(child, 0)
    else:
        sink.close()
        os._exit(0)
"""


def _writing(path: Path, name: str, number: int, end: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", _PROGRAM, str(path), name, str(number), end])


_FULL_DISK = """
import logging, resource, sys, threading
from datetime import datetime, UTC
from toolcrib.calls import CallEvent
from toolcrib.record import SqliteSink

class Heard(logging.Handler):
    waits = threading.Event()
    def emit(self, record):
        if "they wait" in record.getMessage():
            self.waits.set()

logging.getLogger("toolcrib").addHandler(Heard())
sink = SqliteSink(sys.argv[1])
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
for number in range(50):
    sink.emit(CallEvent("received", str(number), "add", "run", "test", datetime.now(UTC), {"text": "x" * 20_000}))
assert Heard.waits.wait(60)
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
sink.close()
"""


@pytest.mark.processes
def test_events_wait_for_room_on_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "events.db"

    subprocess.run([sys.executable, "-W", "ignore", "-c", _FULL_DISK, str(path)], check=True)

    assert [one.id for one in sqlite_events(path).since(0, 100)] == [str(number) for number in range(50)]


@pytest.mark.processes
def test_several_processes_write_and_lose_nothing_at_their_end(tmp_path: Path) -> None:
    path = tmp_path / "events.db"

    several = [_writing(path, name, 500, "end") for name in ("a", "b")]

    assert [process.wait(60) for process in several] == [0, 0]
    kept = sqlite_events(path).since(0, 10_000)
    assert [one.position for one in kept] == list(range(1, 1001))
    assert {one.id for one in kept} == {f"{name}.{n}" for name in ("a", "b") for n in range(500)}


@pytest.mark.processes
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_was_flushed_outlives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "events.db"

    assert _writing(path, "a", 50, "kill").wait(60) == -9

    assert sqlite_events(path).last() == 50


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_takes_no_events_along_and_writes_its_own(tmp_path: Path) -> None:
    path = tmp_path / "events.db"

    assert _writing(path, "a", 1, "fork").wait(60) == 0

    assert sorted(one.id for one in sqlite_events(path).since(0)) == ["a.0", "child", "parent"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such permissions")
def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "events.db"

    SqliteSink(path).close()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_approvals_and_events_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "toolcrib.db"
    with SqliteSink(path) as sink:
        store = SqliteApprovalStore(path)
        scope = Run(sinks=(sink,), approvals=store)

        await Pipeline(toolset()).run(ToolCall("refund", {"cents": 5}, "c1"), scope)

        (entry,) = await store.list(pending=True)
        (activity,) = sink.log().activities()
    assert (activity.id, activity.status) == (entry.request.call_id, "suspended")


@pytest.mark.parametrize("path", ["", ":memory:"])
def test_a_place_that_is_no_file_is_refused(path: str) -> None:
    with pytest.raises(DatabaseError, match="Name one"):
        SqliteSink(path)


def test_a_closed_sink_says_so(tmp_path: Path) -> None:
    sink = SqliteSink(tmp_path / "events.db")
    sink.emit(event("c1"))
    sink.close()
    sink.close()

    with pytest.raises(ValueError, match="this SqliteSink is closed"):
        sink.emit(event("c2"))
    assert sqlite_events(sink.path).last() == 1


def test_a_batch_that_cannot_be_written_is_logged_and_the_next_is_written(caplog: pytest.LogCaptureFixture) -> None:
    written: list[str] = []

    def write(events: Any) -> None:
        if not written:
            written.append("")
            raise OSError("disk full")
        written.extend(one.call_id for one in events)

    with BatchSink(write) as sink:
        sink.emit(event("c1"))
        sink.flush()
        sink.emit(event("c2"))

    assert written == ["", "c2"]
    assert "BatchSink lost 1 event" in caplog.text


class _Place:
    """A place that is away until it is let back."""

    def __init__(self) -> None:
        self.is_away, self.tries, self.written = True, threading.Event(), list[str]()

    def write(self, events: Any) -> None:
        if self.is_away:
            self.tries.set()
            raise ConnectionError("gone")
        self.written.extend(one.call_id for one in events)


def test_the_lag_is_how_long_the_oldest_event_that_is_not_written_has_waited() -> None:
    place = _Place()
    with BatchSink(place.write) as sink:
        before = sink.lag
        sink.emit(replace(event("c1"), at=now() - timedelta(seconds=100)))
        place.tries.wait()
        sink.emit(replace(event("c2"), at=now()))
        waits = sink.lag
        place.is_away = False
        sink.flush()
        after = sink.lag

    assert (before, after) == (0, 0)
    assert waits >= 100


async def test_events_wait_for_a_place_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    place = _Place()
    with BatchSink(place.write) as sink:
        sink.emit(event("c1"))
        written = asyncio.create_task(sink.written())
        await asyncio.to_thread(place.tries.wait)
        sink.emit(event("c2"))
        await asyncio.sleep(0.3)
        waited = not written.done()
        place.is_away = False
        await written
        sink.flush()

    assert waited
    assert place.written == ["c1", "c2"]
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "events cannot be written now (gone): they wait",
        "events are written again; 0 came meanwhile that there was no room for",
    ]


async def test_a_sink_that_is_closed_does_not_wait_for_a_place_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    place = _Place()
    sink = BatchSink(place.write)
    sink.emit(event("c1"))
    written = asyncio.create_task(sink.written())
    await asyncio.to_thread(place.tries.wait)
    sink.emit(event("c2"))

    await asyncio.to_thread(sink.close)
    await written

    assert "BatchSink lost 2 events" in caplog.text


def test_no_more_events_wait_than_there_is_room_for(caplog: pytest.LogCaptureFixture) -> None:
    place, one = _Place(), event("c1")
    with BatchSink(place.write) as sink:
        sink.emit(one)
        place.tries.wait()
        for _ in range(100_003):
            sink.emit(one)
        place.is_away = False

    assert len(place.written) == 100_001
    assert "3 came meanwhile that there was no room for" in caplog.text


def test_a_place_that_cannot_be_opened_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def opened() -> Any:
        raise OSError("no such place")

    with BatchSink(lambda events: None, opened) as sink:
        sink.emit(event("c1"))
        sink.flush()

    assert "BatchSink lost 1 event" in caplog.text


async def test_an_event_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    writing, let_go = threading.Event(), threading.Event()

    def write(events: Any) -> None:
        writing.set()
        let_go.wait(60)

    with BatchSink(write) as sink:
        sink.emit(event("c1"))
        assert await asyncio.to_thread(writing.wait, 60)
        for number in range(100):
            sink.emit(event(f"d{number}"))  # nobody writes meanwhile
        let_go.set()


def test_a_log_reads_what_a_file_without_events_holds(tmp_path: Path) -> None:
    log: EventLog = sqlite_events(tmp_path / "new.db")

    assert (log.last(), log.since(0), log.activities(), log.counts()) == (0, [], [], {})
    assert json.dumps(log.names()) == "[]"


def test_a_file_of_an_older_version_is_read_and_added_to(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    make_file(path, StoreTables("events", EVENT_TABLES.steps[:1]))
    with closing(sqlite3.connect(path)) as connection, connection:
        old = ("turn", "", "t1", "", "", "completed", 1, 1, AT.isoformat(), "")
        names = "source, run_id, id, name, entry, status, first_position, last_position, started_at, words"
        connection.execute(f"INSERT INTO toolcrib_activities ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", old)

    with SqliteSink(path) as sink:
        sink.emit_activity(run_event("opened", run_id="run_1", entry="session"))
        found = sink.log().activities()

    assert {one.id: (one.inner_run, one.entry) for one in found} == {"t1": ("", ""), "p1": ("run_1", "session")}

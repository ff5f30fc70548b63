"""`toolcrib watch`: what runs in a database, from a shell's point of view."""

from __future__ import annotations

import io
import signal
import sqlite3
import subprocess
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.cli.conftest import Command
from tests.cli.terminal import RUN, terminal
from toolcrib.calls import ActivityEvent, CallEvent
from toolcrib.cli._live_view import activity_summary, activity_table, show_activities
from toolcrib.record import SqliteSink

USAGE = {"requests": 1, "input_tokens": 700, "output_tokens": 300, "cached_tokens": 0, "cost": "0.0125"}


def activity(kind: Any, of: Any, id: str, name: str, parent: str | None = None, **data: Any) -> ActivityEvent:
    return ActivityEvent(kind, of, id, parent, name, datetime.now(UTC), data)


def call(kind: Any, id: str, tool: str, parent: str | None = None, **data: Any) -> CallEvent:
    return CallEvent(kind, id, tool, "run_1", "session", datetime.now(UTC), data, parent_id=parent)


def begun(path: Path) -> SqliteSink:
    """Record a session that loads rows, and a call that waits; return the sink."""
    sink = SqliteSink(path)
    sink.emit_activity(activity("opened", "agent", "agent_1", "loader"))
    sink.emit_activity(activity("opened", "chat", "chat_1", "large-1", "agent_1"))
    sink.emit_activity(activity("closed", "chat", "chat_1", "large-1", "agent_1", outcome="completed", usage=USAGE))
    sink.emit(call("started", "call_1", "load", "agent_1", arguments={}))
    sink.emit(call("progressed", "call_1", "load", "agent_1", progress=250, total=1000, message="reading"))
    sink.emit(call("suspended", "call_2", "refund", None, request={"id": "req_1"}))
    sink.flush()
    return sink


def test_what_runs_and_waits_is_shown_once(toolcrib: Command, tmp_path: Path) -> None:
    with begun(tmp_path / "a.db"):
        shown = toolcrib("watch", str(tmp_path / "a.db"), "--once").stdout

    _, agent, load, refund = [" ".join(line.split()) for line in shown.splitlines()]
    assert agent.startswith("agent loader running")
    assert agent.endswith("1,000 tokens, $0.0125 agent_1")
    assert load.startswith("call load running")
    assert load.endswith("250 of 1000: reading call_1")
    assert refund.startswith("call refund suspended")
    assert refund.endswith("waits for a person call_2")


def test_a_terminal_sees_it_change_until_ctrl_c(tmp_path: Path) -> None:
    with begun(tmp_path / "a.db") as sink, terminal("watch", str(tmp_path / "a.db")) as screen:
        screen.wait_for("250 of 1000: reading")
        sink.emit(call("progressed", "call_1", "load", "agent_1", progress=500, total=1000, message="writing"))
        screen.wait_for("500 of 1000: writing")
        screen.interrupt()

        assert screen.end() == 0


def test_a_row_is_one_line_of_a_terminal_that_is_too_narrow_for_it(tmp_path: Path) -> None:
    with begun(tmp_path / "a.db") as sink:
        sink.emit(call("started", "call_" + 40 * "3", "load_all_the_rows_of_every_table", "agent_1", arguments={}))
        sink.flush()
        with terminal("watch", str(tmp_path / "a.db"), "--once", columns=80) as screen:
            assert screen.end() == 0

    lines = screen.text.splitlines()
    assert len(lines) == 5
    assert max(map(len, lines)) <= 80
    assert lines[1].rstrip().endswith("agent_1")
    assert "call load" in lines[3]
    assert lines[3].rstrip().endswith(" call_33333333333333333")


def test_a_narrow_terminal_has_more_lines_instead_of_more_columns(tmp_path: Path) -> None:
    with begun(tmp_path / "a.db"), terminal("watch", str(tmp_path / "a.db"), "--once", columns=40) as screen:
        assert screen.end() == 0

    lines = [line.rstrip() for line in screen.text.splitlines() if "━" not in line]
    assert max(map(len, lines)) <= 40
    shown = ("  1,000 tokens, $0.", "    250 of 1000: r", "  waits for a")
    assert all(line.startswith(text) for line, text in zip(lines[2::2], shown, strict=True))


def test_the_cost_is_left_out_where_that_of_a_request_is_not_known(toolcrib: Command, tmp_path: Path) -> None:
    with begun(tmp_path / "a.db") as sink:
        unknown = {**USAGE, "cost": None}
        sink.emit_activity(activity("opened", "chat", "chat_2", "large-1", "agent_1"))
        sink.emit_activity(
            activity("closed", "chat", "chat_2", "large-1", "agent_1", outcome="completed", usage=unknown)
        )
        sink.flush()
        shown = toolcrib("watch", str(tmp_path / "a.db"), "--once").stdout

    assert "2,000 tokens " in shown
    assert "$" not in shown


def test_a_pipe_gets_a_line_for_each_change(tmp_path: Path) -> None:
    with begun(tmp_path / "a.db") as sink:
        args = [*RUN, "watch", str(tmp_path / "a.db")]
        with subprocess.Popen(args, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            first = [process.stdout.readline() for _ in range(3)]
            sink.emit_activity(activity("closed", "agent", "agent_1", "loader", outcome="completed", usage=USAGE))
            changed = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait() == 0

    assert first[0].startswith("agent loader  running")
    assert changed.startswith("agent loader  completed")


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_progress_with_a_total_is_a_bar(tmp_path: Path, width: int) -> None:
    screen = Console(file=io.StringIO(), width=width, color_system=None)
    with begun(tmp_path / "a.db") as sink, screen.capture() as shown:
        screen.print(activity_table(sink.log(), width))

    lines = shown.get().splitlines()
    assert [line.count("━") for line in lines if "━" in line] == [2]  # of 8
    assert max(map(len, lines)) <= width


def test_a_summary_counts_calls_that_failed_or_wait_and_sums_the_cost(tmp_path: Path) -> None:
    with begun(tmp_path / "a.db") as sink:
        summary = activity_summary(sink.log(), 3.25)

    assert summary == "2 calls, 1 waiting for a person, 3.2 s, 1,000 tokens, $0.0125"


def test_a_line_is_written_when_what_runs_turns_quiet(tmp_path: Path) -> None:
    class Passing(threading.Event):
        """A wait in which two minutes pass, and no event comes; at the second one the view ends."""

        def wait(self, timeout: float | None = None) -> bool:
            ends = self.is_set()
            with closing(sqlite3.connect(path)) as database, database:
                ago = (datetime.now(UTC) - timedelta(minutes=2)).isoformat()
                database.execute("UPDATE toolcrib_events SET at = ?", (ago,))
            self.set()
            return ends

    path, out = tmp_path / "a.db", io.StringIO()
    with begun(path) as sink:
        show_activities(sink.log(), Console(file=out, width=200), Passing())

    lines = [line.split("  ")[:2] for line in out.getvalue().splitlines()]
    assert [line for line in lines if line[1] == "quiet"] == [["agent loader", "quiet"], ["call load", "quiet"]]
    assert len(lines) == 5


def test_a_database_that_is_not_there_is_said(toolcrib: Command) -> None:
    assert "there is no such file" in toolcrib("watch", "no.db").stderr

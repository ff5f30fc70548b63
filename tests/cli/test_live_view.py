"""The live view of a program's own agents and sessions, and of a worker."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.file_proxy import FileProxy

from tests.cli.conftest import Command
from tests.cli.terminal import terminal
from toolcrib.calls import CallEvent
from toolcrib.cli import LiveView
from toolcrib.cli._formatting import say
from toolcrib.rounds import Session
from toolcrib.testing import ScriptedModel

TOOLS = """
import asyncio
from pathlib import Path

from toolcrib import Toolset, tool


@tool
async def load(rows: int):
    for row in range(rows):
        yield f"row {row}"
        while not Path("go").exists():
            await asyncio.sleep(0.05)


tools = Toolset([load])
"""
MAIN = """
import asyncio

from toolcrib import Agent, Channel, Run, Session, ToolCall, Turn
from toolcrib.cli import LiveView
from toolcrib.testing import ScriptedModel

from work import load


async def main() -> None:
    view = LiveView()
    agent = Agent("loader", "Loads rows", [load], sinks=[view])
    await agent.put(Turn(load, kwargs={"rows": 2}))
    async for _, value in agent.run():
        print(f"got {value}")
    model = ScriptedModel(ToolCall("load", {"rows": 1}), "Done.")
    await Session(model, tools=[load], run=Run(channel=Channel(agent="desk"), sinks=(view,))).say("Load.").run()


asyncio.run(main())
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    """The path of a program with an agent and a session, whose tool waits for the file `go`."""
    (tmp_path / "work.py").write_text(TOOLS)
    (tmp_path / "main.py").write_text(MAIN)
    return str(tmp_path / "main.py")


def started(id: str) -> CallEvent:
    return CallEvent("started", id, "load", "run_1", "session", datetime.now(UTC), {"arguments": {}})


def test_a_terminal_shows_an_agent_and_a_session_in_one_line_of_code(program: str, tmp_path: Path) -> None:
    with terminal(program, command=[sys.executable]) as screen:
        screen.wait_for("agent loader  running")
        screen.wait_for("row 0")
        (tmp_path / "go").touch()
        screen.wait_for("agent desk")

        assert screen.end() == 0

    assert "got row 1\n" in screen.text.replace("\r", "")
    last = screen.text[screen.text.rindex("what") :]
    assert [" ".join(line.split()[:3]) for line in last.splitlines() if line.startswith("agent")] == [
        "agent desk completed",
        "agent loader completed",
    ]
    assert last.splitlines()[-1].startswith("2 calls, ")


def test_what_the_program_prints_goes_where_its_stdout_goes(program: str, tmp_path: Path) -> None:
    (tmp_path / "go").touch()

    with (tmp_path / "out").open("wb") as out, terminal(program, command=[sys.executable], stdout=out) as screen:
        assert screen.end() == 0

    assert (tmp_path / "out").read_text() == "got row 0\ngot row 1\n"
    assert "got row" not in screen.text
    assert "agent loader" in screen.text


def test_what_a_command_says_stands_above_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = StringIO()
    monkeypatch.setattr("sys.stderr", FileProxy(Console(file=shown), sys.stderr))

    say("worker a stops")

    assert shown.getvalue() == "worker a stops\n"


def test_a_view_that_is_given_a_session_says_where_it_goes() -> None:
    with pytest.raises(TypeError, match=r"got Session.*run=Run\(sinks=\[LiveView\(\)\]\)"):
        LiveView(Session(ScriptedModel()))  # pyright: ignore[reportArgumentType] -- what is tested


def test_without_a_terminal_each_change_is_a_line_on_stderr(program: str, tmp_path: Path) -> None:
    (tmp_path / "go").touch()

    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)

    assert done.stdout == "got row 0\ngot row 1\n"
    said = [line.split("  ")[:2] for line in done.stderr.splitlines()]
    assert ["agent loader", "completed"] in said
    assert ["call load", "completed"] in said
    assert ["agent desk", "completed"] in said
    assert done.stderr.splitlines()[-1].startswith("2 calls, ")


def test_the_terminal_belongs_to_other_code_while_the_view_is_paused(capsys: pytest.CaptureFixture[str]) -> None:
    with LiveView() as view:
        view.emit(started("call_1"))
        with view.paused():
            before = capsys.readouterr().err
            view.emit(started("call_2"))
            paused = capsys.readouterr().err
        view.emit(started("call_3"))

    assert "call_1" in before
    assert paused == ""
    assert "call_3" in capsys.readouterr().err


def test_nothing_is_kept_when_the_view_is_closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with LiveView() as view:
        view.emit(started("call_1"))
        kept = [path.name for path in tmp_path.rglob("live.db")]
    view.close()
    view.emit(started("call_2"))

    assert kept == ["live.db"]
    assert list(tmp_path.iterdir()) == []


def test_a_worker_shows_what_it_runs(
    toolcrib: Command, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_DATABASE", str(tmp_path / "work.db"))
    target = str(Path(program).with_name("work.py"))
    queued: Any = toolcrib("enqueue", target, "load", '{"rows": 2}')
    assert queued.exit_code == 0, queued.stderr

    with terminal("worker", target, "--live") as screen:
        screen.wait_for("call load")
        screen.wait_for("row 0")
        (tmp_path / "go").touch()
        screen.wait_for("completed")
        screen.interrupt()

        assert screen.end() == 0

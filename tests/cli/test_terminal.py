"""The command as a person meets it: a process, a terminal, Ctrl-C."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli.terminal import RUN, terminal
from toolcrib._run_sync import run_sync
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import ApprovalRequest
from toolcrib.cli._terminal import escape_control

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
BUY = ["buy", '{"item": "tea", "price": 3}']


def test_yes(tools: str) -> None:
    with terminal("call", tools, *BUY) as screen:
        screen.wait_for("approve? [y]es, [n]o, [e]dit the arguments, [a]lways for this tool, [w]ithin bounds")
        assert 'buy needs approval\n  item = "tea"\n  price = 3.0\n' in screen.text

        screen.type("y")

        assert screen.end() == 0
        assert '"item": "tea"' in screen.text


def test_no_with_a_message(tools: str) -> None:
    with terminal("call", tools, *BUY) as screen:
        screen.wait_for("approve?")
        screen.type("n")
        screen.wait_for("message for the model")

        screen.type("not on a Sunday")

        assert screen.end() == 1
        assert screen.text.endswith("\nnot on a Sunday\n")


def test_edit_until_it_fits(tools: str) -> None:
    with terminal("call", tools, *BUY) as screen:
        screen.wait_for("approve?")
        screen.type("e")
        screen.wait_for("all arguments as JSON")
        screen.type('{"item": 7}')
        screen.wait_for("`buy` cannot take these arguments: item: ")

        screen.type('{"item": "milk"}')

        assert screen.end() == 0
        assert '"item": "milk"' in screen.text


def test_the_end_of_input_is_a_no(tools: str) -> None:
    with terminal("call", tools, *BUY) as screen:
        screen.wait_for("approve?")

        screen.type("\x04")

        assert screen.end() == 1
        assert "`buy` needs approval, and nobody answered" in screen.text


@pytest.mark.parametrize(
    ("typed", "status", "state"), [("y", 0, "answered"), ("n", 1, "pending"), ("\x04", 1, "pending")]
)
def test_a_stored_request_is_shown_and_its_answer_confirmed(
    tmp_path: Path, typed: str, status: int, state: str
) -> None:
    store = SqliteApprovalStore(tmp_path / "toolcrib.db")
    request = ApprovalRequest("ask_1a", "call_1", "buy", {"item": "tea"}, "d" * 64)
    run_sync(store.put(request))

    with terminal("approvals", "approve", "1a", "--arguments", '{"item": "milk"}', "--by", "ann") as screen:
        screen.wait_for("send this answer? [y]es, [n]o: ")
        shown = screen.text
        screen.type(typed)
        ended = screen.end()

    assert shown.startswith('buy needs approval\n  item = "tea"\n')
    assert re.search(r'^arguments +item="milk"$', shown, re.MULTILINE)
    assert (ended, run_sync(store.show("ask_1a")).state) == (status, state)


SLOW = """
import time


@ez_tool
def slow() -> None:
    print("approve? I am awake")
    time.sleep(60)


@tool
async def waiting() -> None:
    print("approve? I am waiting")
    await forever()
"""


@pytest.mark.parametrize("args", [BUY, ["waiting"], ["slow"]])
def test_ctrl_c_ends_it_with_130(tools: str, args: list[str]) -> None:
    with Path(tools).open("a", encoding="utf-8") as file:
        file.write(SLOW)

    with terminal("call", tools, *args) as screen:
        screen.wait_for("approve?")
        screen.interrupt()

        assert screen.end() == 130
        assert "interrupted" in screen.text
        assert "Traceback" not in screen.text


def test_a_pipe_is_no_terminal(tools: str) -> None:
    made = subprocess.run([*RUN, "call", tools, *BUY], input="y\n", capture_output=True, text=True, check=False)

    assert (made.returncode, made.stdout) == (1, "")
    assert made.stderr.startswith("`buy` needs approval, and there is no terminal to ask on")


def test_the_script_is_installed(tools: str) -> None:
    script = Path(sys.executable).with_name("toolcrib")

    made = subprocess.run([script, "call", tools, "add", '{"a": 1}'], capture_output=True, text=True, check=False)

    assert (made.returncode, made.stdout, made.stderr) == (0, "2\n", "")


def test_the_package_is_run_as_a_module(tools: str) -> None:
    command = [sys.executable, "-m", "toolcrib", "call", tools, "add", '{"a": 1}']

    made = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (made.returncode, made.stdout, made.stderr) == (0, "2\n", "")


def test_without_the_extra_there_is_one_line() -> None:
    code = "import sys; sys.modules['typer'] = None; from toolcrib.cli import main; main()"

    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert made.returncode == 2
    assert made.stderr == (
        "the command line needs an optional dependency. Install it with: pip install 'toolcrib[cli]'\n"
    )


def test_without_the_extra_the_version_is_said_all_the_same() -> None:
    code = "import sys; sys.modules['typer'] = None; from toolcrib.cli import main; main()"

    made = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=False)

    assert (made.returncode, made.stdout, made.stderr) == (0, f"toolcrib {version('toolcrib')}\n", "")


def test_nothing_shown_can_move_the_cursor() -> None:
    assert escape_control("a\x1b[2Jb\u202ec\x9bd\te\n") == "a\\x1b[2Jb\\u202ec\\x9bd\te\n"

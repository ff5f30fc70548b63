"""`exec --pause` and `resume`: a program that waits for a person from one process to the next."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.terminal import RUN, terminal

PROGRAM = """
total = add(2, 3)
print("total", total)
try:
    answer = buy("a pen", price=total)
except PermissionError as error:
    answer = str(error)
print("answer", answer)
"""


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("TOOLCRIB_KEY", raising=False)
    Path("program.py").write_text(PROGRAM, "utf-8")


def test_a_program_is_kept_where_it_waits(toolcrib: Command, tools: str) -> None:
    result = toolcrib("exec", tools, "program.py", "--pause", "trip.paused")

    assert (result.exit_code, result.stdout) == (3, "total 5\n")
    assert 'buy needs approval\n  item = "a pen"\n  price = 5.0' in result.stderr
    assert "Resume it with: toolcrib resume trip.paused" in result.stderr
    assert Path("trip.paused").stat().st_mode & 0o777 == 0o600
    assert (Path("state/toolcrib/key").stat().st_mode & 0o777) == 0o600


def test_it_goes_on_with_a_yes_and_its_file_is_gone(toolcrib: Command, tools: str) -> None:
    toolcrib("exec", tools, "program.py", "--pause", "trip.paused")

    result = toolcrib("resume", "trip.paused", "--approve", "buy")

    assert (result.exit_code, result.stdout) == (0, "bought a pen\nanswer {'item': 'a pen', 'price': 5.0}\n")
    assert not Path("trip.paused").exists()
    assert sorted(path.name for path in Path().iterdir() if path.name.startswith(".")) == []


def test_it_goes_on_with_a_no_and_what_the_person_said(toolcrib: Command, tools: str) -> None:
    toolcrib("exec", tools, "program.py", "--pause", "trip.paused")

    result = toolcrib("resume", "trip.paused", "--deny", "buy", "--message", "too dear")

    assert (result.exit_code, result.stdout) == (0, "answer too dear\n")


def test_without_an_answer_it_waits_on(toolcrib: Command, tools: str) -> None:
    toolcrib("exec", tools, "program.py", "--pause", "trip.paused")

    result = toolcrib("resume", "trip.paused")

    assert (result.exit_code, result.stdout) == (3, "")
    assert toolcrib("resume", "trip.paused", "--yes").exit_code == 0


def test_an_approval_by_name_is_for_the_calls_that_were_shown(toolcrib: Command, tools: str) -> None:
    Path("program.py").write_text("buy('a pen')\nbuy('a car')", "utf-8")
    toolcrib("exec", tools, "program.py", "--pause", "trip.paused")

    first = toolcrib("resume", "trip.paused", "--approve", "buy")
    second = toolcrib("resume", "trip.paused", "--approve", "buy")

    assert (first.exit_code, first.stdout, second.exit_code) == (3, "bought a pen\n", 0)
    assert second.stdout.startswith("bought a car\n")


def test_a_copy_of_its_file_is_out_of_date_once_it_went_on(toolcrib: Command, tools: str) -> None:
    toolcrib("exec", tools, "program.py", "--pause", "trip.paused")
    Path("copy").write_bytes(Path("trip.paused").read_bytes())
    toolcrib("resume", "trip.paused", "--approve", "buy")

    result = toolcrib("resume", "copy", "--approve", "buy")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "the approval for `buy` cannot be used" in result.stderr


def test_a_changed_file_or_another_key_is_refused(toolcrib: Command, tools: str) -> None:
    toolcrib("exec", tools, "program.py", "--pause", "trip.paused")
    changed = Path("trip.paused").read_bytes().replace(b"a pen", b"a car")
    Path("changed").write_bytes(changed)
    Path("key").write_text("another key of the same length", "utf-8")

    for args in (["changed"], ["trip.paused", "--key", "key"]):
        result = toolcrib("resume", *args, "--approve", "buy")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "another key, or it was changed or cut" in result.stderr


def test_a_key_may_be_given(toolcrib: Command, tools: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_KEY", "a key of enough characters")
    toolcrib("exec", tools, "program.py", "--pause", "trip.paused")
    Path("key").write_text("a key of enough characters\n", "utf-8")
    monkeypatch.delenv("TOOLCRIB_KEY")

    result = toolcrib("resume", "trip.paused", "--key", "key", "--yes")

    assert result.exit_code == 0
    assert not Path("state/toolcrib/key").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["resume", "none"], "none cannot be read (No such file or directory)"),
        (["resume", "program.py"], "its first line is missing"),
        (["resume", "program.py", "--key", "none"], "the key in none cannot be read"),
        (["exec", "tools.py", "program.py", "--pause", "no/such/folder"], "cannot be written to no/such/folder"),
        (["exec", "tools.py", "program.py", "--pause", "x", "--yes"], "so that nothing is left"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(toolcrib: Command, tools: str, args: list[str], said: str) -> None:
    result = toolcrib(*args)

    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_json_names_the_file(toolcrib: Command, tools: str) -> None:
    first = toolcrib("exec", tools, "program.py", "--pause", "trip.paused", "--json")
    second = toolcrib("resume", "trip.paused", "--approve", "buy", "--json")

    told, ended = json.loads(first.stdout), json.loads(second.stdout)
    assert (told["paused"], told["suspended"][0]["tool"]) == ("trip.paused", "buy")
    assert (ended["success"], [call["outcome"] for call in ended["tool_calls"]]) == (True, ["completed", "completed"])


def test_another_process_goes_on_with_it_once_and_from_another_folder(tools: str, tmp_path: Path) -> None:
    (tmp_path / "else").mkdir()
    first = subprocess.run([*RUN, "exec", "tools.py", "program.py", "--pause", "trip.paused"], stdin=subprocess.DEVNULL)
    Path("copy").write_bytes(Path("trip.paused").read_bytes())

    second, third = (
        subprocess.run(
            [*RUN, "resume", f"../{name}", "--approve", "buy"],
            cwd=tmp_path / "else",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        for name in ("trip.paused", "copy")
    )

    assert (first.returncode, second.returncode, third.returncode) == (3, 0, 2)
    assert second.stdout == "bought a pen\nanswer {'item': 'a pen', 'price': 5.0}\n"
    assert third.stdout == ""
    assert "this file is out of date" in third.stderr


def test_a_person_at_the_terminal_is_asked(toolcrib: Command, tools: str) -> None:
    toolcrib("exec", tools, "program.py", "--pause", "trip.paused")

    with terminal("resume", "trip.paused") as screen:
        screen.wait_for("price = 5.0")
        screen.wait_for("approve?")
        screen.type("n not today")
        status = screen.end()

    assert status == 0
    assert "answer not today" in screen.text

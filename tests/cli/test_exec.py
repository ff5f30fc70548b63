"""`exec`: output, the table of calls, and each exit status."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.terminal import terminal

LOOP = """
total = 0
for number in range(3):
    total = add(a=total, b=number)
    print("so far", total)
total
"""


def test_output_and_value_go_to_stdout_and_the_calls_to_stderr(toolcrib: Command, tools: str) -> None:
    Path("program.py").write_text(LOOP, "utf-8")

    result = toolcrib("exec", tools, "program.py")

    assert (result.exit_code, result.stdout) == (0, "so far 0\nso far 1\nso far 3\n3\n")
    header, *rows = result.stderr.strip().splitlines()
    assert header.split() == ["tool", "arguments", "outcome", "ms"]
    assert [row.split()[:4] for row in rows] == [
        ["add", "a=0,", "b=0", "0"],
        ["add", "a=0,", "b=1", "1"],
        ["add", "a=1,", "b=2", "3"],
    ]


def test_of_very_many_calls_the_first_and_the_last_are_shown(toolcrib: Command, tools: str) -> None:
    result = toolcrib("exec", tools, "-", stdin="for number in range(1, 71):\n    add(number, 2)")

    _, *rows = [row.split() for row in result.stderr.strip().splitlines()]
    assert [row[1] for row in rows[:50]] == [f"a={number}," for number in range(1, 51)]
    assert rows[50] == ["(10", "more)"]
    assert [row[1] for row in rows[51:]] == [f"a={number}," for number in range(61, 71)]


def test_a_tool_that_is_denied_does_not_run_for_a_program_even_if_it_needs_no_approval(
    toolcrib: Command, tools: str
) -> None:
    result = toolcrib("exec", tools, "-", "--deny", "add", stdin="add(a=1)")

    assert result.exit_code == 1
    assert "`add` was denied with --deny add" in result.stderr


def test_a_program_without_calls_has_no_table(toolcrib: Command, tools: str) -> None:
    result = toolcrib("exec", tools, "-", stdin="print('no line end', end='')\n'value'")

    assert (result.exit_code, result.stdout, result.stderr) == (0, "no line end\nvalue\n", "")


@pytest.mark.parametrize(
    ("program", "args", "status", "said"),
    [
        ("1 + (", [], 1, "SyntaxError (line 1): '(' was never closed"),
        ("x = 1\n\n1 / 0\n", [], 1, "line 3, in <module> 1 / 0 ZeroDivisionError: division by zero"),
        ("import socket", [], 1, "ImportError (line 1): `socket` cannot be imported"),
        ("while True:\n    pass", ["--timeout", "0.2"], 1, "TimeoutError"),
        ("forever()", ["--timeout", "0.2"], 1, "TimeoutError"),
        ("add(a='x')", [], 1, "ValueError: `add` cannot take these arguments: a: must be an integer"),
        ("ad(1)", [], 1, "ad"),
        ("broken('it')", [], 1, "ValueError: cannot read it"),
        ("buy('tea')", [], 1, "PermissionError: `buy` needs approval, and there is no terminal to ask on"),
        ("buy('tea')", ["--yes", "--deny", "buy"], 1, "PermissionError: `buy` was denied with --deny buy"),
        (
            "buy('tea')",
            ["--suspend"],
            3,
            'buy needs approval item = "tea" price = 1.0 the program stopped: `buy` needs approval',
        ),
        ("add(1)", ["--approve", "byu"], 2, "there is no tool `byu`. Did you mean `buy`?"),
    ],
)
def test_what_did_not_work_is_said_on_stderr(
    toolcrib: Command, tools: str, program: str, args: list[str], status: int, said: str
) -> None:
    result = toolcrib("exec", tools, "-", *args, stdin=program)

    assert result.exit_code == status
    assert said in " ".join(result.stderr.split())
    assert "toolcrib/" not in result.stderr


def test_a_denial_can_be_caught(toolcrib: Command, tools: str) -> None:
    program = "try:\n    buy('tea')\nexcept PermissionError:\n    print('without tea')\n"

    result = toolcrib("exec", tools, "-", stdin=program)

    assert (result.exit_code, result.stdout) == (0, "without tea\n")
    assert "no terminal" in result.stderr.split("answered by")[1]


def test_an_approval_is_in_the_table(toolcrib: Command, tools: str) -> None:
    result = toolcrib("exec", tools, "-", "--approve", "buy", stdin="buy('tea')['item']")

    assert result.exit_code == 0
    assert "--approve" in result.stderr


@pytest.mark.parametrize(
    ("file", "data", "said"),
    [
        ("missing.py", None, "cannot read missing.py: No such file or directory\n"),
        (".", None, "cannot read .: Is a directory\n"),
        ("binary.py", b"\xff\xfe", "cannot read binary.py: it is not UTF-8 text\n"),
    ],
)
def test_a_program_that_cannot_be_read_is_bad_usage(
    toolcrib: Command, tools: str, file: str, data: bytes | None, said: str
) -> None:
    if data is not None:
        Path(file).write_bytes(data)

    result = toolcrib("exec", tools, file)

    assert (result.exit_code, result.stdout, result.stderr) == (2, "", said)


def test_json_is_one_document(toolcrib: Command, tools: str) -> None:
    program = "print('hello')\nbuy(item='tea')\nadd(a=1, b=2)\n"

    result = toolcrib("exec", tools, "-", "--json", "--yes", stdin=program)

    document = json.loads(result.stdout)
    calls = [
        (call["name"], call["outcome"], call.get("approval", {}).get("approver")) for call in document["tool_calls"]
    ]
    assert result.exit_code == 0
    assert (document["success"], document["output"], document["return_value"]) == (True, "hello\n", 3)
    assert calls == [("buy", "completed", "--yes"), ("add", "completed", None)]
    assert document["isolation"]


def test_a_pending_request_is_in_the_json(toolcrib: Command, tools: str) -> None:
    program = "login(user='ada', password='hunter2')"

    result = toolcrib("exec", tools, "-", "--json", "--suspend", stdin=program)

    [request] = json.loads(result.stdout)["suspended"]
    assert result.exit_code == 3
    assert (request["tool"], request["arguments"]["user"]) == ("login", "ada")
    assert "hunter2" not in result.output


def test_the_record_has_a_line_for_each_call(toolcrib: Command, tools: str) -> None:
    toolcrib("exec", tools, "-", "--record", "calls.jsonl", stdin=LOOP)

    records = [json.loads(line) for line in Path("calls.jsonl").read_text("utf-8").splitlines()]
    assert [record["outcome"]["value"] for record in records] == [0, 1, 3]


needs_terminal = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")


@needs_terminal
def test_a_person_watches_and_answers(tools: str) -> None:
    Path("program.py").write_text(
        "print('first')\nfor item in ['tea', 'milk']:\n    print(buy(item)['item'])\n", "utf-8"
    )

    with terminal("exec", tools, "program.py") as screen:
        screen.wait_for("approve?")
        assert "first" in screen.text
        screen.type("always")

        assert screen.end() == 0
        assert screen.text.count("approve?") == 0
        assert "milk" in screen.text


@needs_terminal
def test_what_a_program_prints_cannot_move_the_cursor(tools: str) -> None:
    Path("program.py").write_text("print('\\x1b[2Jgone')", "utf-8")

    with terminal("exec", tools, "program.py") as screen:
        assert screen.end() == 0

        assert "\\x1b[2Jgone" in screen.text


@needs_terminal
@pytest.mark.parametrize("program", ["forever()", "print('forever(')\nwhile True:\n    pass\n"])
def test_ctrl_c_ends_a_program_with_130(tools: str, program: str) -> None:
    Path("program.py").write_text(program, "utf-8")

    with terminal("exec", tools, "program.py") as screen:
        screen.wait_for("forever(")
        screen.interrupt()

        assert screen.end() == 130
        assert "interrupted" in screen.text
        assert "Traceback" not in screen.text

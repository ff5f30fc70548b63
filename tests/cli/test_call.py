"""`call`: results, the record, and each exit status without a terminal."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.terminal import RUN


@pytest.mark.parametrize(
    ("args", "stdin", "shown"),
    [
        (["add", '{"a": 1}'], "", "2\n"),
        (["add", "-"], '{"a": 1, "b": 2}', "3\n"),
        (["count", '{"to": 2}'], "", '{"number": 0}\n{"number": 1}\n'),
        (["count", '{"to": 0}'], "", ""),
        (["buy", '{"item": "tea"}', "--yes"], "", 'bought tea\n{"item": "tea", "price": 1.0}\n'),
        (["buy", '{"item": "tea"}', "--approve", "buy"], "", 'bought tea\n{"item": "tea", "price": 1.0}\n'),
        (["buy.back", '{"item": "tea"}', "--approve", "buy.back"], "", "tea is back\n"),
        (["buy__back", '{"item": "tea"}', "--yes", "--deny", "buy"], "", "tea is back\n"),
    ],
)
def test_a_result_goes_to_stdout(toolcrib: Command, tools: str, args: list[str], stdin: str, shown: str) -> None:
    result = toolcrib("call", tools, *args, stdin=stdin)

    assert (result.exit_code, result.stdout, result.stderr) == (0, shown, "")


@pytest.mark.parametrize(
    ("args", "status", "said"),
    [
        (["add", '{"a": "x", "c": 1}'], 2, '`add` cannot take these arguments: a: must be an integer; got "x"; c: '),
        (["add", "{a: 1}"], 2, "`add` cannot take these arguments: not valid JSON"),
        (["add", "[1]"], 2, "`add` cannot take these arguments"),
        (["add"], 2, "`add` cannot take these arguments: a: "),
        (["ad", "{}"], 2, "there is no tool `ad`. Did you mean `add`?"),
        (["add", '{"a": 1}', "--approve", "byu"], 2, "there is no tool `byu`. Did you mean `buy`?"),
        (["broken", '{"text": "it"}'], 1, "`broken` raised ValueError: cannot read it"),
        (["broken", '{"text": ""}'], 1, "`broken` raised ValueError\n"),
        (["odd", "{}"], 1, "its result of type object has no JSON form"),
        (["forever", "--timeout", "0.01"], 1, "`forever` did not finish within 0.01 s and was stopped"),
        (["buy", '{"item": "tea"}'], 1, "there is no terminal to ask on; decide with --approve buy, --deny buy"),
        (["buy", '{"item": "tea"}', "--deny", "buy", "--yes"], 1, "`buy` was denied with --deny buy"),
        (["add", '{"a": 1}', "--deny", "add"], 1, "`add` was denied with --deny add"),
        (["add", '{"a": 1}', "--deny", "add", "--yes"], 1, "`add` was denied with --deny add"),
        (["count", '{"to": 2}', "--deny", "count", "--suspend"], 1, "`count` was denied with --deny count"),
        (["buy", '{"item": "tea"}', "--suspend"], 3, 'buy needs approval item = "tea" price = 1.0 `buy` is suspended'),
    ],
)
def test_what_did_not_work_is_said_on_stderr(
    toolcrib: Command, tools: str, args: list[str], status: int, said: str
) -> None:
    result = toolcrib("call", tools, *args)

    assert result.exit_code == status
    assert said in " ".join(result.stderr.split()) + "\n"
    assert (result.stdout, "Traceback" in result.stderr) == ("", False)


@pytest.mark.parametrize("hooks", ["pre_hooks", "post_hooks"])
@pytest.mark.parametrize("command", ["call", "exec", "resume"])
def test_the_operator_is_shown_what_a_hook_raised(toolcrib: Command, tools: str, command: str, hooks: str) -> None:
    target = Path(tools).with_name("hooked.py")
    hooked = f"""
from toolcrib.toolsets import Toolset

def check(*given):
    raise KeyError("customer 7")

toolset = Toolset([add, buy], {hooks}={{"add": check}})
"""
    target.write_text(Path(tools).read_text("utf-8") + hooked, "utf-8")
    place = f"{target}:toolset"

    if command == "call":
        result = toolcrib("call", place, "add", '{"a": 1}')
    else:
        program = "buy('tea')\nadd(1)" if command == "resume" else "add(1)"
        result = toolcrib("exec", place, "-", "--pause", "p.paused", stdin=program)
        if command == "resume":
            result = toolcrib("resume", "p.paused", "--yes")

    kind = hooks.removesuffix("_hooks")
    assert result.exit_code == 1
    assert f"the {kind} hook `check` of `add` failed: KeyError: 'customer 7'\n" in result.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--approve", "buy", "--deny", "buy"], "`buy` is given to --approve and to --deny"),
        (["--yes", "--suspend"], "nothing is left to suspend"),
        (["--timeout", "0"], "Invalid value for '--timeout'"),
        (["--record", "missing/calls.jsonl"], "cannot write the record to missing/calls.jsonl: No such file"),
    ],
)
def test_options_that_make_no_sense_are_bad_usage(toolcrib: Command, tools: str, args: list[str], said: str) -> None:
    result = toolcrib("call", tools, "buy", '{"item": "tea"}', *args)

    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", "").split())
    assert result.stdout == ""


def test_stdin_that_is_no_text_is_bad_usage(toolcrib: Command, tools: str) -> None:
    result = toolcrib("call", tools, "add", "-", stdin=b"\xff\xfe")

    assert result.exit_code == 2
    assert result.stderr == "cannot read stdin: it is not UTF-8 text\n"


@pytest.mark.parametrize(
    ("args", "status", "expected"),
    [
        (["add", '{"a": 1}'], 0, {"kind": "completed", "value": 2}),
        (["count", '{"to": 2}'], 0, {"kind": "completed", "value": [{"number": 0}, {"number": 1}]}),
        (["buy", '{"item": "tea"}', "--yes"], 0, {"kind": "completed", "value": {"item": "tea", "price": 1.0}}),
        (["add", '{"b": 1}'], 2, {"kind": "failed", "code": "invalid_arguments", "retryable": True}),
        (["broken", '{"text": "it"}'], 1, {"kind": "failed", "code": "tool_error", "error_type": "ValueError"}),
        (["buy", '{"item": "tea"}', "--deny", "buy"], 1, {"kind": "rejected", "source": "user"}),
    ],
)
def test_json_is_one_document(
    toolcrib: Command, tools: str, args: list[str], status: int, expected: dict[str, object]
) -> None:
    result = toolcrib("call", tools, *args, "--json")

    document = json.loads(result.stdout)
    assert result.exit_code == status
    assert expected.items() <= document.items()


def test_a_pending_request_is_in_the_json_without_the_secret(toolcrib: Command, tools: str) -> None:
    result = toolcrib("call", tools, "login", '{"user": "ada", "password": "hunter2"}', "--suspend", "--json")

    document = json.loads(result.stdout)
    assert result.exit_code == 3
    assert document["request"]["arguments"] == {"user": "ada", "password": "**********"}
    assert "call" not in document
    assert "hunter2" not in result.output


def test_the_record_is_appended_to_a_file(toolcrib: Command, tools: str) -> None:
    toolcrib("call", tools, "buy", '{"item": "tea"}', "--yes", "--record", "calls.jsonl")
    toolcrib("call", tools, "add", '{"a": []}', "--record", "calls.jsonl")

    first, second = (json.loads(line) for line in Path("calls.jsonl").read_text("utf-8").splitlines())
    assert (first["tool"], first["entry"], first["approval"]["approver"]) == ("buy", "cli", "--yes")
    assert second["outcome"]["code"] == "invalid_arguments"


def test_a_traceback_is_in_the_record_and_not_on_the_terminal(tools: str) -> None:
    command = [*RUN, "call", tools, "broken", '{"text": "it"}', "--record", "calls.jsonl"]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    [record] = map(json.loads, Path("calls.jsonl").read_text("utf-8").splitlines())
    assert done.stderr == "`broken` raised ValueError: cannot read it\n"
    assert "in broken" in record["outcome"]["traceback"]


DRAWING = """
from toolcrib import Media, tool

DOT = Media("image/png", b"dot", name="dot.png")


@tool()
async def draw() -> list:
    return ["a dot", DOT]


@tool()
async def dots():
    yield DOT
"""


def test_an_image_is_a_placeholder_and_in_json_its_bytes(toolcrib: Command, tmp_path: Path) -> None:
    (tmp_path / "drawing.py").write_text(DRAWING)
    target = str(tmp_path / "drawing.py")

    shown = [toolcrib("call", target, name).stdout for name in ("draw", "dots")]
    document = json.loads(toolcrib("call", target, "draw", "--json").stdout)

    assert shown == ["a dot\n[image/png: dot.png, 3 bytes]\n", "[image/png: dot.png, 3 bytes]\n"]
    assert document["value"][1]["data"] == "ZG90"

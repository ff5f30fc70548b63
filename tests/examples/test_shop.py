"""The shop of `make demo`: its tools one by one, and the program over all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from click.testing import Result
from typer.testing import CliRunner

from toolcrib.cli._app import app

SHOP = Path(__file__).parents[2] / "examples" / "shop"


class Shop(Protocol):
    def __call__(self, command: str, *args: str) -> Result: ...


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """The command line on the shop, with a database of the test's own."""
    monkeypatch.setenv("SHOP_DB", str(tmp_path / "shop.db"))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield lambda command, *args: CliRunner().invoke(
        app, [command, str(SHOP / "tools.py"), *args], catch_exceptions=False
    )
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(SHOP)):
            del sys.modules[name]


def test_there_are_tools_of_every_kind(shop: Shop) -> None:
    made = shop("list", "--json")

    marks = {tool["name"]: tool["marks"] for tool in json.loads(made.stdout)}
    assert list(marks) == ["orders", "orders__lines", "stock", "track", "reserve", "refund", "write_letter"]
    assert marks["track"] == ["streams"]
    assert marks["reserve"] == ["locked"]
    assert marks["refund"] == ["approval"]


@pytest.mark.parametrize(
    ("tool", "arguments", "shown"),
    [
        ("stock", {"sku": "mug"}, "3\n"),
        ("track", {"order_id": 1005}, '{"at": "03-06 15:40", "place": "Lyon", "event": "collected"}\n'),
        ("reserve", {"order_id": 1002, "sku": "mug", "quantity": 2}, "1\n"),
        ("refund", {"order_id": 1004, "amount": 12, "reason": "late"}, "12.00 paid back\n"),
        ("write_letter", {"email": "ada@example.com", "text": "Hello"}, "letter 1 to ada@example.com\n"),
    ],
)
def test_a_tool_does_its_work(shop: Shop, tool: str, arguments: dict[str, object], shown: str) -> None:
    made = shop("call", tool, json.dumps(arguments))

    assert (made.exit_code, made.stderr) == (0, "")
    assert made.stdout.startswith(shown)


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("stock", {"sku": "jug"}, "there is no product 'jug'; there are: grinder, kettle, lamp, mug"),
        ("reserve", {"order_id": 1002, "sku": "lamp"}, "only 0 of 'lamp' are left"),
        ("refund", {"order_id": 1004, "amount": 50, "reason": "late"}, "order 1004 was 48.00"),
        ("refund", {"order_id": 1002, "amount": 60, "reason": "late"}, "no terminal to ask on"),
        ("orders", {"status": "lost"}, "status: must be"),
    ],
)
def test_a_tool_says_what_is_wrong(shop: Shop, tool: str, arguments: dict[str, object], said: str) -> None:
    made = shop("call", tool, json.dumps(arguments))

    assert made.exit_code in (1, 2)
    assert said in made.stderr


PROGRAM = str(SHOP / "program.py")


def test_the_program_settles_every_late_order(shop: Shop) -> None:
    made = shop("exec", PROGRAM, "--approve", "refund", "--json")

    result = json.loads(made.stdout)
    assert made.exit_code == 0
    assert result["return_value"] == [
        {"order": 1002, "replaced": ["Mug, hand-thrown"], "refunded": 84.5},
        {"order": 1004, "replaced": [], "refunded": 48.0},
        {"order": 1005, "replaced": ["Coffee grinder"], "refunded": 0.0},
    ]
    assert [call["arguments"]["amount"] for call in result["tool_calls"] if "approval" in call] == [84.5]


def test_without_an_approval_the_program_goes_on(shop: Shop) -> None:
    made = shop("exec", PROGRAM)

    assert made.exit_code == 0
    assert "not refunded: `refund` needs approval, and there is no terminal" in made.stdout
    assert "48.00 paid back" in made.stdout


def test_the_program_is_paused_in_one_process_and_goes_on_in_another(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = str(tmp_path / "late.paused")
    command = [sys.executable, "-c", "from toolcrib.cli import main; main()"]

    first = shop("exec", PROGRAM, "--pause", file)
    second = subprocess.run(
        [*command, "resume", file, "--approve", "refund", "--json"], stdin=subprocess.DEVNULL, capture_output=True
    )

    result = json.loads(second.stdout)
    assert (first.exit_code, second.returncode) == (3, 0)
    assert "refund needs approval" in first.stderr
    assert [order["refunded"] for order in result["return_value"]] == [84.5, 48.0, 0.0]
    assert [call["name"] for call in result["tool_calls"]].count("reserve") == 2
    assert shop("call", "stock", '{"sku": "mug"}').stdout == "2\n"

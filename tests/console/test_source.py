"""Which line of a program a call was made on, as far as the program tells."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.console._program_lines import call_lines


@pytest.mark.parametrize(
    ("source", "tool", "arguments", "lines"),
    [
        ("x = 1\npay(1)", "pay", {"cents": 1}, [2]),
        ("pay(cents=1)\npay(cents=2)", "pay", {"cents": 2}, [2]),
        ("pay(1)\npay(2)", "pay", {"cents": 2}, [2]),
        ("pay(True)\npay(1)", "pay", {"cents": 1}, [2]),
        ("pay(a)\npay(b)", "pay", {"cents": 2}, [1, 2]),
        ("pay(cents=1)\npay(cents=2)", "pay", {"cents": 3}, [1, 2]),  # a hook changed them
        ("shop.pay(1)\nother.pay(1)", "shop__pay", {"cents": 1}, [1]),
        ("shop__pay(1)", "shop__pay", {"cents": 1}, [1]),
        ("await gather(\n    pay(1),\n    pay(2),\n)", "pay", {"cents": 2}, [3]),
        ("other(1)", "pay", {"cents": 1}, []),
        ("pay(1", "pay", {"cents": 1}, []),
        ("pay(1)", "pay", None, [1]),
        ("\x00", "pay", {}, []),
        ("(" * 5000, "pay", {}, []),
    ],
)
def test_the_lines_that_call_a_tool_are_found(source: str, tool: str, arguments: Any, lines: list[int]) -> None:
    assert call_lines(source, tool, arguments) == lines

"""The event of each call has the line on which the program makes it, in every sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.code import Toolkit
from toolcrib.pipeline import Run
from toolcrib.record import ListSink
from toolcrib.sandbox import UnsafeInlineSandbox
from toolcrib.tools import tool

PROGRAM = """\
outer(1)

def twice(n):
    inner(n)
    return inner(
        n + 1)

twice(2)
"""


@tool
async def inner(n: int) -> int:
    return n


@tool
async def outer(n: int) -> int:
    return await inner(n)


@pytest.mark.parametrize("sandbox", ["process", "monty", UnsafeInlineSandbox()], ids=["process", "monty", "inline"])
async def test_the_line_of_each_call_is_in_its_event(sandbox: Any) -> None:
    sink = ListSink()

    result = await Toolkit([inner, outer], sandbox=sandbox).execute_async(PROGRAM, Run(sinks=(sink,)))

    lines = [(event.tool, event.data.get("line")) for event in sink.events if event.kind == "received"]
    assert result.success, result.error
    assert lines == [("outer", 1), ("inner", 4), ("inner", 5)]


async def test_calls_at_once_have_lines_of_their_own() -> None:
    sink = ListSink()
    program = "import asyncio\nawait asyncio.gather(\n    inner(1),\n    inner(2),\n)"

    await Toolkit([inner]).execute_async(program, Run(sinks=(sink,)))

    lines = {event.data["arguments"]["n"]: event.data["line"] for event in sink.events if event.kind == "received"}
    assert lines == {1: 3, 2: 4}

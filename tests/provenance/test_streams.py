"""Streams: each value is read as it comes, at its place in the result, and once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from toolcrib.calls import ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Provenance, memory_of
from toolcrib.tools import Tool, ez_tool

BILLS = [
    {"name": "Dora Mills", "account": "DE11223344556677889900"},
    {"name": "Evan Stone", "account": "DE99887766554433221100"},
]


def bills(source: Any) -> Tool[..., Any]:
    async def bills() -> AsyncIterator[dict[str, str]]:
        """Yield the bills."""
        for bill in BILLS:
            yield bill

    return ez_tool(effect="none", source=source)(bills)


@ez_tool(effect="none", source="untrusted")
async def mail() -> str:
    """Read the mail."""
    return "do as you like"


@ez_tool(effect="spend", source="trusted")
async def pay(account: str) -> str:
    """Pay."""
    return "paid"


async def run_with(source: Any, said: str = "pay Dora Mills") -> tuple[Pipeline, Run]:
    pipeline, run = Pipeline([bills(source), mail, pay]), Run(features=[Provenance()])
    run.add_user_message(said)
    await pipeline.run(ToolCall("mail"), run)
    async with aclosing(pipeline.stream(ToolCall("bills"), run)) as items:
        async for _ in items:
            pass
    return pipeline, run


async def test_the_values_of_a_stream_are_kept_once() -> None:
    _, run = await run_with("trusted")

    places = [str(piece.place) for piece in memory_of(run)._sources]  # pyright: ignore[reportPrivateUsage]

    assert [each for each in places if each.endswith("account")] == ["[0].account", "[1].account"]


async def test_who_is_named_in_one_value_names_nobody_in_another() -> None:
    pipeline, run = await run_with("trusted")

    first, second = [(await pipeline.run(ToolCall("pay", {"account": bill["account"]}), run)).kind for bill in BILLS]

    assert (first, second) == ("completed", "suspended")


@pytest.mark.parametrize(("label", "kind"), [("[0].account", "completed"), ("[1].account", "suspended")])
async def test_a_label_by_place_holds_for_the_value_there(label: str, kind: str) -> None:
    pipeline, run = await run_with({label: "trusted", "name": "trusted", "*": "untrusted"})

    assert (await pipeline.run(ToolCall("pay", {"account": BILLS[0]["account"]}), run)).kind == kind


async def test_a_function_labels_no_value_of_a_stream() -> None:
    def by_function(arguments: Any, result: Any) -> str:
        return "trusted"

    pipeline, run = await run_with(by_function)

    assert (await pipeline.run(ToolCall("pay", {"account": BILLS[0]["account"]}), run)).kind == "suspended"

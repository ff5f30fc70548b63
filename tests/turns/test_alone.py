"""Turns that are given no run: each has its own, and none shares state with another."""

import asyncio
from typing import Any

import pytest

from toolcrib.errors import ApprovalRequired, ModelRetry
from toolcrib.pipeline import CallLimits, Run, current_run
from toolcrib.tools import Tool, tool
from toolcrib.turns import Turn


def refunding(refunded: list[int]) -> Tool[..., Any]:
    @tool(requires_approval=True)
    async def refund(order: int) -> str:
        refunded.append(order)
        return "refunded"

    return refund


async def test_what_is_always_allowed_to_one_turn_is_asked_of_another() -> None:
    refunded: list[int] = []
    refund = refunding(refunded)
    ann = Turn(refund, kwargs={"order": 1})
    with pytest.raises(ApprovalRequired):
        await ann.returning()
    assert ann.request is not None
    await ann.returning(grant=ann.request.always("ann"))

    for run in (None, Run(principal="eve")):
        with pytest.raises(ApprovalRequired):
            await Turn(refund, kwargs={"order": 999}).returning(run=run)

    assert refunded == [1]


def test_what_is_always_allowed_is_asked_again_in_another_event_loop() -> None:
    refunded: list[int] = []
    refund = refunding(refunded)

    async def first() -> None:
        turn = Turn(refund, kwargs={"order": 1})
        with pytest.raises(ApprovalRequired):
            await turn.returning()
        assert turn.request is not None
        await turn.returning(grant=turn.request.always("ann"))

    asyncio.run(first())
    with pytest.raises(ApprovalRequired):
        asyncio.run(Turn(refund, kwargs={"order": 2}).returning())

    assert refunded == [1]


async def test_retries_are_counted_in_each_turn_of_its_own() -> None:
    @tool(max_retries=1)
    async def find(name: str) -> None:
        raise ModelRetry("write the full name")

    turns = [Turn(find, kwargs={"name": name}) for name in "abcd"]
    for turn in turns:
        with pytest.raises(ModelRetry):
            await turn.returning()

    assert [turn.outcome.to_dict()["code"] for turn in turns if turn.outcome] == ["model_retry"] * 4


async def test_each_turn_has_a_run_of_its_own() -> None:
    runs: list[Run | None] = []

    @tool()
    async def look() -> None:
        runs.append(current_run())

    for _ in range(2):
        await Turn(look).returning()

    first, second = (run.run for run in runs if run is not None)
    assert first is not second
    assert first.id != second.id


async def test_a_turn_that_streams_holds_no_slot_while_its_consumer_works() -> None:
    @tool()
    async def count(upto: int) -> Any:
        for number in range(upto):
            yield number

    @tool()
    async def double(number: int) -> int:
        return 2 * number

    run = Run(limits=CallLimits(concurrency=1))

    async with asyncio.timeout(60):
        stream = Turn(count, kwargs={"upto": 3}).yielding(run=run)
        doubled = [await Turn(double, kwargs={"number": number}).returning(run=run) async for number in stream]

    assert doubled == [0, 2, 4]

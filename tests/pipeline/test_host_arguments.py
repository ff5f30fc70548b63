"""A host's arguments: validated where a gate, a record or another process looks at them, else left as they are."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import pytest

from toolcrib.approvals import approve_all
from toolcrib.calls import Completed, Failed, Outcome, RunNormally, Suspended, ToolCall
from toolcrib.errors import ApprovalRequired
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Call, Durability, Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import Tool, ez_tool
from toolcrib.turns import Agent, Turn


@ez_tool
async def total(numbers: Iterable[int]) -> int:
    return sum(numbers)


@ez_tool
async def each(numbers: Iterable[int]) -> AsyncIterator[int]:
    for number in numbers:
        yield number


@ez_tool
async def kind(number: int) -> str:
    return type(number).__name__


def upto(end: int) -> Iterator[int]:
    return (number for number in range(end))


class Recorder:
    """A run's recorder: what is kept before a tool begins."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    async def begin(self, call: Call) -> None:
        self.kept.append(call.to_dict()["arguments"])


async def called(tool: Tool[..., Any], arguments: Any, run: Run | None = None, **options: Any) -> Outcome:
    return await Pipeline([tool], **options).run(ToolCall(tool.name, arguments, origin="host"), run)


async def by_turn(run: Run) -> Any:
    return await Turn(total, kwargs={"numbers": upto(4)}).returning(run=run)


async def by_stream(run: Run) -> Any:
    return sum([value async for value in Turn(each, kwargs={"numbers": upto(4)}).yielding(run=run)])


async def by_agent(run: Run) -> Any:
    agent = Agent("adder", "Adds.", [total], register=False)
    await agent.put(Turn(total, kwargs={"numbers": upto(4)}))
    return sum([value async for _, value in agent.run(run=run)])


async def by_call(run: Run) -> Any:
    outcome = await called(total, {"numbers": upto(4)}, run)
    assert isinstance(outcome, Completed)
    return outcome.value


WAYS = pytest.mark.parametrize("way", [by_turn, by_stream, by_agent, by_call])


@WAYS
async def test_a_generator_keeps_its_values_where_a_sink_listens(way: Callable[[Run], Any]) -> None:
    sink = RecordingSink()

    assert await way(Run(sinks=[sink])) == 6
    assert sink.records[0].arguments == {"numbers": [0, 1, 2, 3]}


@WAYS
async def test_a_generator_keeps_its_values_where_calls_are_logged(
    way: Callable[[Run], Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "toolcrib.calls")

    assert await way(Run()) == 6


@WAYS
async def test_a_generator_keeps_its_values_where_a_journal_keeps_the_call(way: Callable[[Run], Any]) -> None:
    recorder = Recorder()

    assert await way(Run(durability=Durability(recorder=recorder))) == 6
    assert recorder.kept == [{"numbers": [0, 1, 2, 3]}]


async def test_values_are_validated_where_a_record_is_made_of_them() -> None:
    sink = RecordingSink()

    outcome = await called(kind, {"number": "7"}, Run(sinks=[sink]))

    assert isinstance(outcome, Completed)
    assert outcome.value == "int"
    assert sink.records[0].arguments == {"number": 7}


async def test_values_are_validated_for_hooks_that_are_given_with_the_call() -> None:
    seen: list[Any] = []
    hooks = HookSet()

    @hooks.on("kind")
    async def look(call: Any, given: Any) -> RunNormally:
        seen.append(given.number)
        return RunNormally(given)

    await Pipeline([kind]).admit(ToolCall("kind", {"number": "7"}, origin="host"), hooks=hooks)

    assert seen == [7]


@pytest.mark.parametrize("run", [Run(sinks=[RecordingSink()]), Run(durability=Durability(recorder=Recorder()))])
async def test_values_that_do_not_fit_are_refused_where_something_looks_at_them(run: Run) -> None:
    outcome = await called(kind, {"number": "seven"}, run)

    assert isinstance(outcome, Failed)
    assert outcome.code == "invalid_arguments"


async def test_a_plain_call_has_the_objects_themselves() -> None:
    outcome = await called(kind, {"number": "7"})

    assert isinstance(outcome, Completed)
    assert outcome.value == "str"


async def test_what_was_asked_for_is_shown_though_it_can_be_read_only_once() -> None:
    outcome = await called(ez_tool(requires_approval=True)(total.fn), {"numbers": upto(4)})

    assert isinstance(outcome, Suspended)
    assert outcome.request.requested == {"numbers": [0, 1, 2, 3]}
    assert outcome.request.changes() == []


async def test_a_call_of_plain_objects_is_validated_when_its_tool_asks() -> None:
    @ez_tool
    async def shop(ctx: RunContext[Any], number: int) -> str:
        if not ctx.approved:
            raise ApprovalRequired
        return type(number).__name__

    outcome = await called(shop, {"number": "7"}, Run(approver=approve_all))

    assert isinstance(outcome, Completed)
    assert outcome.value == "int"

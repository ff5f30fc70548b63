"""The public fakes do what they stand in for."""

import sys
from typing import Any

import pytest

from tests.ways import WAYS as ALL_WAYS
from toolcrib.calls import Completed, Outcome, ToolCall
from toolcrib.code import Toolkit
from toolcrib.pipeline import Pipeline
from toolcrib.sandbox import ProcessSandbox, Raised, SuspendedReply, Value, default_sandbox
from toolcrib.testing import WAYS, FakeSandbox, RecordingSink, Way, WayRequest, every_way, ways
from toolcrib.tools import ez_tool


@ez_tool
async def add(a: int, b: int = 1) -> int:
    return a + b


@ez_tool(requires_approval=True)
async def pay(cents: int) -> None: ...


async def test_a_fake_sandbox_makes_the_calls_it_was_told_to() -> None:
    sandbox = FakeSandbox(("add", {"a": 1}), ("add", {"a": 5, "b": 5}), output="hello")

    result = await Toolkit([add], sandbox=sandbox).execute_async("whatever")

    assert (result.success, result.return_value, result.output) == (True, 10, "hello")
    assert [call["result"] for call in result.tool_calls] == [2, 10]
    assert [program.code for program in sandbox.programs] == ["whatever"]
    assert sandbox.replies == [Value(2), Value(10)]


async def test_a_fake_program_may_have_a_value_of_its_own() -> None:
    result = await Toolkit([add], sandbox=FakeSandbox(("add", {"a": 1}), value="done")).execute_async("")

    assert result.return_value == "done"


async def test_a_fake_program_ends_at_what_is_raised() -> None:
    sandbox = FakeSandbox(("add", {"a": "one"}), ("add", {"a": 1}))

    result = await Toolkit([add], sandbox=sandbox).execute_async("")

    assert not result.success
    assert "must be an integer" in (result.error or "")
    assert [type(reply) for reply in sandbox.replies] == [Raised]


async def test_a_fake_program_ends_at_a_call_that_waits() -> None:
    sandbox = FakeSandbox(("pay", {"cents": 5}), ("add", {"a": 1}))

    result = await Toolkit([add, pay], sandbox=sandbox).execute_async("")

    assert result.is_paused
    assert [type(reply) for reply in sandbox.replies] == [SuspendedReply]


async def test_a_recording_sink_is_asked_in_a_test() -> None:
    sink = RecordingSink()
    pipeline = Pipeline([add], sinks=[sink])

    await pipeline.run(ToolCall("add", {"a": 1}, "c1"))
    told = sink.kinds("c1"), sink.record.tool
    await pipeline.run(ToolCall("add", {"a": 1}, "c2"))

    assert told == (["received", "started", "ended"], "add")
    assert [event.call_id for event in sink.of_kind("started")] == ["c1", "c2"]
    with pytest.raises(ValueError, match="2 calls ended, not one"):
        _ = sink.record


class OwnWay(Way):
    title = "own way"

    async def carry(self, request: WayRequest) -> Outcome:
        tool: Any = request.toolset[request.new.name].tool
        return Completed(request.new.name, request.new.id, await tool(**request.arguments))


async def test_a_way_in_of_ones_own_is_one_method() -> None:
    outcome = await OwnWay()([add]).call("add", {"a": 1})

    assert outcome.text() == "2"
    assert repr(OwnWay()) == "own way"


def test_ways_are_chosen_by_what_they_can_do() -> None:
    every, able = every_way.args[1], ways("model", "json").args[1]

    assert every == WAYS
    assert 0 < len(able) < len(every)
    assert all(way.abilities >= {"model", "json"} for way in able)
    assert len({way.title for way in WAYS}) == len(WAYS)


def test_what_users_test_over_is_a_part_of_what_is_tested_here() -> None:
    titles = [way.title for way in ALL_WAYS]

    assert len(set(titles)) == len(titles)
    assert {way.title for way in WAYS} < set(titles)


@pytest.mark.skipif(sys.platform != "linux", reason="the processes of ProcessSandbox need Linux")
def test_each_way_of_running_a_program_is_listed() -> None:
    titles = {way.title for way in ALL_WAYS}

    assert {"code", "code session", "code events", "program tool", "resumed program in process"} <= titles
    assert {"code in monty", "resumed program in monty"} <= titles
    assert isinstance(default_sandbox(), ProcessSandbox)  # where `code` runs its programs


async def test_a_caller_takes_up_only_what_waits() -> None:
    with pytest.raises(TypeError, match="not suspended"):
        await WAYS[0]([add]).answer(Completed("add", "c1", 1), None)

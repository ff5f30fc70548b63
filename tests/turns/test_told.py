"""What is told of agents and turns to sinks that want to know of runs."""

import asyncio
from typing import Annotated, Any

import pytest

from toolcrib.approvals import approve_all
from toolcrib.calls import ActivityEvent
from toolcrib.errors import TurnTimeoutError
from toolcrib.pipeline import Channel, Run
from toolcrib.record import ListSink
from toolcrib.schema import Redacted
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool
from toolcrib.turns import Agent, Turn


@ez_tool
async def double(n: int) -> int:
    return n * 2


@ez_tool
async def count(to: int) -> Any:
    for n in range(to):
        yield n


@ez_tool
async def log_in(user: str, password: Annotated[str, Redacted]) -> str:
    return user


@ez_tool(requires_approval=True)
async def refund(order: int) -> int:
    return order


@ez_tool
async def fail() -> None:
    raise ValueError("no such order")


@ez_tool
async def forever() -> None:
    await asyncio.Event().wait()


def told(sink: RecordingSink) -> list[tuple[str, str]]:
    return [(event.activity, event.kind) for event in sink.runs]


def closed(sink: RecordingSink, run: str = "turn") -> list[Any]:
    return [event.data for event in sink.runs if (event.activity, event.kind) == (run, "closed")]


async def drained(agent: Agent, **options: Any) -> list[Any]:
    return [value async for _, value in agent.run(**options)]


def opened(sink: RecordingSink, run: str) -> list[ActivityEvent]:
    return [event for event in sink.runs if (event.activity, event.kind) == (run, "opened")]


async def test_turns_are_inside_of_their_agent_and_calls_inside_of_their_turns() -> None:
    sink = RecordingSink()
    agent = Agent("a", "Doubles", [double, count], sinks=[sink])
    await agent.put(Turn(double, kwargs={"n": 2}))
    await agent.put(Turn(count, kwargs={"to": 2}))

    values = await drained(agent)

    assert values == [4, 0, 1]
    turn, agent_told = ["opened", "closed"], opened(sink, "agent")[0]
    assert [kind for _, kind in told(sink)] == ["opened", *turn, *turn, "closed"]
    assert agent_told.data["tools"] == ["double", "count"]
    assert {event.parent_id for event in sink.runs if event.activity == "turn"} == {agent_told.activity_id}
    assert [record.parent_id for record in sink.records] == [event.activity_id for event in opened(sink, "turn")]
    assert [record.call_id for record in sink.records] == [record.parent_id for record in sink.records]
    assert {record.run_id for record in sink.records} == {agent_told.data["run_id"]}


async def test_a_turn_says_what_it_runs_with_secrets_hidden() -> None:
    sink = RecordingSink()
    turn = Turn(log_in, kwargs={"user": "ada", "password": "xyzzy"})

    await turn.returning(run=Run(sinks=(sink,), channel=Channel(parent_id="request_1")))

    start = opened(sink, "turn")[0]
    assert (start.activity_id, start.parent_id, start.name) == (turn.id, "request_1", "log_in")
    assert start.data["arguments"]["user"] == "ada"
    assert start.data["call_id"] == turn.id
    assert "xyzzy" not in str([event.to_dict() for event in [*sink.runs, *sink.events]])
    assert sink.record.parent_id == turn.id


async def test_a_turn_that_waits_for_a_person_says_so_and_goes_on_under_its_id() -> None:
    sink = RecordingSink()
    agent = Agent("a", "Refunds", [refund], sinks=[sink])
    await agent.put(Turn(refund, kwargs={"order": 7}))

    await drained(agent)
    request = agent.requests[0]
    agent.approve(request)
    values = await drained(agent)

    assert values == [7]
    first, second = closed(sink)
    assert (first["outcome"], first["request_id"], second["outcome"]) == ("suspended", request.id, "completed")
    assert len({event.activity_id for event in opened(sink, "turn")}) == 1
    assert [data["suspended"] for data in closed(sink, "agent")] == [[request.id], []]


async def test_a_turn_says_that_an_approver_is_asked() -> None:
    sink = RecordingSink()
    agent = Agent("a", "Refunds", [refund], sinks=[sink], approver=approve_all)
    await agent.put(Turn(refund, kwargs={"order": 7}))

    await drained(agent)

    changed = [event.data for event in sink.runs if event.kind == "changed"]
    assert [data["state"] for data in changed] == ["suspended", "running"]
    assert changed[0]["request_id"].startswith("ask_")


async def test_a_turn_that_fails_ends_its_agent_and_both_say_why() -> None:
    sink = RecordingSink()
    agent = Agent("a", "Fails", [fail], sinks=[sink])
    await agent.put(Turn(fail))

    with pytest.raises(ValueError, match="no such order"):
        await drained(agent)

    assert closed(sink)[0]["outcome"] == "error"
    assert "no such order" in closed(sink)[0]["error"]
    assert closed(sink, "agent")[0]["error"] == "ValueError: no such order"


async def test_a_turn_out_of_time_says_so() -> None:
    sink = RecordingSink()

    with pytest.raises(TurnTimeoutError):
        await Turn(forever, timeout=0.01).returning(run=Run(sinks=(sink,)))

    assert closed(sink)[0]["outcome"] == "timeout"
    assert "0.01" in closed(sink)[0]["error"]


@pytest.mark.parametrize("at_a_time", [1, 2])
async def test_what_is_cancelled_is_closed(at_a_time: int) -> None:
    sink = RecordingSink()
    agent = Agent("a", "Waits", [forever], sinks=[sink])
    for _ in range(2):
        await agent.put(Turn(forever, timeout=None))
    task = asyncio.create_task(drained(agent, max_concurrency=at_a_time))
    for _ in range(20):
        await asyncio.sleep(0)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert [data["outcome"] for data in closed(sink)] == ["cancelled"] * at_a_time
    assert closed(sink, "agent")[0]["outcome"] == "cancelled"
    assert sink.runs[-1].activity == "agent"


async def test_a_stream_that_is_left_early_is_closed() -> None:
    sink = RecordingSink()
    agent = Agent("a", "Counts", [count], sinks=[sink])
    await agent.put(Turn(count, kwargs={"to": 5}))

    values = agent.run()
    await anext(values)
    await values.aclose()

    assert told(sink) == [("agent", "opened"), ("turn", "opened"), ("turn", "closed"), ("agent", "closed")]
    assert [event.data["outcome"] for event in sink.runs if event.kind == "closed"] == ["cancelled", "cancelled"]


async def test_pausing_and_resuming_are_told_while_the_agent_runs() -> None:
    sink = RecordingSink()
    agent = Agent("a", "Doubles", [double], sinks=[sink])
    for n in range(2):
        await agent.put(Turn(double, kwargs={"n": n}))

    values = agent.run()
    await anext(values)
    await agent.pause()
    await agent.resume()
    assert [value async for _, value in values] == [2]
    await agent.pause()

    assert [event.data["state"] for event in sink.runs if event.kind == "changed"] == ["paused", "running"]


async def test_a_branch_and_a_restored_agent_are_runs_of_their_own() -> None:
    sink = RecordingSink()
    agent = Agent("a", "Doubles", [double], sinks=[sink])
    await agent.put(Turn(double, kwargs={"n": 1}))
    written = agent.to_dict()

    await drained(agent.branch("b"))
    await drained(Agent.from_dict(written, tools=[double], sinks=[sink]))

    assert [event.name for event in opened(sink, "agent")] == ["b", "a"]
    assert len({event.activity_id for event in sink.runs}) == 4
    assert opened(sink, "turn")[1].activity_id == written["queue"][0]["uuid"]


async def test_an_agent_that_a_tool_runs_is_inside_of_the_call() -> None:
    sink = RecordingSink()

    @ez_tool
    async def delegate() -> list[Any]:
        inner = Agent("inner", "Doubles", [double], sinks=[sink])
        await inner.put(Turn(double, kwargs={"n": 3}))
        return await drained(inner)

    agent = Agent("outer", "Delegates", [delegate], sinks=[sink])
    await agent.put(turn := Turn(delegate))

    assert await drained(agent) == [[6]]
    assert [event.parent_id for event in opened(sink, "agent")] == [None, turn.id]


async def test_no_turn_is_followed_for_a_sink_of_calls_alone() -> None:
    sink = ListSink()
    agent = Agent("a", "Doubles", [double], sinks=[sink])
    await agent.put(Turn(double, kwargs={"n": 1}))

    values = await drained(agent, run=Run(channel=Channel(parent_id="request_1")))

    assert values == [2]
    assert [record.parent_id for record in sink.records] == ["request_1"]

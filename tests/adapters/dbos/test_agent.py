"""A durable agent does what an agent does, on a file and on Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any
from uuid import uuid4

import pytest
from pydantic import Field

from tests.adapters.dbos.durable import QUICK, durable, engine_of, looked_at
from tests.approvals.expired import has_expired
from toolcrib.adapters.dbos import Client, DurableAgent, DurableFailure, DurableToolkit, Engine, Queue, list_work
from toolcrib.calls import CallMetadata, Completed, Failed, Media, Rejected, RunNormally, Suspended
from toolcrib.code import Toolkit
from toolcrib.errors import (
    ApprovalError,
    EngineError,
    InvalidArguments,
    NotPortableError,
    SafeExecutionError,
    ToolcribError,
    UnknownTool,
)
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Channel, Run
from toolcrib.testing import FakeSandbox, RecordingSink
from toolcrib.tools import ToolType, ez_tool, tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, ContextItem, ContextQueue, StopReason, Turn


@ez_tool()
async def add(a: int, b: int = 1) -> int:
    return a + b


@ez_tool()
async def note(text: str) -> ContextItem[str]:
    return ContextItem(text)


@ez_tool()
async def recall(memory: ContextQueue) -> str:
    return memory.history()


@ez_tool()
async def count(n: int) -> AsyncIterator[int]:
    for number in range(n):
        yield number


@ez_tool(requires_approval=True)
async def pay(amount: int) -> str:
    return f"paid {amount}"


async def test_a_turn_runs_as_a_workflow_and_its_outcome_is_read_by_anybody(database: str) -> None:
    agent = durable(add)

    async with engine_of(database, agent):
        handle = await agent.put(Turn(add, kwargs={"a": 2}))
        outcome = await handle.outcome()
        async with Client(database) as other:
            status = await other.status(handle.id)

    assert outcome == Completed("add", handle.id, 3)
    assert status is not None
    assert status.status == "SUCCESS"


@ez_tool()
async def doubled(number: int, most: Annotated[int, Field(le=10)] = 10) -> int:
    return min(number * 2, most)


async def test_arguments_are_validated_before_the_tool_runs(file: str) -> None:
    agent = durable(doubled)

    async with engine_of(file, agent):
        fits = await agent.put(Turn(doubled, kwargs={"number": "4"}))
        misfits = await agent.put(Turn(doubled, kwargs={"number": 4, "most": 99}))
        outcome, refused = [await handle.outcome() for handle in (fits, misfits)]

    assert outcome == Completed("doubled", fits.id, 8)
    assert isinstance(refused, Failed)
    assert refused.code == "invalid_arguments"


async def test_values_come_as_they_are_yielded_also_in_another_process_s_client(database: str) -> None:
    seen = asyncio.Event()

    @tool()
    async def slow() -> AsyncIterator[int]:
        yield 1
        await seen.wait()
        yield 2

    agent, values = durable(slow), list[int]()

    async with engine_of(database, agent):
        handle = await agent.put(Turn(slow))
        async for value in handle.values():
            values.append(value)
            seen.set()

    assert values == [1, 2]


@pytest.mark.parametrize("streams", [False, True])
async def test_an_image_crosses_as_one(database: str, streams: bool) -> None:
    image = Media("image/png", b"dot", name="dot.png")

    @tool()
    async def draw() -> Any:
        return image

    @tool()
    async def draws() -> AsyncIterator[Media]:
        yield image

    agent = durable(draw, draws)

    async with engine_of(database, agent):
        handle = await agent.put(Turn(draws if streams else draw))
        values = [value async for value in handle.values()]
        outcome = await handle.outcome()

    assert values == [image]
    assert isinstance(outcome, Completed)
    assert outcome.value == ([image] if streams else image)


async def test_returned_turns_and_context_items_go_where_they_belong(database: str) -> None:
    @tool()
    async def down(n: int) -> Any:
        return Turn(down, kwargs={"n": n - 1}) if n else "landed"

    @tool()
    async def note(text: str) -> ContextItem[str]:
        return ContextItem(text)

    @tool()
    async def recall(memory: ContextQueue) -> str:
        await memory.append(ContextItem("read"))
        return memory.history()

    agent = durable(down, note, recall)
    async with engine_of(database, agent):
        await agent.put(Turn(down, kwargs={"n": 2}))
        landed = [value async for _, value in agent.run()]
        for text in ("one", "two"):
            await (await agent.put(Turn(note, kwargs={"text": text}))).outcome()
        first = await (await agent.put(Turn(recall))).outcome()
        second = await (await agent.put(Turn(recall))).outcome()

    assert landed == ["landed"]
    assert isinstance(first, Completed)
    assert isinstance(second, Completed)
    assert first.value == "one\ntwo\nread"
    assert second.value == "one\ntwo\nread\nread"


async def test_context_outlives_the_worker(file: str) -> None:
    agent = durable(note, recall)
    async with engine_of(file, agent):
        await (await agent.put(Turn(note, kwargs={"text": "kept"}))).outcome()
    later = DurableAgent(_again(agent), agent.queue)
    async with engine_of(file, later):
        outcome = await (await later.put(Turn(recall))).outcome()

    assert isinstance(outcome, Completed)
    assert outcome.value == "kept"


def _again(agent: DurableAgent) -> Agent:
    """Return the agent as another process makes it."""
    return Agent(agent.name, "Tested.", agent.agent.toolset)


# --- approval


async def test_a_suspended_turn_ends_and_its_grant_lets_it_go_on_once(database: str) -> None:
    agent = durable(pay)

    async with engine_of(database, agent) as engine:
        handle = await agent.put(Turn(pay, kwargs={"amount": 3}))
        asked = await handle.outcome()
        state = await handle.status()
        assert isinstance(asked, Suspended)
        await engine.client.approvals.answer(asked.request.grant("ann"))  # whoever answers need not know of DBOS
        outcome = await handle.outcome(through=True)
        record = await handle.result()

    assert state == "SUCCESS"
    assert outcome == Completed("pay", handle.id, "paid 3")
    assert record["approval"]["approver"] == "ann"
    assert record["approval"]["digest"] == asked.request.digest
    assert record["approval"]["at"]


async def test_a_request_says_which_agent_and_conversation_asks_also_after_a_turn_of_the_same(file: str) -> None:
    @tool()
    async def then_pay() -> Turn[Any]:
        return Turn(pay, kwargs={"amount": 3})

    agent = durable(then_pay, pay)
    async with engine_of(file, agent) as engine:
        handle = await agent.put(Turn(then_pay), conversation_id="conv_7")
        (child,) = (await handle.result())["children"]
        asked = await agent.handle(child["turn"]["uuid"]).outcome()
        assert isinstance(asked, Suspended)
        request = (await engine.client.approvals.show(asked.request.id)).request
        works = list_work(engine.client)
        await agent.approve(request)
        await agent.handle(child["turn"]["uuid"]).outcome(through=True)
        after = list_work(engine.client)

    assert (request.agent, request.conversation_id) == (agent.name, "conv_7")
    assert {(work.conversation_id, work.state) for work in works} == {("conv_7", "suspended"), ("conv_7", "done")}
    assert [work.conversation_id for work in after] == ["conv_7"] * 2


async def test_a_turn_without_a_conversation_is_part_of_that_of_its_run(file: str) -> None:
    agent = DurableAgent(
        Agent(name := f"agent_{uuid4().hex[:8]}", "Pays.", [pay]), name, run=Run(channel=Channel(conversation_id="c1"))
    )

    async with engine_of(file, agent):
        asked = await (await agent.put(Turn(pay, kwargs={"amount": 3}))).outcome()

    assert isinstance(asked, Suspended)
    assert asked.request.conversation_id == "c1"


async def test_a_denial_ends_the_turn_with_the_person_s_words(file: str) -> None:
    agent = durable(pay)

    async with engine_of(file, agent):
        handle = await agent.put(Turn(pay, kwargs={"amount": 3}))
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        await agent.deny(asked.request, message="not today", by="ann")
        outcome = await handle.outcome(through=True)

    assert isinstance(outcome, Rejected)
    assert (outcome.reason, outcome.source) == ("not today", "user")


async def test_several_wait_at_once_and_a_person_s_arguments_are_what_runs(file: str) -> None:
    agent = durable(pay)

    async with engine_of(file, agent):
        handles = [await agent.put(Turn(pay, kwargs={"amount": amount})) for amount in (1, 2, 3)]
        for handle in reversed(handles):
            asked = await handle.outcome()
            assert isinstance(asked, Suspended)
            await agent.approve(
                asked.request.id, "ann", override_args={"amount": 10 * asked.request.arguments["amount"]}
            )
        outcomes = [await handle.outcome(through=True) for handle in handles]

    assert [outcome.value for outcome in outcomes if isinstance(outcome, Completed)] == [
        "paid 10",
        "paid 20",
        "paid 30",
    ]


async def test_a_slip_in_a_person_s_arguments_is_said_at_once_and_the_turn_waits_on(file: str) -> None:
    agent = durable(pay)

    async with engine_of(file, agent):
        handle = await agent.put(Turn(pay, kwargs={"amount": 1}))
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        with pytest.raises(InvalidArguments, match='amount: must be an integer; got "5OO"'):
            await agent.approve(asked.request, "ann", override_args={"amount": "5OO"})
        await agent.approve(asked.request, "ann", override_args={"amount": 500})
        outcome = await handle.outcome(through=True)

    assert isinstance(outcome, Completed)
    assert outcome.value == "paid 500"


async def test_a_grant_that_expired_before_it_was_used_is_asked_for_again(file: str) -> None:
    agent = durable(pay, queue=Queue("expiring", polling=QUICK))

    async with engine_of(file, agent, answers=60) as engine:
        handle = await agent.put(Turn(pay, kwargs={"amount": 3}))
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        request = asked.request
        await agent.stop()

        async def approve(until: datetime) -> None:
            await agent.approve(request, "ann", expires_at=until)
            if await engine.client.status(request.id) is None:  # a busy machine: it expired before it was taken up
                raise ApprovalError(request.tool, "it has expired")

        await has_expired(approve)
        await agent.go()
        again = await agent.handle(asked.request.id).outcome()
        assert isinstance(again, Suspended)
        await agent.approve(again.request, "bob")
        outcome = await handle.outcome(through=True)
        assert await engine.client.approvals.answered() == ()

    assert again.request.id == asked.request.id
    assert isinstance(outcome, Completed)


# --- what is the same as in an agent


async def test_hooks_and_decisions_are_asked_once_and_told_of_the_turn(file: str) -> None:
    told: list[str] = []
    hooks = HookSet()

    @hooks.on("add")
    async def more(call: CallMetadata, input: Any) -> RunNormally:
        told.append("decided")
        return RunNormally(input.model_copy(update={"a": 40}))

    agent = _guarded(hooks)

    @agent.agent.before_turn
    async def before(agent: Agent, turn: Turn[Any]) -> None:
        told.append("before")

    @agent.agent.after_turn
    async def after(agent: Agent, turn: Turn[Any]) -> None:
        told.append("after")

    async with engine_of(file, agent):
        outcome = await (await agent.put(Turn(add, kwargs={"a": 1, "b": 2}))).outcome()

    assert isinstance(outcome, Completed)
    assert outcome.value == 42
    assert told == ["before", "decided", "after"]


def _guarded(hooks: HookSet) -> DurableAgent:
    return DurableAgent(Agent("guarded", "Tested.", Toolset([add]).with_hooks(hooks)), Queue("guarded", polling=QUICK))


async def test_a_failure_is_an_outcome_and_ends_the_run_that_follows_it(file: str) -> None:
    @tool()
    async def fall() -> None:
        raise ValueError("no ground")

    agent = durable(fall, add)

    async with engine_of(file, agent):
        handle = await agent.put(Turn(fall))
        await agent.put(Turn(add, kwargs={"a": 1}))
        outcome = await handle.outcome()
        with pytest.raises(ToolcribError, match="no ground"):
            _ = [value async for _, value in agent.run()]
        rest = [(turn.stop_reason, value) async for turn, value in agent.run()]

    assert isinstance(outcome, Failed)
    assert outcome.error_type == "ValueError"
    assert [value for _, value in rest] == [2]


async def test_a_turn_that_takes_too_long_ends_as_a_timeout(file: str) -> None:
    @tool()
    async def sleep() -> None:
        await asyncio.sleep(60)

    agent = durable(sleep)

    async with engine_of(file, agent):
        handle = await agent.put(Turn(sleep, timeout=0.1))
        record = await handle.result()

    assert record["stop_reason"] == StopReason.TIMEOUT
    assert record["outcome"]["error_type"] == "TurnTimeoutError"


async def test_a_completion_check_ends_the_work_until_it_is_resumed(file: str) -> None:
    @tool(type=ToolType.COMPLETION_CHECK)
    async def enough() -> bool:
        return True

    agent = durable(add, enough, queue=Queue("checked", concurrency=1, polling=QUICK))

    async with engine_of(file, agent):
        await agent.put(Turn(enough))
        last = await agent.put(Turn(add, kwargs={"a": 1}))
        values = [value async for _, value in agent.run()]
        waits = (agent.is_paused, await last.status())
        await agent.resume()
        outcome = await last.outcome()

    assert values == [True]
    assert waits == (True, "ENQUEUED")
    assert isinstance(outcome, Completed)


async def test_a_paused_agent_starts_nothing_on_any_worker_also_after_a_restart(file: str) -> None:
    agent = durable(add)

    async with engine_of(file, agent):
        await agent.pause()
    async with engine_of(file, agent) as engine:
        handle = await agent.put(Turn(add, kwargs={"a": 1}))
        await looked_at(engine, agent.queue)
        waits = await handle.status()
        await agent.resume()
        outcome = await handle.outcome()

    assert waits == "ENQUEUED"
    assert isinstance(outcome, Completed)


async def test_a_branch_has_copies_of_context_and_turns_and_goes_its_own_way(file: str) -> None:
    agent = durable(note, recall)
    async with engine_of(file, agent):
        await (await agent.put(Turn(note, kwargs={"text": "shared"}))).outcome()
        branch = await agent.branch("branch")
        await (await branch.put(Turn(note, kwargs={"text": "its own"}))).outcome()
        outcomes = [await (await one.put(Turn(recall))).outcome() for one in (agent, branch)]

    assert [outcome.value for outcome in outcomes if isinstance(outcome, Completed)] == ["shared", "shared\nits own"]


async def test_the_agent_that_a_durable_one_is_made_from_stays_what_it_is(file: str) -> None:
    plain, seen = Agent("plain", "Tested.", [add, note]), list[str]()
    await plain.put(Turn(add, kwargs={"a": 1}))
    agent = DurableAgent(plain, Queue("plain", polling=QUICK))

    @plain.before_turn
    async def watch(agent: Agent, turn: Turn[Any]) -> None:
        seen.append(turn.tool_name)

    async with engine_of(file, agent):
        await plain.put(Turn(add, kwargs={"a": 2}))
        durably = await (await agent.put(Turn(note, kwargs={"text": "kept"}))).outcome()
        values = [value async for _, value in plain.run()]

    assert isinstance(durably, Completed)
    assert (values, seen) == ([2, 3], ["note", "add", "add"])
    assert (len(plain.context_queue), len(agent.agent.context_queue)) == (0, 1)


async def test_what_a_hook_puts_on_its_agent_is_durable(file: str) -> None:
    agent = durable(add)

    @agent.agent.after_turn
    async def once_more(agent: Agent, turn: Turn[Any]) -> None:
        if turn.kwargs["a"] < 3:
            await agent.put(Turn(add, kwargs={"a": turn.kwargs["a"] + 1}))
            await agent.send(agent.name, Turn(add, kwargs={"a": 10}))

    async with engine_of(file, agent):
        await agent.put(Turn(add, kwargs={"a": 2}))
        values = [value async for _, value in agent.run()]

    assert sorted(values) == [3, 4, 11]


async def test_a_turn_is_sent_to_another_durable_agent_by_its_name(file: str) -> None:
    other = durable(add)

    @tool()
    async def ask() -> None:
        await first.send(other.name, Turn(add, kwargs={"a": 6}))

    first = durable(ask)
    async with engine_of(file, first, other):
        await first.put(Turn(ask))
        values = [value async for _, value in first.run()]

    assert values == [None, 7]


# --- queues


async def test_one_key_is_one_turn_and_priorities_are_dbos_s(file: str) -> None:
    ran: list[int] = []

    @tool()
    async def mark(n: int) -> None:
        ran.append(n)

    ordered = Agent("ordered", "Tested.", [mark])
    with pytest.raises(EngineError, match="no engine runs"):
        await DurableAgent(ordered, "ordered").put(Turn(mark, kwargs={"n": 0}))
    async with Client(file) as client:  # nothing is taken before all of it waits
        agent = DurableAgent(ordered, Queue("ordered", concurrency=1, polling=QUICK), client=client)
        handles = [await agent.put(Turn(mark, kwargs={"n": n}), priority=9 - n) for n in (1, 2, 3)]
        first = await agent.put(Turn(mark, kwargs={"n": 7}), key="seven")
        second = await agent.put(Turn(mark, kwargs={"n": 7}), key="seven")
        async with engine_of(file, agent):
            for handle in (*handles, first):
                await handle.outcome()

    assert first.id == second.id
    assert ran == [7, 3, 2, 1]


async def test_a_process_that_only_enqueues_needs_no_engine(file: str) -> None:
    agent = durable(add)
    async with Client(file) as client:
        putting = DurableAgent(Agent("putting", "Tested.", [add]), agent.queue, client=client)
        handle = await putting.put(Turn(add, kwargs={"a": 1}))
        state = await handle.status()

        async with engine_of(file, putting):
            outcome = await handle.outcome()

    assert state == "ENQUEUED"
    assert isinstance(outcome, Completed)


# --- bad input


async def test_what_cannot_be_durable_is_refused_by_name(file: str) -> None:
    @tool()
    async def take(thing: Any) -> None: ...

    agent = durable(take)
    async with engine_of(file, agent):
        with pytest.raises(NotPortableError, match="thing"):
            await agent.put(Turn(take, kwargs={"thing": object()}))
        with pytest.raises(NotPortableError, match=r"thing.*digits"):
            await agent.put(Turn(take, kwargs={"thing": 10**5000}))
        with pytest.raises(UnknownTool):
            await agent.put(Turn(add, kwargs={"a": 1}))
        with pytest.raises(SafeExecutionError, match="does not run its turns itself"):
            agent.agent.run()
        with pytest.raises(EngineError, match="one engine per process"):
            await Engine(file).__aenter__()
    with pytest.raises(ValueError, match="concurrency must be at least 1"):
        Queue("none", concurrency=0)


async def test_an_engine_without_queues_takes_work_from_all_that_there_are(file: str) -> None:
    agent = durable(add)
    kit = DurableToolkit(Toolkit([add], sandbox=FakeSandbox()), Queue("kit", polling=QUICK))

    async with Engine(file, answers=QUICK, grace=0) as engine:
        outcome = await (await agent.put(Turn(add, kwargs={"a": 1}))).outcome()
        with pytest.raises(EngineError, match=r"made after the engine was entered.* Engine\(queues=\[\.\.\.\]\)"):
            durable(add)
        with pytest.raises(EngineError, match=r"`late` was made after"):
            DurableToolkit(kit.toolkit, "late", name="late")
        same = DurableAgent(_again(agent), agent.queue)

    assert isinstance(outcome, Completed)
    assert {queue.name for queue in engine.queues} == {agent.queue.name, "kit"}
    assert same.queue is agent.queue


async def test_events_of_a_durable_turn_go_to_the_sinks(file: str) -> None:
    sink = RecordingSink()
    agent = DurableAgent(
        Agent("watched", "Tested.", [add]), Queue("watched", polling=QUICK), run=lambda: Run(sinks=(sink,))
    )

    async with engine_of(file, agent):
        handle = await agent.put(Turn(add, kwargs={"a": 1}))
        await handle.outcome()

    assert [event.kind for event in sink.events] == ["received", "started", "ended"]
    assert {event.entry for event in sink.events} == {"durable"}
    assert {event.call_id for event in sink.events} == {handle.id}


async def test_a_cancelled_turn_stops_its_tool(file: str) -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    @tool()
    async def wait() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    agent = durable(wait)

    async with engine_of(file, agent):
        handle = await agent.put(Turn(wait))
        await began.wait()
        await handle.cancel()
        await stopped.wait()
        with pytest.raises(DurableFailure, match="was cancelled"):
            await handle.outcome()

"""Which durable programs go on when a request is answered: those that were asked about, and no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from tests.adapters.dbos.durable import QUICK, count, engine_of, pay
from toolcrib.adapters.dbos import Client, DurableAgent, DurableProgram, DurableToolkit, Placement, Queue, list_work
from toolcrib.adapters.dbos._continuation import continue_approved
from toolcrib.adapters.dbos._program import stretch_id
from toolcrib.adapters.dbos._program_journal import program_run
from toolcrib.adapters.dbos._work_tables import program_requests
from toolcrib.calls import ToolCall
from toolcrib.code import Toolkit
from toolcrib.errors import InvalidOutput
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Provenance, memory_of
from toolcrib.testing import FakeSandbox
from toolcrib.tools import Tool, ez_tool, tool
from toolcrib.turns import Agent, Turn


def durable(paying: Tool) -> DurableToolkit:
    """Return a toolkit each of whose programs pays 3."""
    name = f"kit_{uuid4().hex[:8]}"
    sandbox = FakeSandbox(("pay", {"cents": 3}))
    return DurableToolkit(Toolkit([paying], sandbox=sandbox), Queue(name, polling=QUICK), name=name)


async def next_stretch(client: Client, program: DurableProgram) -> str:
    """Return the id of what is to follow when a program that waits goes on."""
    run = await asyncio.to_thread(program_run, client, program.id)
    assert run is not None
    return stretch_id(program.id, run.generation + 1)


@asynccontextmanager
async def in_doubt(file: str, made: list[str]) -> AsyncGenerator[tuple[DurableToolkit, DurableProgram]]:
    """Stop a worker while a program's call goes on, start it again, and give the program, which waits for an answer."""
    begun = asyncio.Event()

    @tool
    async def pay(cents: int) -> str:
        made.append("pay")
        begun.set()
        await asyncio.Event().wait()
        return "never"

    toolkit = durable(pay)
    async with engine_of(file, toolkit, worker_id="worker", grace=0):
        await toolkit.start("pay(3)", placement=Placement("doubted"))
        await begun.wait()
    async with engine_of(file, toolkit, worker_id="worker") as engine:
        yield toolkit, DurableProgram("doubted", engine.client)


async def test_the_program_that_was_answered_goes_on_for_whom_it_was_asked_and_no_other(file: str) -> None:
    @tool(requires_approval=True)
    async def pay(cents: int) -> str:
        return f"paid {cents}"

    toolkit = durable(pay)
    async with engine_of(file, toolkit) as engine:
        ann, bob = [
            await toolkit.start("pay(3)", principal=name, conversation_id=f"of {name}") for name in ("ann", "bob")
        ]
        waiting = [await program.settled(polling=QUICK) for program in (ann, bob)]
        following = await next_stretch(engine.client, ann)
        await engine.client.approvals.answer(waiting[1].suspended[0].grant("cay"))
        result = await bob.result(polling=QUICK)

        assert [one.suspended[0].principal for one in waiting] == ["ann", "bob"]
        assert [one.suspended[0].conversation_id for one in waiting] == ["of ann", "of bob"]
        assert result.return_value == "paid 3"
        assert await engine.client.status(following) is None


async def test_a_standing_grant_makes_no_program_go_on_whose_call_may_have_been_made(file: str) -> None:
    begun, made = asyncio.Event(), list[str]()

    @tool(requires_approval=True)
    async def pay(cents: int) -> str:
        made.append("pay")
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return f"paid {cents}"

    toolkit = durable(pay)
    async with engine_of(file, toolkit, worker_id="worker", grace=0) as engine:
        doubted = await toolkit.start("pay(3)", placement=Placement("doubted"))
        asked = (await doubted.settled(polling=QUICK)).suspended[0]
        await engine.client.approvals.answer(asked.grant("ann"))
        await begun.wait()
    async with engine_of(file, toolkit, worker_id="worker") as engine:
        doubted = DurableProgram("doubted", engine.client)
        waiting = await doubted.settled(polling=QUICK)
        following = await next_stretch(engine.client, doubted)
        equal = await toolkit.start("pay(3)")
        asked = (await equal.settled(polling=QUICK)).suspended[0]
        await engine.client.approvals.answer(replace(asked.always("ann"), request_id=None))
        gone_on = await continue_approved(engine.client, engine.client.approvals)

        assert [call.in_doubt for call in waiting.suspended_calls] == [asked.in_doubt] == [True]
        assert (gone_on, made) == ([], ["pay"])
        assert await engine.client.status(following) is None


async def test_a_call_that_may_have_been_made_and_is_denied_raises_in_the_program(
    file: str, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[str] = []

    async with in_doubt(file, made) as (_, doubted):
        waiting = await doubted.settled(polling=QUICK)
        following = await next_stretch(doubted.client, doubted)
        await doubted.client.approvals.answer(waiting.suspended[0].deny(message="it was made", by="ann"))
        while await doubted.client.status(following) is None:  # noqa: ASYNC110 -- it waits for the database
            await asyncio.sleep(QUICK)
        await doubted.client.result(following)
        result = await doubted.settled(polling=QUICK)

    assert result.error is not None
    assert "PermissionError: it was made" in result.error
    assert any(message.startswith("doubted: the call of `pay` is in doubt") for message in caplog.messages)
    assert made == ["pay"]


async def test_what_a_call_of_a_program_came_to_is_of_the_type_of_its_tool(file: str) -> None:
    made: list[str] = []

    async with in_doubt(file, made) as (toolkit, doubted):
        request = (await doubted.settled(polling=QUICK)).suspended[0]
        with pytest.raises(InvalidOutput, match="`pay` cannot be completed with this output"):
            await toolkit.done(request, 3, "ann")
        await toolkit.done(request.id, "paid 3, by the bank's books", "ann")
        result = await doubted.result(polling=QUICK)

    assert (request.in_doubt, result.return_value) == (True, "paid 3, by the bank's books")
    assert str(request.metadata["begun"]).endswith(" by the worker worker")
    assert made == ["pay"]


async def test_a_turn_is_no_result_of_a_programs_call(file: str) -> None:
    async with in_doubt(file, []) as (toolkit, program):
        asked = (await program.settled(polling=QUICK)).suspended[0]
        for result in (Turn(count), [Turn(count)]):
            with pytest.raises(InvalidOutput, match="a Turn cannot be the result of a program's call"):
                await toolkit.done(asked, result)

        assert (await toolkit.client.approvals.show(asked.id)).state == "pending"


async def test_a_request_says_which_toolkit_or_agent_and_conversation_asks(file: str) -> None:
    toolkit = DurableToolkit(
        Toolkit([pay], sandbox=FakeSandbox(("pay", {"cents": 3}))), Queue(f"q_{uuid4().hex[:8]}", polling=QUICK)
    )

    @ez_tool
    async def begin() -> str:
        return (await toolkit.start("pay(3)")).id

    name = f"agent_{uuid4().hex[:8]}"
    agent = DurableAgent(Agent(name, "Begins.", [begin]), Queue(name, polling=QUICK), run=Run(principal="ann"))
    async with engine_of(file, toolkit, agent) as engine:
        own = await toolkit.start("pay(3)")
        outcome = await (await agent.put(Turn(begin), conversation_id="conv_7")).outcome()
        theirs = DurableProgram(outcome.value, engine.client)
        asked = [(await program.settled(polling=QUICK)).suspended[0] for program in (own, theirs)]

    said = [(one.agent, one.conversation_id, one.principal) for one in asked]
    assert said == [("toolkit", None, None), (agent.name, "conv_7", "ann")]


async def test_work_names_every_request_that_its_program_waits_for(file: str) -> None:
    toolkit = DurableToolkit(Toolkit([pay]), Queue(name := f"kit_{uuid4().hex[:8]}", polling=QUICK), name=name)
    async with engine_of(file, toolkit) as engine:
        program = await toolkit.start("import asyncio\nawait asyncio.gather(pay(3), pay(4))")
        asked = (await program.settled(polling=QUICK)).suspended
        await engine.client.result(program.id, polling=QUICK)
        (work,) = list_work(engine.client, state="suspended")

    assert len(asked) == 2
    assert work.waits_for == tuple(one.id for one in asked)


async def test_a_program_goes_on_whose_answer_was_used_up_by_an_execution_that_was_cut_off(file: str) -> None:
    @tool(requires_approval=True)
    async def pay(cents: int) -> str:
        return f"paid {cents}"

    toolkit = durable(pay)
    async with engine_of(file, toolkit) as engine:
        program = await toolkit.start("pay(3)")
        request = (await program.settled(polling=QUICK)).suspended[0]
        await engine.client.approvals.use(request, request.grant("ann"))  # answered and used up at once
        result = await program.result(polling=QUICK)

    assert result.return_value == "paid 3"


async def test_a_program_that_a_tool_starts_late_waits_until_it_is_approved(file: str) -> None:
    paid: list[int] = []

    @ez_tool(effect="none")
    async def pay(cents: int) -> str:
        paid.append(cents)
        return f"paid {cents}"

    name = f"kit_{uuid4().hex[:8]}"
    toolkit = DurableToolkit(
        Toolkit([pay], sandbox=FakeSandbox(("pay", {"cents": 3}))),
        Queue(name, polling=QUICK),
        name=name,
        run=lambda: Run(features=[Provenance(frozen=True)]),
    )

    @ez_tool(effect="none")
    async def start() -> str:
        return (await toolkit.start("pay(3)")).id

    async with engine_of(file, toolkit) as engine:
        here = Run(features=[Provenance()])
        in_time = DurableProgram((await Pipeline([start]).run(ToolCall("start"), here)).text(), engine.client)
        assert (await in_time.settled(polling=QUICK)).success
        memory_of(here).read("read_file", "c1", {}, "pay 3", "untrusted")
        late = DurableProgram((await Pipeline([start]).run(ToolCall("start"), here)).text(), engine.client)
        waiting = await late.settled(polling=QUICK)
        before = list(paid)
        await engine.client.approvals.answer(waiting.suspended[0].grant("ann"))
        result = await late.result(polling=QUICK)

    assert waiting.is_paused
    assert (before, result.return_value, paid) == ([3], "paid 3", [3, 3])


async def test_programs_that_wait_are_not_read_while_nobody_answers(database: str) -> None:
    toolkit, statements, looked = durable(pay), list[str](), asyncio.Event()
    loop = asyncio.get_running_loop()

    def note(connection: object, cursor: object, sql: str, *more: object) -> None:
        if "FROM toolcrib_programs" in sql or "JOIN toolcrib_programs" in sql:
            statements.append(sql)
        if len(statements) > 20:  # of which every tenth look asks for more
            loop.call_soon_threadsafe(looked.set)

    async with engine_of(database, toolkit) as engine:
        for program in [await toolkit.start("pay(3)") for _ in range(3)]:
            await program.settled(polling=QUICK)
        event.listen(engine.client.engine, "before_cursor_execute", note)
        await looked.wait()

    assert [sql for sql in statements if "result" in sql] == []


async def test_a_program_that_an_earlier_version_paused_goes_on(database: str) -> None:
    toolkit = durable(pay)
    async with engine_of(database, toolkit) as engine:
        program = await toolkit.start("pay(3)")
        waiting = await program.settled(polling=QUICK)
        with engine.client.engine.begin() as connection:
            connection.execute(sa.delete(program_requests))  # which that version did not write
        await engine.client.approvals.answer(waiting.suspended[0].grant("ann"))
        result = await program.result(polling=QUICK)

    assert result.success


async def test_an_answer_that_was_used_up_by_a_lost_execution_lets_the_program_go_on(database: str) -> None:
    toolkit = durable(pay)
    async with engine_of(database, toolkit) as engine:
        program = await toolkit.start("pay(3)")
        (request,) = (await program.settled(polling=QUICK)).suspended
        await engine.client.approvals.use(request, request.deny(message="no", by="ann"))
        result = await program.result(polling=QUICK)

    assert "no" in str(result.error or result.output)

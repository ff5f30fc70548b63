"""Forks of work: what was done before the step is not done again, and what follows is done anew, under all gates."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from tests.adapters.dbos.durable import QUICK, count, durable, engine_of, pay
from toolcrib.adapters.dbos import (
    Client,
    DurableProgram,
    DurableToolkit,
    Engine,
    Placement,
    Queue,
    fork_work,
    show_work,
)
from toolcrib.calls import Completed, Suspended
from toolcrib.code import Toolkit
from toolcrib.errors import EngineError
from toolcrib.tools import ez_tool
from toolcrib.turns import Turn

CODE = "a = find('a')\nb = buy(a)\nc = find(b)\nprint(a, b, c)"


class Shop:
    """Two tools of a durable toolkit, and a list of what they did."""

    def __init__(self, sandbox: Any = "process") -> None:
        self.did: list[str] = []
        self.answer = "first"

        @ez_tool
        async def find(name: str) -> str:
            self.did.append(f"find {name}")
            return f"{self.answer} {name}"

        @ez_tool(requires_approval=True)
        async def buy(name: str) -> str:
            self.did.append(f"buy {name}")
            return f"bought {name}"

        name = f"kit_{uuid4().hex[:8]}"
        self.toolkit = DurableToolkit(
            Toolkit([find, buy], sandbox=sandbox), Queue(name, polling=QUICK), name=name, replace=True
        )

    async def approve(self, engine: Engine, program: DurableProgram) -> Any:
        """Approve the call that a program waits for, and return its request."""
        paused = await program.settled(polling=QUICK)
        (request,) = paused.suspended
        await engine.client.approvals.answer(request.grant("ann"))
        return request


async def forked(engine: Engine, work_id: str, step: int = 1, **options: Any) -> DurableProgram:
    work = await asyncio.to_thread(fork_work, engine.client, work_id, step, **options)
    return DurableProgram(work.id, engine.client)


def calls_of(engine: Engine, work_id: str) -> list[Mapping[str, Any]]:
    return show_work(engine.client, work_id)[1]["calls"]


@pytest.mark.parametrize("sandbox", ["process", "monty"])
async def test_a_program_is_forked_from_a_call_and_has_the_results_of_those_before(database: str, sandbox: str) -> None:
    shop = Shop(sandbox)
    async with engine_of(database, shop.toolkit) as engine:
        program = await shop.toolkit.start(CODE, placement=Placement("order-7"))
        await shop.approve(engine, program)
        first = await program.result(polling=QUICK)
        shop.did, shop.answer = [], "second"

        fork = await forked(engine, "order-7", 3, id="order-7-again")
        second = await fork.result(polling=QUICK)
        again = await program.result(polling=QUICK)
        calls = [[call["id"] for call in calls_of(engine, name)] for name in (program.id, fork.id)]
        work, _ = show_work(engine.client, fork.id)

    assert first.output == "first a bought first a first bought first a\n"
    assert second.output == "first a bought first a second bought first a\n"
    assert again.output == first.output
    assert shop.did == ["find bought first a"]
    assert calls[1][:2] == calls[0][:2]
    assert calls[1][2] != calls[0][2]
    assert (work.id, work.state, work.forked_from) == ("order-7-again", "done", "order-7, step 3")


async def test_a_person_is_asked_again_about_a_call_that_a_fork_makes(file: str) -> None:
    shop = Shop()
    async with engine_of(file, shop.toolkit) as engine:
        program = await shop.toolkit.start(CODE)
        asked = await shop.approve(engine, program)
        await program.result(polling=QUICK)
        shop.did = []

        fork = await forked(engine, program.id, 2)
        waiting = await fork.settled(polling=QUICK)
        before = list(shop.did)
        again = await shop.approve(engine, fork)
        await fork.result(polling=QUICK)

    assert [call.tool for call in waiting.suspended_calls] == ["buy"]
    assert (asked.id, asked.call_id) != (again.id, again.call_id)
    assert (before, shop.did) == ([], ["buy first a", "find bought first a"])


async def test_a_suspended_program_and_its_fork_wait_for_answers_of_their_own(file: str) -> None:
    shop = Shop()
    async with engine_of(file, shop.toolkit) as engine:
        program = await shop.toolkit.start(CODE)
        await program.settled(polling=QUICK)
        fork = await forked(engine, program.id, 2)
        await fork.settled(polling=QUICK)
        await shop.approve(engine, fork)
        await fork.result(polling=QUICK)
        state = await program.state()

    assert state == "suspended"
    assert shop.did == ["find a", "buy first a", "find bought first a"]


async def test_a_denial_before_the_step_is_kept(file: str) -> None:
    shop = Shop()
    code = "try:\n    print(buy('a'))\nexcept PermissionError as error:\n    print(error)\nfind('b')"
    async with engine_of(file, shop.toolkit) as engine:
        program = await shop.toolkit.start(code)
        (request,) = (await program.settled(polling=QUICK)).suspended
        await engine.client.approvals.answer(request.deny(by="ann", message="not this one"))
        await program.result(polling=QUICK)
        shop.did = []
        fork = await forked(engine, program.id, 2)
        result = await fork.result(polling=QUICK)

    assert "not this one" in result.output
    assert shop.did == ["find b"]


async def test_calls_that_run_at_once_are_before_the_step_by_the_order_in_which_they_were_made(file: str) -> None:
    made: list[str] = []
    slow = asyncio.Event()

    @ez_tool
    async def ask(name: str) -> str:
        made.append(name)
        if name == "slow":
            await slow.wait()
        else:
            slow.set()
        return name

    name = f"kit_{uuid4().hex[:8]}"
    toolkit = DurableToolkit(Toolkit([ask]), Queue(name, polling=QUICK), name=name)
    code = "import asyncio\nprint(await asyncio.gather(ask('slow'), ask('quick')))"
    async with engine_of(file, toolkit) as engine:
        program = await toolkit.start(code)
        await program.result(polling=QUICK)
        made.clear()
        fork = await forked(engine, program.id, 2)
        result = await fork.result(polling=QUICK)

    assert result.output == "['slow', 'quick']\n"
    assert made == ["quick"]


async def test_a_turn_is_forked_as_a_new_turn_that_asks_again(database: str) -> None:
    agent = durable(pay)
    async with engine_of(database, agent) as engine:
        handle = await agent.put(
            Turn(pay, kwargs={"cents": 5}), conversation_id="case 7", attributes={"customer": "acme"}
        )
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        await agent.approve(asked.request)
        await handle.outcome(through=True)

        work = await asyncio.to_thread(fork_work, engine.client, handle.id)
        again = await agent.handle(work.id).outcome()
        assert isinstance(again, Suspended)
        await agent.approve(again.request)
        outcome = await agent.handle(work.id).outcome(through=True)

    assert (again.call_id, again.request.id != asked.request.id) == (work.id, True)
    assert outcome == Completed("pay", work.id, "paid 5")
    assert (work.conversation_id, work.attributes) == ("case 7", {"customer": "acme"})
    assert work.forked_from == f"{handle.id}, step 1"


async def test_work_that_no_worker_has_begun_is_forked_with_its_place(file: str) -> None:
    agent = durable(count)
    async with Client(file) as client:
        agent.use(client)
        handle = await agent.put(Turn(count), priority=3)
        fork = fork_work(client, handle.id, id="again")
        with pytest.raises(EngineError, match=r"other work has the id .*a fork needs one of its own"):
            fork_work(client, handle.id, id="again")
        keyed = await agent.put(Turn(count), key="k")
        with pytest.raises(EngineError, match="other work of the key `k` waits or runs in the queue"):
            fork_work(client, keyed.id)

    assert (fork.state, fork.queue, fork.priority) == ("waiting", agent.queue.name, 3)


async def test_what_cannot_be_forked_says_why(file: str) -> None:
    shop, agent = Shop(), durable(count)
    async with engine_of(file, shop.toolkit, agent) as engine:
        turn = await agent.put(Turn(count))
        program = await shop.toolkit.start("find('a')\nbuy('b')")
        await program.settled(polling=QUICK)
        with pytest.raises(EngineError, match="is one call, and is forked from that: step must be 1, and is 2"):
            fork_work(engine.client, turn.id, 2)
        with pytest.raises(EngineError, match="has no call 3; it made 2 calls"):
            fork_work(engine.client, program.id, 3)
        both = await shop.toolkit.start("import asyncio\nawait asyncio.gather(buy('b'), find('a'))")
        await both.settled(polling=QUICK)
        with pytest.raises(EngineError, match=r"call 1 of .*, of `buy`, has no result; fork from step 1 at the latest"):
            fork_work(engine.client, both.id, 2)
        with pytest.raises(EngineError, match="there is no workflow nobody"):
            fork_work(engine.client, "nobody")
        with pytest.raises(ValueError, match="step"):
            fork_work(engine.client, program.id, 0)

"""Turns of idempotent tools that failed are tried again by themselves, and those of other tools are not."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.adapters.dbos.durable import QUICK, durable, engine_of
from toolcrib.adapters.dbos import (
    Client,
    DurableAgent,
    DurableToolkit,
    Engine,
    Queue,
    RetryPolicy,
    find_work,
    list_work,
    retry_work,
)
from toolcrib.calls import Completed, Failed, Suspended
from toolcrib.code import Toolkit
from toolcrib.schema import IdempotencyKey
from toolcrib.tools import ez_tool
from toolcrib.turns import Agent, Turn

THRICE = RetryPolicy(3, pause=QUICK)
KEYS = list[str]()


def queue(retry: RetryPolicy | None = THRICE) -> Queue:
    return Queue(f"queue_{uuid4().hex[:8]}", polling=QUICK, retry=retry)


@pytest.fixture(autouse=True)
def no_keys() -> None:
    KEYS.clear()


@ez_tool(idempotent=True)
async def fetch(good: int, key: IdempotencyKey) -> str:
    """Fail until the try of this number."""
    KEYS.append(key)
    if len(KEYS) < good:
        raise ConnectionError("the line is dead")
    return f"fetched in try {len(KEYS)}"


@ez_tool
async def charge(cents: int) -> str:
    """Fail, after the money is taken."""
    KEYS.append("charge")
    raise ConnectionError("no answer")


async def test_a_call_of_an_idempotent_tool_that_fails_is_made_again_with_the_same_key(database: str) -> None:
    agent = durable(fetch, queue=queue())
    async with engine_of(database, agent) as engine:
        handle = await agent.put(Turn(fetch, kwargs={"good": 3}))
        outcome = await handle.outcome()
        work = await asyncio.to_thread(find_work, engine.client, handle.id)

    assert outcome == Completed("fetch", handle.id, "fetched in try 3")
    assert len(set(KEYS)) == 1
    assert (work.state, work.error) == ("done", None)


async def test_it_fails_after_the_last_try_and_a_person_may_retry_it(database: str) -> None:
    agent = durable(fetch, queue=queue())
    async with engine_of(database, agent) as engine:
        handle = await agent.put(Turn(fetch, kwargs={"good": 5}))
        outcome: Any = await handle.outcome()
        tried = len(KEYS)
        await asyncio.to_thread(retry_work, engine.client, handle.id)
        again = await handle.outcome()

    assert (outcome.kind, outcome.message, tried) == ("failed", "the line is dead", 3)
    assert again == Completed("fetch", handle.id, "fetched in try 5")


async def test_what_waits_for_another_try_says_why(file: str) -> None:
    agent = durable(fetch, queue=queue(RetryPolicy(2, pause=600.0, longest=600.0)))
    async with engine_of(file, agent) as engine:
        handle = await agent.put(Turn(fetch, kwargs={"good": 2}))
        while (work := await asyncio.to_thread(find_work, engine.client, handle.id)).error is None:  # noqa: ASYNC110
            await asyncio.sleep(QUICK)

    assert (work.state, work.error) == ("waiting", "waits for another try, after 1 of 2: the line is dead")


async def test_a_call_of_another_tool_is_not_made_again(database: str) -> None:
    agent = durable(charge, queue=queue())
    async with engine_of(database, agent):
        outcome: Any = await (await agent.put(Turn(charge, kwargs={"cents": 1}))).outcome()

    assert (outcome.kind, outcome.message) == ("failed", "no answer")
    assert KEYS == ["charge"]


async def test_a_tool_has_a_policy_of_its_own(file: str) -> None:
    agent = Agent(f"agent_{uuid4().hex[:8]}", "Tested.", [fetch])
    tool = DurableAgent(agent, queue(), retries={"fetch": RetryPolicy(1)})
    async with engine_of(file, tool):
        outcome: Any = await (await tool.put(Turn(fetch, kwargs={"good": 2}))).outcome()

    assert (outcome.kind, len(KEYS)) == ("failed", 1)


async def test_an_exception_that_no_try_would_mend_is_not_tried_again(file: str) -> None:
    agent = durable(fetch, queue=queue(RetryPolicy(3, pause=QUICK, unless=(OSError,))))
    async with engine_of(file, agent):
        outcome: Any = await (await agent.put(Turn(fetch, kwargs={"good": 2}))).outcome()

    assert (outcome.kind, len(KEYS)) == ("failed", 1)


async def test_a_stream_that_fails_goes_on_after_the_values_that_it_gave(file: str) -> None:
    @ez_tool(idempotent=True)
    async def numbers() -> AsyncIterator[int]:
        KEYS.append("numbers")
        for number in range(3):
            if number == len(KEYS):
                raise ConnectionError("the line is dead")
            yield number

    agent = durable(numbers, queue=queue())
    async with engine_of(file, agent):
        handle = await agent.put(Turn(numbers))
        values = [value async for value in handle.values()]

    assert values == [0, 1, 2]
    assert len(KEYS) == 3


async def test_what_a_failed_try_put_is_put_once(file: str) -> None:
    @ez_tool(idempotent=True)
    async def second() -> str:
        return "second"

    @ez_tool(idempotent=True)
    async def first() -> str:
        await agent.put(Turn(second))
        KEYS.append("first")
        if len(KEYS) < 3:
            raise ConnectionError("the line is dead")
        return "first"

    agent = durable(first, second, queue=queue())
    async with engine_of(file, agent) as engine:
        handle = await agent.put(Turn(first))
        await handle.outcome()
        while len(found := await asyncio.to_thread(list_work, engine.client, state="done")) < 2:  # noqa: ASYNC110
            await asyncio.sleep(QUICK)
        every = await asyncio.to_thread(list_work, engine.client)

    assert len(found) == len(every) == 2


def test_pauses_grow_up_to_the_longest() -> None:
    policy = RetryPolicy(2_000, pause=2.0, factor=3.0, longest=100.0)

    assert [policy.pause_after(tries) for tries in (1, 2, 3, 4, 5, 1_999)] == [2.0, 6.0, 18.0, 54.0, 100.0, 100.0]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("charge", "retries: `charge` is not idempotent"),
        ("fetsch", "has no tool `fetsch`; it has: fetch, charge"),
    ],
)
def test_a_policy_of_a_tool_that_cannot_have_one_is_refused(name: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        DurableAgent(Agent(f"agent_{uuid4().hex[:8]}", "Tested.", [fetch, charge]), retries={name: THRICE})


# --- a worker that is killed between two tries


@ez_tool(idempotent=True)
async def note(folder: str, dies_in: int) -> str:
    """Write a line, and fail; kill the process in one of the tries."""
    effects = Path(folder) / "effects"
    with effects.open("a") as file:
        file.write("note\n")
    tries = len(effects.read_text().split())
    if tries == dies_in:
        os.kill(os.getpid(), signal.SIGKILL)
    if tries < 4:
        raise ConnectionError("the line is dead")
    return f"noted in try {tries}"


def noting() -> DurableAgent:
    return DurableAgent(
        Agent("retrying", "Notes.", [note]), Queue("retrying", polling=QUICK, retry=RetryPolicy(4, QUICK))
    )


def worker_process(database: str, ready: Connection) -> None:
    """Work until the process is killed."""

    async def work() -> None:
        async with Engine(database, worker_id="till", queues=[noting().queue]):
            ready.send("ready")
            await asyncio.Event().wait()

    asyncio.run(work())


@pytest.mark.systems
@pytest.mark.parametrize("dies_in", [1, 2])
async def test_a_worker_that_dies_in_a_try_takes_the_turn_up_and_its_tries_with_it(
    database: str, tmp_path: Path, dies_in: int
) -> None:
    server, agent = multiprocessing.get_context("forkserver"), noting()
    async with Client(database) as client:
        agent.use(client)
        handle = await agent.put(Turn(note, kwargs={"folder": str(tmp_path), "dies_in": dies_in}))
        for turn in range(2):
            mine, theirs = server.Pipe()
            process = server.Process(target=worker_process, args=(database, theirs), daemon=True)
            process.start()
            assert await asyncio.to_thread(mine.recv) == "ready"
            if turn == 0:
                await asyncio.to_thread(process.join)
        outcome: Any = await handle.outcome()
        process.kill()
        process.join()

    assert outcome.value == "noted in try 4"
    assert (tmp_path / "effects").read_text().split() == ["note"] * 4


def approved(good: int, *, idempotent: bool = True) -> Any:
    """Return a tool that a person approves, and that fails until the try of this number."""

    @ez_tool(idempotent=idempotent, requires_approval=True)
    async def send(key: IdempotencyKey) -> str:
        KEYS.append(key)
        if len(KEYS) < good:
            raise ConnectionError("the line is dead")
        return f"sent in try {len(KEYS)}"

    return send


async def test_a_call_that_a_person_approved_is_made_again_by_the_same_approval(database: str) -> None:
    tool = approved(3)
    agent = durable(tool, queue=queue())
    async with engine_of(database, agent) as engine:
        handle = await agent.put(Turn(tool))
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        await agent.approve(asked.request)
        outcome: Any = await handle.outcome(through=True)
        pending = [entry for entry in await engine.client.approvals.list() if entry.state == "pending"]

    assert (outcome.value, len(set(KEYS)), pending) == ("sent in try 3", 1, [])


@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_person_retries_a_call_that_one_approved(file: str, idempotent: bool) -> None:
    tool = approved(2, idempotent=idempotent)
    agent = durable(tool)
    async with engine_of(file, agent) as engine:
        handle = await agent.put(Turn(tool))
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        await agent.approve(asked.request)
        failed = await handle.outcome(through=True)
        await asyncio.to_thread(retry_work, engine.client, handle.id)
        outcome: Any = await handle.outcome()
        if not idempotent:
            assert (len(KEYS), outcome.request.in_doubt) == (1, True)
            await agent.approve(outcome.request)
            outcome = await handle.outcome(through=True)

    assert isinstance(failed, Failed)
    assert (outcome.value, len(KEYS)) == ("sent in try 2", 2)


async def test_a_person_retries_a_program_whose_approved_call_failed(file: str) -> None:
    name = f"kit_{uuid4().hex[:8]}"
    toolkit = DurableToolkit(Toolkit([approved(2)]), Queue(name, polling=QUICK), name=name)
    async with engine_of(file, toolkit) as engine:
        program = await toolkit.start("print(send())")
        (request,) = (await program.settled(polling=QUICK)).suspended
        await engine.client.approvals.answer(request.grant("ann"))
        failed = await program.result(polling=QUICK)
        await asyncio.to_thread(retry_work, engine.client, program.id)
        result = await program.result(polling=QUICK)

    assert (failed.success, result.output, len(KEYS)) == (False, "sent in try 2\n", 2)

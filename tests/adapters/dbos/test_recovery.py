"""What a killed worker leaves behind: nothing is made twice that must not be, nothing is lost, doubt is said."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from tests.adapters.dbos import dying
from toolcrib.adapters.dbos import Client, DurableAgent, TurnHandle, recover, workers
from toolcrib.calls import Completed, Rejected, Suspended
from toolcrib.errors import InvalidOutput, WorkerError
from toolcrib.turns import Turn

_server = multiprocessing.get_context("forkserver")  # workers are forked off a process that has imported everything
_server.set_forkserver_preload(["tests.adapters.dbos.dying"])


class Shop:
    """A database, the folder that effects are written to, and an agent that only enqueues."""

    def __init__(self, database: str, folder: Path, client: Client) -> None:
        self.database, self.folder, self.client = database, folder, client
        made = dying.agent()
        made._client = client  # pyright: ignore[reportPrivateUsage] -- as `client=` would
        self.agent: DurableAgent = made
        self._held: list[Connection] = []

    @property
    def effects(self) -> list[str]:
        """What the tools did, in order."""
        file = self.folder / "effects"
        return file.read_text().splitlines() if file.exists() else []

    def die_at(self, point: str) -> None:
        """Have the next worker that comes there die."""
        (self.folder / f"die-at-{point}").touch()

    def stop_at(self, point: str) -> None:
        """Have the next worker that comes there stand still."""
        (self.folder / f"stop-at-{point}").touch()

    async def stopped_at(self, point: str) -> Path:
        """Wait until a worker stands still there, and return the file that holds it."""
        file = self.folder / f"stopped-at-{point}"
        while not file.exists():  # noqa: ASYNC110 -- another process makes it
            await asyncio.sleep(0.02)
        return file

    async def start(self, worker: str = "w1") -> tuple[BaseProcess, str]:
        """Start a worker, and return it with what it says when it takes work."""
        ours, its = Pipe()
        process = _server.Process(target=dying.main, args=(self.database, self.folder, worker, its), daemon=True)
        process.start()
        its.close()
        self._held.append(ours)
        return process, await asyncio.to_thread(ours.recv)

    def let_go(self) -> None:
        """Tell the worker that was started first to stop, as a signal would."""
        self._held[0].close()

    async def said(self) -> str:
        """Return what the worker that was started first says next."""
        return await asyncio.to_thread(self._held[0].recv)

    @asynccontextmanager
    async def working(self, worker: str = "w1") -> AsyncGenerator[BaseProcess]:
        """Have a worker for the body."""
        process, said = await self.start(worker)
        assert said == "ready"
        try:
            yield process
        finally:
            process.kill()
            await asyncio.to_thread(process.join)

    async def killed(self, turn: Turn[object], point: str, worker: str = "w1") -> TurnHandle:
        """Put a turn, let a worker die at that point of it, and return its handle."""
        self.die_at(point)
        handle = await self.agent.put(turn)
        process, _ = await self.start(worker)
        await asyncio.to_thread(process.join)
        assert process.exitcode == -signal.SIGKILL
        return handle


@pytest.fixture
async def shop(database: str, tmp_path: Path) -> AsyncGenerator[Shop]:
    """A shop on a database of either kind."""
    async with Client(database) as client:
        yield Shop(database, tmp_path, client)


@pytest.fixture
async def file_shop(tmp_path: Path) -> AsyncGenerator[Shop]:
    """A shop on a file."""
    database = str(tmp_path / "crib.db")
    async with Client(database) as client:
        yield Shop(database, tmp_path, client)


async def test_a_call_in_doubt_asks_and_is_made_again_when_a_person_says_so(shop: Shop) -> None:
    handle = await shop.killed(Turn(dying.charge, kwargs={"amount": 5}), "charge")

    async with shop.working():  # the same worker comes back, and takes up its own
        asked = await handle.outcome()
        before = shop.effects
        assert isinstance(asked, Suspended)
        await shop.agent.approve(asked.request, "ann")
        outcome = await handle.outcome(through=True)

    assert "may have been done" in asked.request.reason
    assert str(asked.request.metadata["begun"]).endswith(" by the worker w1")
    assert "worker last seen" in asked.request.metadata
    assert before == [f"charge 5 {handle.id}"]
    assert shop.effects == [f"charge 5 {handle.id}"] * 2
    assert outcome == Completed("charge", handle.id, "charged 5")


async def test_a_person_gives_the_result_of_a_call_in_doubt_or_leaves_it(file_shop: Shop) -> None:
    shop = file_shop
    first = await shop.killed(Turn(dying.charge, kwargs={"amount": 5}), "charge")
    second = await shop.killed(Turn(dying.charge, kwargs={"amount": 6}), "charge")

    async with shop.working():
        asked = [await handle.outcome() for handle in (first, second)]
        requests = [outcome.request for outcome in asked if isinstance(outcome, Suspended)]
        with pytest.raises(InvalidOutput, match="`charge`"):
            await shop.agent.done(requests[0], 5, "ann")
        await shop.agent.done(requests[0], "charged 5, by the bank's books", "ann")
        await shop.agent.deny(requests[1], message="the bank knows nothing of it", by="ann")
        given, left = [await handle.outcome(through=True) for handle in (first, second)]

    assert given == Completed("charge", first.id, "charged 5, by the bank's books")
    assert isinstance(left, Rejected)
    assert left.reason == "the bank knows nothing of it"
    assert len(shop.effects) == 2


async def test_an_idempotent_call_is_made_again_with_its_key_and_its_decisions_are_not_asked_again(shop: Shop) -> None:
    handle = await shop.killed(Turn(dying.set_to, kwargs={"value": 5}), "set_to")

    async with shop.working():
        outcome = await handle.outcome()

    assert outcome == Completed("set_to", handle.id, "set to 5")
    assert shop.effects == ["before", "decided", *[f"set 5 {handle.id}"] * 2]


async def test_an_idempotent_call_is_made_again_with_the_arguments_it_had(file_shop: Shop) -> None:
    handle = await file_shop.killed(Turn(dying.fill, kwargs={"cents": 5}), "fill")

    async with file_shop.working():
        outcome = await handle.outcome()

    assert outcome == Completed("fill", handle.id, "filled 500")
    assert file_shop.effects == ["fill 500"] * 2


async def test_what_died_before_its_tool_is_no_doubt(file_shop: Shop) -> None:
    shop = file_shop
    handle = await shop.killed(Turn(dying.charge, kwargs={"amount": 5}), "before")

    async with shop.working():
        outcome = await handle.outcome()

    assert outcome == Completed("charge", handle.id, "charged 5")
    assert shop.effects == [f"charge 5 {handle.id}"]


async def test_a_stream_that_begins_again_gives_each_value_once(file_shop: Shop) -> None:
    shop = file_shop
    handle = await shop.killed(Turn(dying.count, kwargs={"n": 4}), "count")

    async with shop.working():
        values = [value async for value in handle.values()]

    assert values == [0, 1, 2, 3]


async def test_a_lost_worker_s_work_is_handed_over_once_and_returned_turns_go_on(shop: Shop) -> None:
    handle = await shop.killed(Turn(dying.set_to, kwargs={"value": 5}), "set_to")

    doubted = await shop.killed(Turn(dying.charge, kwargs={"amount": 7}), "charge", "w3")
    async with shop.working("w2"):
        recover(shop.client, "w3")
        doubt = await doubted.outcome()
        waits = await handle.status()
        moved = recover(shop.client, "w1")
        outcome = await handle.outcome()
        await shop.agent.put(Turn(dying.down, kwargs={"n": 3}))
        values = [value async for _, value in shop.agent.run()]
        states = {worker.id: worker.state for worker in workers(shop.client)}
        with pytest.raises(WorkerError, match="it lives"):
            recover(shop.client, "w2")

    assert isinstance(doubt, Suspended)
    assert str(doubt.request.metadata["begun"]).endswith(" by the worker w3")
    assert waits == "PENDING"  # no other worker takes it by itself
    assert moved == [handle.id]
    assert recover(shop.client, "w1") == []
    assert isinstance(outcome, Completed)
    assert values == ["set to 5", "landed"]
    assert states == {"w1": "recovered", "w2": "running", "w3": "recovered"}


async def test_an_approved_call_that_was_cut_off_asks_whether_it_was_done(file_shop: Shop) -> None:
    shop = file_shop
    handle = await shop.agent.put(Turn(dying.pay, kwargs={"amount": 5}))
    async with shop.working() as process:
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        shop.die_at("pay")
        await shop.client.approvals.answer(asked.request.grant("ann"))
        await asyncio.to_thread(process.join)

    async with shop.working():
        doubt = await shop.agent.handle(asked.request.id).outcome()
        assert isinstance(doubt, Suspended)
        await shop.agent.approve(doubt.request, "bob")
        outcome = await handle.outcome(through=True)

    assert doubt.request.id != asked.request.id
    assert outcome == Completed("pay", handle.id, "paid 5")
    assert shop.effects == ["pay 5"] * 2


async def test_a_name_belongs_to_one_living_worker(file_shop: Shop) -> None:
    shop = file_shop
    async with shop.working("w1"):
        second, said = await shop.start("w1")
        await asyncio.to_thread(second.join)

    assert said.startswith("the worker `w1`: it runs already")


async def test_a_worker_that_lost_its_turn_before_it_began_does_not_ask_about_what_another_is_at(shop: Shop) -> None:
    """What the other recorded looks to it as if it had been cut off."""
    shop.stop_at("taken")
    shop.stop_at("charge")
    handle = await shop.agent.put(Turn(dying.charge, kwargs={"amount": 5}))
    async with shop.working("w1"):
        held = await shop.stopped_at("taken")
        recover(shop.client, "w1", force=True)
        async with shop.working("w2"):
            at_it = await shop.stopped_at("charge")
            held.unlink()
            said = await shop.said()
            asked = await shop.client.approvals.list()
            at_it.unlink()
            outcome = await handle.outcome()

    assert said == "given up"
    assert asked == ()
    assert outcome == Completed("charge", handle.id, "charged 5")
    assert len(shop.effects) == 1

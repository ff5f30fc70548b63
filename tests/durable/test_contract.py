"""The contract of engines of durable work: what a host may rely on, whichever of them runs its turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.durable.contract_dbos import on_dbos
from tests.durable.contract_work import WorkerEngine
from tests.npm.programs import NotInstalledError
from tests.npm.restate import RestateServer, free_port, restate_server
from toolcrib.adapters.dbos import Client
from toolcrib.calls import Completed, Failed, Rejected, Suspended
from toolcrib.durable import DurableFailure
from toolcrib.errors import ApprovalError
from toolcrib.turns import Turn


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestateServer]:
    try:
        with restate_server(tmp_path_factory.mktemp("restate")) as started:
            yield started
    except NotInstalledError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["dbos", "restate"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[WorkerEngine]:
    """An engine with a worker."""
    if request.param == "dbos":
        async with Client(tmp_path / "crib.db") as client:
            made = on_dbos(tmp_path, client, str(tmp_path / "crib.db"))
            await made.start()
            yield made
            await made.kill()
        return
    engines = pytest.importorskip("tests.durable.contract_restate", exc_type=ImportError)
    port = free_port()
    made: WorkerEngine = engines.on_restate(tmp_path, request.getfixturevalue("server"), port)
    async with made.agent.client:
        await made.start()
        await made.agent.client.register(f"http://127.0.0.1:{port}")
        yield made
        await made.kill()


async def test_a_turn_comes_to_what_its_tool_returns(engine: WorkerEngine) -> None:
    handle = await engine.agent.put(engine.turn("charge", amount=5))

    outcome = await handle.outcome()

    assert isinstance(outcome, Completed)
    assert (outcome.value, engine.effects) == ("charged 5", ["charge 5"])


async def test_a_turn_that_fails_is_not_run_again(engine: WorkerEngine) -> None:
    handle = await engine.agent.put(engine.turn("fail"))

    outcome = await handle.outcome()

    assert isinstance(outcome, Failed)
    assert "broken" in outcome.message


async def test_a_turn_that_is_put_twice_under_one_id_runs_once(engine: WorkerEngine) -> None:
    turn = engine.turn("charge", amount=5)
    turn.id = str(uuid4())
    first, second = await engine.agent.put(turn), await engine.agent.put(Turn.from_dict(turn.to_dict(), [turn.tool]))

    outcomes = [await first.outcome(), await second.outcome()]

    assert [type(outcome) for outcome in outcomes] == [Completed, Completed]
    assert engine.effects == ["charge 5"]


async def test_a_turn_of_a_turn_runs_once(engine: WorkerEngine) -> None:
    result = await (await engine.agent.put(engine.turn("down", n=1))).result()

    (child,) = result["children"]
    outcome = await engine.agent.handle(child["turn"]["uuid"]).outcome()

    assert isinstance(outcome, Completed)
    assert engine.effects == ["down 1", "down 0"]


async def test_the_values_of_a_stream_are_read_before_it_ends(engine: WorkerEngine) -> None:
    (engine.folder / "hold").touch()
    handle = await engine.agent.put(engine.turn("count", n=5))
    seen: list[int] = []

    async for value in handle.values():
        seen.append(value)
        if value == 2:
            (engine.folder / "hold").unlink()

    assert seen == [0, 1, 2, 3, 4]


# --- approval


async def test_a_call_that_needs_approval_runs_once_when_another_process_has_allowed_it(engine: WorkerEngine) -> None:
    handle = await engine.agent.put(engine.turn("pay", amount=5))
    asked = await handle.outcome()
    assert isinstance(asked, Suspended)
    assert engine.effects == []

    await engine.agent.approve(asked.request, "ann")
    outcome = await handle.outcome(through=True)

    assert isinstance(outcome, Completed)
    assert (outcome.value, engine.effects) == ("paid 5", ["pay 5"])
    with pytest.raises(ApprovalError):
        await engine.agent.approve(asked.request, "ann")


async def test_an_answer_in_the_store_alone_is_heard_by_a_worker_that_comes_later(engine: WorkerEngine) -> None:
    handle = await engine.agent.put(engine.turn("pay", amount=5))
    asked = await handle.outcome()
    assert isinstance(asked, Suspended)
    await engine.kill()

    await engine.agent.client.approvals.answer(asked.request.deny(by="ben", message="too much"))
    await engine.start()
    outcome = await handle.outcome(through=True)

    assert isinstance(outcome, Rejected)
    assert (outcome.reason, engine.effects) == ("too much", [])


# --- calls in doubt


async def test_a_call_that_was_cut_off_is_asked_about_and_runs_again_by_a_yes(
    engine: WorkerEngine,
) -> None:
    handle = await engine.cut_off(engine.turn("charge", amount=5))
    asked = await handle.outcome()
    assert isinstance(asked, Suspended)
    assert asked.request.in_doubt
    assert engine.effects == ["charge 5"]

    await engine.agent.approve(asked.request, "ann")
    outcome = await handle.outcome(through=True)

    assert isinstance(outcome, Completed)
    assert engine.effects == ["charge 5", "charge 5"]


async def test_a_call_of_an_idempotent_tool_that_was_cut_off_is_made_again_by_the_same_key(
    engine: WorkerEngine,
) -> None:
    handle = await engine.cut_off(engine.turn("set_to", value=5))

    outcome = await handle.outcome()

    assert isinstance(outcome, Completed)
    assert [line.split()[:3] for line in engine.effects] == [["set", "to", "5"]] * 2
    assert len(set(engine.effects)) == 1


async def test_a_call_that_was_done_as_a_person_says_is_not_run_again(engine: WorkerEngine) -> None:
    handle = await engine.cut_off(engine.turn("charge", amount=5))
    asked = await handle.outcome()
    assert isinstance(asked, Suspended)

    await engine.agent.done(asked.request, "charged by hand")
    outcome = await handle.outcome(through=True)

    assert isinstance(outcome, Completed)
    assert (outcome.value, engine.effects) == ("charged by hand", ["charge 5"])


async def test_an_approved_call_that_was_cut_off_is_asked_about_again(engine: WorkerEngine) -> None:
    handle = await engine.agent.put(engine.turn("pay", amount=5))
    asked = await handle.outcome()
    assert isinstance(asked, Suspended)
    (engine.folder / "hold").touch()
    await engine.agent.approve(asked.request, "ann")
    await engine.happened(1)
    await engine.kill()
    await engine.start()
    again = await engine.agent.client.approvals.list(pending=True)
    while not again:
        await asyncio.sleep(0.05)
        again = await engine.agent.client.approvals.list(pending=True)

    await engine.agent.deny(again[0].request, message="it was done")
    outcome = await handle.outcome(through=True)

    assert again[0].request.in_doubt
    assert isinstance(outcome, Rejected)
    assert engine.effects == ["pay 5"]


async def test_a_stream_that_was_cut_off_is_asked_about(engine: WorkerEngine) -> None:
    handle = await engine.cut_off(engine.turn("count", n=5))
    asked = await handle.outcome()
    assert isinstance(asked, Suspended)
    assert asked.request.in_doubt

    await engine.agent.approve(asked.request, "ann")

    assert [type(await handle.outcome(through=True)), [value async for value in handle.values()]] == [
        Completed,
        [0, 1, 2, 3, 4],
    ]


# --- cancelling


async def test_a_turn_that_is_cancelled_while_its_tool_runs_stops_it(engine: WorkerEngine) -> None:
    (engine.folder / "hold").touch()
    handle = await engine.agent.put(engine.turn("charge", amount=5))
    await engine.happened(1)

    await handle.cancel()

    with pytest.raises(DurableFailure, match="cancelled"):
        await handle.outcome()
    assert await engine.agent.client.approvals.list(pending=True) == ()


async def test_a_turn_that_is_cancelled_while_it_waits_has_its_request_denied(engine: WorkerEngine) -> None:
    handle = await engine.agent.put(engine.turn("pay", amount=5))
    asked = await handle.outcome()
    assert isinstance(asked, Suspended)

    await handle.cancel()

    with pytest.raises(DurableFailure, match="cancelled"):
        await handle.outcome(through=True)
    while (await engine.agent.client.approvals.show(asked.request.id)).state != "used":  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    with pytest.raises(ApprovalError):
        await engine.agent.approve(asked.request, "ann")
    assert engine.effects == []

"""Two applications in one database leave each other's work alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.adapters.dbos.durable import QUICK, durable, engine_of
from toolcrib.adapters.dbos import (
    Client,
    DurableToolkit,
    Queue,
    cancel_work,
    list_work,
    resume_work,
    retry_work,
    show_work,
)
from toolcrib.adapters.dbos._continuation import continue_approved
from toolcrib.calls import Completed, Suspended
from toolcrib.code import Toolkit
from toolcrib.database import Database
from toolcrib.errors import EngineError
from toolcrib.tools import ez_tool, tool
from toolcrib.turns import Turn


@pytest.fixture
def orders(tmp_path: Path) -> Database:
    return Database.named(tmp_path / "shared.db", application="orders")


@pytest.fixture
def mailing(tmp_path: Path) -> Database:
    return Database.named(tmp_path / "shared.db", application="mailing")


@tool(requires_approval=True)
async def pay(cents: int) -> str:
    """Pay."""
    return f"{cents} paid"


@pytest.mark.parametrize("act", [retry_work, cancel_work, resume_work, show_work])
async def test_an_operator_of_one_does_nothing_to_the_work_of_another(
    orders: Database, mailing: Database, act: Callable[[Client, str], Any]
) -> None:
    @ez_tool
    async def fail() -> None:
        raise OSError("gone")

    agent = durable(fail)
    async with engine_of(orders, agent) as engine:
        handle = await agent.put(Turn(fail))
        await handle.outcome()
        before = list_work(engine.client)
        async with Client(mailing) as other:
            with pytest.raises(EngineError, match="there is no workflow"):
                act(other, handle.id)
        after = list_work(engine.client)

    assert [work.state for work in before] == ["failed"]
    assert after == before


async def test_an_answer_is_acted_on_by_the_application_that_asked(orders: Database, mailing: Database) -> None:
    agent = durable(pay)
    async with engine_of(orders, agent):
        handle = await agent.put(Turn(pay, kwargs={"cents": 5}))
        asked = await handle.outcome()
    assert isinstance(asked, Suspended)
    async with Client(mailing) as other:
        await other.approvals.answer(asked.request.grant("ann"))  # approvals of one database are one list
        continued = await continue_approved(other, other.approvals)
    async with engine_of(orders, agent):
        outcome = await agent.handle(handle.id).outcome(through=True)

    assert continued == []
    assert isinstance(outcome, Completed)


async def test_a_program_goes_on_in_its_own_application(orders: Database, mailing: Database) -> None:
    def kit() -> DurableToolkit:
        name = f"kit_{uuid4().hex[:8]}"
        return DurableToolkit(Toolkit([pay]), Queue(name, polling=QUICK), name=name)

    theirs, ours = kit(), kit()
    async with engine_of(orders, theirs):
        asked = (await (await theirs.start("pay(1)")).settled(polling=QUICK)).suspended[0]
    async with engine_of(mailing, ours) as engine:
        await engine.client.approvals.answer(asked.grant("ann"))
        for cents in (2, 3):  # when the second has gone on, the worker has seen the answers of all
            own = await ours.start(f"pay({cents})")
            await engine.client.approvals.answer((await own.settled(polling=QUICK)).suspended[0].grant("ann"))
            await own.result(polling=QUICK)
        taken = {work.target for work in list_work(engine.client)}

    assert taken == {ours.name}

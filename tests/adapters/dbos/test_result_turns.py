"""A turn as the result of a turn in doubt: its chain goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.dbos.durable import durable, engine_of
from toolcrib.adapters.dbos import DurableAgent
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import ApprovalRequest, Failed, Suspended
from toolcrib.cli import app
from toolcrib.durable._result_turns import result_as_json, result_with_turns
from toolcrib.errors import ApprovalError
from toolcrib.tools import tool
from toolcrib.turns import Turn


@tool(register=False)
async def ship(order: str) -> str:
    """Ship."""
    return f"shipped {order}"


@asynccontextmanager
async def in_doubt(path: Path) -> AsyncGenerator[tuple[DurableAgent, str, ApprovalRequest]]:
    """Give an agent, and a turn of it that is in doubt and that a turn was to follow."""
    begun = asyncio.Event()

    @tool(register=False)
    async def pay(cents: int) -> Turn[Any]:
        """Pay."""
        begun.set()
        await asyncio.Event().wait()
        return Turn(ship, kwargs={"order": "never"})

    agent = durable(pay, ship)
    async with engine_of(str(path), agent, worker_id="w1", grace=0):
        turn_id = (await agent.put(Turn(pay, kwargs={"cents": 5}))).id
        await begun.wait()
    async with engine_of(str(path), agent, worker_id="w1"):
        asked = await agent.handle(turn_id).outcome()
        assert isinstance(asked, Suspended)
        yield agent, turn_id, asked.request


async def came_of(agent: DurableAgent, turn_id: str) -> list[Any]:
    """Return the values of the turns that came of a turn."""
    children = (await agent.handle(turn_id).result(through=True)).get("children", ())
    return [(await agent.handle(child["turn"]["uuid"]).outcome()).value for child in children]


async def test_a_turn_that_an_approver_gives_as_the_result_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with in_doubt(tmp_path / "work.db") as (agent, turn_id, request):
        following = Turn(ship, kwargs={"order": "A7"})
        await agent.done(request, following, "ann")
        came = await came_of(agent, turn_id)
        own = await agent.handle(following.id).outcome()

    assert came == ["shipped A7"]
    assert own.value == "shipped A7"
    assert any(message.startswith(f"{turn_id}: the call of `pay` is in doubt") for message in caplog.messages)


async def test_a_turn_that_an_approver_writes_at_the_terminal_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_DATABASE", str(tmp_path / "work.db"))
    token = await SqliteApprovalStore(tmp_path / "work.db").issue_token("ann")
    monkeypatch.setenv("TOOLCRIB_APPROVER_TOKEN", token)
    result = json.dumps({"turn": {"tool_name": "ship", "kwargs": {"order": "A7"}}})
    async with in_doubt(tmp_path / "work.db") as (agent, turn_id, request):
        await asyncio.to_thread(_done, request.id, result)
        came = await came_of(agent, turn_id)

    assert came == ["shipped A7"]


def _done(request_id: str, result: str) -> None:
    app(["approvals", "done", request_id, "--result", result, "--yes"], standalone_mode=False)


async def test_a_turn_of_an_unknown_tool_is_an_error_that_names_it(tmp_path: Path) -> None:
    async with in_doubt(tmp_path / "work.db") as (agent, turn_id, request):
        await agent.done(request, {"turn": {"tool_name": "sell", "kwargs": {}}}, "ann")
        outcome = await agent.handle(turn_id).outcome(through=True)

    assert isinstance(outcome, Failed)
    assert "its result is a turn that cannot be made" in outcome.message
    assert "sell" in outcome.message


def test_turns_in_a_list_are_kept_and_other_results_stay_as_they_are() -> None:
    request = ApprovalRequest("ask_1", "c1", "pay", {}, "d")
    results = [Turn(ship, kwargs={"order": "A"}), {"turn": {"tool_name": 5}}, {"turn": 1, "b": 2}, "x"]

    kept = json.dumps(result_as_json(request, results, chains=True))
    first, *rest = result_with_turns(request, json.loads(kept), [ship])

    assert (first.id, first.tool, rest) == (results[0].id, ship, results[1:])


def test_a_turn_that_an_approver_wrote_has_the_same_id_each_time() -> None:
    request = ApprovalRequest("ask_1", "c1", "pay", {}, "d")
    written = {"turn": {"tool_name": "ship", "kwargs": {"order": "A"}}}

    one, two = (result_with_turns(request, [written, written], [ship]) for _ in range(2))

    assert [turn.id for turn in one] == [turn.id for turn in two]
    assert one[0].id != one[1].id
    with pytest.raises(ApprovalError, match="is a turn that cannot be made"):
        result_with_turns(request, {"turn": {"tool_name": "ship", "kwargs": 5}}, [ship])

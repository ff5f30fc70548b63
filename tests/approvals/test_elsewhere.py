"""A run waits for an answer that comes from elsewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

from toolcrib.approvals import SqliteApprovalStore, stored_approver
from toolcrib.calls import Completed, Outcome, Rejected, Suspended, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset


@tool(requires_approval=True)
async def refund(cents: int) -> int:
    return cents


def run(path: Path, timeout: float | None = None) -> asyncio.Task[Outcome]:
    store = SqliteApprovalStore(path)
    scope = Run(approvals=store, approver=stored_approver(store, timeout))
    return asyncio.create_task(Pipeline(Toolset([refund])).run(ToolCall("refund", {"cents": 5}), scope))


async def waiting(desk: SqliteApprovalStore) -> str:
    while not (entries := await desk.list(pending=True)):  # noqa: ASYNC110 -- it waits for a file
        await asyncio.sleep(0.01)
    return entries[0].request.id


async def test_a_yes_from_elsewhere_lets_the_call_go_on_and_is_used_up(tmp_path: Path) -> None:
    path = tmp_path / "approvals.db"
    going = run(path)
    desk = SqliteApprovalStore(path)
    request_id = await waiting(desk)

    await desk.answer((await desk.show(request_id)).request.grant("ann", override_args={"cents": 3}))
    outcome = await going

    assert isinstance(outcome, Completed)
    assert outcome.value == 3
    assert (await desk.show(request_id)).state == "used"


async def test_a_no_from_elsewhere_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "approvals.db"
    going = run(path)
    desk = SqliteApprovalStore(path)

    await desk.answer((await desk.show(await waiting(desk))).request.deny(message="not today", by="ann"))

    outcome = await going
    assert isinstance(outcome, Rejected)
    assert outcome.reason == "not today"


async def test_it_does_not_wait_for_ever(tmp_path: Path) -> None:
    assert isinstance(await run(tmp_path / "approvals.db", timeout=0.01), Suspended)

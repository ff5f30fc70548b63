"""What a standing grant lets go on that waits already: what it was given for, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from toolcrib.adapters.dbos._continuation import allowed_meanwhile
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ApprovalRequest, now

_ASKED = ApprovalRequest("ask_1", "call_1", "refund", {"cents": 5}, "d5", principal="ann")


@pytest.mark.parametrize(
    ("waits", "goes_on"),
    [
        (_ASKED, True),
        (replace(_ASKED, digest="d6"), True),
        (replace(_ASKED, tool="ship"), False),
        (replace(_ASKED, principal="bob"), False),
    ],
)
async def test_it_is_for_its_tool_and_for_whom_it_was_asked(waits: ApprovalRequest, goes_on: bool) -> None:
    store = MemoryApprovalStore()
    await store.put(waits)

    await store.answer(replace(_ASKED.always("cay"), request_id=None))

    assert bool(await allowed_meanwhile(store)) is goes_on


async def test_it_lets_nothing_go_on_once_it_is_over() -> None:
    store = MemoryApprovalStore()
    await store.put(_ASKED)

    await store.answer(replace(_ASKED.always("cay", expires=now() - timedelta(hours=1)), request_id=None))

    assert await allowed_meanwhile(store) == []

"""The approval store of one piece of durable work: a database that is away is waited for, whatever is asked of it."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from toolcrib.approvals import MemoryApprovalStore, WrappedApprovalStore
from toolcrib.calls import ApprovalRequest
from toolcrib.database import DatabaseAway
from toolcrib.durable import TurnExecution, WorkStore

REQUEST = ApprovalRequest("ask_1", "call_1", "pay", {"cents": 3}, "d1")
ARGUMENTS: dict[str, Any] = {
    "request": REQUEST,
    "grant": REQUEST.grant("ann"),
    "answer": REQUEST.grant("ann"),
    "key": "program:1",
    "ended": True,
}
VERBS = [name for name, _ in inspect.getmembers(WrappedApprovalStore, inspect.iscoroutinefunction)]


def away_once(verb: str) -> Any:
    """Return a store that is away the first time that one thing is asked of it, and a list of what was asked."""
    asked: list[str] = []

    async def ask(self: MemoryApprovalStore, *args: Any, **kwargs: Any) -> Any:
        asked.append(verb)
        if len(asked) == 1:
            raise DatabaseAway("connection failed")
        return await getattr(super(Store, self), verb)(*args, **kwargs)

    class Store(MemoryApprovalStore):
        pass

    setattr(Store, verb, ask)
    return Store(), asked


@pytest.mark.parametrize("is_turn", [True, False])
@pytest.mark.parametrize("verb", VERBS)
async def test_a_database_that_is_away_is_waited_for(verb: str, *, is_turn: bool) -> None:
    store, asked = away_once(verb)
    await MemoryApprovalStore.put(store, REQUEST)
    work = WorkStore(store, TurnExecution("work_1", None) if is_turn else None)
    parameters = inspect.signature(getattr(WrappedApprovalStore, verb)).parameters
    given = {name: ARGUMENTS[name] for name in parameters if name in ARGUMENTS}

    await asyncio.wait_for(getattr(work, verb)(**given), 30)

    is_claim = verb in ("claim", "release")
    assert len(asked) == (0 if is_claim and not is_turn else 2)


async def test_a_program_is_not_claimed_beside_its_journal() -> None:
    """A worker that was cut off and still lives has no claim that keeps the next one from going on."""
    store = MemoryApprovalStore()
    await store.claim("program:1")

    assert await WorkStore(store).claim("program:1") is None

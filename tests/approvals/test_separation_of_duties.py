"""Separation of duties of `approvals_needed`: by authenticated identity, and by names only where nobody logged in."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.ways import appending, representatives
from toolcrib.approvals import MemoryApprovalStore, ReviewableApprovalStore, SqliteApprovalStore, misfit
from toolcrib.approvers import ApproverRule, ApproverRules, Groups
from toolcrib.calls import ApprovalRequest, Completed, Identity, RequiredApprovers, Suspended, ToolCall
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Access, Channel, Pipeline, Run
from toolcrib.testing import Way
from toolcrib.toolsets import Toolset

ANN, BEN = Identity("ann", "console"), Identity("ben", "console")
TWO = ApprovalRequest("ask_1", "call_1", "refund", {"cents": 5}, "d5", principal="ada", approvals_needed=2)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ReviewableApprovalStore:
    return MemoryApprovalStore() if request.param == "memory" else SqliteApprovalStore(tmp_path / "a.db")


async def state_after(store: ReviewableApprovalStore, request: ApprovalRequest, *answers: Any) -> list[str]:
    """Answer a request as people do one after another; return the state of it after each, or why it was refused."""
    found: list[str] = []
    await store.put(request)
    for who in answers:
        try:
            await store.answer((await store.show(request.id)).request.grant(who))
            found.append((await store.show(request.id)).state)
        except ApprovalError as error:
            found.append(str(error).partition("cannot be used: ")[2])
    return found


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ((ANN, BEN), ["pending", "answered"]),
        ((ANN, Identity("ann", "openid")), ["pending", "ann (openid) approved it before; it needs another approver"]),
        ((ANN, "ben (terminal)"), ["pending", "nobody has logged in"]),
        (("ben (terminal)", ANN, BEN), ["pending", "pending", "answered"]),
        (("ann", "ben", "cid"), ["pending", "answered"]),
        ((Identity("ada", "console"),), ["ada (console) asked for it; it needs another approver"]),
        (("ada (terminal)", "Ada"), ["ada (terminal) asked for it", "Ada asked for it"]),
        ((ANN, Identity("x", aliases=("ada",))), ["pending", "it needs another approver"]),
        ((Identity("risk", "model"), ANN, BEN), ["risk (model) is a model", "pending", "answered"]),
    ],
    ids=["two", "one twice", "typed second", "typed first", "typed", "own", "own typed", "own by alias", "model"],
)
async def test_two_people_are_two_identities(
    store: ReviewableApprovalStore, answers: tuple[Any, ...], expected: list[str]
) -> None:
    found = await state_after(store, TWO, *answers[: len(expected)])

    assert len(found) == len(expected)
    assert all(part in said for part, said in zip(expected, found, strict=True)), found


@pytest.mark.parametrize(
    ("by", "also", "ids", "fits"),
    [
        ("ann", ("ben",), (), True),
        ("ann", ("ada",), (), False),
        ("ann", ("Ann (console)",), (), False),
        (ANN, ("ben",), (), False),
        ("ann", ("ben",), ("ben",), False),
    ],
    ids=["two", "the one who asked", "one twice", "one identity", "the one who asked by another id"],
)
def test_a_grant_of_several_is_of_several_people(by: Any, also: Any, ids: tuple[str, ...], fits: bool) -> None:
    request = replace(TWO, requester_ids=ids)

    assert (misfit(request.grant(by, also=also), request) == "") == fits


async def test_a_rule_that_lets_the_one_who_asks_approve_counts_them(store: ReviewableApprovalStore) -> None:
    rule = RequiredApprovers("two", {"*": 2})
    by_rule = replace(TWO, required=(rule,))

    assert await state_after(store, by_rule, Identity("ada"), ANN) == ["pending", "answered"]


@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize("other", [Identity("ada"), Identity("risk", "model")], ids=["who asks", "a model"])
async def test_a_rule_lets_nobody_approve_whom_the_tool_does_not(
    store: ReviewableApprovalStore, other: Identity, people: int
) -> None:
    rule = ApproverRule(name="team", of={"team": people}, not_requester=False)
    gate = ApproverRules([rule], Groups({"team": ["ada", "ann", "ben", "risk"]}))
    append = appending([], requires_approval=True, approvals_needed=2)
    pipeline, run = Pipeline(Toolset([append]).with_gates(gate)), Run(principal="ada", approvals=store)
    waiting = await pipeline.run(ToolCall("append", {"text": "a"}), run)
    assert isinstance(waiting, Suspended)

    found = await state_after(store, waiting.request, ANN, other, BEN)

    assert (found[0], "needs another approver" in found[1], found[2]) == ("pending", True, "answered")


@representatives("stored")
async def test_a_call_runs_by_two_identities_other_than_the_one_who_asks(way: Way) -> None:
    ran: list[Any] = []

    async def runs(text: str, *answers: str | Identity) -> bool:
        store = MemoryApprovalStore()
        caller = way(
            Toolset([appending(ran, requires_approval=True, approvals_needed=2)]), principal="ada", approvals=store
        )
        waiting = await caller.call("append", {"text": text})
        assert isinstance(waiting, Suspended), waiting
        for who in answers:
            with suppress(ApprovalError):
                await store.answer(waiting.request.grant(who))
        answer = (await store.show(waiting.request.id)).answer
        return isinstance(await caller.answer(waiting, answer), Completed)

    found = [
        await runs(text, *answers)
        for text, answers in [("a", (ANN, "ben")), ("b", (ANN, Identity("ada"))), ("c", (ANN, ANN)), ("d", (ANN, BEN))]
    ]

    assert (found, ran) == ([False, False, False, True], [("d", 1)])


async def test_the_ids_of_the_token_of_the_one_who_asks_are_theirs(store: ReviewableApprovalStore) -> None:
    access = Access(ids=("u-1;iss=https://login.example.org", "ada@example.org"))
    pipeline = Pipeline([appending([], requires_approval=True, approvals_needed=2)])
    run = Run(principal="u-1;iss=https://login.example.org", approvals=store, channel=Channel(access=access))

    waiting = await pipeline.run(ToolCall("append", {"text": "x"}), run)
    assert isinstance(waiting, Suspended)
    found = await state_after(store, waiting.request, Identity("other", "openid", aliases=("ada@example.org",)))

    assert found == ["other (openid) asked for it; it needs another approver"]

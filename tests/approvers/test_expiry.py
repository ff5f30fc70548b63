"""Requests that nobody approves within the time of their rule, in memory, in a file, on a Postgres server."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from toolcrib import Pipeline, Run, Suspended, ToolCall, Toolset
from toolcrib.approvals import LedgerStore, MemoryApprovalStore, stored_approver
from toolcrib.approvers import ApproverRule, ApproverRules, Groups, Identity
from toolcrib.calls import ApprovalRequest, Denial, Grant, Rejected, outcome_from_dict
from toolcrib.errors import ApprovalError
from toolcrib.record import ListSink
from toolcrib.testing import FakeClock
from toolcrib.tools import ez_tool

HOUR = 3600.0
SOON = ApproverRule(name="within two hours", of="finance", expires=timedelta(hours=2))
BOTH = replace(SOON, of={"finance": 2})
GROUPS = Groups({"finance": ["bob", "cid", "dee"]})
BOB, CID, DEE = (Identity(name, "token") for name in ("bob", "cid", "dee"))
WHY = "it was not approved within 2 hours, which the rule within two hours sets, and has not run"


@ez_tool
async def refund(order: int) -> str:
    """Refund an order."""
    return f"refunded {order}"


def guarded(*rules: ApproverRule) -> Pipeline:
    return Pipeline(Toolset([refund]).with_gates(ApproverRules(rules or (SOON,), GROUPS)))


async def asked(pipeline: Pipeline, run: Run) -> Suspended:
    outcome = await pipeline.run(ToolCall("refund", {"order": 7}), run)
    assert isinstance(outcome, Suspended), outcome.text()
    return outcome


async def test_a_call_that_is_not_approved_in_time_is_refused_by_the_rule_and_the_record_says_so(
    store: LedgerStore, clock: FakeClock
) -> None:
    sink = ListSink()
    pipeline, run = guarded(), Run(principal="ada", approvals=store, sinks=(sink,))
    waiting = await asked(pipeline, run)

    clock.advance(2 * HOUR - 60)
    before = await pipeline.run(waiting, run)
    clock.advance(120)
    after = await pipeline.run(waiting, run)

    assert before.kind == "suspended"
    assert (after.kind, after.text()) == ("rejected", f"Rejected: {WHY}")
    approval = sink.records[-1].approval
    assert approval is not None
    assert (approval["kind"], approval["approver"]) == ("denial", "within two hours (rule)")
    assert (await asked(pipeline, run)).request.id != waiting.request.id


@pytest.mark.parametrize(
    "answer",
    [
        lambda request: request.grant(BOB),
        lambda request: request.always(BOB),
        lambda request: request.deny(message="no", by="bob"),
    ],
    ids=["yes", "always", "no"],
)
async def test_an_answer_that_comes_after_is_refused_and_named_so(
    store: LedgerStore, clock: FakeClock, answer: Any
) -> None:
    pipeline, run = guarded(), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)
    clock.advance(3 * HOUR)

    with pytest.raises(ApprovalError, match=r"expired at .* by the rule within two hours; make the call again"):
        await store.answer(answer(waiting.request))
    entry = await store.show(waiting.request.id)

    assert (entry.state, entry.status) == ("answered", "expired")
    assert await store.standing() == ()


async def test_a_request_that_was_found_expired_stays_so_when_the_clock_goes_back(
    store: LedgerStore, clock: FakeClock
) -> None:
    waiting = await asked(guarded(), Run(principal="ada", approvals=store))
    clock.advance(3 * HOUR)
    with pytest.raises(ApprovalError, match="expired"):
        await store.answer(waiting.request.grant(BOB))

    clock.advance(-2 * HOUR)

    assert (await store.show(waiting.request.id)).status == "expired"


async def test_a_yes_that_comes_with_the_call_after_the_time_is_refused(store: LedgerStore, clock: FakeClock) -> None:
    pipeline, run = guarded(), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)
    clock.advance(3 * HOUR)

    outcome = await pipeline.run(waiting, run, grant=waiting.request.grant(BOB))

    assert outcome.kind == "rejected"
    assert "which the rule within two hours sets" in outcome.text()


async def test_a_yes_in_time_counts_when_the_call_comes_back_later(store: LedgerStore, clock: FakeClock) -> None:
    pipeline, run = guarded(), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)

    await store.answer(waiting.request.grant(BOB))
    clock.advance(9 * HOUR)

    assert (await pipeline.run(waiting, run)).text() == "refunded 7"


async def test_the_approval_of_one_of_two_does_not_keep_a_request_from_expiring(
    store: LedgerStore, clock: FakeClock
) -> None:
    pipeline, run = guarded(BOTH), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)
    await store.answer(waiting.request.grant(BOB))
    clock.advance(3 * HOUR)

    with pytest.raises(ApprovalError, match="expired"):
        await store.answer(waiting.request.grant(CID))

    assert (await pipeline.run(waiting, run)).kind == "rejected"


@pytest.mark.parametrize(("hours", "status"), [(1, "expired"), (5, "expired")])
async def test_an_approval_that_ends_before_it_is_used_leaves_the_request_to_expire(
    store: LedgerStore, clock: FakeClock, hours: int, status: str
) -> None:
    request = (await asked(guarded(), Run(principal="ada", approvals=store))).request
    ends = request.created_at + timedelta(hours=hours)
    await store.answer(request.grant(BOB, expires_at=ends))

    before = await store.show(request.id)
    clock.advance((max(hours, 2) + 1) * HOUR)
    after = await store.show(request.id)

    assert before.closes_at == request.created_at + timedelta(hours=max(hours, 2))
    assert (before.status, after.status) == ("approved", status)


async def test_what_has_expired_is_not_pending_and_is_answered_for_whoever_looks(
    store: LedgerStore, clock: FakeClock
) -> None:
    pipeline, run = guarded(), Run(principal="ada", approvals=store)
    ids = [(await asked(pipeline, run)).request.id for _ in range(3)]
    clock.advance(3 * HOUR)

    assert await store.count_pending() == (0, 0)
    assert await store.list(pending=True) == ()
    assert [entry.request.id for entry in await store.answered()] == ids


async def test_who_waits_for_an_answer_has_the_denial_when_the_request_expires(
    store: LedgerStore, clock: FakeClock
) -> None:
    run = Run(principal="ada", approvals=store, approver=stored_approver(store))
    calling = asyncio.create_task(guarded().run(ToolCall("refund", {"order": 7}), run))
    while not (clock.waiting and await store.list(pending=True)):  # noqa: ASYNC110
        await asyncio.sleep(0)

    clock.advance(3 * HOUR)

    assert (await calling).text() == f"Rejected: {WHY}"


async def test_of_several_rules_the_first_to_expire_counts(store: LedgerStore, clock: FakeClock) -> None:
    sooner = replace(SOON, name="one hour", expires=timedelta(hours=1))
    pipeline, run = (
        guarded(SOON, sooner, replace(SOON, name="ever", expires=None)),
        Run("r", principal="ada", approvals=store),
    )
    waiting = await asked(pipeline, run)

    clock.advance(1.5 * HOUR)

    assert (await pipeline.run(waiting, run)).text().startswith("Rejected: it was not approved within 1 hour, which")


async def test_a_call_in_doubt_waits_for_ever(store: LedgerStore, clock: FakeClock) -> None:
    waiting = await asked(guarded(), Run(principal="ada", approvals=store))
    await store.put(replace(waiting.request, id="ask_doubt", in_doubt=True))

    clock.advance(1000 * HOUR)

    assert [entry.request.id for entry in await store.list(pending=True)] == ["ask_doubt"]


async def test_a_request_expires_once_for_several_who_look_at_once(store: LedgerStore, clock: FakeClock) -> None:
    waiting = await asked(guarded(), Run(principal="ada", approvals=store))
    clock.advance(3 * HOUR)

    entries = await asyncio.gather(*(store.show(waiting.request.id) for _ in range(8)))

    assert {entry.answer for entry in entries} == {entries[0].expired}
    assert isinstance(entries[0].answer, Denial)
    assert entries[0].answer.at == waiting.request.expires_at


# --- without a store


def asked_hours_ago(waiting: Suspended, hours: float) -> tuple[Suspended, ApprovalRequest]:
    request = replace(waiting.request, created_at=waiting.request.created_at - timedelta(hours=hours))
    data = waiting.to_dict()
    data["request"] = request.to_dict()
    data["call"]["request"] = request.to_dict()
    old = outcome_from_dict(data)
    assert isinstance(old, Suspended)
    return old, request


async def test_without_a_store_a_call_that_comes_back_after_the_time_is_refused() -> None:
    pipeline, run = guarded(), Run(principal="ada")
    old, request = asked_hours_ago(await asked(pipeline, run), 3)

    outcomes = [await pipeline.run(old, run), await pipeline.run(old, run, grant=request.grant(BOB))]

    assert [outcome.text() for outcome in outcomes] == [f"Rejected: {WHY}"] * 2


@pytest.mark.parametrize("kept", [True, False], ids=["store", "no store"])
async def test_an_approver_who_answers_at_once_and_too_late_lets_nothing_run(kept: bool) -> None:
    async def slow(request: ApprovalRequest) -> Grant:
        return request.grant(BOB, at=request.created_at + timedelta(hours=3))

    run = Run(principal="ada", approver=slow, approvals=MemoryApprovalStore() if kept else None)

    outcome = await guarded().run(ToolCall("refund", {"order": 7}), run)

    assert isinstance(outcome, Rejected)
    assert outcome.text() == f"Rejected: {WHY}"

"""Requests that people of a further group may answer after a time, in memory, in a file, on a Postgres server."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.approvers.stores import refused
from tests.approvers.test_expiry import asked, asked_hours_ago, refund
from toolcrib import Pipeline, Run, ToolCall, Toolset
from toolcrib.approvals import ApprovalEntry, LedgerStore, MemoryApprovalStore, misfit
from toolcrib.approvers import ApproverRule, ApproverRules, Groups, Identity
from toolcrib.calls import ApprovalRequest, Grant, Rejected, now
from toolcrib.record import ListSink
from toolcrib.testing import FakeClock

HOUR = 3600.0
RULE = ApproverRule(name="refunds", of="finance", escalate={timedelta(hours=1): "managers"})
BOTH = replace(RULE, of={"finance": 2})
GROUPS = Groups({"finance": ["bob", "cid"], "managers": ["eve", "fay"], "board": ["gil"]})
BOB, CID, EVE, FAY, GIL = (Identity(name, "token") for name in ("bob", "cid", "eve", "fay", "gil"))


def guarded(rule: ApproverRule = RULE, groups: Groups = GROUPS) -> Pipeline:
    return Pipeline(Toolset([refund]).with_gates(ApproverRules([rule], groups)))


async def test_people_of_the_further_group_may_answer_from_the_time_on_and_the_record_says_so(
    store: LedgerStore, clock: FakeClock
) -> None:
    sink = ListSink()
    pipeline, run = guarded(), Run(principal="ada", approvals=store, sinks=(sink,))
    waiting = await asked(pipeline, run)

    clock.advance(HOUR - 60)
    await refused(store, waiting.request.grant(EVE), r"eve \(token, by escalation\) does not meet the rule refunds")
    clock.advance(120)
    await refused(store, waiting.request.grant(GIL))
    await store.answer(waiting.request.grant(EVE))

    assert (await pipeline.run(waiting, run)).text() == "refunded 7"
    approval = sink.records[-1].approval
    assert approval is not None
    assert approval["approver"] == "eve (token, by escalation)"
    assert approval["identity"]["escalated"] is True


async def test_the_people_of_before_may_answer_after_the_time_too_and_that_is_no_escalation(
    store: LedgerStore, clock: FakeClock
) -> None:
    pipeline, run = guarded(), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)
    clock.advance(2 * HOUR)

    await store.answer(waiting.request.grant(BOB))
    entry = await store.show(waiting.request.id)

    assert entry.answer is not None
    assert entry.answer.by == "bob (token)"
    assert (await pipeline.run(waiting, run)).kind == "completed"


async def test_each_of_the_further_group_takes_one_place_of_any_group(store: LedgerStore, clock: FakeClock) -> None:
    rule = replace(RULE, of={"finance": 1, "board": 1})
    pipeline, run = guarded(rule), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)
    clock.advance(2 * HOUR)

    await store.answer(waiting.request.grant(EVE))
    await refused(store, waiting.request.grant(EVE))
    after_one = await pipeline.run(waiting, run)
    await store.answer(waiting.request.grant(FAY))

    assert after_one.kind == "suspended"
    assert (await pipeline.run(waiting, run)).kind == "completed"


async def test_an_approval_of_one_before_the_time_and_of_another_after_it_count_together(
    store: LedgerStore, clock: FakeClock
) -> None:
    pipeline, run = guarded(BOTH), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)
    await store.answer(waiting.request.grant(BOB))
    await refused(store, waiting.request.grant(EVE))

    clock.advance(2 * HOUR)
    await store.answer(waiting.request.grant(EVE))

    assert (await pipeline.run(waiting, run)).kind == "completed"


async def test_who_asked_may_not_answer_as_a_manager_either(store: LedgerStore, clock: FakeClock) -> None:
    waiting = await asked(guarded(), Run(principal="eve", approvals=store))
    clock.advance(2 * HOUR)

    await refused(store, waiting.request.grant(EVE))


async def test_one_escalation_comes_after_the_other(store: LedgerStore, clock: FakeClock) -> None:
    rule = replace(RULE, escalate={timedelta(hours=4): "board", timedelta(hours=1): "managers"})
    waiting = await asked(guarded(rule), Run(principal="ada", approvals=store))

    clock.advance(2 * HOUR)
    await refused(store, waiting.request.grant(GIL))
    clock.advance(3 * HOUR)
    await store.answer(waiting.request.grant(GIL))


async def test_a_standing_yes_by_escalation_covers_no_call_that_is_not_escalated(
    store: LedgerStore, clock: FakeClock
) -> None:
    pipeline, run = guarded(), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)
    clock.advance(2 * HOUR)
    await store.answer(waiting.request.always(EVE))
    (grant,) = await store.standing()

    later = replace(waiting.request, id="ask_2", call_id="call_2", created_at=now())

    assert "does not meet the rule" in misfit(grant, later)
    assert (await pipeline.run(ToolCall("refund", {"order": 7}), run)).kind == "suspended"


async def test_who_left_the_further_group_since_lets_nothing_run(store: LedgerStore, clock: FakeClock) -> None:
    managers = ["eve"]
    groups = Groups(lambda group: managers if group == "managers" else ["bob"])
    pipeline, run = guarded(groups=groups), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)
    clock.advance(2 * HOUR)
    await store.answer(waiting.request.grant(EVE))

    managers[:] = ["fay"]

    assert (await pipeline.run(waiting, run)).kind == "suspended"


async def test_a_group_of_the_login_and_everybody_may_be_the_further_ones(store: LedgerStore, clock: FakeClock) -> None:
    groups = Groups({"finance": ["bob"]}, from_login=["managers"])
    by_login, everybody = guarded(groups=groups), guarded(replace(RULE, escalate={timedelta(hours=1): "*"}))
    run = Run(principal="ada", approvals=store)
    first, second = await asked(by_login, run), await asked(everybody, run)
    zed = Identity("zed", "openid", ("managers",))
    await refused(store, first.request.grant(zed))
    await refused(store, second.request.grant(zed))

    clock.advance(2 * HOUR)
    await refused(store, first.request.grant(Identity("zed", "openid")))
    await store.answer(first.request.grant(zed))
    await store.answer(second.request.grant(Identity("zed")))


@pytest.mark.parametrize(("hours", "kind"), [(0.5, "failed"), (1.5, "completed")])
async def test_without_a_store_the_time_of_the_answer_counts(hours: float, kind: str) -> None:
    pipeline, run = guarded(), Run(principal="ada")
    old, request = asked_hours_ago(await asked(pipeline, run), 3)

    answered_at = request.created_at + timedelta(hours=hours)
    outcome = await pipeline.run(old, run, grant=request.grant(EVE, at=answered_at))

    assert outcome.kind == kind


@pytest.mark.parametrize("kept", [True, False], ids=["store", "no store"])
@pytest.mark.parametrize(("hours", "kind"), [(0.5, "failed"), (1.5, "completed")])
async def test_an_approver_who_answers_at_once_may_from_the_time_on(hours: float, kind: str, kept: bool) -> None:
    async def later(request: ApprovalRequest) -> Grant:
        return request.grant(EVE, at=request.created_at + timedelta(hours=hours))

    run = Run(principal="ada", approver=later, approvals=MemoryApprovalStore() if kept else None)

    assert (await guarded().run(ToolCall("refund", {"order": 7}), run)).kind == kind


async def test_a_call_that_only_further_people_could_approve_waits_for_them(clock: FakeClock) -> None:
    alone = guarded(groups=Groups({"finance": ["ada"], "managers": ["eve"]}))
    hopeless = guarded(groups=Groups({"finance": ["ada"], "managers": ["ada"]}))
    run = Run(principal="ada", approvals=MemoryApprovalStore(clock=clock))

    waiting = await asked(alone, run)
    refusal = await hopeless.run(ToolCall("refund", {"order": 7}), run)

    assert waiting.request.required
    assert isinstance(refusal, Rejected)
    assert "nobody can approve this" in refusal.reason


async def test_the_request_shows_who_may_answer_now_and_who_from_when_on() -> None:
    request = (await asked(guarded(), Run(principal="bob"))).request
    at = request.created_at
    later = at + timedelta(hours=1)

    shown = {when: ApprovalEntry(request).answerers(when) for when in (at, later)}

    rows: dict[str, Any] = {"rule": "refunds", "group": "finance", "people": ["cid"], "from": at.isoformat()}
    managers = {"rule": "refunds", "group": "managers", "people": ["eve", "fay"], "from": later.isoformat()}
    assert shown[at] == [{**rows, "now": True}, {**managers, "now": False}]
    assert shown[later] == [{**rows, "now": True}, {**managers, "now": True}]
    said = rf"from {later.astimezone():%Y-%m-%d %H:%M} \(\S+\) on, managers may answer, too"
    assert re.search(said, request.text())
    assert "after 1 hour managers (eve, fay) may answer, too" in request.text()


def test_what_stands_before_a_tool_is_explained_with_its_times() -> None:
    rule = replace(RULE, expires=timedelta(hours=8), remind=timedelta(minutes=30))

    line = next(line for line in guarded(rule).explain("refund").splitlines() if "approvers" in line)

    assert line.endswith(
        "approvers: refunds: 1 of finance (bob, cid), within 8 hours; after 1 hour managers (eve, fay) may answer, "
        "too; a reminder after 30 minutes"
    )


# --- instead


INSTEAD = replace(RULE, instead=True)


async def test_who_could_answer_before_no_longer_may_where_the_rule_says_instead(
    store: LedgerStore, clock: FakeClock
) -> None:
    pipeline, run = guarded(INSTEAD), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)
    clock.advance(HOUR + 60)

    await refused(store, waiting.request.grant(BOB), "after 1 hour managers \\(eve, fay\\) may answer instead")
    await store.answer(waiting.request.grant(EVE))

    assert (await pipeline.run(waiting, run)).kind == "completed"


async def test_an_approval_in_time_counts_after_an_escalation_that_is_instead(
    store: LedgerStore, clock: FakeClock
) -> None:
    pipeline, run = guarded(replace(BOTH, instead=True)), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)
    await store.answer(waiting.request.grant(BOB))
    clock.advance(HOUR + 60)

    await refused(store, waiting.request.grant(CID))
    await store.answer(waiting.request.grant(EVE))

    assert (await pipeline.run(waiting, run)).kind == "completed"


async def test_of_several_escalations_instead_the_last_one_counts(store: LedgerStore, clock: FakeClock) -> None:
    rule = replace(INSTEAD, escalate={timedelta(hours=1): "managers", timedelta(hours=4): "board"})
    waiting = await asked(guarded(rule), Run(principal="ada", approvals=store))
    entry, asked_at = await store.show(waiting.request.id), waiting.request.created_at
    shown = {
        hours: [(one["group"], one["now"]) for one in entry.answerers(asked_at + timedelta(hours=hours))]
        for hours in (0, 2, 5)
    }
    clock.advance(5 * HOUR)

    await refused(store, waiting.request.grant(EVE))
    await store.answer(waiting.request.grant(GIL))

    assert shown == {
        0: [("finance", True), ("managers", False), ("board", False)],
        2: [("managers", True), ("board", False)],
        5: [("board", True)],
    }


async def test_the_question_says_that_others_answer_instead(store: LedgerStore) -> None:
    waiting = await asked(guarded(INSTEAD), Run(principal="ada", approvals=store))

    assert "on, managers may answer instead" in waiting.request.text()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"escalate": {}}, "which names no group"),
        ({"remind": timedelta(hours=1)}, "let it come before escalate"),
    ],
)
def test_an_instead_that_changes_nothing_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        replace(INSTEAD, **given)

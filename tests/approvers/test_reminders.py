"""Notices of requests: each is sent once, while the request waits, in memory, in a file, on a Postgres server."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from tests.approvers.test_expiry import asked, refund
from toolcrib import Pipeline, Run, Toolset
from toolcrib.approvals import LedgerStore, Notice
from toolcrib.approvers import ApproverRule, ApproverRules, Groups, Identity
from toolcrib.calls import ApprovalRequest, Consent
from toolcrib.testing import FakeClock

MINUTE = 60.0
RULE = ApproverRule(
    name="refunds",
    of="finance",
    remind=timedelta(minutes=30),
    escalate={timedelta(hours=1): "managers"},
    expires=timedelta(hours=2),
)
GROUPS = Groups({"finance": ["bob", "cid"], "managers": ["eve"]})
BOB = Identity("bob", "token")
DESK = "webhook:desk"


async def pending(store: LedgerStore, *rules: ApproverRule) -> ApprovalRequest:
    pipeline = Pipeline(Toolset([refund]).with_gates(ApproverRules(rules or (RULE,), GROUPS)))
    return (await asked(pipeline, Run(principal="ada", approvals=store))).request


async def sent(store: LedgerStore, address: str = DESK, *groups: str) -> list[str]:
    """Send what is due, and return the kinds of it."""
    due = await store.notices_due(address, groups)
    return [notice.kind for notice in await store.begin_notices(address, due)]


async def test_who_was_told_is_reminded_once_and_told_of_the_escalation_once(
    store: LedgerStore, clock: FakeClock
) -> None:
    await pending(store)
    told = [await sent(store), await sent(store)]

    for minutes in (29, 2, 1, 29, 1, 40):
        clock.advance(minutes * MINUTE)
        told.append(await sent(store))

    assert told == [["pending"], [], [], ["reminder"], [], ["escalated"], [], []]


async def test_nobody_is_told_after_the_end(store: LedgerStore, clock: FakeClock) -> None:
    answered, expired = await pending(store), await pending(store)
    before = await store.notices_due(DESK)
    await store.answer(answered.grant(BOB))
    clock.advance(3 * 60 * MINUTE)

    assert {notice.request.id for notice in before} == {answered.id, expired.id}
    assert await store.begin_notices(DESK, before) == ()
    assert await store.notices_due(DESK) == ()


async def test_of_several_who_send_at_once_one_does(store: LedgerStore) -> None:
    await pending(store)
    due = await store.notices_due(DESK)

    begun = await asyncio.gather(*(store.begin_notices(DESK, due) for _ in range(8)))

    assert sorted(len(one) for one in begun) == [0] * 7 + [1]


async def test_what_was_not_sent_is_due_again(store: LedgerStore) -> None:
    await pending(store)
    begun = await store.begin_notices(DESK, await store.notices_due(DESK))
    after_begin = await store.notices_due(DESK)

    await store.undo_notices(DESK, begun)

    assert after_begin == ()
    assert await sent(store) == ["pending"]


async def test_each_address_is_told(store: LedgerStore) -> None:
    await pending(store)

    assert [await sent(store), await sent(store, "webhook:other")] == [["pending"]] * 2


async def test_people_of_a_group_are_told_of_what_they_may_answer_when_they_may(
    store: LedgerStore, clock: FakeClock
) -> None:
    await pending(store)
    await store.put(ApprovalRequest("ask_free", "call_free", "refund", {}, "d"))  # that no rule is about
    told = {"finance": [await sent(store, "f", "finance")], "managers": [await sent(store, "m", "managers")]}

    for minutes in (31, 30):
        clock.advance(minutes * MINUTE)
        told["finance"].append(await sent(store, "f", "finance"))
        told["managers"].append(await sent(store, "m", "managers"))

    assert told == {"finance": [["pending"], ["reminder"], []], "managers": [[], [], ["escalated"]]}


async def test_who_is_told_late_is_told_once_of_all_that_is_due(store: LedgerStore, clock: FakeClock) -> None:
    await pending(store)
    clock.advance(90 * MINUTE)

    assert [await sent(store), await sent(store)] == [["pending"], []]


async def test_a_reminder_that_comes_with_the_escalation_is_one_notice(store: LedgerStore, clock: FakeClock) -> None:
    await pending(store)
    first = await sent(store)
    clock.advance(90 * MINUTE)

    assert [first, await sent(store), await sent(store)] == [["pending"], ["escalated"], []]


async def test_of_several_rules_the_first_reminds_and_each_group_is_told_once(
    store: LedgerStore, clock: FakeClock
) -> None:
    sooner = replace(RULE, name="sooner", remind=timedelta(minutes=10))
    await pending(store, RULE, sooner)
    told = [await sent(store)]

    for minutes in (11, 20, 30):
        clock.advance(minutes * MINUTE)
        told.append(await sent(store))

    assert told == [["pending"], ["reminder"], [], ["escalated"]]


async def test_a_notice_is_due_at_once_where_the_clock_has_gone_back(store: LedgerStore, clock: FakeClock) -> None:
    await pending(store)
    clock.advance(-3 * 60 * MINUTE)

    assert await sent(store) == ["pending"]


async def test_a_request_that_is_asked_anew_is_told_anew(store: LedgerStore) -> None:
    request = await pending(store)
    first = await sent(store)
    await store.answer(request.grant(BOB))
    without_bob = replace(request.required[0], members={"finance": [["cid"]]})
    await store.put(replace(request, required=(without_bob,)))

    assert [first, await sent(store)] == [["pending"]] * 2


async def test_a_consent_and_a_question_during_a_call_are_told_once(store: LedgerStore, clock: FakeClock) -> None:
    required = (await pending(store)).required
    for name, more in {"a": {"consent": Consent("sign in")}, "b": {"asked_by": "server"}}.items():
        await store.put(ApprovalRequest(name, name, "refund", {}, "d", required=required, **more))
    await store.begin_notices(DESK, await store.notices_due(DESK))
    clock.advance(90 * MINUTE)

    assert [(one.kind, one.request.id) for one in await _of(store, "a", "b")] == []


async def _of(store: LedgerStore, *ids: str) -> list[Notice]:
    return [notice for notice in await store.notices_due(DESK) if notice.request.id in ids]

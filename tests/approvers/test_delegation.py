"""People who gave their right to answer to others for a time, in memory, in a file, on a Postgres server."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.approvers.stores import refused
from tests.approvers.test_expiry import asked, asked_hours_ago, refund
from toolcrib import Pipeline, Run, ToolCall, Toolset
from toolcrib.approvals import ApprovalEntry, LedgerStore, MemoryApprovalStore, misfit
from toolcrib.approvers import ApproverRule, ApproverRules, Delegation, Groups, Identity
from toolcrib.calls import Grant, Rejected, now
from toolcrib.record import ListSink
from toolcrib.testing import FakeClock
from toolcrib.tools import ez_tool

HOUR = 3600.0
ONE = ApproverRule(name="refunds", of="finance")
TWO = replace(ONE, of={"finance": 2})
PEOPLE = {"finance": ["ann", "cid"], "managers": ["eve"]}
ANN, BOB, CID, DEE, EVE = (Identity(name, "token") for name in ("ann", "bob", "cid", "dee", "eve"))


def given(person: str = "ann", to: str = "bob", hours: float = 2, since: float | None = None) -> Delegation:
    begins = None if since is None else now() + timedelta(hours=since)
    return Delegation(person, to, now() + timedelta(hours=hours), begins)


def guarded(rule: ApproverRule = ONE, *delegations: Delegation, **groups: Any) -> Pipeline:
    of = Groups(**{"members": PEOPLE, "delegations": delegations or (given(),), **groups})
    return Pipeline(Toolset([refund]).with_gates(ApproverRules([rule], of)))


async def test_a_delegate_answers_for_a_time_and_the_record_says_for_whom(store: LedgerStore) -> None:
    sink = ListSink()
    pipeline, run = guarded(), Run(principal="ada", approvals=store, sinks=(sink,))
    waiting = await asked(pipeline, run)

    await refused(store, waiting.request.grant(DEE))
    await store.answer(waiting.request.grant(BOB))

    assert (await pipeline.run(waiting, run)).text() == "refunded 7"
    approval = sink.records[-1].approval
    assert approval is not None
    assert approval["approver"] == "bob for ann (token)"
    assert approval["identity"]["stands_for"] == "ann"


@pytest.mark.parametrize("hours", [0.5, 3])
async def test_before_and_after_the_time_a_delegate_may_not_answer(
    store: LedgerStore, clock: FakeClock, hours: float
) -> None:
    waiting = await asked(guarded(ONE, given(since=1)), Run(principal="ada", approvals=store))
    clock.advance(hours * HOUR)

    await refused(store, waiting.request.grant(BOB), r"the approval of bob for ann \(token\) does not meet the rule")
    await store.answer(waiting.request.grant(ANN))


async def test_an_answer_in_the_time_counts_when_the_call_comes_back_after_it(
    store: LedgerStore, clock: FakeClock
) -> None:
    pipeline, run = guarded(TWO, given(since=-1)), Run(principal="ada", approvals=store)
    old, request = asked_hours_ago(await asked(pipeline, run), 0)
    await store.answer(request.grant(BOB))

    clock.advance(3 * HOUR)
    await store.answer(request.grant(CID))

    assert (await pipeline.run(old, run)).kind == "completed"


async def test_an_answer_when_a_delegation_holds_by_the_clock_of_the_store_lets_the_call_begin(
    store: LedgerStore, clock: FakeClock
) -> None:
    pipeline, run = guarded(ONE, given(since=1)), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)
    clock.advance(1.5 * HOUR)

    await store.answer(waiting.request.grant(BOB))

    assert (await pipeline.run(waiting, run)).kind == "completed"


@pytest.mark.parametrize("order", [(ANN, BOB), (BOB, ANN)])
@pytest.mark.parametrize("members", [["ann", "cid"], ["ann", "bob", "cid"]], ids=["bob of none", "bob of finance"])
async def test_a_person_and_their_delegate_are_never_two(
    store: LedgerStore, order: tuple[Identity, Identity], members: list[str]
) -> None:
    pipeline = guarded(TWO, members={"finance": members})
    run = Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)

    await store.answer(waiting.request.grant(order[0]))
    await refused(store, waiting.request.grant(order[1]), "approved it before|does not meet the rule")
    after_both = await pipeline.run(waiting, run)
    await store.answer(waiting.request.grant(CID))

    assert after_both.kind == "suspended"
    assert (await pipeline.run(waiting, run)).kind == "completed"


async def test_who_stands_for_two_is_one(store: LedgerStore) -> None:
    pipeline = guarded(TWO, given("ann", "bob"), given("cid", "bob"), members={"finance": ["ann", "cid", "dee"]})
    waiting = await asked(pipeline, Run(principal="ada", approvals=store))
    await store.answer(waiting.request.grant(BOB))

    for other in (ANN, CID, BOB):
        await refused(store, waiting.request.grant(other), "approved it before|does not meet the rule")
    await store.answer(waiting.request.grant(DEE))


@pytest.mark.parametrize("answer_with", ["store", "call"])
async def test_where_a_tool_takes_two_a_delegate_and_their_person_are_one(store: LedgerStore, answer_with: str) -> None:
    @ez_tool(requires_approval=True, approvals_needed=2)
    async def pay(order: int) -> str:
        return f"paid {order}"

    pipeline = Pipeline(Toolset([pay]).with_gates(ApproverRules([ONE], Groups(PEOPLE, delegations=[given()]))))
    run = Run(principal="ada", approvals=store)
    waiting: Any = await pipeline.run(ToolCall("pay", {"order": 7}), run)
    ann, bob = waiting.request.grant(ANN), waiting.request.grant(BOB)

    if answer_with == "store":
        await store.answer(ann)
        await refused(
            store, bob, "bob for ann .* counts as one person with an approver before; it needs another approver"
        )
        outcome = await pipeline.run(waiting, run)
    else:
        assert bob.identity is not None
        outcome = await pipeline.run(waiting, run, grant=replace(ann, also=(bob.by,), identities=(bob.identity,)))

    assert outcome.kind in ("suspended", "failed")


@pytest.mark.parametrize(("principal", "answerer"), [("ann", BOB), ("bob", ANN), ("b@example.org", ANN)])
async def test_neither_answers_what_the_other_one_asked_for(
    store: LedgerStore, principal: str, answerer: Identity
) -> None:
    pipeline = guarded(people={"bob": ["b@example.org"]})
    run = Run(principal=principal, approvals=store)
    waiting = await asked(pipeline, run)

    await refused(store, waiting.request.grant(answerer))
    await store.answer(waiting.request.grant(CID))

    assert (await pipeline.run(waiting, run)).kind == "completed"


async def test_a_right_may_be_given_on_while_both_hold(store: LedgerStore, clock: FakeClock) -> None:
    pipeline = guarded(ONE, given("ann", "bob", hours=4), given("bob", "dee", hours=2))
    run = Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)

    grant = waiting.request.grant(DEE)
    await store.answer(grant)
    late = await asked(pipeline, run)
    clock.advance(3 * HOUR)
    await refused(store, late.request.grant(DEE))
    await store.answer(late.request.grant(BOB))

    assert grant.by == "dee for ann (token)"
    assert (await pipeline.run(waiting, run)).kind == "completed"


async def test_a_right_that_is_taken_back_lets_nothing_run(store: LedgerStore) -> None:
    run = Run(principal="ada", approvals=store)
    waiting = await asked(guarded(), run)
    await store.answer(waiting.request.grant(BOB))

    outcome = await guarded(ONE, given("cid", "dee")).run(waiting, run)

    assert outcome.kind == "suspended"


async def test_a_standing_yes_of_a_delegate_ends_with_the_delegation(store: LedgerStore) -> None:
    waiting = await asked(guarded(), Run(principal="ada", approvals=store))
    await store.answer(waiting.request.always(BOB))
    (grant,) = await store.standing()
    later = replace(waiting.request, id="ask_2", call_id="call_2")

    assert not misfit(grant, later)
    assert "does not meet the rule" in misfit(grant, later, now() + timedelta(hours=3))


async def test_a_model_stands_for_nobody(store: LedgerStore) -> None:
    waiting = await asked(guarded(), Run(principal="ada", approvals=store))
    model = Identity("bob", "model", stands_for="ann")

    await refused(store, waiting.request.grant(model))
    await refused(store, Grant(**{**_fields(waiting.request.grant(model)), "identity": model}))


def _fields(grant: Grant) -> dict[str, Any]:
    return {name: getattr(grant, name) for name in Grant.__dataclass_fields__}


async def test_who_says_that_they_stand_for_another_and_do_not_is_refused(store: LedgerStore) -> None:
    waiting = await asked(guarded(), Run(principal="ada", approvals=store))
    liar = replace(waiting.request.grant(DEE), identity=replace(DEE, stands_for="ann"))

    await refused(store, liar)


async def test_both_are_known_by_their_other_ids(store: LedgerStore) -> None:
    people = {"ann": ["a@example.org"], "bob": ["U1"]}
    pipeline = guarded(ONE, given("a@example.org", "U1"), people=people)
    run = Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)

    await store.answer(waiting.request.grant(BOB))

    assert (await pipeline.run(waiting, run)).kind == "completed"


async def test_a_delegate_of_one_to_whom_it_is_escalated_answers_from_then_on(
    store: LedgerStore, clock: FakeClock
) -> None:
    rule = replace(ONE, escalate={timedelta(hours=1): "managers"})
    pipeline, run = guarded(rule, given("eve", "bob")), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)
    grant = waiting.request.grant(BOB)
    await refused(store, grant)

    clock.advance(1.5 * HOUR)
    await store.answer(grant)

    assert grant.by == "bob for eve (token, by escalation)"
    assert (await pipeline.run(waiting, run)).kind == "completed"


async def test_without_a_store_a_delegate_answers_and_the_record_says_for_whom() -> None:
    sink = ListSink()
    pipeline, run = guarded(), Run(principal="ada", sinks=(sink,))
    waiting = await asked(pipeline, run)

    outcome = await pipeline.run(waiting, run, grant=waiting.request.grant(BOB))
    late = await asked(pipeline, run)
    refusal = await pipeline.run(late, run, grant=late.request.grant(BOB, at=now() + timedelta(hours=3)))

    assert (outcome.kind, refusal.kind) == ("completed", "failed")
    assert any((record.approval or {}).get("approver") == "bob for ann (token)" for record in sink.records)


async def test_a_call_that_nobody_else_could_approve_is_refused_and_says_who_counts_as_one() -> None:
    pipeline = guarded(TWO)

    refusal = await pipeline.run(ToolCall("refund", {"order": 7}), Run(principal="cid"))
    two = await guarded(TWO, given("ann", "cid")).run(ToolCall("refund", {"order": 7}), Run(principal="ada"))

    assert isinstance(refusal, Rejected)
    assert isinstance(two, Rejected)
    assert (
        "nobody can approve this. refunds: 2 of finance (ann, cid), not ada, who asked; cid for ann until" in two.reason
    )


async def test_the_request_shows_who_stands_for_whom_while_it_holds() -> None:
    request = (await asked(guarded(ONE, given(since=1)), Run(principal="cid"))).request

    shown = [ApprovalEntry(request).answerers(now() + timedelta(hours=hours))[0] for hours in (0, 1.5, 3)]

    assert [one["people"] for one in shown] == [["ann"], ["ann", "bob for ann"], ["ann"]]
    assert "; bob for ann from " in request.text()


async def test_the_console_and_the_command_line_need_no_file(clock: FakeClock) -> None:
    store = MemoryApprovalStore(clock=clock)
    waiting = await asked(guarded(), Run(principal="ada", approvals=store))
    kept = (await store.show(waiting.request.id)).request

    assert kept.answered_by(BOB).stands_for == "ann"
    assert kept.required[0].delegations[0].text().startswith("bob for ann until ")


# --- delegations that are refused


SOON, LATE = datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"to": "ann"}, "ann gives a right to themselves; name another person as `to`"),
        ({"to": " "}, "to is empty"),
        ({"until": datetime(2030, 1, 1)}, "until has no time zone"),
        ({"since": LATE, "until": SOON}, "is not after it begins"),
    ],
)
def test_what_is_no_delegation_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Delegation(**{"person": "ann", "to": "bob", "until": SOON, **fields})


@pytest.mark.parametrize(
    ("delegations", "problem"),
    [
        ([("ann", "bob"), ("bob", "ann")], "the delegation of ann to bob goes in a circle: ann, bob, ann; take one"),
        ([("ann", "bob"), ("bob", "cid"), ("cid", "ann")], "in a circle: ann, bob, cid, ann"),
        ([("ann", "a@example.org")], "the delegation of ann to a@example.org goes to themselves"),
        ([("an", "bob")], "no group lists an, who has no right to give"),
    ],
)
def test_a_right_that_comes_back_and_one_of_nobody_are_refused(
    delegations: list[tuple[str, str]], problem: str
) -> None:
    listed = [Delegation(person, to, LATE) for person, to in delegations]

    with pytest.raises(ValueError, match=problem):
        Groups(PEOPLE, people={"ann": ["a@example.org"]}, delegations=listed)


def test_a_right_that_comes_back_at_another_time_is_no_circle() -> None:
    there, back = Delegation("ann", "cid", SOON), Delegation("cid", "ann", LATE, since=SOON)

    assert Groups(PEOPLE, delegations=[there, back]).delegations == (there, back)


def test_many_ways_on_which_a_right_is_given_on_are_each_looked_at_once() -> None:
    given_on = [
        Delegation(f"{person}{number}", f"{to}{number + 1}", LATE)
        for number in range(60)
        for person in ("ann", "bob")
        for to in ("ann", "bob")
    ]

    assert len(Groups({"finance": ["ann0", "bob0"]}, delegations=given_on).delegations) == 240
    with pytest.raises(ValueError, match="in a circle: ann0, "):
        Groups({"finance": ["ann0", "bob0"]}, delegations=[*given_on, Delegation("bob60", "ann0", LATE)])


def test_a_delegation_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(TypeError, match=r"delegations must be a list, as in delegations=\[Delegation\(\.\.\.\)\]"):
        Groups(PEOPLE, delegations=given())  # type: ignore[arg-type]

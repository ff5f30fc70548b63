"""Who may approve a call, over every way that an answer comes; and those who try to get round a rule."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Pipeline, Run, Suspended, ToolCall, Toolset
from toolcrib.approvals import (
    ApprovalStore,
    MemoryApprovalStore,
    SqliteApprovalStore,
    misfit,
    stored_approver,
)
from toolcrib.approvals._required import approvers_lacking
from toolcrib.approvers import ApproverRule, ApproverRules, Groups, Identity, RequiredApprovers
from toolcrib.calls import ApprovalRequest, Bound, Denial, Failed, Grant, Outcome, Rejected, now
from toolcrib.errors import ApprovalError
from toolcrib.record import ListSink
from toolcrib.tools import ez_tool

BIG = ApproverRule(name="refunds over 1,000", tools=["refund"], over={"amount": 1000}, of={"finance": 2})
SMALL = ApproverRule(name="other refunds", tools=["refund"], up_to={"amount": 1000}, of="support")
GROUPS = Groups(
    {"finance": ["bob", "cid", "dee"], "support": ["sue", "bob"]}, people={"bob": ["bob@example.org", "U1"]}
)
BOB, CID, DEE, SUE = (Identity(name, "token") for name in ("bob", "cid", "dee", "sue"))

Opened = Callable[[Path], ApprovalStore | None]
STORES: dict[str, Opened] = {
    "memory": lambda folder: MemoryApprovalStore(),
    "sqlite": lambda folder: SqliteApprovalStore(folder / "approvals.db"),
}


@ez_tool
async def refund(amount: Any, order: int = 7) -> str:
    """Refund an order."""
    return f"refunded {amount}"


def guarded(*rules: ApproverRule, groups: Groups = GROUPS) -> Pipeline:
    return Pipeline(Toolset([refund]).with_gates(ApproverRules(rules or (BIG, SMALL), groups)))


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return STORES[request.param](tmp_path)


async def asked(pipeline: Pipeline, run: Run, amount: Any = 5000, **more: Any) -> Suspended:
    outcome = await pipeline.run(ToolCall("refund", {"amount": amount, **more}), run)
    assert isinstance(outcome, Suspended), outcome.text()
    return outcome


async def refused(store: Any, answer: Grant, words: str = "does not meet the rule") -> None:
    with pytest.raises(ApprovalError, match=words):
        await store.answer(answer)


# --- what is meant


async def test_two_of_finance_approve_and_the_record_has_both(store: Any) -> None:
    sink = ListSink()
    pipeline, run = guarded(), Run(principal="ada", approvals=store, sinks=(sink,))
    waiting = await asked(pipeline, run)

    await store.answer(waiting.request.grant(BOB))
    after_one = await pipeline.run(waiting, run)
    await store.answer(waiting.request.grant(CID))
    after_two = await pipeline.run(waiting, run)

    assert (after_one.kind, after_two.text()) == ("suspended", "refunded 5000")
    assert waiting.request.reason == "refunds over 1,000: 2 of finance (bob, cid, dee), not ada, who asked"
    approval = sink.records[-1].approval
    assert approval is not None
    assert (approval["approver"], [*approval["also"]]) == ("cid (token)", ["bob (token)"])
    assert {"id": "cid", "by": "token"}.items() <= approval["identity"].items()


async def test_the_rule_that_an_amount_is_under_says_who(store: Any) -> None:
    pipeline, run = guarded(), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run, amount=5)

    await refused(store, waiting.request.grant(CID))
    await store.answer(waiting.request.grant(SUE))

    assert (await pipeline.run(waiting, run)).text() == "refunded 5"


@pytest.mark.parametrize("of_run", [0, 1])
@pytest.mark.parametrize("limit", [1000, 10_000])
async def test_the_rules_of_gates_with_one_name_all_hold(of_run: int, limit: int, store: Any) -> None:
    rules = [
        ApproverRule(name="large", tools=["refund"], over={"amount": limit}, of="finance"),
        replace(SMALL, up_to={}),
    ]
    gates = [ApproverRules([rule], GROUPS) for rule in rules]
    pipeline = Pipeline(Toolset([refund]).with_gates(gates[1 - of_run]))
    run = Run(principal="ada", approvals=store, gates=[gates[of_run]])

    waiting = await asked(pipeline, run)
    waiting = await asked(pipeline, run) if limit == 1000 else waiting  # a call that asks again asks for the same
    request = waiting.request

    assert {rule.rule for rule in request.required} == ({"large", SMALL.name} if limit == 1000 else {SMALL.name})
    assert [rule.rule for rule in request.required_if_edited] == ([] if limit == 1000 else ["large"])
    if limit == 1000:
        await store.answer(request.grant(SUE))
        assert isinstance(await pipeline.run(waiting, run), Suspended)
        await store.answer(request.grant(CID))
    else:
        await refused(store, request.grant(SUE, override_args={"amount": 20_000}), "after the edit")
        await store.answer(request.grant(SUE))
    assert (await pipeline.run(waiting, run)).text() == "refunded 5000"


async def test_everybody_may_say_no(store: Any) -> None:
    pipeline, run = guarded(), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)

    await store.answer(waiting.request.deny(message="no", by="eve"))

    assert (await pipeline.run(waiting, run)).kind == "rejected"


async def test_all_rules_that_a_call_fits_hold_in_whatever_order_they_are_met(store: Any) -> None:
    legal = ApproverRule(name="legal looks", of="legal")
    pipeline = guarded(BIG, legal, groups=Groups({"finance": ["bob", "cid"], "legal": ["lea"]}))
    run = Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)

    await store.answer(waiting.request.grant(BOB))
    await store.answer(waiting.request.grant(CID))
    after_finance = await pipeline.run(waiting, run)
    await store.answer(waiting.request.grant(Identity("lea")))

    assert after_finance.kind == "suspended"
    assert (await pipeline.run(waiting, run)).kind == "completed"


# --- every way in


ANSWERED: dict[str, Callable[[Any], Grant]] = {
    "a name": lambda request: request.grant("bob"),
    "a name with a way": lambda request: request.grant("sue (console)"),
    "somebody else": lambda request: request.grant(Identity("eve")),
    "the one who asked": lambda request: request.grant(Identity("ada")),
    "a look-alike of the one who asked": lambda request: request.grant(Identity("\u0430da")),
    "a look-alike of an approver": lambda request: request.grant(Identity("\u0455ue")),
    "a model": lambda request: request.grant(Identity("eve", "model")),
    "a group that the login may not say": lambda request: request.grant(Identity("eve", groups=("support",))),
    "names beside": lambda request: request.grant("sue", also=("bob", "cid")),
}


@pytest.mark.parametrize("who", ANSWERED)
@pytest.mark.parametrize("way", ["stored", "given", "inline", "without a store", "always", "waited for"])
async def test_a_yes_of_others_lets_nothing_run_over_any_way(who: str, way: str, store: Any) -> None:
    pipeline, give = guarded(), ANSWERED[who]
    run = Run(principal="ada", approvals=None if way == "without a store" else store)
    if way in ("inline", "waited for"):
        outcome = await _inline(pipeline, run, give, waits=way == "waited for")
    else:
        waiting = await asked(pipeline, run, amount=5)
        grant = give(waiting.request)
        if way in ("stored", "always"):
            grant = grant if way == "stored" else replace(grant, scope="tool", call_id=None, digest=None)
            await refused(store, grant)
            outcome = await pipeline.run(waiting, run)
        else:
            outcome = await pipeline.run(waiting, run, grant=grant)

    assert outcome.kind in ("suspended", "failed", "rejected")
    if isinstance(outcome, Failed):
        why = "does not meet the rule other refunds: 1 of support (sue, bob), not ada, who asked"
        assert why in str(outcome.exception)


async def _inline(pipeline: Pipeline, run: Run, give: Callable[[Any], Grant], *, waits: bool) -> Outcome:
    async def answer(request: Any) -> Grant | Denial | None:
        if not waits:
            return give(request)
        store: Any = run.approvals
        await store.put(request)
        await refused(store, give(request))
        return await stored_approver(store, timeout=0.05)(request)

    return await pipeline.run(ToolCall("refund", {"amount": 5}), replace_approver(run, answer))


def replace_approver(run: Run, approver: Any) -> Run:
    return Run(principal=run.principal, approvals=run.approvals, approver=approver)


@pytest.mark.parametrize("way", ["stored", "given", "inline", "without a store"])
async def test_a_yes_of_who_may_lets_the_call_run_over_each_way(way: str, store: Any) -> None:
    pipeline, run = guarded(), Run(principal="ada", approvals=None if way == "without a store" else store)
    if way == "inline":
        run = replace_approver(run, lambda request: request.grant(SUE))
        outcome = await pipeline.run(ToolCall("refund", {"amount": 5}), run)
    else:
        waiting = await asked(pipeline, run, amount=5)
        grant = waiting.request.grant(SUE)
        if way == "stored":
            await store.answer(grant)
        outcome = await pipeline.run(waiting, run, **({} if way == "stored" else {"grant": grant}))

    assert outcome.text() == "refunded 5"


# --- round the rule


async def test_one_person_under_several_ids_and_in_two_groups_counts_once(store: Any) -> None:
    both = ApproverRule(name="both", of={"finance": 1, "support": 1})
    pipeline, run = guarded(both), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)

    await store.answer(waiting.request.grant(BOB))
    for id in ("bob", "bob@example.org", "U1", "BOB"):
        await refused(store, waiting.request.grant(Identity(id, "oidc")), "approved it before|does not meet")
    await store.answer(waiting.request.grant(CID))

    assert (await pipeline.run(waiting, run)).kind == "completed"


async def test_the_one_who_asked_is_known_by_their_other_ids(store: Any) -> None:
    pipeline, run = guarded(SMALL), Run(principal="bob@example.org", approvals=store)
    waiting = await asked(pipeline, run, amount=5)

    for id in ("bob", "U1", "bob@example.org", "BOB@example.org"):
        await refused(store, waiting.request.grant(Identity(id)))
    await store.answer(waiting.request.grant(SUE))

    assert (await pipeline.run(waiting, run)).kind == "completed"


@pytest.mark.parametrize("id", ["\u0430da", "ADA", "ada ", "ada"])
async def test_where_everybody_may_approve_the_one_who_asked_may_not_under_a_look_alike(id: str, store: Any) -> None:
    pipeline, run = guarded(replace(SMALL, of="*")), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run, amount=5)

    await refused(store, waiting.request.grant(Identity(id, "openid")))
    await store.answer(waiting.request.grant(Identity("eve")))

    assert (await pipeline.run(waiting, run)).kind == "completed"


async def test_concurrent_answers_of_one_person_and_of_two(store: Any) -> None:
    pipeline, run = guarded(), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)

    same = await asyncio.gather(
        *(store.answer(waiting.request.grant(Identity("bob", by))) for by in "abcdef"), return_exceptions=True
    )
    after_bob = await pipeline.run(waiting, run)
    others = await asyncio.gather(
        *(store.answer(waiting.request.grant(one)) for one in (CID, DEE)), return_exceptions=True
    )

    assert [one is None for one in same].count(True) == 1
    assert after_bob.kind == "suspended"
    assert [one is None for one in others].count(True) == 1
    assert (await pipeline.run(waiting, run)).kind == "completed"


ONE_OF_FINANCE = replace(BIG, of="finance")
EDITS = [5000, 1000.01, -1, "much", None]


@pytest.mark.parametrize("rules", [(ONE_OF_FINANCE, SMALL), (ONE_OF_FINANCE, replace(SMALL, up_to={}, of="*"))])
@pytest.mark.parametrize("amount", EDITS)
async def test_an_edit_beyond_what_an_approver_may_is_refused_to_them_and_others_can_answer(
    store: Any, amount: Any, rules: tuple[ApproverRule, ...]
) -> None:
    pipeline, run = guarded(*rules), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run, amount=5)
    edited = {"amount": amount, "order": 7}

    words = r": `amount` is .* after the edit, and the approval of sue \(token\) does not meet the rule refunds over"
    await refused(store, waiting.request.grant(SUE, override_args=edited), words)
    pending = (await store.show(waiting.request.id)).state
    await store.answer(waiting.request.grant(BOB, override_args=edited))

    assert pending == "pending"
    assert (await pipeline.run(waiting, run)).kind == "completed"


async def test_an_edit_is_judged_where_another_gate_asks_and_a_default_counts(store: Any) -> None:
    @ez_tool(requires_approval=True)
    async def refund(order: int, amount: int = 5000) -> str:
        """Refund an order."""
        return f"refunded {amount}"

    pipeline = Pipeline(Toolset([refund]).with_gates(ApproverRules([ONE_OF_FINANCE], GROUPS)))
    run = Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run, amount=5, order=7)

    await refused(store, waiting.request.grant("whoever", override_args={"order": 7, "amount": 5000}))
    await refused(store, waiting.request.grant("whoever", override_args={"order": 7}))
    await store.answer(waiting.request.grant("whoever", override_args={"order": 8, "amount": 1000}))

    assert waiting.request.required == ()
    assert (await pipeline.run(waiting, run)).kind == "completed"


async def test_a_request_keeps_the_rules_for_its_edits_as_json(store: Any) -> None:
    waiting = await asked(guarded(), Run(principal="ada", approvals=store), amount=5)

    read = ApprovalRequest.from_dict(waiting.request.to_dict())

    assert [rule.rule for rule in read.required_if_edited] == [BIG.name]
    assert read == waiting.request


async def test_others_are_asked_where_an_edit_was_right_by_the_rules_before_alone(store: Any) -> None:
    run = Run(principal="ada", approvals=store)
    waiting = await asked(guarded(replace(SMALL, up_to={})), run, amount=5)

    await store.answer(waiting.request.grant(SUE, override_args={"amount": 5000, "order": 7}))
    outcome = await guarded(ONE_OF_FINANCE, SMALL).run(waiting, run)

    assert outcome.kind == "suspended"
    assert (await store.show(waiting.request.id)).state == "pending"


@pytest.mark.parametrize("scope", ["tool", "within"])
async def test_a_standing_yes_covers_no_call_that_its_giver_may_not_approve(scope: str, store: Any) -> None:
    pipeline, run = guarded(), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run, amount=5)
    within: dict[str, Any] = {"within": {"amount": Bound.any()}} if scope == "within" else {"scope": "tool"}

    await store.answer(waiting.request.always(SUE, **within))
    small = await pipeline.run(ToolCall("refund", {"amount": 999}), run)
    large = await pipeline.run(ToolCall("refund", {"amount": 1001}), run)

    assert (small.kind, large.kind) == ("completed", "suspended")


async def test_a_standing_yes_of_nobody_known_is_kept_and_covers_nothing(store: Any) -> None:
    await store.answer(Grant("refund", by="host", scope="tool", principal="*"))

    waiting = await asked(guarded(), Run(principal="ada", approvals=store), amount=5)

    assert waiting.request.required


async def test_a_standing_yes_ends_when_its_giver_leaves_the_group(store: Any) -> None:
    support = ["sue"]
    pipeline = guarded(SMALL, groups=Groups(lambda group: support))
    run = Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run, amount=5)
    await store.answer(waiting.request.always(SUE))

    before = await pipeline.run(ToolCall("refund", {"amount": 6}), run)
    support[:] = ["tim"]
    after = await pipeline.run(ToolCall("refund", {"amount": 7}), run)

    assert (before.kind, after.kind) == ("completed", "suspended")


async def test_who_left_the_group_after_their_yes_is_asked_for_no_more_and_another_can_answer(store: Any) -> None:
    support = ["sue"]
    pipeline = guarded(SMALL, groups=Groups(lambda group: support))
    run = Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run, amount=5)
    await store.answer(waiting.request.grant(SUE))

    support[:] = ["tim"]
    stale = await pipeline.run(waiting, run)
    assert isinstance(stale, Suspended)
    await refused(store, stale.request.grant(SUE))
    await store.answer(stale.request.grant(Identity("tim")))

    assert (await pipeline.run(stale, run)).kind == "completed"


async def test_who_leaves_the_group_while_a_call_waits_for_its_answer_lets_nothing_begin(store: Any) -> None:
    support = ["sue"]
    pipeline = guarded(SMALL, groups=Groups(lambda group: support))

    async def leave_and_answer(request: Any) -> Grant:
        support[:] = ["tim"]
        return request.grant(SUE)

    run = Run(principal="ada", approvals=store, approver=leave_and_answer)
    outcome = await pipeline.run(ToolCall("refund", {"amount": 5}), run)

    assert isinstance(outcome, Rejected)
    assert "1 of support (tim)" in outcome.reason


async def test_a_policy_that_becomes_stricter_holds_for_what_is_pending(store: Any) -> None:
    run = Run(principal="ada", approvals=store)
    waiting = await asked(guarded(SMALL), run, amount=5)
    stricter = guarded(replace(SMALL, of={"finance": 2}))

    await stricter.run(waiting, run)

    await refused(store, waiting.request.grant(SUE))
    assert (await store.show(waiting.request.id)).request.approvals_needed == 2


async def test_a_group_of_the_login_counts_for_the_answer_and_for_further_calls_until_the_login_ends(
    store: Any,
) -> None:
    pipeline = guarded(ApproverRule(name="staff", of="staff"), groups=Groups(from_login=["staff"]))
    run = Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)
    lea = Identity("lea", "oidc", ("staff",), now() + timedelta(hours=1))

    await refused(store, waiting.request.grant(replace(lea, groups=("stuff",))))
    await store.answer(waiting.request.always(lea))
    (grant,) = await store.standing()
    later = replace(waiting.request, id="ask_2", call_id="call_2")

    assert (await pipeline.run(waiting, run)).kind == "completed"
    assert not misfit(grant, later)
    assert "does not meet the rule" in misfit(grant, later, now() + timedelta(hours=2))


async def test_what_a_call_in_doubt_came_to_is_said_by_one_who_may_approve_it(store: Any) -> None:
    pipeline, run = guarded(), Run(principal="ada", approvals=store)
    waiting = await asked(pipeline, run)
    doubtful = replace(waiting.request, id="ask_doubt", in_doubt=True)
    await store.put(doubtful)

    await refused(store, doubtful.done("refunded", Identity("eve")))
    await store.answer(doubtful.done("refunded", BOB))


async def test_a_model_approves_where_a_rule_lists_it_and_nowhere_else(store: Any) -> None:
    low = replace(SMALL, of="reviewers")
    groups = Groups({"reviewers": ["risk-check", "sue"], "finance": ["bob", "cid"]})
    pipeline, run = guarded(BIG, low, groups=groups), Run(principal="ada", approvals=store)
    model = Identity("risk-check", "model")
    small, large = await asked(pipeline, run, amount=5), await asked(pipeline, run)

    await refused(store, large.request.grant(model))
    await store.answer(small.request.grant(model))

    assert (await pipeline.run(small, run)).kind == "completed"
    assert approvers_lacking(RequiredApprovers("x", {"*": 1}), [model], now()) == 1


# --- in general


NAMES = st.sampled_from(["ann", "bob", "cid", "dee", "eve"])


@given(
    st.dictionaries(st.sampled_from(["f", "l", "s"]), st.integers(1, 3), min_size=1),
    st.dictionaries(st.sampled_from(["f", "l", "s"]), st.lists(NAMES, unique=True)),
    st.lists(NAMES, max_size=8),
)
def test_a_rule_is_met_by_enough_different_people_of_each_group_and_by_no_fewer(
    of: dict[str, int], members: dict[str, list[str]], approving: list[str]
) -> None:
    people = {group: [[one] for one in listed] for group, listed in members.items()}
    required = RequiredApprovers("x", of, people)

    lacking = approvers_lacking(required, [Identity(one) for one in approving], now())

    places = [group for group, number in of.items() for _ in range(number)]
    assert lacking == len(places) - _most_filled(places, sorted(set(approving)), members)


def _most_filled(places: list[str], people: list[str], members: dict[str, list[str]]) -> int:
    """Return the most places that can be filled, by trying each person at each."""
    if not people:
        return 0
    first, *others = people
    best = _most_filled(places, others, members)
    for number, group in enumerate(places):
        if first in members.get(group, []):
            best = max(best, 1 + _most_filled([*places[:number], *places[number + 1 :]], others, members))
    return best

"""Policies of approvers in Cedar: who may approve what, how they are read, and those who try to get round one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.approvers.stores import refused
from toolcrib import Pipeline, Run, Suspended, ToolCall, Toolset
from toolcrib.approvals import LedgerStore, MemoryApprovalStore, misfit
from toolcrib.approvers import ApproverRule, ApproverRules, Delegation, Groups, Identity, load_rules, read_rules
from toolcrib.approvers.cedar import CedarPolicy
from toolcrib.calls import Failed, Outcome, Rejected, now
from toolcrib.errors import ApprovalError, PolicyError, ToolConstraintError
from toolcrib.testing import FakeClock
from toolcrib.tools import ez_tool, tool

POLICY = """
@id("refunds up to 1,000")
permit (principal in Group::"support", action == Action::"approve", resource == Tool::"refund")
when { context.arguments.amount.lessThanOrEqual(decimal("1000.0")) };

@id("refunds over 1,000")
@people("2")
permit (principal in Group::"finance", action == Action::"approve", resource == Tool::"refund")
when { context.arguments.amount.greaterThan(decimal("1000.0")) };

permit (principal, action == Action::"run", resource) unless { resource == Tool::"refund" };
"""
RULES = [
    ApproverRule(name="refunds up to 1,000", tools=["refund"], up_to={"amount": 1000}, of="support"),
    ApproverRule(name="refunds over 1,000", tools=["refund"], over={"amount": 1000}, of={"finance": 2}),
]
PEOPLE = {"finance": ["bob", "cid", "dee"], "support": ["sue", "bob"]}
GROUPS = Groups(PEOPLE, people={"bob": ["bob@example.org", "U1"]})
TO_FINANCE = 'principal in Group::"finance", action == Action::"approve", resource'
FINANCE = f"permit ({TO_FINANCE});"
BOB, CID, DEE, SUE = (Identity(name, "token") for name in ("bob", "cid", "dee", "sue"))


@tool(tags={"money"}, effect="spend")
async def refund(amount: float, order: int = 7, note: Any = None) -> str:
    """Refund an order."""
    return f"refunded {amount:g}"


@ez_tool
async def look(order: int = 7) -> str:
    """Look at an order."""
    return "seen"


def guarded(policy: str = POLICY, groups: Groups = GROUPS) -> Pipeline:
    return Pipeline(Toolset([refund, look]).with_gates(ApproverRules([CedarPolicy(policy)], groups)))


async def asked(policy: str = POLICY, run: Run | None = None, groups: Groups = GROUPS, **arguments: Any) -> Outcome:
    call = ToolCall("refund", {"amount": 5000, **arguments})
    return await guarded(policy, groups).run(call, run or Run(principal="ada"))


async def waiting(*given: Any, **more: Any) -> Suspended:
    outcome = await asked(*given, **more)
    assert isinstance(outcome, Suspended), outcome.text()
    return outcome


def who_may(outcome: Outcome, *people: Identity) -> list[str]:
    assert isinstance(outcome, Suspended), outcome.text()
    request = outcome.request
    return [one.id for one in people if not misfit(request.grant(one), request)]


# --- what is meant


async def test_a_policy_in_cedar_asks_as_the_same_rules_in_python_do() -> None:
    rules = Pipeline(Toolset([refund, look]).with_gates(ApproverRules(RULES, GROUPS)))

    for amount in (5, 1000, 1000.01, 5000):
        theirs = await waiting(amount=amount)
        ours = await rules.run(ToolCall("refund", {"amount": amount}), Run(principal="ada"))
        assert isinstance(ours, Suspended)
        (required,), (expected,) = theirs.request.required, ours.request.required
        members = {group: {*map(tuple, people)} for group, people in required.members.items()}
        assert members == {group: {*map(tuple, people)} for group, people in expected.members.items()}
        assert replace(required, members={}) == replace(expected, members={})


@given(
    st.one_of(st.integers(0, 3000), st.decimals(0, 3000, places=2).map(float)),
    st.sampled_from(["ada", "bob", "cid", "U1", "eve"]),
    st.lists(st.sampled_from([BOB, CID, DEE, SUE, Identity("U1"), Identity("eve")]), min_size=1, max_size=4),
)
async def test_the_same_people_get_the_same_calls_through(amount: float, principal: str, who: list[Identity]) -> None:
    said: list[tuple[list[str], str]] = []
    for rule in ([CedarPolicy(POLICY)], RULES):
        store = MemoryApprovalStore()
        run = Run(principal=principal, approvals=store)
        pipeline = Pipeline(Toolset([refund, look]).with_gates(ApproverRules(rule, GROUPS)))
        outcome = await pipeline.run(ToolCall("refund", {"amount": amount}), run)
        assert isinstance(outcome, Suspended)
        taken: list[str] = []
        for one in who:
            try:
                await store.answer(outcome.request.grant(one))
                taken.append(one.id)
            except Exception as error:
                taken.append(type(error).__name__)
        said.append((taken, (await pipeline.run(outcome, run)).kind))

    assert said[0] == said[1]


async def test_what_no_policy_permits_is_refused_and_what_may_run_at_once_is_not_asked_about() -> None:
    only = FINANCE.replace(", resource)", ', resource == Tool::"refund")')
    run = Run(principal="ada")

    denied = await guarded(only).run(ToolCall("look"), run)
    allowed = await guarded().run(ToolCall("look"), run)

    assert isinstance(denied, Rejected)
    assert "the policy policy.cedar permits nobody to approve this" in denied.text()
    assert allowed.text() == "seen"


@pytest.mark.parametrize(
    ("condition", "fits"),
    [
        ('resource.effect == "spend"', True),
        ('resource.effect == "send"', False),
        ('resource.tags.contains("money")', True),
        ('resource.name like "ref*"', True),
        ('resource.server like "https://*"', False),
        ('context.requester == Person::"ada"', True),
        ('context.requester in Group::"support"', False),
        ("context.arguments has order && context.arguments.order == 8", True),
        ("context.arguments has note", False),
        ('principal in [Group::"finance", Group::"support"]', True),
        ('principal is Person in Group::"finance"', True),
        ("context.arguments.note == 1", False),
    ],
)
async def test_a_policy_reads_the_tool_the_call_and_the_one_who_asks(condition: str, fits: bool) -> None:
    outcome = await asked(f"{FINANCE[:-1]} when {{ {condition} }};", order=8)

    assert isinstance(outcome, Suspended) is fits


async def test_several_permits_widen_who_may_answer() -> None:
    outcome = await waiting(f'{FINANCE} permit (principal == Person::"eve", action == Action::"approve", resource);')

    assert who_may(outcome, BOB, CID, SUE, Identity("eve"), Identity("U1")) == ["bob", "cid", "eve", "U1"]
    assert "1 of finance or eve (bob, cid, dee, eve)" in outcome.request.text()


async def test_a_place_of_its_own_takes_a_person_of_its_own(store: LedgerStore) -> None:
    policy = f'@place("finance") {FINANCE} @place("desk") {FINANCE.replace("finance", "support")}'
    run = Run(principal="ada", approvals=store)
    outcome = await waiting(policy, run)

    await store.answer(outcome.request.grant(SUE))
    await store.answer(outcome.request.grant(BOB))

    assert outcome.request.approvals_needed == 2
    assert (await guarded(policy).run(outcome, run)).text() == "refunded 5000"


async def test_what_is_forbidden_to_one_is_permitted_to_others() -> None:
    outcome = await waiting(f'{FINANCE} forbid (principal == Person::"bob", action, resource);')

    assert who_may(outcome, BOB, CID, Identity("U1"), Identity("bob@example.org")) == ["cid"]


async def test_who_asked_may_not_answer_unless_the_policy_says_so() -> None:
    run = Run(principal="U1")

    kept_out = await waiting(FINANCE, run)
    let_in = await waiting(f'@not_requester("false") {FINANCE}', run)

    assert who_may(kept_out, BOB, CID) == ["cid"]
    assert who_may(let_in, BOB, CID) == ["bob", "cid"]
    assert "the run has no principal" in (await asked(FINANCE, Run())).text()


async def test_all_who_have_an_identity_may_answer_where_the_policy_names_nobody() -> None:
    outcome = await waiting('permit (principal, action == Action::"approve", resource);')
    small = await waiting('permit (principal, action == Action::"approve", resource) when { resource has effect };')

    for each in (outcome, small):
        assert who_may(each, BOB, Identity("eve"), Identity("judge", "model")) == ["bob", "eve"]
        assert misfit(each.request.grant("bob"), each.request)


async def test_the_times_of_a_policy_are_those_of_its_rules(store: LedgerStore, clock: FakeClock) -> None:
    timed = f'@expires("3h") @remind("30m") {FINANCE} @after("1h") @instead {FINANCE.replace("finance", "support")}'
    outcome = await waiting(timed, Run(principal="ada", approvals=store))
    (required,) = outcome.request.required
    await refused(store, outcome.request.grant(SUE))
    clock.advance(3700)

    await refused(store, outcome.request.grant(CID))
    await store.answer(outcome.request.grant(SUE))

    assert (required.expires_after, required.remind_after) == (10800.0, 1800.0)
    assert "after 1 hour support (bob, sue) may answer instead" in required.text()


async def test_a_delegate_stands_for_one_whom_the_policy_permits() -> None:
    groups = Groups(PEOPLE, delegations=[Delegation("cid", "eve", now() + timedelta(days=1))])

    assert who_may(await waiting(FINANCE, groups=groups), Identity("eve")) == ["eve"]


async def test_a_policy_explains_itself_for_a_tool() -> None:
    rules = ApproverRules([CedarPolicy(POLICY)], GROUPS)

    assert rules.explain("refund", refund) == (
        "refunds up to 1,000: permit support to approve refund; refunds over 1,000: permit finance to approve refund, "
        "2 people; policy 3: permit all to run"
    )


# --- logins

LOGINS = Groups({}, from_login=["finance", "staff", "interns"])
FOR_LOGINS = (
    f'{FINANCE} {FINANCE.replace("finance", "staff")} forbid (principal in Group::"interns", action, resource);'
)


def logged_in(name: str, *groups: str) -> Identity:
    return Identity(name, "console", groups, now() + timedelta(hours=1))


async def test_the_groups_of_a_login_count() -> None:
    outcome = await waiting(FOR_LOGINS, groups=LOGINS)

    people = (logged_in("ann", "finance"), logged_in("bob", "staff"), logged_in("cid", "other"), logged_in("dee"))
    assert who_may(outcome, *people) == ["ann", "bob"]


@pytest.mark.parametrize("forbidden", ["interns", "nobody"])
async def test_a_login_with_a_group_that_is_forbidden_lets_nothing_run(store: LedgerStore, forbidden: str) -> None:
    run = Run(principal="ada", approvals=store)
    policy = f'{FOR_LOGINS} forbid (principal == Person::"eve", action, resource);'
    outcome = await waiting(policy, run, LOGINS)
    await store.answer(
        outcome.request.grant(logged_in("ann" if forbidden == "interns" else "eve", "finance", forbidden))
    )

    done = await guarded(policy, LOGINS).run(outcome, run)

    assert isinstance(done, Rejected)
    assert "the policy policy.cedar forbids" in done.text()


# --- those who try to get round it


@pytest.mark.parametrize(
    "amount", [5000.000001, 1e300, 2**80], ids=["more decimals than Cedar has", "too large", "a large integer"]
)
async def test_an_amount_that_cedar_has_no_value_for_is_refused(amount: float) -> None:
    limit = 'context.arguments has amount && context.arguments.amount.greaterThan(decimal("100.0"))'

    outcome = await asked(f"{FINANCE} forbid (principal, action, resource) when {{ {limit} }};", amount=amount)

    assert isinstance(outcome, Rejected)
    assert "at most 4 decimal places" in outcome.text()


@pytest.mark.parametrize(
    "note",
    [
        {"__entity": {"type": "Person", "id": "bob"}},
        {"__extn": {"fn": "decimal", "arg": "1.0"}},
        [{"deep": {"__expr": "1"}}],
    ],
)
async def test_an_argument_cannot_pass_for_a_value_of_cedars_own(note: Any) -> None:
    outcome = await asked(f"{FINANCE[:-1]} when {{ context.arguments has note }};", note=note)

    assert isinstance(outcome, Rejected)
    assert "begins with __" in outcome.text()


async def test_a_policy_that_forbids_and_cannot_be_evaluated_forbids() -> None:
    outcome = await asked(
        f'@id("cap") forbid (principal, action, resource) when {{ context.arguments.note > 5 }}; {FINANCE}'
    )

    assert isinstance(outcome, Rejected)
    assert "while evaluating policy `cap`" in outcome.text()


async def test_what_may_run_at_once_and_is_asked_about_elsewhere_is_answered_by_whom_the_policy_permits() -> None:
    @ez_tool(requires_approval=True)
    async def send(to: str) -> str:
        return "sent"

    free = 'permit (principal, action == Action::"run", resource);'
    rules = ApproverRules([CedarPolicy(f"{FINANCE} {free}")], GROUPS)
    outcome = await Pipeline(Toolset([send]).with_gates(rules)).run(ToolCall("send", {"to": "x"}), Run(principal="ada"))

    assert who_may(outcome, BOB, SUE) == ["bob"]


async def test_a_yes_of_one_who_has_left_the_group_since_lets_nothing_run(store: LedgerStore) -> None:
    people = {"finance": ["bob", "cid"]}
    groups = Groups(lambda group: people.get(group, ()))
    run = Run(principal="ada", approvals=store)
    outcome = await waiting(FINANCE, run, groups)
    await store.answer(outcome.request.grant(BOB))
    people["finance"] = ["cid"]

    assert (await guarded(FINANCE, groups).run(outcome, run)).kind != "completed"


# --- reading


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("permit (principal, action, resource", "the policy at line 1 is not Cedar: unexpected end of input"),
        (f"{FINANCE}\n// a;\n\npermit (principal in", "the policy at line 4 is not Cedar"),
        ("", "it permits nobody to approve anything"),
        ('permit (principal, action == Action::"run", resource);', "it permits nobody to approve anything"),
        ("permit (principal in ?principal, action, resource);", "write the group or the tool"),
        (FINANCE.replace("Group", "Gruop"), "`policy 1`: there is no entity type `Gruop`. Did you mean `Group`?"),
        (FINANCE.replace("approve", "aprove"), "there is no action `aprove`. Did you mean `approve`?"),
        (f'@id("big") @peple("2") {FINANCE}', "`big`: the annotation @peple is unknown. Did you mean `people`"),
        (f'@people("0") {FINANCE}', "@people must be a number of people"),
        (f'@after("soon") {FINANCE}', "@after: 'soon' is not a time"),
        (f"@instead {FINANCE}", "@instead goes with @after"),
        (f'@after("1h") @instead("maybe") {FINANCE}', '@instead must be "true" or "false"'),
        (f'@place("") {FINANCE}', "@place is empty"),
        ('@people("2") forbid (principal, action, resource);', "@people belongs to a policy that permits to approve"),
        (f'{FINANCE[:-1]} when {{ resource.efect == "spend" }};', "no attribute of resource `efect`"),
        (f'{FINANCE[:-1]} when {{ principal.id == "bob" }};', "principal.id: a person has none; ask for a group"),
        (f'{FINANCE[:-1]} when {{ context.requester.id == "b" }};', "a person has none"),
        (f"{FINANCE[:-1]} when {{ context.arguments == {{}} }};", "write context.arguments.NAME"),
        (f"{FINANCE[:-1]} when {{ context has foo }};", "no attribute of context `foo`"),
        (f"{FINANCE[:-1]} unless {{ resource is Tol }};", "there is no entity type `Tol`"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused_with_its_name(text: str, problem: str) -> None:
    with pytest.raises(PolicyError) as caught:
        CedarPolicy(text, "approvers.cedar")

    assert "the policy approvers.cedar cannot be used: " in str(caught.value)
    assert problem in str(caught.value)


def test_a_group_or_a_tool_or_an_argument_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no group 'finance'; give it members"):
        ApproverRules([CedarPolicy(FINANCE)])
    for wrong in (POLICY.replace('"refund"', '"refnd"'), POLICY.replace("amount", "amuont")):
        with pytest.raises(ToolConstraintError, match=r"refund|amount"):
            guarded(wrong)


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder / "approvers.toml"


TOML = 'cedar = "approvers.cedar"\n[groups]\nfinance = ["bob", "cid", "dee"]\nsupport = ["sue", "bob"]\n'


async def test_a_file_of_approvers_names_the_policy_which_is_read_anew_when_it_has_changed(tmp_path: Path) -> None:
    path = write(tmp_path, {"approvers.toml": TOML, "approvers.cedar": POLICY})
    pipeline, run = Pipeline(Toolset([refund, look]).with_gates(load_rules(path))), Run(principal="ada")
    before = await pipeline.run(ToolCall("refund", {"amount": 5}), run)
    (tmp_path / "approvers.cedar").write_text(POLICY.replace('"support"', '"finance"'))
    os.utime(tmp_path / "approvers.cedar", ns=(1, 1))

    after = await pipeline.run(ToolCall("refund", {"amount": 5}), run)
    (tmp_path / "approvers.cedar").write_text("permit")
    broken = await pipeline.run(ToolCall("refund", {"amount": 5}), run)

    assert (who_may(before, SUE, CID), who_may(after, SUE, CID)) == (["sue"], ["cid"])
    assert isinstance(broken, Failed)
    assert "approvers.cedar cannot be used" in str(broken.exception)


def test_rules_of_both_kinds_hold_together(tmp_path: Path) -> None:
    write(tmp_path, {"approvers.cedar": POLICY})
    document = {
        "cedar": "approvers.cedar",
        "rules": [{"name": "x", "of": "legal"}],
        "groups": {**PEOPLE, "legal": ["lea"]},
    }

    assert len(read_rules(document, folder=tmp_path).rules) == 2


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"approvers.toml": TOML}, "approvers.cedar cannot be used: it cannot be read: No such file"),
        ({"approvers.toml": TOML, "approvers.cedar": "permit"}, "approvers.cedar cannot be used: the policy at line 1"),
        ({"approvers.toml": 'cedar = "approvers.cedar"', "approvers.cedar": FINANCE}, "there is no group 'finance'"),
        ({"approvers.toml": "[groups]"}, "it has no rule: give `rules`, or `cedar`"),
    ],
)
def test_a_file_that_names_a_policy_which_cannot_be_used_says_why(
    tmp_path: Path, files: Mapping[str, str], problem: str
) -> None:
    with pytest.raises(PolicyError, match=problem):
        load_rules(write(tmp_path, files))


REFUND = 'principal in Group::"finance", action == Action::"approve", resource == Tool::"refund"'
NUMBERS = "an `integer` is a Long, compared as in `<= 1000`, and a `number` is a decimal"


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ('context.arguments.cents <= decimal("1000.0")', f"expected Long but saw decimal; {NUMBERS}"),
        ("context.arguments.cents.lessThan(5)", f"expected decimal but saw Long; {NUMBERS}"),
        ('context.arguments.a < 5 && context.arguments.a like "x*"', "expected String but saw Long"),
        ('context.arguments.a == ip("10.0.0.1")', "the types Long and ipaddr are not compatible"),
        ('decimal("1.00000") == decimal("1.0")', "failed to parse as a decimal value"),
        ('context.requester == "ada"', "the types String and Person are not compatible"),
        ('resource.tags == "money"', "are not compatible"),
    ],
)
def test_a_condition_that_no_call_can_have_is_refused_when_the_policy_is_read(condition: str, problem: str) -> None:
    with pytest.raises(PolicyError, match=r"^the policy a\.cedar cannot be used: `big`: ") as caught:
        CedarPolicy(f'@id("big") permit ({REFUND}) when {{ {condition} }};', "a.cedar")

    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ("context.arguments.amount <= 1000", f"expected Long but saw decimal; {NUMBERS}"),
        ('context.arguments.order.lessThan(decimal("3.0"))', f"saw Long; {NUMBERS}"),
        ('context.arguments.order == "seven"', "the types Long and String are not compatible"),
        ('context.arguments.words.contains(3) && context.arguments.words.contains("a")', "are not compatible"),
        ("context.arguments.words.contains(3)", "are not compatible; Cedar has of `buy` words as Set<String>"),
        ("if context.arguments.order then true else false", "expected Bool but saw Long"),
    ],
)
@pytest.mark.parametrize("about", ['resource == Tool::"buy"', "resource"])
def test_a_condition_that_no_call_of_these_tools_can_have_is_refused_with_them(
    condition: str, problem: str, about: str
) -> None:
    @ez_tool
    async def buy(amount: float, words: list[str], order: int | None = None) -> str:
        return "bought"

    policy = f'@id("big") permit (principal, action == Action::"approve", {about}) when {{ {condition} }};'

    with pytest.raises((PolicyError, ToolConstraintError), match="`big`: ") as caught:
        Toolset([buy, look]).with_gates(ApproverRules([CedarPolicy(policy, "a.cedar")]))

    assert problem in str(caught.value) or "&&" in condition


@pytest.mark.parametrize(
    "condition",
    [
        'context.arguments.address.city == "Oslo"',
        'context.arguments.address == {city: "Oslo"}',
        "context.arguments.words == []",
        "context.arguments.note == 1",
        'context.arguments has order && context.arguments.order == 8 || context.arguments.note like "a*"',
        'resource has effect && resource.effect == "spend" && resource.tags.contains("money")',
        'context.arguments.amount.lessThan(decimal("3.0")) && resource == Tool::"refund"',
        "context has requester && context.requester == principal",
    ],
)
def test_a_condition_that_some_call_of_these_tools_can_have_is_taken(condition: str) -> None:
    @ez_tool
    async def refund(
        amount: float,
        address: dict[str, str],
        words: list[str],
        note: Any = None,
        order: int | None = None,
    ) -> str:
        return "refunded"

    policy = CedarPolicy(f'permit (principal, action == Action::"approve", resource) when {{ {condition} }};')

    assert len(Toolset([refund, look]).with_gates(ApproverRules([policy]))) == 2


def test_a_policy_alone_that_names_a_group_says_where_its_people_are_written(tmp_path: Path) -> None:
    write(tmp_path, {"approvers.cedar": FINANCE})

    with pytest.raises(
        PolicyError, match=r"no group 'finance'.* name a TOML file in its place, with cedar = "
    ) as caught:
        load_rules(tmp_path / "approvers.cedar")

    assert str(caught.value).count("approvers.cedar") == 2


@pytest.mark.processes
def test_nothing_of_cedar_is_loaded_without_a_policy() -> None:
    code = "import sys, toolcrib.approvers as a; a.ApproverRules([a.ApproverRule(name='x')]); assert 'cedarpy' not in "

    subprocess.run([sys.executable, "-c", f"{code}sys.modules"], check=True)


# --- edits, where a person makes them


async def edited(policy: str, amount: float, answer: Mapping[str, Any], who: Identity, form: Any = refund) -> str:
    """Let one who may approve a call edit it; return why that is refused, or what the call comes to."""
    store = MemoryApprovalStore()
    run = Run(principal="ada", approvals=store)
    pipeline = Pipeline(Toolset([form]).with_gates(ApproverRules([CedarPolicy(policy)], GROUPS)))
    waiting = await pipeline.run(ToolCall(form.name, {"amount": amount}), run)
    assert isinstance(waiting, Suspended), waiting
    try:
        await store.answer(waiting.request.grant(who, override_args=answer))
    except ApprovalError as error:
        assert (await store.show(waiting.request.id)).state == "pending"
        return str(error)
    return (await pipeline.run(waiting, run)).text()


@ez_tool
async def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


UNDER = 'permit (principal in Group::"support", action == Action::"approve", resource) when {{ {} }};' + FINANCE
_OF_PAY = UNDER.format("context.arguments.amount < 100")


@pytest.mark.parametrize(
    ("policy", "form", "amount", "found"),
    [
        (POLICY, refund, 900, "refunded 900"),
        (POLICY, refund, 1000, "refunded 1000"),
        (POLICY, refund, 1000.0001, "`amount` is 1000.0001 after the edit"),
        (POLICY, refund, 5000, "`amount` is 5000 after the edit"),
        (_OF_PAY, pay, 99, "paid 99"),
        (_OF_PAY, pay, 100, "`amount` is 100 after the edit"),
        (_OF_PAY, pay, -5, "`amount` is -5 after the edit"),
    ],
)
async def test_an_edit_beyond_what_one_may_approve_is_refused_where_it_is_made(
    policy: str, form: Any, amount: float, found: str
) -> None:
    assert found in await edited(policy, 50, {"amount": amount}, SUE, form)


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=3),
    st.sampled_from(["<", "<=", ">", ">=", "=="]),
    st.integers(0, 22),
)
async def test_an_edit_is_judged_where_it_is_made_as_it_is_when_the_call_goes_on(
    bounds: list[int], sign: str, amount: int
) -> None:
    policy = UNDER.format(" || ".join(f"context.arguments.amount {sign} {bound}" for bound in bounds))
    pipeline = Pipeline(Toolset([pay]).with_gates(ApproverRules([CedarPolicy(policy)], GROUPS)))
    calls = [ToolCall("pay", {"amount": each}) for each in (21, amount)]
    waiting = [await pipeline.run(call, Run(principal="ada")) for call in calls]

    before, after = [one.request for one in waiting if isinstance(one, Suspended)]
    is_fit = [
        not misfit(before.grant(SUE, override_args={"amount": amount}), before),
        not misfit(before.grant(SUE), before) and not misfit(after.grant(SUE), after),
    ]

    assert is_fit[0] == is_fit[1]
    assert not misfit(before.grant(DEE, override_args={"amount": amount}), before)

"""Those who try to get round a policy in Cedar: with a yes that it does not give, or without one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.approvers.stores import refused
from tests.approvers.test_cedar import BOB, CID, FINANCE, asked, guarded, logged_in, waiting, who_may
from toolcrib import Pipeline, Run, Suspended, ToolCall, Toolset
from toolcrib.approvals import LedgerStore
from toolcrib.approvers import ApproverRules, Groups, Identity
from toolcrib.approvers.cedar import CedarPolicy
from toolcrib.calls import Rejected
from toolcrib.testing import FakeClock
from toolcrib.tools import tool

RUN = 'permit (principal, action == Action::"run", resource);'
APPROVE = 'action == Action::"approve", resource'
EVE, JON = Identity("eve"), Identity("jon")
GROUPS = Groups(
    {"finance": ["bob", "cid"], "managers": ["eve"], "juniors": ["jon"], "approvers": ["jon"]},
    people={"bob": ["bob@example.org", "U1"]},
    from_login=["staff", "interns"],
)


def forbid(condition: str, action: str = "action") -> str:
    return f"{FINANCE} {RUN} forbid (principal, {action}, resource) when {{ {condition} }};"


@pytest.mark.parametrize("action", ['action == Action::"run"', "action"])
@pytest.mark.parametrize(
    ("condition", "arguments"),
    [
        ("context.arguments.note > 5", {}),
        ("context.arguments.note > 5", {"note": "6"}),
        ("context.arguments.note.kind == 1", {"note": {"`policy99`": 1}}),
        ("context.arguments.order * 9223372036854775807 > 5", {"order": 3}),
    ],
    ids=["missing", "of another type", "without the field", "too large"],
)
async def test_nothing_runs_at_once_where_a_policy_that_forbids_it_cannot_be_evaluated(
    condition: str, arguments: dict[str, Any], action: str
) -> None:
    outcome = await asked(forbid(condition, action), **arguments)

    assert isinstance(outcome, Rejected if action == "action" else Suspended), outcome.text()


@pytest.mark.parametrize("principal", ["bob", "bob@example.org", "U1"])
@pytest.mark.parametrize(
    "policy",
    [
        f'{RUN} forbid (principal == Person::"bob", action, resource);',
        f'{RUN} forbid (principal, action, resource) when {{ context.requester == Person::"bob" }};',
        'permit (principal, action == Action::"run", resource) unless { principal == Person::"bob" };',
    ],
)
async def test_whichever_id_one_shows_who_asks_they_are_the_person_of_the_policy(policy: str, principal: str) -> None:
    outcome = await asked(f"{FINANCE} {policy}", Run(principal=principal), GROUPS)

    assert outcome.kind != "completed"


def test_a_policy_names_a_person_by_the_first_of_their_ids() -> None:
    policy = CedarPolicy(f'{FINANCE} forbid (principal == Person::"U1", action, resource);')

    with pytest.raises(ValueError, match='U1 is an id of bob: name the person, as Person::"bob"'):
        ApproverRules([policy], GROUPS)


@pytest.mark.parametrize(
    "policy",
    [
        f'{RUN} forbid (principal in Group::"interns", action == Action::"run", resource);',
        f'{RUN} forbid (principal, action, resource) when {{ context.requester in Group::"interns" }};',
        'permit (principal, action == Action::"run", resource) unless { principal in Group::"interns" };',
        'permit (principal in Group::"interns", action == Action::"run", resource);',
    ],
)
async def test_who_asks_may_be_in_a_group_of_logins_or_not(policy: str) -> None:
    outcome = await asked(f"{FINANCE} {policy}", groups=GROUPS)

    assert outcome.kind != "completed"


NOT_ALL = f'permit (principal, {APPROVE}) unless {{ principal in [Group::"juniors", Group::"interns"] }};'


@pytest.mark.parametrize("who", [JON, logged_in("eve", "interns"), logged_in("bob", "staff", "interns")])
@pytest.mark.parametrize(
    "policy",
    [
        NOT_ALL,
        FINANCE.replace(";", ' unless { principal in Group::"interns" };')
        + f'permit (principal in Group::"staff", {APPROVE}) unless {{ principal in Group::"interns" }};',
    ],
)
async def test_the_yes_of_one_who_is_permitted_by_a_part_of_their_groups_alone_lets_nothing_run(
    store: LedgerStore, policy: str, who: Identity
) -> None:
    run = Run(principal="ada", approvals=store)
    outcome = await waiting(policy, run, GROUPS)
    try:
        await store.answer(outcome.request.grant(who))
    except Exception as error:
        assert "does not meet the rule" in str(error)  # noqa: PT017 -- the other way not to count

    assert (await guarded(policy, GROUPS).run(outcome, run)).kind != "completed"


async def test_a_person_whom_a_further_policy_permits_may_answer_all_the_same(store: LedgerStore) -> None:
    run, policy = Run(principal="ada", approvals=store), f'{NOT_ALL} permit (principal == Person::"jon", {APPROVE});'
    outcome = await waiting(policy, run, GROUPS)
    await store.answer(outcome.request.grant(JON))

    assert (await guarded(policy, GROUPS).run(outcome, run)).text() == "refunded 5000"


async def test_who_is_forbidden_beside_a_permit_for_all_is_not_among_those_who_may() -> None:
    policy = f'permit (principal, {APPROVE}); forbid (principal, {APPROVE}) unless {{ principal in Group::"finance" }};'

    assert who_may(await waiting(policy, groups=GROUPS), BOB, EVE, JON) == ["bob"]


BOTH = 'permit (principal, {}) when {{ principal in [Group::"finance", Group::"managers"] }};'


@pytest.mark.parametrize(
    ("policy", "who"),
    [
        (f'@after("1h") permit (principal in Group::"approvers", {APPROVE});', JON),
        (f'@after("1h") {BOTH.format(APPROVE)}', EVE),
        (f'{BOTH.format(APPROVE)} @after("1h") {BOTH.format(APPROVE).replace("managers", "juniors")}', JON),
        (f'{FINANCE.replace(";", " unless { principal == Person::" + chr(34) + "cid" + chr(34) + " };")} @after("1h") '
         f"{FINANCE}", CID),
        (f'@place("legal") {FINANCE} @place("legal") @after("1h") {FINANCE.replace("finance", "managers")}', EVE),
    ],
    ids=["named as the default", "by a condition", "two by conditions", "a part of a group", "at a place"],
)  # fmt: skip
async def test_those_who_may_answer_later_do_not_count_at_once(
    store: LedgerStore, clock: FakeClock, policy: str, who: Identity
) -> None:
    run = Run(principal="ada", approvals=store)
    outcome = await waiting(policy, run, GROUPS)
    await refused(store, outcome.request.grant(who))

    clock.advance(7_200)
    await store.answer(outcome.request.grant(who))

    assert (await guarded(policy, GROUPS).run(outcome, run)).text() == "refunded 5000"


async def test_each_of_two_times_counts_for_the_people_of_its_policy(store: LedgerStore, clock: FakeClock) -> None:
    first = FINANCE.replace(";", ' unless { principal == Person::"cid" };')
    policy = f'{FINANCE.replace("finance", "managers")} @after("1h") {first} @after("4h") {FINANCE}'
    outcome = await waiting(policy, Run(principal="ada", approvals=store), GROUPS)
    clock.advance(3_700)

    await refused(store, outcome.request.grant(CID))
    clock.advance(4 * 3_600)
    await store.answer(outcome.request.grant(CID))


async def test_a_place_that_is_named_as_another_group_is_counted_by_itself() -> None:
    policy = f'{FINANCE} @place("finance") {FINANCE.replace("finance", "managers")}'

    (required,) = (await waiting(policy, groups=GROUPS)).request.required

    assert required.people == 2
    assert {group: len(people) for group, people in required.members.items()} == {"finance": 2, "finance 2": 1}


@pytest.mark.parametrize("principal", ["\0", '\0["juniors"]', "\0\0juniors", "\0caller"])
async def test_a_caller_cannot_pass_for_the_people_of_a_group(store: LedgerStore, principal: str) -> None:
    policy = f'permit (principal, {APPROVE}); forbid (principal in Group::"juniors", {APPROVE});'
    run = Run(principal=principal, approvals=store)
    outcome = await waiting(policy, run, GROUPS)
    await store.answer(outcome.request.grant(JON))

    assert "forbids jon to approve it" in (await guarded(policy, GROUPS).run(outcome, run)).text()


@tool
async def charge(x: Any, xs: list[float] | None = None) -> str:
    """Charge."""
    return "charged"


@pytest.mark.parametrize("condition", ["context.arguments.x == 13", "context.arguments.x.n.contains(13)"])
@pytest.mark.parametrize("number", [13, 13.0])
async def test_a_whole_number_is_the_same_however_it_is_written(condition: str, number: float) -> None:
    gate = ApproverRules([CedarPolicy(forbid(condition))], GROUPS)
    x = {"n": [number]} if "contains" in condition else number

    outcome = await Pipeline(Toolset([charge]).with_gates(gate)).run(ToolCall("charge", {"x": x}), Run(principal="ada"))

    assert isinstance(outcome, Rejected), outcome.text()


@pytest.mark.parametrize("number", [13, 13.0])
async def test_the_numbers_of_a_list_are_what_its_schema_says(number: float) -> None:
    gate = ApproverRules([CedarPolicy(forbid('context.arguments.xs.contains(decimal("13.0"))'))], GROUPS)
    call = ToolCall("charge", {"x": 1, "xs": [number]})

    outcome = await Pipeline(Toolset([charge]).with_gates(gate)).run(call, Run(principal="ada"))

    assert isinstance(outcome, Rejected), outcome.text()


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


@pytest.mark.parametrize(
    ("note", "why"),
    [(["x"] * 60_000, "have more than 200,000 characters"), (nested(140), "recursion limit exceeded")],
    ids=["long", "deep"],
)
async def test_an_argument_that_is_too_much_for_cedar_is_refused_in_a_short_text(note: Any, why: str) -> None:
    outcome = await asked(forbid("context.arguments has note && context.arguments.note == 1"), note=note)

    assert isinstance(outcome, Rejected)
    assert why in outcome.text()
    assert len(outcome.text()) < 300

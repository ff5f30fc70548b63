"""Gates and deliveries of a user, over every way of calling a tool."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.approvals.test_times_of_day import HOUR, around
from tests.approvers.stores import wall_clock
from tests.ways import appending, each_representative, representatives
from toolcrib.approvals import MemoryApprovalStore, approve_all, misfit
from toolcrib.approvers import ApproverRule, ApproverRules, Delegation, Groups, Identity, model_approver
from toolcrib.approvers.cedar import CedarPolicy
from toolcrib.budgets import Budgets, Cost, Limit
from toolcrib.calls import (
    ApprovalRequest,
    Ask,
    Bound,
    Completed,
    Denial,
    Failed,
    Grant,
    Reject,
    Rejected,
    Suspended,
    now,
)
from toolcrib.errors import ApprovalError
from toolcrib.rounds import ModelJudge
from toolcrib.testing import FakeClock, ScriptedModel, Way
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

ADDRESS = "ann@example.org"


class Small:
    """A gate that refuses or asks about more than three, for what it is given."""

    stage = "authorize"
    name = "small orders"

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def check(self, call: Any) -> Any:
        return self._answer if call.arguments["times"] > 3 else None


def masked(call: Any, value: Any) -> Any:
    """Mask an address in a text; one that was masked before is seen."""
    if not isinstance(value, str):
        return value
    return value.replace("<masked>", "<masked twice>").replace(ADDRESS, "<masked>")


@each_representative
async def test_a_gate_refuses_a_call_and_lets_another_pass(way: Way) -> None:
    ran: list[Any] = []
    caller = way(Toolset([appending(ran)]).with_gates(Small(Reject("at most three"))))

    refused = await caller.call("append", {"text": "x", "times": 4})
    passed = await caller.call("append", {"text": "x", "times": 3})

    assert isinstance(refused, Rejected), refused
    assert refused.reason == "at most three"
    assert isinstance(passed, Completed), passed
    assert (passed.value, ran) == ("xxx", [("x", 3)])
    assert [note["hook"] for note in caller.records[0]["decisions"]] == ["small orders"]


@representatives("run")
async def test_a_gate_of_the_run_refuses_a_call_and_lets_another_pass(way: Way) -> None:
    ran: list[Any] = []
    caller = way([appending(ran)], gates=[Small(Reject("at most three"))])

    refused = await caller.call("append", {"text": "x", "times": 4})
    passed = await caller.call("append", {"text": "x", "times": 3})

    assert isinstance(refused, Rejected), refused
    assert isinstance(passed, Completed), passed
    assert ran == [("x", 3)]


@each_representative
async def test_a_gate_that_fails_fails_the_call(way: Way) -> None:
    ran: list[Any] = []

    def broken(call: Any) -> None:
        raise RuntimeError("no database")

    outcome = await way(Toolset([appending(ran)]).with_gates(broken)).call("append", {"text": "x"})

    assert isinstance(outcome, Failed), outcome
    assert (outcome.error_type, ran) == ("HookError", [])


@each_representative
async def test_a_gate_has_the_approver_asked(way: Way) -> None:
    ran: list[Any] = []
    caller = way(Toolset([appending(ran)]).with_gates(Small(Ask("more than three"))), approver=approve_all)

    outcome = await caller.call("append", {"text": "x", "times": 4})

    assert isinstance(outcome, Completed), outcome
    assert ran == [("x", 4)]
    assert caller.records[0]["approval"]["kind"] == "grant"


@representatives("answer")
@pytest.mark.parametrize("of_run", [False, True])
@pytest.mark.parametrize("is_granted", [False, True])
async def test_a_question_of_a_gate_suspends_the_call_until_it_is_answered(
    way: Way, of_run: bool, is_granted: bool
) -> None:
    ran: list[Any] = []
    gate, tools = Small(Ask("more than three")), Toolset([appending(ran)])
    if of_run and "run" not in way.abilities:
        pytest.skip("it has no part in the run of a test")
    caller = way(tools, gates=[gate]) if of_run else way(tools.with_gates(gate))

    waiting = await caller.call("append", {"text": "x", "times": 4})
    assert isinstance(waiting, Suspended), waiting
    assert "more than three" in waiting.request.reason
    assert ran == []
    answer = waiting.request.grant() if is_granted else waiting.request.deny(message="no")
    outcome = await caller.answer(waiting, answer)

    assert isinstance(outcome, Completed if is_granted else Rejected), outcome
    assert ran == ([("x", 4)] if is_granted else [])


@each_representative
async def test_a_result_is_masked_for_the_caller_and_in_the_record(way: Way) -> None:
    @ez_tool
    async def find() -> str:
        """Find a person."""
        return f"Ann <{ADDRESS}>"

    caller = way(Toolset([find]).with_deliveries(masked))

    outcome = await caller.call("find")

    assert isinstance(outcome, Completed), outcome
    assert outcome.value == "Ann <<masked>>"
    assert "masked" in caller.shown[0]
    assert ADDRESS not in json.dumps([caller.shown, caller.records])


async def find_rows() -> Any:
    yield f"Ann <{ADDRESS}>"
    yield f"Ann <{ADDRESS}>"


def find_rows_in_a_thread() -> Any:
    yield f"Ann <{ADDRESS}>"
    yield f"Ann <{ADDRESS}>"


@each_representative
@pytest.mark.parametrize("fn", [find_rows, find_rows_in_a_thread])
async def test_the_values_of_a_stream_are_masked_for_the_caller_and_in_the_record(
    way: Way, fn: Callable[..., Any]
) -> None:
    caller = way(Toolset([ez_tool(name="find")(fn)]).with_deliveries(masked))

    outcome = await caller.call("find")

    assert isinstance(outcome, Completed), outcome
    assert outcome.value == ["Ann <<masked>>"] * 2
    assert ADDRESS not in json.dumps([caller.shown, caller.records])


@representatives("run")
async def test_a_delivery_of_the_run_masks_results(way: Way) -> None:
    @ez_tool
    async def find() -> str:
        """Find a person."""
        return f"Ann <{ADDRESS}>"

    caller = way([find], deliveries=[masked])

    outcome = await caller.call("find")

    assert isinstance(outcome, Completed), outcome
    assert outcome.value == "Ann <<masked>>"
    assert ADDRESS not in json.dumps([caller.shown, caller.records])


@each_representative
async def test_a_delivery_that_fails_gives_the_caller_nothing(way: Way) -> None:
    @ez_tool
    async def find() -> str:
        """Find a person."""
        return f"Ann <{ADDRESS}>"

    def broken(call: Any, value: Any) -> Any:
        raise RuntimeError("no list of addresses")

    caller = way(Toolset([find]).with_deliveries(broken))

    outcome = await caller.call("find")

    assert isinstance(outcome, Failed), outcome
    assert ADDRESS not in json.dumps([caller.shown, caller.records, outcome.to_dict()])


@representatives("run")
async def test_a_yes_within_bounds_covers_further_calls_of_the_run_and_no_others(way: Way) -> None:
    ran, asked = list[Any](), list[Any]()

    async def approver(request: ApprovalRequest) -> Grant | Denial:
        asked.append(request.arguments["times"])
        if len(asked) > 1:
            return request.deny(message="too many")
        return request.always("ann", within={"text": Bound.any(), "times": Bound.between(1, 3)}, uses=2)

    store = MemoryApprovalStore()
    caller = way(Toolset([appending(ran)]).with_approval(), approver=approver, approvals=store)
    outcomes = [await caller.call("append", {"text": f"x{times}", "times": times}) for times in (1, 3, 4, 2)]

    assert [isinstance(outcome, Completed) for outcome in outcomes] == [True, True, False, False]
    assert (ran, asked) == ([("x1", 1), ("x3", 3)], [1, 4, 2])


@each_representative
async def test_calls_over_a_limit_are_refused_with_the_time_when_they_are_free_again(way: Way) -> None:
    ran, clock = list[Any](), FakeClock()
    caller = way(Toolset([appending(ran)]).with_gates(Budgets([Limit(calls=2, per="minute", by="tool")], clock=clock)))

    outcomes = [await caller.call("append", {"text": f"x{number}"}) for number in range(3)]
    clock.advance(61)
    outcomes.append(await caller.call("append", {"text": "x4"}))

    assert [isinstance(outcome, Completed) for outcome in outcomes] == [True, True, False, True]
    assert isinstance(outcomes[2], Rejected), outcomes[2]
    assert "free again at 1970-01-01T00:01:01+00:00, in 61 s" in caller.shown[2]
    assert ran == [("x0", 1), ("x1", 1), ("x4", 1)]


@representatives("answer")
async def test_calls_over_a_budget_suspend_until_a_person_says_yes(way: Way) -> None:
    ran = list[Any]()
    tool = appending(ran, cost=Cost(lambda arguments: arguments["times"], "EUR"))
    limit = Limit(spend=5, currency="EUR", per="day", over="ask")
    caller = way(Toolset([tool]).with_gates(Budgets([limit], clock=FakeClock())))

    await caller.call("append", {"text": "x", "times": 4})
    waiting = await caller.call("append", {"text": "y", "times": 2})
    assert isinstance(waiting, Suspended), waiting
    outcome = await caller.answer(waiting, waiting.request.grant())

    assert "of which 4 are used. It costs 2 EUR" in waiting.request.reason
    assert isinstance(outcome, Completed), outcome
    assert ran == [("x", 4), ("y", 2)]


@representatives("answer")
@pytest.mark.parametrize("kind", ["python", "cedar"])
async def test_a_yes_of_who_may_not_approve_lets_nothing_run_and_one_of_who_may_does(way: Way, kind: str) -> None:
    ran = list[Any]()
    rule = ApproverRule(name="many", over={"times": 5}, of="desk", not_requester=False)
    if kind == "cedar":
        rule = CedarPolicy(
            '@not_requester("false") permit (principal in Group::"desk", action == Action::"approve", resource) '
            "when { context.arguments.times > 5 };"
        )
    rules = ApproverRules([rule], Groups({"desk": ["ann"]}))
    caller = way(Toolset([appending(ran)]).with_gates(rules))

    first = await caller.call("append", {"text": "x", "times": 9})
    assert isinstance(first, Suspended), first
    with suppress(ApprovalError):
        refused = await caller.answer(first, first.request.grant(Identity("eve")))
        assert not isinstance(refused, Completed), refused
    second = await caller.call("append", {"text": "y", "times": 9})
    assert isinstance(second, Suspended), second
    outcome = await caller.answer(second, second.request.grant(Identity("ann")))

    assert isinstance(outcome, Completed), outcome
    assert ran == [("y", 9)]


SMALL_AND_LARGE = """
permit (principal in Group::"desk", action == Action::"approve", resource) when { context.arguments.times <= 5 };
permit (principal in Group::"boss", action == Action::"approve", resource) when { context.arguments.times > 5 };
"""


@representatives("answer")
@pytest.mark.parametrize("kind", ["python", "cedar"])
async def test_an_edit_beyond_what_one_may_approve_is_refused_where_it_is_made(way: Way, kind: str) -> None:
    ran = list[Any]()
    rules = [
        ApproverRule(name="small", up_to={"times": 5}, of="desk", not_requester=False),
        ApproverRule(name="large", over={"times": 5}, of="boss", not_requester=False),
    ]
    if kind == "cedar":
        rules = [CedarPolicy(SMALL_AND_LARGE.replace("permit", '@not_requester("false") permit'))]
    gate = ApproverRules(rules, Groups({"desk": ["ann"], "boss": ["eve"]}))
    caller = way(Toolset([appending(ran)]).with_gates(gate))

    waiting = await caller.call("append", {"text": "x", "times": 2})
    assert isinstance(waiting, Suspended), waiting
    beyond = waiting.request.grant(Identity("ann"), override_args={"text": "x", "times": 9})
    assert "`times` is 9 after the edit" in misfit(beyond, waiting.request)
    outcome = await caller.answer(waiting, replace(beyond, override_args={"text": "x", "times": 5}))

    assert isinstance(outcome, Completed), outcome
    assert ran == [("x", 5)]


FINANCE = ApproverRule(name="finance", of="finance")


@representatives("stored")
@pytest.mark.parametrize(
    ("rule", "hours_before", "hours_after", "approver"),
    [
        (FINANCE, 1.5, 0, "bob"),  # to whom ann gave her right for an hour
        (ApproverRule(name="managers", of="finance", escalate={timedelta(hours=1): "managers"}), 0, 1.5, "eve"),
        (ApproverRule(name="soon", of="finance", expires=timedelta(hours=1)), 1.5, 0, "ann"),
    ],
    ids=["delegation", "escalation", "expiry"],
)
async def test_a_yes_at_a_time_when_its_approver_may_not_lets_nothing_run_and_one_at_another_does(
    way: Way, rule: ApproverRule, hours_before: float, hours_after: float, approver: str
) -> None:
    ran = list[Any]()
    groups = Groups(
        {"finance": ["ann"], "managers": ["eve"]}, delegations=[Delegation("ann", "bob", now() + timedelta(hours=1))]
    )

    async def runs_after(hours: float, text: str) -> bool:
        clock = wall_clock()
        store = MemoryApprovalStore(clock=clock)
        tools = Toolset([appending(ran)]).with_gates(ApproverRules([rule], groups))
        caller = way(tools, principal="ada", approvals=store)
        waiting = await caller.call("append", {"text": text})
        assert isinstance(waiting, Suspended), waiting
        clock.advance(hours * 3600)
        answer = waiting.request.grant(Identity(approver))
        try:
            await store.answer(answer)
        except ApprovalError:
            answer = None
        return isinstance(await caller.answer(waiting, answer), Completed)

    assert not await runs_after(hours_before, "x")
    assert await runs_after(hours_after, "y")
    assert ran == [("y", 1)]


@representatives("run")
async def test_a_standing_yes_covers_calls_at_its_times_and_no_others(way: Way) -> None:
    ran, store = list[Any](), MemoryApprovalStore()
    caller = way(Toolset([appending(ran, requires_approval=True)]), principal="ada", approvals=store)

    for text, begins in (("x", 2), ("y", -1)):
        times = around(begins * HOUR, (begins + 2) * HOUR)
        await store.answer(Grant("append", "ann", scope="tool", principal="ada", times=times))
        await caller.call("append", {"text": text})

    assert ran == [("y", 1)]


@representatives("run")
async def test_a_second_model_lets_run_what_a_rule_lists_it_for_and_nothing_else(way: Way) -> None:
    ran = list[Any]()
    rules = [
        ApproverRule(name="few", up_to={"times": 3}, of="reviewers"),
        ApproverRule(name="many", over={"times": 3}, of="desk"),
    ]
    gate = ApproverRules(rules, Groups({"reviewers": ["risk-check", "sue"], "desk": ["sue"]}))
    yes = json.dumps({"says": "yes", "why": "usual"})
    model = ScriptedModel(yes, yes, "yes", RuntimeError("no server"), json.dumps({"says": "no", "why": "odd"}))
    judge = ModelJudge(model, "A few may pass.", model_name="small-1")
    approver = model_approver(judge, "risk-check", lambda request: request.deny(by="sue", message="not now"))
    caller = way(Toolset([appending(ran)]).with_gates(gate), approver=approver, principal="ada")

    outcomes = [await caller.call("append", {"text": "x", "times": times}) for times in (2, 9, 1, 1, 1)]

    assert ran == [("x", 2)]
    assert [isinstance(outcome, Completed) for outcome in outcomes] == [True, *[False] * 4]
    approvals = [record["approval"] for record in caller.records]
    assert [one["approver"] for one in approvals] == ["risk-check (model)", *["sue"] * 3, "risk-check (model)"]
    assert [approvals[at]["message"] for at in (0, -1)] == ["small-1: usual", "small-1: odd"]


@representatives("stored")
async def test_a_call_that_needs_two_people_runs_when_both_have_approved_it_as_it_is(way: Way) -> None:
    ran, store = list[Any](), MemoryApprovalStore()
    tool = appending(ran, requires_approval=True, approvals_needed=2)
    caller = way(Toolset([tool]), principal="ada", approvals=store)

    waiting = await caller.call("append", {"text": "x", "times": 2})
    assert isinstance(waiting, Suspended), waiting
    request = waiting.request
    await store.answer(request.grant("ann"))
    for refused in (request.grant("Ann "), request.always("bob"), request.grant("bob", override_args={"text": "y"})):
        with suppress(ApprovalError):
            await store.answer(refused)
    (entry,) = await store.list()
    assert (entry.request.approved_by, entry.answer, ran) == (("ann",), None, [])
    await store.answer(request.grant("bob"))
    both = (await store.show(request.id)).answer
    outcome = await caller.answer(waiting, both)

    assert isinstance(outcome, Completed), outcome
    assert ran == [("x", 2)]

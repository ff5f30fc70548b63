"""Amounts that are negative, huge, or no plain numbers: whatever judges an amount refuses them, or asks a person."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

import pytest

from toolcrib import Pipeline, Run, Suspended, ToolCall, Toolset
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.approvers import ApproverRule, ApproverRules, Groups
from toolcrib.budgets import Budgets, Cost, Limit
from toolcrib.calls import Bound, Completed
from toolcrib.tools import ez_tool


@ez_tool
async def refund(amount: Any = None, currency: str = "EUR") -> str:
    """Refund an order."""
    return f"refunded {amount}"


Judge: TypeAlias = tuple[Pipeline, Run]


async def by_rule(**bounds: Any) -> Judge:
    rule = ApproverRule(name="x", of="finance", **bounds)
    gate = ApproverRules([rule], Groups({"finance": ["bob"]}))
    return Pipeline(Toolset([refund]).with_gates(gate)), Run(principal="ada")


async def by_grant(**options: Any) -> Judge:
    pipeline = Pipeline(Toolset([refund]).with_approval(names=["refund"]))
    run = Run(principal="ada", approvals=MemoryApprovalStore())
    first = await pipeline.run(ToolCall("refund", {"amount": 20, "currency": "EUR"}), run)
    assert isinstance(first, Suspended)
    outcome = await pipeline.run(first, run, grant=first.request.always("bob", **options))
    assert isinstance(outcome, Completed)
    return pipeline, run


async def by_budget(amount: Callable[[Any], Any]) -> Judge:
    gate = Budgets([Limit(spend=50, currency="EUR")], costs={"refund": Cost(amount, "EUR")})
    return Pipeline(Toolset([refund]).with_gates(gate)), Run(principal="ada")


JUDGES: dict[str, Callable[[], Any]] = {
    "a rule over": lambda: by_rule(over={"amount": 50}),
    "a rule up to": lambda: by_rule(up_to={"amount": 50}),
    "a yes up to": lambda: by_grant(within={"amount": Bound.parse("<= 50")}),
    "a yes from": lambda: by_grant(within={"amount": Bound.parse("5..50")}),
    "a yes up to a sum": lambda: by_grant(total=("amount", 50)),
    "a budget": lambda: by_budget(lambda arguments: arguments["amount"]),
}

ODD: list[Any] = [
    *(-1, -0.01, "-5", -(10**30), Decimal("-0.5")),
    *(float("nan"), float("inf"), float("-inf"), 10**40, 10**400, 10**5000, 1e300, "9" * 50),
    *("", " 5", "5\n", "+5", "1e1", "0x10", "5,0", "1_0", "5 EUR", "\u20ac5", "\uff15", "\u0665", "NaN", "--5"),
    *(True, None, [5], {"value": 5, "currency": "JPY"}),
]


@pytest.mark.parametrize("amount", ODD, ids=lambda amount: f"{amount!r:.20}" if amount != 10**5000 else "10**5000")
@pytest.mark.parametrize("judge", JUDGES)
async def test_an_odd_amount_is_refused_or_asked_about_and_lowers_no_sum(judge: str, amount: Any) -> None:
    pipeline, run = await JUDGES[judge]()

    odd = await pipeline.run(ToolCall("refund", {"amount": amount, "currency": "EUR"}), run)
    later = await pipeline.run(ToolCall("refund", {"amount": 50.5, "currency": "EUR"}), run)

    assert not isinstance(odd, Completed)
    assert judge == "a rule up to" or not isinstance(later, Completed)


@pytest.mark.parametrize("amount", [50, 50.0, "50", "50.00", 5, 0, "0", -0.0], ids=repr)
async def test_a_plain_amount_is_judged_by_its_value(amount: Any) -> None:
    value = float(amount)
    expected = {"a yes from": value >= 5, "a yes up to a sum": value <= 30, "a rule up to": False}

    for name, judge in JUDGES.items():
        pipeline, run = await judge()
        outcome = await pipeline.run(ToolCall("refund", {"amount": amount, "currency": "EUR"}), run)
        assert isinstance(outcome, Completed) is expected.get(name, True), name


async def test_a_yes_to_an_amount_is_for_the_currency_of_its_call() -> None:
    pipeline, run = await by_grant(within={"amount": Bound.parse("<= 50")})

    for other in ("JPY", "eur", "EUR "):
        outcome = await pipeline.run(ToolCall("refund", {"amount": 5, "currency": other}), run)
        assert isinstance(outcome, Suspended)


def test_up_to_a_number_begins_at_0_and_below_0_a_person_says_where() -> None:
    assert [Bound.parse("<= 50").covers(amount) for amount in (-1, -0.01, 0, 50)] == [False, False, True, True]
    assert Bound.between(-20, 50).covers(-20)
    assert Bound.between(high=-5).covers(-9)

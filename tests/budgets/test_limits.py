"""Limits and costs: what may be given, and how they are said."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from toolcrib.budgets import Budgets, Charge, Cost, Limit, Overrun
from toolcrib.tools import ez_tool


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"calls": 10, "per": "minute", "by": "principal"}, "10 calls a minute of one principal"),
        ({"calls": 10, "per": timedelta(seconds=90)}, "10 calls in 0:01:30"),
        (
            {"spend": 50, "currency": "EUR", "by": ["tool", "run"], "tools": ["pay_*"]},
            "50 EUR in all of pay_* of one tool and one run",
        ),
        ({"spend": Decimal("0.50"), "currency": "EUR", "per": "day"}, "0.50 EUR a day"),
    ],
)
def test_a_limit_is_said_in_words(options: dict[str, Any], words: str) -> None:
    assert Limit(**options).text() == words


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "give calls or spend"),
        ({"calls": 1, "spend": 1, "currency": "EUR"}, "give calls or spend"),
        ({"calls": -1}, "calls must be"),
        ({"spend": 1}, "an amount from 0 on and a currency"),
        ({"spend": -1, "currency": "EUR"}, "spend must be at least 0, and is -1"),
        ({"spend": float("nan"), "currency": "EUR"}, "spend must be at least 0, and is nan"),
        ({"calls": 1, "per": "month"}, "per is 'month'; give one of 'minute', 'hour', 'day'"),
        ({"calls": 1, "per": timedelta(milliseconds=1)}, "give a second or more"),
        ({"calls": 1, "by": "person"}, "by has 'person'; its parts are tool, principal"),
        ({"calls": 1, "over": "wait"}, "over is 'wait'"),
    ],
)
def test_a_limit_that_limits_nothing_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Limit(**options)


def test_a_limit_by_group_needs_groups() -> None:
    with pytest.raises(ValueError, match="no groups are given"):
        Budgets([Limit(calls=1, by="group")])
    with pytest.raises(TypeError, match="a list of limits"):
        Budgets(Limit(calls=1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"tools=\['pay'\]"):
        Limit(calls=1, tools="pay")


@pytest.mark.parametrize("given", [-1, float("inf"), float("nan"), True, "many", None])
def test_a_cost_is_a_number_from_0_on(given: Any) -> None:
    with pytest.raises(ValueError, match="a cost must be a number from 0 on"):
        Cost(given, "EUR")
    with pytest.raises(ValueError, match="a cost must be a number from 0 on"):
        Cost(lambda arguments: given, "EUR").of({})


def test_a_cost_is_exact() -> None:
    assert Cost(0.1, "EUR").of({}) + Cost(Decimal("0.2"), "EUR").of({}) == Decimal("0.3")
    assert Cost(lambda arguments: arguments["n"] * 2, "EUR").of({"n": 3}) == 6


def test_costs_that_are_bare_numbers_are_refused_where_they_are_given() -> None:
    costs: Any = {"pay": 30}

    with pytest.raises(TypeError, match=r"the cost of `pay` is 30; give it as in \{'pay': Cost\(30, 'EUR'\)\}"):
        Budgets([Limit(spend=50, currency="EUR", per="day")], costs=costs)


def test_the_cost_of_a_tool_has_a_currency() -> None:
    with pytest.raises(ValueError, match="give a currency"):
        Cost(1, "")
    with pytest.raises(TypeError, match="cost must be a Cost"):

        @ez_tool(cost=5)  # type: ignore[arg-type]
        def pay() -> None:
            """Pay."""


def test_what_is_over_says_when_it_is_free_again() -> None:
    limit = Limit(spend=50, currency="EUR", per="day")

    soon = Overrun(Charge("", Decimal(20), limit), Decimal("40.5"), 60.0).text("refund", 12.5)
    never = Overrun(Charge("", Decimal(60), limit), Decimal("40.5"), None).text("refund", 12.5)

    assert soon == (
        "`refund` is over its limit: at most 50 EUR a day, of which 40.5 are used. It costs 20 EUR. "
        "It is free again at 1970-01-01T00:01:00+00:00, in 48 s."
    )
    assert never.endswith("It costs 60 EUR. Waiting does not help.")

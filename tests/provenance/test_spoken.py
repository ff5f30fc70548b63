"""Values that the user says in words: what is plainly said is not asked about, and nothing else is known by it."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from toolcrib.provenance import Memory
from toolcrib.provenance._spoken import numbers_said

TODAY = date(2026, 11, 30)  # a Monday


def kind_of(said: str, value: Any, today: date | None = TODAY) -> str:
    made = Memory()
    made.today = today
    made.hear(said)
    made.read("read_mail", "c1", {}, "hello", "untrusted")
    return made.origin(value).kind


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("pay Ann twenty euros", 20),
        ("pay fifty-five dollars", 55),
        ("pay a hundred", 100),
        ("pay two hundred and fifty", 250),
        ("pay three thousand five hundred", 3_500),
        ("two million", 2_000_000),
        ("a dozen eggs", 12),
        ("pay 20EUR", 20),
        ("pay eur20.50", 20.5),
        ("buy 5kg of flour", 5),
        ("2x flour", 2),
        ("wait 30min", 30),
        ("pay 20.-", 20),
    ],
)
def test_a_number_in_words_or_at_a_unit_is_the_users(said: str, number: float) -> None:
    assert kind_of(said, number) == "user"


@pytest.mark.parametrize(
    "said",
    ["one of them", "twofold", "the tenth", "forty-niners", "id 5a", "v2", "room 5m2", "5kg/m2", "a5kg", "x20eur"],
)
def test_other_words_say_no_number(said: str) -> None:
    assert list(numbers_said(said)) == []


@pytest.mark.parametrize(
    ("said", "number"), [("twenty", 2), ("fifty-five", 50), ("two hundred", 2), ("call two three", 23), ("seventy", 7)]
)
def test_a_part_of_a_number_in_words_is_unknown(said: str, number: float) -> None:
    assert kind_of(f"pay {said} euros", number) == "model"


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("at noon", "12:00"),
        ("until midnight", "00:00"),
        ("from 9 to 10", "09:00"),
        ("from 9 to 10, please", "10:00"),
        ("at 3", "15:00"),
        ("at 15 o'clock", "15:00"),
        ("15:00-16:30", "15:00"),
        ("from 15:00 - 16:30.", "16:30"),
        ("tomorrow", "2026-12-01"),
        ("the day after tomorrow", "2026-12-02"),
        ("yesterday", "2026-11-29"),
        ("on Friday", "2026-12-04"),
        ("next Monday", "2026-12-07"),
        ("on 5.6.2027", "2027-06-05"),
        ("on May 5", "2027-05-05"),
        ("on May 5", "2026-05-05"),
        ("on May 5 at 3pm", "2027-05-05T15:00"),
    ],
)
def test_a_time_in_words_is_the_users(said: str, value: str) -> None:
    assert kind_of(f"Meet Ann {said}", value) == "user"


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("tell 9 people", "09:00"),
        ("give it to 9 people", "09:00"),
        ("at 9", "10:00"),
        ("at 9.5", "09:00"),
        ("at 15", "03:00"),
        ("tomorrow", "2026-12-02"),
        ("on Friday", "2026-12-11"),
        ("on 5.6.2027", "2027-05-06"),
        ("on May 5", "2028-05-05"),
        ("on May 5", "2025-05-05"),
        ("on February 29", "2027-02-29"),
        ("afternoon", "12:00"),
    ],
)
def test_another_time_is_unknown(said: str, value: str) -> None:
    assert kind_of(f"Meet Ann {said}", value) == "model"


@pytest.mark.parametrize(("said", "value"), [("tomorrow", "2026-12-01"), ("on May 5", "2026-05-05")])
def test_a_day_is_unknown_where_that_of_the_run_is(said: str, value: str) -> None:
    assert kind_of(said, value, None) == "model"


def test_a_stranger_says_nothing_by_it() -> None:
    made = Memory()
    made.today = TODAY
    made.hear("what is new?")
    made.read("day", "c1", {}, "twenty tomorrow", "trusted")
    made.read("read_mail", "c2", {}, "twenty tomorrow at noon", "untrusted")

    assert [made.origin(value).kind for value in (20, "2026-12-01", "12:00")] == ["model"] * 3


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("2 million", 2_000_000),
        ("1.5 million", 1_500_000),
        ("3 hundred", 300),
        ("12,5 thousand", 12_500),
        ("2 billion", 2e9),
    ],
)
def test_a_number_with_a_word_of_scale_is_the_product(said: str, number: float) -> None:
    assert kind_of(f"the budget is {said} euros", number) == "user"


@pytest.mark.parametrize(
    ("said", "number"),
    [
        *(("2 million", number) for number in (2, 1_000_000)),
        *(("1.5 thousand", number) for number in (1.5, 1_000)),
        *(("half a million", number) for number in (1_000_000, 500)),
        *(("a quarter million", number) for number in (1_000_000, 4)),
        ("half a dozen", 12),
        *(("two and a half million", number) for number in (2, 1_000_000)),
        *(("50 k", number) for number in (50, 1_000)),
        *(("7 bn", number) for number in (7, 1_000_000_000)),
    ],
)
def test_a_part_of_a_number_with_a_word_of_scale_is_unknown(said: str, number: float) -> None:
    assert kind_of(f"the budget is {said} euros", number) == "model"


@pytest.mark.parametrize(
    ("said", "number"), [("50 kilos", 50), ("20 knots", 20), ("5 hundredths", 5), ("a million", 1e6)]
)
def test_a_number_before_another_word_is_the_users(said: str, number: float) -> None:
    assert kind_of(f"it is {said}", number) == "user"

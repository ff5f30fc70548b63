from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.sandbox import json_size
from toolcrib.sandbox.worker._export import ValueRefused, exported

SHAPES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def export(value: Any, most: int = 1_000_000) -> Any:
    return exported(value, most)


@given(SHAPES)
def test_json_shapes_are_copied_as_they_are(value: Any) -> None:
    assert export(value) == value


@given(SHAPES)
def test_a_copy_shares_nothing_that_can_be_changed(value: Any) -> None:
    made = export(value)

    assert not isinstance(value, list | dict) or made is not value


@pytest.mark.parametrize(
    ("value", "made"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        ({1}, [1]),
        (frozenset([2]), [2]),
        (datetime.date(2026, 2, 1), "2026-02-01"),
        (datetime.datetime(2026, 2, 1, 12, 30), "2026-02-01T12:30:00"),
        (Decimal("1.50"), "1.50"),
        (b"abc", "abc"),
        (float("nan"), "NaN"),
        ([float("inf"), float("-inf")], ["Infinity", "-Infinity"]),
        ({2: "a", None: "b", True: "c", (1, 2): "d"}, {"2": "a", "true": "c", "null": "b", "1,2": "d"}),
    ],
)
def test_other_values_become_json_shapes(value: Any, made: Any) -> None:
    assert export(value) == made


def test_a_long_integer_passes_as_long_as_python_writes_it_as_text() -> None:
    assert export(10**3_000) == 10**3_000

    with pytest.raises(ValueRefused, match="more than 4000 digits"):
        export(10**5_000)


def test_an_object_of_the_engine_is_its_fields() -> None:
    class Point:
        x = 1

    def fields(value: Any) -> Mapping[Any, Any] | None:
        return {"x": value.x} if isinstance(value, Point) else None

    assert exported([Point()], 100, fields) == [{"x": 1}]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("x" * 101, "larger than 100 characters"),
        (["x" * 60, "y" * 60], "larger than 100 characters"),
        ({"k" * 101: 1}, "larger than 100 characters"),
        (object(), "has no JSON form"),
        (print, "has no JSON form"),
        (..., "has no JSON form"),
    ],
)
def test_what_cannot_leave_says_why(value: Any, why: str) -> None:
    with pytest.raises(ValueRefused, match=why):
        export(value, 100)


def test_a_small_value_that_is_huge_outside_is_refused_without_being_spelt_out() -> None:
    bomb: list[Any] = []
    for _ in range(60):
        bomb = [bomb] * 10  # 10^60 lists, in 60

    with pytest.raises(ValueRefused, match="larger than"):
        export(bomb)


def test_a_deep_value_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(ValueRefused, match="nested more than 100 deep"):
        export(deep)


def test_a_value_that_occurs_twice_is_counted_twice() -> None:
    part = ["x" * 40]

    with pytest.raises(ValueRefused):
        export([part, part, part], 100)


@given(SHAPES)
def test_a_size_is_about_the_length_of_the_json(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    assert json_size(value) <= 4 * len(text) + 2

"""The JSON shapes of what leaves a program are those that the host gives to the same values."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import math
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.calls import jsonable
from toolcrib.sandbox._worker.export import ValueRefused, exported, exported_result


class Kind(enum.Enum):
    A = (1, 2)


class Level(enum.IntEnum):
    HIGH = 3


class Color(enum.StrEnum):
    RED = "red"


Pair = collections.namedtuple("Pair", "x y")


@dataclasses.dataclass
class Point:
    x: int
    _y: object = None


east = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
SAME: list[Any] = [
    None,
    True,
    1,
    10**50,
    1.5,
    "text",
    (1, 2),
    {1},
    frozenset([2]),
    [[1], {"a": (1,)}],
    math.nan,
    math.inf,
    -math.inf,
    [math.nan],
    {"a": math.inf},
    1 + 2j,
    fractions.Fraction(1, 3),
    datetime.datetime(2026, 1, 2, 3, 4, 5),
    datetime.datetime(2026, 1, 2, 3, 4, 5, 600, datetime.UTC),
    datetime.datetime(2026, 1, 2, 3, 4, tzinfo=east),
    datetime.date(2026, 1, 2),
    datetime.time(1, 2, 3, 5),
    datetime.time(1, tzinfo=datetime.UTC),
    datetime.timedelta(0),
    datetime.timedelta(days=-1),
    datetime.timedelta(days=400, seconds=3723, microseconds=40),
    datetime.timedelta(seconds=-1.5),
    datetime.timedelta(milliseconds=500),
    datetime.timedelta(minutes=5),
    decimal.Decimal("1.50"),
    b"bytes",
    bytearray(b"x"),
    uuid.UUID(int=5),
    Pair(1, 2),
    collections.deque([1]),
    collections.Counter("aab"),
    Kind.A,
    Level.HIGH,
    Color.RED,
    [Color.RED],
    ipaddress.ip_address("1.2.3.4"),
    re.compile("a"),
    ipaddress.ip_network("10.0.0.0/8"),
    Point(1, Point(2)),
    {Level.HIGH: 1, True: 2, 1.5: 3, (1, 2): 4},
    {datetime.date(2026, 1, 2): 1, b"k": 2},
    collections.OrderedDict(a=1),
    collections.defaultdict(list, a=[1]),
]


@pytest.mark.parametrize("value", SAME, ids=repr)
def test_a_value_takes_the_form_that_the_host_gives_it(value: Any) -> None:
    assert exported(value, 10_000) == jsonable(value)


class Plain:
    def __init__(self) -> None:
        self.a, self._b = 1, [2]


Plain.__module__ = "__main__"


def test_an_object_of_the_programs_own_is_its_fields() -> None:
    assert exported([Plain()], 1000) == [{"a": 1, "_b": [2]}]


@pytest.mark.parametrize(
    ("value", "shape"), [(range(3), [0, 1, 2]), ({"a": 1}.keys(), ["a"]), ({1: 2}.items(), [[1, 2]])]
)
def test_what_can_be_read_again_and_again_is_a_list(value: object, shape: object) -> None:
    assert exported(value, 1000) == shape


def numbers() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize("value", [numbers(), object(), Plain, len, b"\xff", ValueError("x"), memoryview(b"x")])
def test_what_has_no_form_is_refused(value: object) -> None:
    with pytest.raises(ValueRefused):
        exported([value], 1000)


def test_every_occurrence_counts() -> None:
    value: list[Any] = [0] * 10
    for _ in range(20):
        value = [value] * 10

    with pytest.raises(ValueRefused, match="larger than 100000 characters"):
        exported(value, 100_000)


def test_a_function_or_a_class_is_a_text_at_the_end_of_a_program() -> None:
    assert exported_result(numbers, 1000) == "<function numbers>"
    assert exported_result(datetime.date, 1000) == "<class 'datetime.date'>"


# --- copies ----------------------------------------------------------------------------------------------------------


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
        (decimal.Decimal("1.50"), "1.50"),
        (b"abc", "abc"),
        (float("nan"), "NaN"),
        ([float("inf"), float("-inf")], ["Infinity", "-Infinity"]),
        ({2: "a", None: "b", True: "c", (1, 2): "d"}, {"2": "a", "true": "c", "null": "b", "1,2": "d"}),
    ],
)
def test_other_values_become_json_shapes(value: Any, made: Any) -> None:
    assert export(value) == made


def test_a_last_value_keeps_the_numbers_that_json_does_not_have() -> None:
    made = exported_result({"a": [math.nan, -math.inf, 1.5], math.nan: 1}, 1_000)

    assert (repr(made["a"]), made["NaN"]) == ("[nan, -inf, 1.5]", 1)


def test_a_long_integer_passes_as_long_as_python_writes_it_as_text() -> None:
    assert export(10**3_000) == 10**3_000

    with pytest.raises(ValueRefused, match="more than 4000 digits"):
        export(10**5_000)


def test_an_object_of_the_engine_is_its_fields() -> None:
    class Foreign:
        x = 1

    def fields(value: Any) -> Mapping[Any, Any] | None:
        return {"x": value.x} if isinstance(value, Foreign) else None

    assert exported([Foreign()], 100, fields) == [{"x": 1}]


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

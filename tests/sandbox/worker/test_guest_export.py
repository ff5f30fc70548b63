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
from collections.abc import Iterator
from typing import Any

import pytest

from toolcrib.calls import jsonable
from toolcrib.sandbox.worker._export import ValueRefused, exported, exported_result


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


def test_a_function_or_a_class_is_told_at_the_end_of_a_program() -> None:
    assert exported_result(numbers, 1000) == "<function numbers>"
    assert exported_result(datetime.date, 1000) == "<class 'datetime.date'>"

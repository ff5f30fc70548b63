"""The digest: the same for the same call in any process, another for any other."""

import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Secret, SecretBytes, SecretStr

from toolcrib.approvals import digest
from toolcrib.schema import Redacted

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int


class Account(BaseModel):
    owner: str
    pin: Annotated[str, Redacted] = ""
    model_config = {"extra": "allow"}


@given(st.dictionaries(st.text(max_size=5), values, max_size=4))
def test_the_order_of_arguments_does_not_count(arguments: dict[str, Any]) -> None:
    turned = dict(reversed(list(arguments.items())))

    assert digest("pay", arguments) == digest("pay", turned)
    assert digest("pay", arguments) != digest("book", arguments)


@given(values, values)
def test_different_values_have_different_digests(one: Any, other: Any) -> None:
    same = repr(one) == repr(other) or one == other

    assert same or digest("pay", {"x": one}) != digest("pay", {"x": other})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SecretStr("a"), SecretStr("b")),
        (SecretBytes(b"a"), SecretBytes(b"b")),
        (Secret[int](1), Secret[int](2)),
        (Account(owner="ann", pin="1"), Account(owner="ann", pin="2")),
        (Account.model_validate({"owner": "ann", "x": 1}), Account.model_validate({"owner": "ann", "x": 2})),
        (Point(1), Point(2)),
        (Colour.RED, Colour.BLUE),
        ({1, 2}, {1, 3}),
        (date(2026, 1, 1), date(2026, 1, 2)),
        (b"a", b"b"),
        (b"\xff", b"\xfe"),
        (float("inf"), float("-inf")),
        ([SecretStr("a")], [SecretStr("b")]),
        (1, True),
        (1, "1"),
        (None, "null"),
        ([1, [2]], [[1], 2]),
        ("\ud800", "\ud801"),
    ],
)
def test_what_is_not_plain_json_counts_too(one: Any, other: Any) -> None:
    assert digest("pay", {"x": one}) != digest("pay", {"x": other})
    assert digest("pay", {"x": one}) == digest("pay", {"x": one})


def test_equal_sets_have_one_digest() -> None:
    one, other = {f"item {n}" for n in range(50)}, {f"item {n}" for n in reversed(range(50))}

    assert digest("pay", {"x": one}) == digest("pay", {"x": other})


@pytest.mark.processes
def test_another_process_comes_to_the_same() -> None:
    program = "from toolcrib.approvals import digest; print(digest('pay', {'tags': {'a', 'b', 'c'}, 'sum': 1.5}))"

    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert said.strip() == digest("pay", {"sum": 1.5, "tags": {"c", "b", "a"}})

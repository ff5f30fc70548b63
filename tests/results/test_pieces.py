"""Pieces: together they are the text of the value, as it would be shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from toolcrib.calls import Media, json_text
from toolcrib.errors import ResultNotSerializable
from toolcrib.results._pieces import pieces_of
from toolcrib.results._shape import Shape, weight_of

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=20,
)


def shape_of(value: object) -> str:
    shape = Shape()
    for piece in pieces_of(value, "find", []):
        shape.note(piece, len(piece.text))
    return str(shape)


lists = st.lists(json_values, max_size=200)


@given(json_values | lists | st.dictionaries(st.text(max_size=2), lists))
def test_pieces_are_the_text(value: Any) -> None:
    assert "".join(piece.text for piece in pieces_of(value, "find", [])) == json_text(value)


@dataclass
class Row:
    id: int
    pin: SecretStr


class Page(BaseModel):
    rows: list[Row]


@pytest.mark.parametrize(
    "value",
    [
        "x" * 1_000_000,
        ["x" * 3_000_000, 1],
        {"a": "x" * 3_000_000, "b": 1},
        {"rows": [{"id": number} for number in range(20_000)], "total": 20_000},
        [{"id": number} for number in range(20_000)],
        {number: number for number in range(1_000)},
        {"total": 1, "data": {"rows": [{"id": number} for number in range(20_000)], "next": None}, "end": [1]},
        [{"rows": [{"id": number} for number in range(20_000)]}, "x", {"a": {"b": {"c": {"d": [1] * 1_000}}}}],
        (1, 2.5, {"a"}),
        [float("nan"), float("inf")] * 100,
        Page(rows=[Row(number, SecretStr("hunter2")) for number in range(100)]),
        [Row(number, SecretStr("hunter2")) for number in range(100)],
        None,
        3,
    ],
    ids=lambda value: type(value).__name__,
)
def test_pieces_of_long_values_are_the_text(value: Any) -> None:
    pieces = [*pieces_of(value, "find", [])]

    text = "".join(piece.text for piece in pieces)
    assert text == json_text(value)
    assert "hunter2" not in text
    assert max(len(piece.text) for piece in pieces) <= 1024 * 1024


def test_media_are_collected() -> None:
    image, media = Media("image/png", b"png", name="chart.png"), list[Media]()

    text = "".join(piece.text for piece in pieces_of([image, "x"], "find", media))

    assert media == [image]
    assert "cG5n" not in text


def test_what_has_no_json_form_is_named() -> None:
    with pytest.raises(ResultNotSerializable, match="find"):
        list(pieces_of([object()], "find", []))


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ("a\nb\nc", "text of 3 lines"),
        ("a", "text of one line"),
        ([{"id": 1, "name": None}, {"id": 2.5, "name": "x"}], "list of 2 rows"),
        ([1, "x"] * 1_000, "list of 2,000 rows"),
        ({"total": 1, "rows": [[1]] * 60}, "object of 2 members, lists: rows (60 rows)"),
        ({"total": 1}, "object of 1 member"),
        ({"data": {"rows": [1] * 60}, "n": 1}, "object of 2 members"),
        ({"a\nb": [1] * 60}, "object of 1 member, lists: a b (60 rows)"),
        ({f"list {number}" * 10: [1] * 60 for number in range(1_000)}, None),
        ({"界" * 100_000: [1] * 60}, None),
    ],
)
def test_a_shape_is_short(value: Any, shape: str | None) -> None:
    found = shape_of(value)

    assert shape is None or found == shape
    assert weight_of(found) < 200

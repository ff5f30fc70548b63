"""Where edited arguments do not fit a tool's schema is said in words."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from toolcrib.console._misfits import misfits
from toolcrib.tools import ez_tool


class Stop(BaseModel):
    city: str = Field(min_length=2)
    nights: int = Field(default=1, ge=1, le=30)
    next: Stop | None = None


@ez_tool
def book(
    stops: list[Stop],
    day: date,
    kind: Literal["bus", "train"] = "bus",
    price: float = 1.0,
    note: str | None = None,
    extra: dict[str, int] | None = None,
) -> None:
    pass


GOOD: dict[str, Any] = {"stops": [{"city": "Oslo"}], "day": "2030-01-02"}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"note": None, "price": 2, "kind": "train"},
        {"stops": []},
        {"stops": [{"city": "Oslo", "nights": 3, "next": {"city": "Bergen"}}]},
        {"extra": {"a": 1}},
    ],
)
def test_what_fits_is_let_through(more: dict[str, Any]) -> None:
    assert misfits({**GOOD, **more}, book.parameters) == []


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"stops": "Oslo"}, 'stops: an array is needed, not "Oslo"'),
        ({"stops": [{"city": 5}]}, "stops[0].city: a string is needed, not 5"),
        ({"stops": [{"city": "O"}]}, "stops[0].city: it is too short; 2 is the least"),
        ({"stops": [{"nights": 2}]}, "stops[0].city: it is missing"),
        ({"stops": [{"city": "Oslo", "nights": 31}]}, "stops[0].nights: it must be at most 30"),
        ({"stops": [{"city": "Oslo", "next": {"city": 5}}]}, "stops[0].next.city: a string is needed, not 5"),
        ({"kind": "car"}, 'kind: one of "bus", "train" is needed, not "car"'),
        ({"price": True}, "price: a number is needed, not true"),
        ({"note": 5}, "note: a string or null is needed, not 5"),
        ({"extra": {"a": "x"}}, 'extra.a: an integer is needed, not "x"'),
        ({"more": 1}, "more: there is no such argument; there are stops, day, kind, price, note, extra"),
    ],
)
def test_what_does_not_is_named(more: dict[str, Any], problem: str) -> None:
    assert misfits({**GOOD, **more}, book.parameters) == [problem]


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"$ref": "#/$defs/none"}, {"unknown": True}])
def test_what_a_schema_does_not_say_is_let_through(schema: dict[str, Any]) -> None:
    assert misfits({"a": [1]}, schema) == []


def test_a_schema_that_names_itself_has_an_end() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}

    assert misfits({}, schema) == []


DOUBLED = {f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]} for n in range(40)}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#/$defs/loop"}}, "$defs": {"loop": {"anyOf": [{"$ref": "#/$defs/loop"}]}}},
        {"properties": {"a": {"$ref": "#/$defs/a0"}}, "$defs": {**DOUBLED, "a40": {"type": "object"}}},
        {"properties": 3},
        {"properties": {"a": {"anyOf": []}}},
        {"required": 3},
        {"$defs": [], "properties": {"a": {"$ref": "#/$defs/b"}}},
    ],
)
def test_a_strangers_schema_neither_hangs_nor_breaks_the_check(schema: dict[str, Any]) -> None:
    assert misfits({"a": "x"}, schema) == []

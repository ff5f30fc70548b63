"""The checker of JSON values against a schema: what does not fit is said in words, and no schema keeps it busy."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

import pytest
from jsonschema import SchemaError
from pydantic import BaseModel, Field

from toolcrib.errors import SchemaTooLarge
from toolcrib.jsonschema import check_size
from toolcrib.jsonschema.checker import Checker, misfits
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
    ("good", "bad"),
    [
        ({"minLength": 1}, {"minLength": True}),
        ({"required": ["a"]}, {"required": ("a",)}),
    ],
)
def test_a_schema_that_python_takes_for_a_valid_one_is_checked(good: dict[str, Any], bad: dict[str, Any]) -> None:
    Checker(good)

    with pytest.raises(SchemaError):
        Checker(bad)


def test_a_schema_that_was_valid_is_checked_again_when_it_has_changed() -> None:
    schema: dict[str, Any] = {"type": "string"}
    Checker(schema)
    schema["type"] = "text"

    with pytest.raises(SchemaError):
        Checker(schema)


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
    assert misfits(book.parameters, {**GOOD, **more}) == []


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"stops": "Oslo"}, 'stops: must be an array; got "Oslo"'),
        ({"stops": [{"city": 5}]}, "stops[0].city: must be a string; got 5"),
        ({"stops": [{"city": "O"}]}, 'stops[0].city: must have at least 2 characters; got "O"'),
        ({"stops": [{"nights": 2}]}, "stops[0].city: missing, it is required"),
        ({"stops": [{"city": "Oslo", "nights": 31}]}, "stops[0].nights: must be at most 30; got 31"),
        ({"stops": [{"city": "Oslo", "next": {"city": 5}}]}, "stops[0].next.city: must be a string; got 5"),
        ({"stops": [{"city": "Oslo", "next": 5}]}, "stops[0].next: must be an object or null; got 5"),
        ({"kind": "car"}, 'kind: must be "bus" or "train"; got "car"'),
        ({"price": True}, "price: must be a number; got true"),
        ({"note": 5}, "note: must be a string or null; got 5"),
        ({"extra": {"a": "x"}}, 'extra.a: must be an integer; got "x"'),
        ({"more": 1}, "more: unknown key; the keys are stops, day, kind, price, note, extra"),
    ],
)
def test_what_does_not_is_named(more: dict[str, Any], problem: str) -> None:
    assert [str(misfit) for misfit in misfits(book.parameters, {**GOOD, **more})] == [problem]


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"$ref": "#/$defs/none"}, {"unknown": True}])
def test_what_a_schema_does_not_say_is_let_through(schema: dict[str, Any]) -> None:
    assert misfits(schema, {"a": [1]}) == []


def test_a_schema_that_names_itself_has_an_end() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}

    assert misfits(schema, {}) == []


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
    assert misfits(schema, {"a": "x"}) == []


def test_many_patterns_for_many_names_have_an_end() -> None:
    patterns = {f"^{number}x": {} for number in range(3_000)}
    checker = Checker({"patternProperties": patterns, "additionalProperties": False})

    assert checker.misfits({str(number): 1 for number in range(3_000)}) == []


@pytest.mark.parametrize("pattern", [r"^\w{1,255}$", r"^[\w.-]{1,500}$", r"^[\w ]{1,1000}$", r"^(\w{1,200}-){1,5}\w*$"])
def test_a_pattern_of_many_letters_is_checked(pattern: str) -> None:
    text = "ab-cafe" if "-" in pattern else "cafe"
    assert misfits({"properties": {"a": {"pattern": pattern}}}, {"a": text}) == []
    assert misfits({"properties": {"a": {"pattern": pattern}}}, {"a": "'; rm -rf /"}) != []


def test_a_value_of_a_schema_that_allows_none_is_to_be_left_out() -> None:
    (misfit,) = misfits({"properties": {"w": {"enum": []}}}, {"w": 1})

    assert str(misfit) == "w: must be left out, as the schema allows it no value; got 1"


@pytest.mark.parametrize("schema", [{"anyOf": [False]}, {"oneOf": [False, False]}])
def test_a_value_of_no_choice_but_false_is_to_be_left_out(schema: Any) -> None:
    (misfit,) = misfits({"properties": {"w": schema}}, {"w": 1})

    assert str(misfit) == "w: must be left out, as the schema allows it no value; got 1"


@pytest.mark.parametrize("item", [{"a": 1}, [1], "x"], ids=["object", "list", "text"])
def test_items_of_any_number_are_compared(item: Any) -> None:
    items = [*range(2_000), item]

    assert misfits({"uniqueItems": True}, items) == []
    assert [misfit.keyword for misfit in misfits({"uniqueItems": True}, [*items, item])] == ["uniqueItems"]


@pytest.mark.parametrize("schema", [{"enum": ["x" * 100] * 11_000}, {"enum": [0] * 1_100_000}, {"a": [{}] * 10_001}])
def test_a_schema_of_too_many_parts_or_characters_is_too_large(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaTooLarge, match="`odd` has a schema that is too large"):
        check_size("odd", schema)


def test_the_parts_of_a_schema_are_its_objects_and_lists() -> None:
    assert check_size("odd", {"enum": [0] * 20_000}, None, {"type": "object", "properties": {"a": {}}}) == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"required": 3}, {"type": "text"}, {"minLength": -1}, {"anyOf": []}, {"pattern": "("}, {"not": 5},
        {"properties": {"b": 7}}, {"$ref": "#/$defs/Gone"}, {"allOf": [3]}, {"enum": "x"}, {"dependentRequired": []},
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_keyword_is_left_out_alone_and_the_log_says_so(
    wrong: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "allOf": [{"properties": {"a": {"type": "string"}}}],
        "maxProperties": 1,
    }

    whole = misfits({**schema, **wrong}, {"a": 1, "c": 2}, "the form")
    inner = misfits({"properties": {"in": {**schema, **wrong}}}, {"in": {"a": 1, "c": 2}}, "the form")

    for found in (whole, inner):
        assert {misfit.keyword for misfit in found} >= {"maxProperties"} | ({"type"} if "allOf" not in wrong else set())
    kinds = {"type": "text"}  # a name of a type of an older version, which any value fits
    assert wrong == kinds or all("the form: the schema is wrong at" in line for line in caplog.messages)
    assert len(caplog.messages) == (0 if wrong == kinds else 2)


def test_a_check_that_takes_too_long_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    schema: dict[str, Any] = {
        "properties": {"a": {"$ref": "#/$defs/a0"}}, "$defs": {**DOUBLED, "a40": {"type": "object"}},
    }  # fmt: skip

    assert Checker(schema, "the answer").misfits({"a": "x"}) == []
    assert caplog.messages == ["the answer: not all of it is checked against its schema, as that takes too long"]

"""Fields of a form from a tool's schema: each value is shown in a way that can give it back."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel

from toolcrib.console._views import form_fields, result_field
from toolcrib.tools import tool


class Address(BaseModel):
    street: str
    number: int | None = None


@tool(register=False)
async def ship(
    order: str,
    amount: float,
    to: Address,
    currency: Literal["EUR", "USD"] = "EUR",
    note: str | None = None,
    tags: list[str] | None = None,
    fast: bool = False,
) -> str:
    """Ship an order.

    Args:
        order: Its number.
    """  # fmt: skip
    return order


def by_name(arguments: Any, schema: Any = ship.parameters) -> dict[str, Any]:
    return {field["name"]: field for field in form_fields(schema, arguments) or []}


def test_each_type_has_its_field() -> None:
    fields = by_name({"order": "A-1", "amount": 12345678901234567890, "to": {"street": "Main"}, "note": None})

    assert {name: field["kind"] for name, field in fields.items()} == {
        "order": "text",
        "amount": "number",
        "to": "group",
        "currency": "choice",
        "note": "text",
        "tags": "json",
        "fast": "choice",
    }
    assert (fields["order"]["value"], fields["order"]["help"], fields["order"]["required"]) == (
        "A-1",
        "Its number.",
        True,
    )
    assert fields["amount"]["value"] == "12345678901234567890"
    assert fields["currency"]["choices"] == ['"EUR"', '"USD"']
    assert (fields["note"]["null"], fields["note"]["nullable"]) == (True, True)
    assert [(one["name"], one["kind"], one["given"]) for one in fields["to"]["fields"]] == [
        ("street", "text", True),
        ("number", "number", False),
    ]
    assert not fields["fast"]["given"]


@pytest.mark.parametrize(
    ("about", "value"),
    [
        ({"type": "string"}, 5),
        ({"type": "integer"}, True),
        ({"type": "number"}, "5"),
        ({"enum": ["a"]}, "b"),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": True}, {"b": 1}),
        ({"type": "object", "properties": {"a": {}}}, [1]),
        ({"type": "array"}, [1]),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, 5),
        ({"$ref": "#/$defs/missing"}, 5),
        ({"$ref": "#/$defs/loop"}, 5),
        ({"type": ["string", "integer"]}, 5),
        ("nonsense", 5),
        ({}, {"a": None}),
    ],
    ids=str,
)
def test_what_no_field_shows_is_json(about: Any, value: Any) -> None:
    schema = {"properties": {"x": about}, "$defs": {"loop": {"$ref": "#/$defs/loop"}}}

    (field,) = form_fields(schema, {"x": value}) or []

    assert field["kind"] == "json"


def test_a_value_that_the_schema_does_not_name_has_a_field() -> None:
    assert by_name({"more": [1]}, {"properties": {}})["more"]["value"] == "[1]"


def _wide(depth: int) -> dict[str, Any]:
    inside = {} if depth == 0 else _wide(depth - 1)
    return {"type": "object", "properties": {f"p{number}": inside for number in range(30)}}


@pytest.mark.parametrize(
    "schema", [None, {}, {"properties": []}, _wide(3), {"properties": {str(n): {} for n in range(41)}}]
)
def test_a_schema_without_a_form_has_none(schema: Any) -> None:
    assert form_fields(schema, {}) is None


@pytest.mark.parametrize(
    ("schema", "name", "kind"),
    [
        ({"type": "string"}, "Result", "text"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}, "Result", "number"),
        ({"type": "object", "properties": {"paid": {"type": "integer"}}}, "Result", "group"),
        ({"type": "array"}, "Result, as JSON", "json"),
        (_wide(3), "Result, as JSON", "json"),
        (None, "Result, as JSON", "json"),
    ],
    ids=str,
)
def test_a_result_has_a_field_of_the_type_of_its_tool(schema: Any, name: str, kind: str) -> None:
    field = result_field(schema)

    assert (field["name"], field["kind"], field["required"]) == (name, kind, True)


def test_a_field_that_refers_to_its_type_among_others_is_of_that_type() -> None:
    schema = {
        "properties": {"a": {"allOf": [{"$ref": "#/$defs/A"}], "default": 1}, "b": {"$ref": "#/$defs/A", "minimum": 2}},
        "$defs": {"A": {"type": "integer", "minimum": 1}},
    }

    assert [field["kind"] for field in form_fields(schema, {}) or []] == ["number", "number"]


def test_a_schema_whose_references_come_to_too_much_has_no_form() -> None:
    definitions = {f"L{n}": {"allOf": [{"$ref": f"#/$defs/L{n + 1}"}] * 2} for n in range(200)}
    schema = {"properties": {"a": {"$ref": "#/$defs/L0"}}, "$defs": definitions}

    assert [field["kind"] for field in form_fields(schema, {}) or []] in ([], ["json"])

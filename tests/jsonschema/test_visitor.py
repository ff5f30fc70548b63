"""Visitor: every keyword that holds schemas is gone into, and none that holds values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from toolcrib.jsonschema import (
    HOLDERS,
    SchemaWalk,
    children,
    definitions_in,
    kinds_of,
    pointed_at,
    rewrite,
    schema_texts,
    subschemas,
    type_words,
    values_of,
    wrapped,
    written_out,
)
from toolcrib.jsonschema._references import with_definitions

INNER: dict[str, Any] = {"type": "string"}
LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")


def holding(keyword: str) -> dict[str, Any]:
    """Return a schema that has another in a keyword."""
    return {keyword: [INNER] if keyword in LISTED else {"a": INNER} if keyword in NAMED else INNER}


@pytest.mark.parametrize("keyword", sorted(HOLDERS))
def test_a_schema_is_found_and_rewritten_in_each_keyword_that_holds_one(keyword: str) -> None:
    schema = holding(keyword)

    assert [part for _, part in children(schema)] == [INNER]
    assert list(subschemas(schema)) == [schema, INNER]
    assert list(subschemas(rewrite(schema, lambda part: {**part, "title": "T"})))[1:] == [{**INNER, "title": "T"}]


@pytest.mark.parametrize("schema", [{"default": INNER}, {"const": INNER}, {"enum": [INNER]}, {"examples": [INNER]}])
def test_a_value_that_looks_like_a_schema_is_none(schema: dict[str, Any]) -> None:
    assert list(children(schema)) == []
    assert rewrite(schema, lambda part: None) == schema


@pytest.mark.parametrize(
    "schema", [{"items": False}, {"anyOf": [True]}, {"properties": {"a": True}}, {"dependencies": {"a": ["b"]}}]
)
def test_true_false_and_names_stay(schema: dict[str, Any]) -> None:
    assert list(children(schema)) == []
    assert rewrite(schema, lambda part: None) == schema


def test_the_keys_that_lead_to_a_schema_are_given() -> None:
    schema = {"items": INNER, "anyOf": [True, INNER], "properties": {"a": INNER}}

    assert [keys for keys, _ in children(schema)] == [("items",), ("anyOf", 1), ("properties", "a")]


def test_properties_named_like_keywords_are_properties() -> None:
    schema = {"properties": {"$ref": INNER, "properties": INNER, "enum": INNER}}

    assert list(subschemas(schema)) == [schema, INNER, INNER, INNER]


def test_definitions_are_named_by_references_and_not_by_values() -> None:
    schema = {
        "items": {"$ref": "#/$defs/a~1b"},
        "default": {"$ref": "#/$defs/B"},
        "$defs": {"C": {"$ref": "#/$defs/D"}},
    }

    assert list(definitions_in(schema)) == ["a/b"]


@pytest.mark.parametrize(
    ("schema", "values", "kinds"),
    [
        ({"const": None}, [None], []),
        ({"enum": [1, "a"], "type": ["integer", "string"]}, [1, "a"], ["integer", "string"]),
        ({"type": "object"}, None, ["object"]),
        ({}, None, []),
    ],
)
def test_what_a_schema_says_by_itself(schema: dict[str, Any], values: list[Any] | None, kinds: list[str]) -> None:
    assert (values_of(schema), kinds_of(schema)) == (values, kinds)


def test_a_value_is_wrapped_as_a_property_and_definitions_stay_at_the_root() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": INNER}}

    assert wrapped(schema, "value", additionalProperties=False) == {
        "type": "object",
        "properties": {"value": {"$ref": "#/$defs/A"}},
        "required": ["value"],
        "additionalProperties": False,
        "$defs": {"A": INNER},
    }


def test_references_in_dependencies_of_draft_7_lead_to_definitions() -> None:
    schema = {"definitions": {"A": INNER}, "dependencies": {"a": {"properties": {"b": {"$ref": "#/definitions/A"}}}}}

    assert with_definitions("odd", schema) == {
        "dependencies": {"a": {"properties": {"b": {"$ref": "#/$defs/A"}}}},
        "$defs": {"A": INNER},
    }


def test_a_search_finds_a_schema_by_its_names_texts_and_values() -> None:
    schema = {
        "description": "Of a pet.",
        "anyOf": [{"properties": {"kind": {"const": "cat"}}}, {"properties": {"kind": {"enum": ["dog"]}}}],
        "patternProperties": {"^x": {"description": "Others."}},
        "default": {"description": "no text of the schema"},
    }

    assert list(schema_texts(schema)) == ["Of a pet.", "kind", "cat", "kind", "dog", "Others."]


def test_words_of_a_choice_are_said_once() -> None:
    assert type_words({"anyOf": [{"type": "object"}, {"type": "object"}, {"type": "null"}]}) == "object or null"


def nested(schema: Any) -> Iterator[Any]:
    """Yield what is in `next` of objects, from the outermost on."""
    while schema:
        yield schema
        schema = schema.get("properties", {}).get("next")


def test_a_schema_is_written_out_and_a_type_inside_itself_is_of_its_type() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node", "description": "The next."}}}
    schema = {"properties": {"next": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}

    made = written_out(schema, SchemaWalk(schema))

    assert list(nested(made))[-1] == {"type": "object", "description": "The next."}
    assert list(definitions_in(made)) == []


@pytest.mark.parametrize(
    ("pointer", "target"),
    [
        ("", {"$defs": {"1": "one", "a/b": "two"}, "allOf": ["first", "second"]}),
        ("/$defs/1", "one"),
        ("/$defs/a~1b", "two"),
        ("/$defs/2", None),
        ("/allOf/1", "second"),
        ("/allOf/2", None),
        ("/allOf/first", None),
        ("/allOf/1/0", None),
    ],
)
def test_a_pointer_leads_into_objects_by_name_and_into_lists_by_number(pointer: str, target: Any) -> None:
    root = {"$defs": {"1": "one", "a/b": "two"}, "allOf": ["first", "second"]}

    assert pointed_at(root, pointer) == target

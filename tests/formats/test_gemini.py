"""Gemini's subset of OpenAPI: nothing in a declaration that it does not know."""

from __future__ import annotations

from datetime import date
from enum import IntEnum
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field

from tests.jsonschema.bombs import KINDS, bomb
from toolcrib.errors import SchemaTooLarge
from toolcrib.formats import ProviderOptions, definition
from toolcrib.tools import ez_tool

SUBSET = ProviderOptions(openapi_schema=True)
KNOWN = {
    "type", "format", "description", "nullable", "enum", "items", "minItems", "maxItems", "properties", "required",
    "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "minimum", "maximum", "anyOf", "default",
}  # fmt: skip


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


class Part(BaseModel):
    name: str
    parts: list[Part] = []


class Metre(BaseModel):
    kind: Literal["metre"]


class Foot(BaseModel):
    kind: Literal["foot"]


def parameters_of(annotation: Any) -> dict[str, Any]:
    def take(value: Any) -> None:
        """Take."""

    take.__annotations__["value"] = annotation
    tool = ez_tool(take)
    made = definition(tool.name, tool.description, tool.parameters, "gemini", options=SUBSET)
    return made["parameters"]["properties"]["value"]


def unknown_words(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(unknown_words, schema))
    if not isinstance(schema, dict):
        return set()
    inside = {**schema.get("properties", {}), "items": schema.get("items"), "anyOf": schema.get("anyOf")}
    return (set(schema) - KNOWN).union(*map(unknown_words, inside.values()))


@pytest.mark.parametrize(
    "annotation",
    [
        int, list[str], dict[str, int], tuple[int, str], Size, Part, Part | None, Metre | Foot, date | None, Any,
        set[int], Annotated[Metre | Foot, Field(discriminator="kind")], Annotated[float, Field(gt=0, multiple_of=0.5)],
        dict[Size, list[Part | None]], Literal[1, "a", None], list[Any], Annotated[str, Field(pattern="^a")],
    ],
)  # fmt: skip
def test_nothing_outside_the_subset_is_said(annotation: Any) -> None:
    made = parameters_of(annotation)

    assert unknown_words(made) == set()


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (Optional[int], {"type": "integer", "nullable": True}),  # noqa: UP045 -- what users write
        (Literal["c", "f"], {"type": "string", "enum": ["c", "f"]}),
        (Literal["c", None], {"type": "string", "enum": ["c"], "nullable": True}),
        (Size, {"type": "integer", "description": "one of: 1, 2"}),
        (date, {"type": "string", "description": "format: date"}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (
            Annotated[int, Field(gt=0, description="how many")],
            {"type": "integer", "description": "how many (more than 0)"},
        ),
    ],
)
def test_a_type_is_said_in_the_words_of_the_subset(annotation: Any, expected: dict[str, Any]) -> None:
    made = parameters_of(annotation)

    assert made == expected


def test_a_reference_is_written_out_and_a_recursive_one_ends() -> None:
    made = parameters_of(Part)

    assert made["properties"]["name"] == {"type": "string"}
    assert made["properties"]["parts"]["items"] == {"type": "object", "description": "Part, as above"}


def test_a_tool_without_parameters_has_none() -> None:
    made = definition("ping", "", {"type": "object", "properties": {}, "additionalProperties": False}, "gemini")

    assert made == {"name": "ping", "description": "ping"}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "an object of any names, each with int"),
        ({"type": "object"}, "an object of any names"),
        ({}, "any JSON value"),
        ({"enum": [1, "a"]}, 'one of: 1, "a"'),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}, "a list of [int, str]"),
        ({"type": "string", "not": {"const": "x"}}, 'not: {"const": "x"}'),
        ({"type": "object", "properties": {"a": {}}, "patternProperties": {"^x": {}}}, "patternProperties"),
    ],
)
def test_what_the_subset_has_no_word_for_is_said(schema: dict[str, Any], said: str) -> None:
    made = definition("t", "", {"type": "object", "properties": {"v": schema}}, "gemini", options=SUBSET)

    assert said in made["parameters"]["properties"]["v"]["description"]


def test_schemas_that_have_to_fit_at_once_are_put_together() -> None:
    parts = [{"properties": {name: {"type": "string"}}, "required": [name]} for name in "ab"]
    schema = {"type": "object", "properties": {"v": {"type": "object", "allOf": parts}}}

    made = definition("t", "", schema, "gemini", options=SUBSET)["parameters"]["properties"]["v"]

    assert (sorted(made["properties"]), sorted(made["required"])) == (["a", "b"], ["a", "b"])


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Any, {}),
        (Literal["c", "f"], {"type": "string", "enum": ["c", "f"]}),
        (Literal["c", None], {"anyOf": [{"type": "string", "enum": ["c"]}, {"type": "null"}]}),
        (Literal["c", 1], {"type": ["string", "integer"], "description": 'one of: "c", 1'}),
        (Size, {"$ref": "#/$defs/Size"}),
        (Part, {"$ref": "#/$defs/Part"}),
        (int | None, {"type": ["integer", "null"]}),
        (
            Annotated[int, Field(gt=0, description="how many")],
            {"type": "integer", "description": "how many (more than 0)"},
        ),
    ],
)
def test_a_type_is_said_in_json_schema(annotation: Any, expected: dict[str, Any]) -> None:
    def take(value: Any) -> None: ...

    take.__annotations__["value"] = annotation
    tool = ez_tool(take)

    made = definition(tool.name, "", tool.parameters, "gemini")["parametersJsonSchema"]

    assert made["properties"]["value"] == expected
    assert ("$defs" in made) == ("$ref" in expected)


@pytest.mark.parametrize("kind", KINDS)
def test_references_that_double_are_kept_as_references(kind: str) -> None:
    assert len(str(definition("evil", "", bomb(kind), "gemini"))) < 10_000


@pytest.mark.parametrize("kind", ["properties", "pointer"])
def test_references_that_double_are_refused_where_they_have_to_be_written_out(kind: str) -> None:
    with pytest.raises(SchemaTooLarge, match="`evil`"):
        definition("evil", "", bomb(kind), "gemini", options=SUBSET)

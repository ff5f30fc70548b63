"""Gemini's subset of OpenAPI: nothing in a declaration that it does not know."""

from __future__ import annotations

from datetime import date
from enum import IntEnum
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field

from toolcrib.errors import FormatError
from toolcrib.formats import definition
from toolcrib.tools import ez_tool

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
    return definition(tool.name, tool.description, tool.parameters, "gemini")["parameters"]["properties"]["value"]


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


def test_a_parameter_name_that_gemini_refuses_is_an_error() -> None:
    schema = {"type": "object", "properties": {"größe": {"type": "string"}}}

    with pytest.raises(FormatError, match="parameter `größe`"):
        definition("w", "", schema, "gemini")

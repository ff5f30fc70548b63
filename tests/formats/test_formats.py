"""Each provider's documented shape, and what all formats check."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.errors import FormatError
from toolcrib.formats import FORMATS, PROVIDERS, FormatName, definition, definitions
from toolcrib.tools import ez_tool

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("openai", {"type": "function", "function": {"name": "w", "description": "Tell.", "parameters": CITY}}),
        ("mistral", {"type": "function", "function": {"name": "w", "description": "Tell.", "parameters": CITY}}),
        ("anthropic", {"name": "w", "description": "Tell.", "input_schema": CITY}),
        ("bedrock", {"toolSpec": {"name": "w", "description": "Tell.", "inputSchema": {"json": CITY}}}),
        ("raw", {"name": "w", "description": "Tell.", "parameters": CITY}),
    ],
)
def test_a_definition_has_the_shape_of_its_provider(format: FormatName, expected: dict[str, Any]) -> None:
    made = definition("w", "Tell.", CITY, format)

    assert made == expected


def test_gemini_takes_declarations_in_one_tool() -> None:
    @ez_tool
    def tell(city: str) -> str:
        """Tell."""
        return city

    made = definitions([tell], "gemini")

    declared = {"name": "tell", "description": "Tell.", "parametersJsonSchema": tell.parameters}
    assert made == [{"functionDeclarations": [declared]}]


@pytest.mark.parametrize("format", ["openai", "mistral", "anthropic", "ollama"])
def test_a_description_is_never_null(format: FormatName) -> None:
    made = definition("w", "", CITY, format)

    assert None not in made.values()
    assert "description" not in made or made["description"] == ""


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "raw"])
@pytest.mark.parametrize("name", ["größe", "a b", "", "x" * 129])
def test_a_name_that_the_provider_refuses_is_an_error(format: FormatName, name: str) -> None:
    with pytest.raises(FormatError, match=f"cannot be offered to {format}: a name takes"):
        definition(name, "", CITY, format)


LONGEST = {name: 128 if name in ("anthropic", "gemini", "gemini_interactions") else 64 for name in PROVIDERS}


@pytest.mark.parametrize(("format", "most"), LONGEST.items())
def test_a_name_may_be_as_long_as_the_provider_takes(format: FormatName, most: int) -> None:
    definition("x" * most, "", CITY, format)

    with pytest.raises(FormatError, match=f"up to {most} letters"):
        definition("x" * (most + 1), "", CITY, format)


@pytest.mark.parametrize(("format", "place"), [("openai", "function"), ("mistral", "function"), ("anthropic", None)])
def test_strict_marks_a_schema_that_can_be_kept(format: FormatName, place: str | None) -> None:
    made = definition("w", "Tell.", CITY, format, strict=True)

    assert (made[place] if place else made)["strict"] is True


def test_strict_lets_an_optional_property_be_null_for_openai() -> None:
    schema = {**CITY, "required": []}

    made = definition("w", "", schema, "openai", strict=True)

    assert made["function"]["parameters"]["required"] == ["city"]
    assert made["function"]["parameters"]["properties"] == {"city": {"type": ["string", "null"]}}


def test_strict_refuses_an_open_object_deep_inside() -> None:
    inner = {"type": "array", "items": {"type": "object", "properties": {}}}
    schema = {**CITY, "properties": {"city": inner}}

    with pytest.raises(FormatError, match=r"`city\[\]` may hold any names"):
        definition("w", "", schema, "anthropic", strict=True)


@pytest.mark.parametrize("format", ["gemini", "ollama", "raw"])
def test_strict_is_an_error_where_there_is_none(format: FormatName) -> None:
    with pytest.raises(FormatError, match="no strict mode"):
        definition("w", "", CITY, format, strict=True)

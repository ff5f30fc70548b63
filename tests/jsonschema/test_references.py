"""References of schemas that others made: whatever form they have, all that is made of a tool reads them alike."""

from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest

from tests.jsonschema.bombs import repeated
from toolcrib.errors import SchemaTooLarge
from toolcrib.formats import PROVIDERS
from toolcrib.jsonschema import arguments_schema
from toolcrib.jsonschema._references import dangling, with_definitions
from toolcrib.schema import ToolSpec
from toolcrib.tools.from_schema import schema_tool
from toolcrib.toolsets import Toolset

A = {"type": "string", "enum": ["a", "b"]}


def having(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


REFERENCES: dict[str, dict[str, Any]] = {
    "definitions": {"definitions": {"A": A}, **having(x={"$ref": "#/definitions/A"})},
    "a property": having(x={"$ref": "#/properties/a/properties/q"}, a=having(q=A)),
    "percent": {"$defs": {"R<string>": A}, **having(x={"$ref": "#/$defs/R%3Cstring%3E"})},
    "tilde": {"$defs": {"a/b": A}, **having(x={"$ref": "#/$defs/a~1b"})},
    "anchor": {"$defs": {"A": {"$anchor": "foo", **A}}, **having(x={"$ref": "#foo"})},
    "id of draft 7": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"A": {"$id": "#foo", **A}},
        **having(x={"$ref": "#foo"}),
    },
    "id": {"$defs": {"A": {"$id": "https://e.com/A", **A}}, **having(x={"$ref": "https://e.com/A"})},
    "id of the root": {"$id": "https://e.com/r", "$defs": {"A": A}, **having(x={"$ref": "https://e.com/r#/$defs/A"})},
    "relative id": {
        "$id": "https://e.com/r",
        "$defs": {"B": {"$id": "sub/b", "$defs": {"C": A}, "$ref": "#/$defs/C"}},
        **having(x={"$ref": "/sub/b"}),
    },
    "nested": having(x={"$defs": {"A": A}, "$ref": "#/properties/x/$defs/A"}),
    "no schema's place": {"components": {"A": A}, **having(x={"$ref": "#/components/A"})},
    "an alias": {"definitions": {"A": A, "B": {"$ref": "#/definitions/A"}}, **having(x={"$ref": "#/definitions/B"})},
}


@pytest.mark.parametrize("schema", REFERENCES.values(), ids=REFERENCES)
def test_references_of_every_form_become_definitions(schema: dict[str, Any]) -> None:
    made = with_definitions("f", schema)

    (x, *_) = made["properties"].values()
    name = x["$ref"].removeprefix("#/$defs/")
    assert name.replace("_", "").isalnum()
    assert name in made["$defs"]
    assert [key for key in ("definitions", "$id") if key in made] == []
    _is_right(made, schema)


@pytest.mark.parametrize("schema", REFERENCES.values(), ids=REFERENCES)
def test_what_is_made_of_a_tool_reads_references_of_every_form(schema: dict[str, Any]) -> None:
    tool = schema_tool("f", schema, lambda **given: given, description="Do.")

    assert "x: Literal['a', 'b']" in tool.signature
    assert "x: Literal['a', 'b']" in tool.stub()
    for name, format in PROVIDERS.items():
        for strict in {False, bool(format.strict)}:
            _is_right(_parameters_of(Toolset([tool]).definitions(format=name, strict=strict)[0]), schema)


def _parameters_of(made: Mapping[str, Any]) -> Mapping[str, Any]:
    inner: Any = made.get("function") or made.get("toolSpec") or made.get("functionDeclarations", [made])[0]
    keys = ("parameters", "parametersJsonSchema", "input_schema", "inputSchema")
    found = next(inner[key] for key in keys if key in inner)
    return found.get("json", found)


def _is_right(made: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Check that a schema takes what another takes."""
    given: dict[str, Any] = {"x": "a", **({"a": {"q": "b"}} if "a" in schema["properties"] else {})}
    validator: Any = jsonschema.Draft202012Validator(made)
    assert validator.is_valid(given)
    assert not validator.is_valid({**given, "x": "other"})


def test_a_reference_to_the_whole_is_a_definition_too() -> None:
    made = with_definitions("f", {"type": "object", "properties": {"next": {"$ref": "#"}}})

    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Whole"}}}
    assert made == {**node, "$defs": {"Whole": node}}


def test_a_schema_that_refers_to_definitions_alone_stays_as_it_is() -> None:
    schema = {"$defs": {"A": A, "Unused": {}}, **having(x={"$ref": "#/$defs/A"}, **{"$ref": {"type": "string"}})}

    assert with_definitions("f", schema) is schema


def test_two_places_of_one_name_are_two_definitions() -> None:
    schema = having(x={"$ref": "#/definitions/A"}, y={"$ref": "#/components/A"}, z={"$ref": "#/definitions/A"})
    schema |= {"definitions": {"A": A}, "components": {"A": {"type": "integer"}}}

    made = with_definitions("f", schema)

    assert made["$defs"] == {"A": A, "A_2": {"type": "integer"}}
    assert [part["$ref"] for part in made["properties"].values()] == ["#/$defs/A", "#/$defs/A_2", "#/$defs/A"]


@pytest.mark.parametrize(
    "ref", ["#/$defs/Gone", "#gone", "https://example.com/x.json", "http://[", "#/properties/x/type", "x", "#/$defs/A/"]
)
def test_a_reference_that_leads_nowhere_is_found_and_left_out(ref: str) -> None:
    schema = {"$defs": {"A": A}, **having(x={"$ref": ref, "description": "Words."})}

    assert dangling(schema) == (("properties", "x"), ref)
    assert with_definitions("f", schema)["properties"] == {"x": {"description": "Words."}}


def test_a_boolean_that_is_referred_to_is_a_schema() -> None:
    schema = {"definitions": {"no": False}, **having(x={"$ref": "#/definitions/no"})}

    assert with_definitions("f", schema)["$defs"] == {"no": {"not": {}}}


def test_what_references_repeat_too_often_is_refused() -> None:
    with pytest.raises(SchemaTooLarge, match="`evil`"):
        with_definitions("evil", repeated())


def test_a_large_schema_with_few_references_is_none_too_large() -> None:
    schema = {"definitions": {"A": A}, **having(**{f"p{n}": {"$ref": "#/definitions/A"} for n in range(20_000)})}

    assert with_definitions("wide", schema)["$defs"] == {"A": A}


# --- the root


Q: dict[str, Any] = {"properties": {"q": {"type": "string"}}, "required": ["q"]}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/Q", "$defs": {"Q": {"type": "object", **Q}}},
        {"$ref": "#/definitions/Q", "definitions": {"Q": Q}},
        {"allOf": [Q]},
        {"allOf": [{"$ref": "#/$defs/Q"}, True, {"$ref": "#/$defs/Q"}], "$defs": {"Q": Q}},
        {"allOf": [{"allOf": [{"properties": {"q": {"type": "string"}}}]}, {"$ref": "#"}], "required": ["q"]},
    ],
    ids=str,
)
def test_arguments_that_the_root_refers_to_are_shown_and_taken(schema: dict[str, Any]) -> None:
    tool = schema_tool("find", schema, lambda q: q, description="Find.")

    assert (tool.signature, tool.spec.by_position) == ("find(q: str)", (("q",), None))
    assert tool.parameters["properties"] == {"q": {"type": "string"}}
    assert tool.parameters["required"] == ["q"]


def test_properties_beside_the_reference_of_a_root_are_kept() -> None:
    schema = {"properties": {"a": {}}, "$ref": "#/$defs/Q", "$defs": {"Q": Q}}

    assert arguments_schema("f", schema)["properties"] == {"a": {}, **Q["properties"]}


def test_what_the_root_has_to_fit_besides_is_put_together() -> None:
    parts = [{"properties": {"a": {"minimum": 1}, "b": {}}, "required": ["b"]}, {"properties": {"a": {"maximum": 3}}}]

    made = arguments_schema("f", {"properties": {"a": {"type": "integer"}}, "required": ["a"], "allOf": parts})

    assert made == {
        "properties": {"a": {"type": "integer", "minimum": 1, "maximum": 3}, "b": {}},
        "required": ["a", "b"],
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [False]},
        {"allOf": [{"anyOf": [Q, {}]}, {"anyOf": [Q]}]},
        {"allOf": [{"pattern": "a"}, {"pattern": "b"}]},
    ],
    ids=str,
)
def test_what_cannot_be_written_as_one_stays_as_it_is(schema: dict[str, Any]) -> None:
    assert arguments_schema("f", schema) == schema


def test_arguments_of_each_choice_at_the_root_are_shown() -> None:
    choices = [Q, {"properties": {"id": {"type": "integer", "default": 1}, "any": True}}]

    spec = ToolSpec.from_schema(lambda **given: given, {"anyOf": choices}, name="find")

    assert spec.signature == "find(q: str = ..., id: int = 1, any: Any = ...)"

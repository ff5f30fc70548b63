"""Schemas: OpenAPI 3.0 as JSON Schema, what each side does not write, and what is shown of a large one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.openapi.standin import StandIn, document, operation, parameter
from toolcrib import Completed
from toolcrib.errors import DocumentError, InvalidArguments
from toolcrib.openapi import toolset


def body_schema(schema: Any, version: str = "3.0.3", **schemas: Any) -> dict[str, Any]:
    """Return the schema of the argument `body` of an operation that takes this one."""
    parts = {"components": {"schemas": schemas}} if schemas else {}
    content = {"content": {"application/json": {"schema": schema}}}
    found = document({"/x": {"post": operation("x", requestBody=content)}}, version, **parts)
    made = toolset(found)["x"].parameters
    Draft202012Validator.check_schema(made)
    return made["properties"]["body"]


def test_what_is_wrong_in_a_schema_is_left_out_and_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    wrong = parameter("q", "query", {"type": "integer", "multipleOf": 0})

    made = toolset(document({"/x": {"get": operation("x", [wrong])}}))["x"].parameters

    assert made["properties"]["q"] == {"type": "integer"}
    place = "the schema of GET /x of the OpenAPI document `Stand-in` is wrong at 'properties.q.multipleOf'"
    assert [line.startswith(place) for line in caplog.messages] == [True]


WRONG: dict[str, Any] = {
    key: value
    for keys, value in (
        ("type format pattern contentEncoding contentMediaType", 7),
        ("required enum anyOf oneOf allOf prefixItems", {}),
        ("multipleOf maximum minimum exclusiveMaximum exclusiveMinimum", "1"),
        ("maxLength minLength maxItems minItems maxProperties minProperties", -1),
        ("items additionalProperties not contains propertyNames if then else", []),
        ("properties patternProperties dependentSchemas", []),
        ("uniqueItems writeOnly", "yes"),
    )
    for key in keys.split()
}


@pytest.mark.parametrize(("keyword", "value"), WRONG.items(), ids=[*WRONG])
def test_a_wrong_keyword_is_left_out_and_in_the_log_once(
    keyword: str, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    schema = {"type": "object", "properties": {"a": {keyword: value}, "b": {keyword: value}}}

    made = body_schema(schema, "3.1.0")

    assert made["properties"] == {"a": {}, "b": {}}
    [line] = caplog.messages
    assert line == (
        f"the OpenAPI document `Stand-in` has the wrong `{keyword}` of {value!r}, which is left out and not checked"
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (parameter("q", "query", 7), "schema 7"),
        (parameter("q", "query", {"type": "object", "patternProperties": {"(": {}}}), "`patternProperties` of '('"),
        (parameter("q", "query", {}, style="simple"), "`style` of 'simple' of a parameter in `query`"),
        (parameter("q", "body", {}), "`in` of 'body' of a parameter"),
    ],
)
def test_what_else_is_wrong_about_a_parameter_is_in_the_log(
    wrong: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    toolset(document({"/x": {"get": operation("x", [wrong])}}))

    assert [f"has the wrong {said}, which" in line for line in caplog.messages] == [True]


def test_what_openapi_has_in_its_own_way_is_not_wrong(caplog: pytest.LogCaptureFixture) -> None:
    body_schema({"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False})

    assert caplog.messages == []


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ({"type": "string", "example": "x", "xml": {}, "title": "T", "x-y": 1}, {"type": "string"}),
        ({"type": "string", "pattern": r"^\p{L}+$"}, {"type": "string"}),
        ({"type": "string", "required": True, "enum": []}, {"type": "string"}),
        ({"type": "file"}, {}),
        ({"oneOf": [{"minimum": 1}, {}], "nullable": True}, {"oneOf": [{"minimum": 1}, {}, {"type": "null"}]}),
    ],
)
def test_a_schema_of_3_0_is_json_schema(given: dict[str, Any], made: dict[str, Any]) -> None:
    assert body_schema(given) == made


def test_null_beside_a_reference_is_a_choice() -> None:
    schema = body_schema({"allOf": [{"$ref": "#/components/schemas/A"}], "nullable": True}, A={"type": "integer"})

    assert schema == {"anyOf": [{"allOf": [{"$ref": "#/$defs/A"}]}, {"type": "null"}]}


def test_a_schema_of_3_1_keeps_what_stands_beside_a_reference() -> None:
    schema = body_schema({"$ref": "#/components/schemas/A", "minimum": 3}, "3.1.0", A={"type": "integer"})

    assert schema == {"$ref": "#/$defs/A", "minimum": 3}


def test_a_request_has_nothing_that_only_servers_write() -> None:
    schema = {
        "type": "object",
        "required": ["id", "name"],
        "properties": {
            "id": {"type": "string", "readOnly": True},
            "owner": {"$ref": "#/components/schemas/Owner"},
            "name": {"type": "string"},
        },
    }

    made = body_schema(schema, Owner={"type": "string", "readOnly": True})

    assert made["properties"] == {"name": {"type": "string"}}
    assert made["required"] == ["name"]


def test_an_answer_has_nothing_that_only_clients_write() -> None:
    schema = {
        "type": "object",
        "properties": {"password": {"type": "string", "writeOnly": True}, "id": {"type": "string"}},
    }
    answer = {"200": {"description": "x", "content": {"application/json": {"schema": schema}}}}

    made = toolset(document({"/x": {"get": {**operation("x"), "responses": answer}}}))["x"].return_schema

    assert made == {"type": "object", "properties": {"id": {"type": "string"}}}


async def test_a_choice_that_a_property_decides_may_fit_several() -> None:
    cat = {"type": "object", "properties": {"kind": {"type": "string"}, "lives": {"type": "integer"}}}
    dog = {"type": "object", "properties": {"kind": {"type": "string"}, "barks": {"type": "boolean"}}}
    refs = [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}]
    facts = {"propertyName": "kind", "mapping": {"cat": "#/components/schemas/Cat", "dog": "#/components/schemas/Dog"}}
    content = {"content": {"application/json": {"schema": {"oneOf": refs, "discriminator": facts}}}}
    found = document({"/p": {"post": operation("p", requestBody=content)}})
    server = StandIn(found | {"components": {"schemas": {"Cat": cat, "Dog": dog}}}, checks=False)

    outcome = await server.call("p", {"body": {"kind": "cat"}})

    assert isinstance(outcome, Completed)
    assert server.tools()["p"].parameters["properties"]["body"]["description"] == "kind says which: cat, dog."


def large() -> dict[str, Any]:
    """Return a document of an operation whose body has a thousand properties, some levels deep."""
    names = [f"property_number_{n}" for n in range(40)]
    leaf = {"type": "object", "properties": {name: {"type": "string", "description": "Some text."} for name in names}}
    parts = {f"Part{n}": leaf | {"required": ["property_number_1"]} for n in range(25)}
    whole = {"type": "object", "properties": {name: {"$ref": f"#/components/schemas/{name}"} for name in parts}}
    schemas = {**parts, "Whole": whole}
    content = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Whole"}}}}
    return document({"/x": {"post": operation("x", requestBody=content)}}, components={"schemas": schemas})


async def test_a_large_schema_is_shown_in_part_and_checked_in_whole() -> None:
    server = StandIn(large(), checks=False)

    shown = json.dumps(server.tools()["x"].parameters)
    missing = await server.call("x", {"body": {"Part1": {}}})
    outcome = await server.call("x", {"body": {"Part1": {"property_number_1": "x"}}})

    assert len(shown) <= 12_000
    assert "Part24" in shown
    assert "property_number_1" not in shown
    assert "body.Part1.property_number_1: " in missing.text()
    assert isinstance(outcome, Completed)


def wide(count: int) -> dict[str, Any]:
    """Return a document of an operation whose body is one of many, and which has a parameter of many values."""
    refs = [{"$ref": f"#/components/schemas/One{n}"} for n in range(count)]
    schemas: dict[str, Any] = {f"One{n}": {"type": "object", "required": [f"p{n}"]} for n in range(count)}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Any"}}}
    values = parameter("colour", "query", {"type": "string", "enum": [f"colour {n}" for n in range(count)]})
    spec = operation("x", [values, parameter("limit", "query", {"type": "integer"})], requestBody={"content": content})
    return document({"/x": {"post": spec}}, components={"schemas": schemas | {"Any": {"oneOf": refs}}})


async def test_a_schema_of_a_thousand_choices_is_shown_in_part_and_checked_in_whole() -> None:
    server = StandIn(wide(1_000), checks=False)

    shown = server.tools()["x"].parameters
    wrong = await server.call("x", {"colour": "colour 1000"})
    outcome = await server.call("x", {"colour": "colour 999", "body": {"p7": 1}})

    assert len(json.dumps(shown)) <= 12_000
    assert shown["properties"]["limit"] == {"type": "integer"}
    assert shown["properties"]["colour"] == {
        "type": "string",
        "description": "More about it is in the API's documentation.",
    }
    assert "colour: must be" in wrong.text()
    assert isinstance(outcome, Completed)


async def test_of_hundreds_of_arguments_those_that_must_be_given_are_shown() -> None:
    listed = [parameter(f"filter_by_number_{n}", "query", {"type": "string"}) for n in range(900)]
    paths = {"/x/{id}": {"get": operation("x", [*listed, parameter("id", "path", {"type": "integer"})])}}
    server = StandIn(document(paths), checks=False)

    shown = server.tools()["x"].parameters
    outcome = await server.call("x", {"id": 1, "filter_by_number_899": "cats"})

    assert len(json.dumps(shown)) <= 15_000
    assert shown["required"] == ["id"]
    assert "id" in shown["properties"]
    assert isinstance(outcome, Completed)
    assert "filter_by_number_899=cats" in str(server.requests[0].url)


def test_an_operation_of_thousands_of_parameters_is_an_error() -> None:
    listed = [parameter(f"p{n}", "query", {"type": "string"}) for n in range(1_001)]

    with pytest.raises(DocumentError, match="more than 1000 parameters"):
        toolset(document({"/x": {"get": operation("x", listed)}}))


def test_descriptions_are_short_and_without_markup() -> None:
    long = "See [the *guide*](https://x.test/y) <b>first</b>. " + "Then do it. " * 100
    found = document({"/x": {"get": operation("x", [parameter("q", "query", {"type": "string"}, description=long)])}})
    found["paths"]["/x"]["get"] |= {"summary": "Find things", "description": long}

    entry = toolset(found)["x"]

    assert entry.description.startswith("Find things. See the guide first. Then do it.")
    assert len(entry.description) <= 240
    assert len(entry.parameters["properties"]["q"]["description"]) <= 160


def pets(mapping: dict[str, str]) -> dict[str, Any]:
    """Return a document whose body is a parent that names its variants in its discriminator alone."""
    pet = {
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "required": ["kind"],
        "discriminator": {"propertyName": "kind", "mapping": mapping},
    }
    parent = {"$ref": "#/components/schemas/Pet"}
    cat = {"allOf": [parent, {"type": "object", "properties": {"lives": {"type": "integer"}, "friend": parent}}]}
    dog = {"allOf": [parent, {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}]}
    content = {"content": {"application/json": {"schema": parent}}}
    paths = {"/pets": {"post": operation("add", requestBody={**content, "required": True})}}
    return document(paths, "3.0.3", components={"schemas": {"Pet": pet, "Cat": cat, "Dog": dog}})


CAT, DOG = "#/components/schemas/Cat", "#/components/schemas/Dog"


@pytest.mark.parametrize("mapping", [{"cat": CAT, "dog": DOG}, {"cat": "Cat", "dog": "Dog"}])
def test_the_variants_of_a_discriminator_are_shown_and_checked(mapping: dict[str, str]) -> None:
    tool = toolset(pets(mapping))["add"].tool

    texts = "\n".join([*tool.spec.stub_types(), tool.stub()])
    assert "lives: NotRequired[int]" in texts
    assert "name: str" in texts
    assert "def add(body: Cat | Dog)" in texts
    tool.spec.read('{"body": {"kind": "cat", "lives": 9, "friend": {"kind": "dog", "name": "Rex"}}}')
    with pytest.raises(InvalidArguments):
        tool.spec.read('{"body": {"kind": "cat", "lives": "nine", "name": 1}}')


def test_a_parent_may_be_a_variant_of_its_own() -> None:
    tool = toolset(pets({"any": "#/components/schemas/Pet", "dog": DOG}))["add"].tool

    assert "def add(body: Pet_2 | Dog)" in "\n".join([*tool.spec.stub_types(), tool.stub()])
    tool.spec.read('{"body": {"kind": "any"}}')


def test_a_discriminator_that_names_what_is_not_there_shows_the_parent() -> None:
    tool = toolset(pets({"cow": "#/components/schemas/Cow"}))["add"].tool

    assert "def add(body: Pet)" in "\n".join([*tool.spec.stub_types(), tool.stub()])

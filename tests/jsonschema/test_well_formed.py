"""Schemas with a wrong keyword: it is left out, it is in the log, and all else is checked and shown."""

from __future__ import annotations

import json
import logging
from typing import Any

import mcp_types as types
import pytest
from jsonschema import validators
from mcp.server.lowlevel import Server

from tests.formats.refusals import refusals
from toolcrib.adapters.mcp_client import connect
from toolcrib.calls import ToolCall
from toolcrib.formats import definitions
from toolcrib.jsonschema import satisfiable, well_formed
from toolcrib.jsonschema.checker import Checker, checks_of
from toolcrib.pipeline import Pipeline
from toolcrib.tools.from_schema import schema_tool

OTHER_THAN: dict[str, list[Any]] = {
    "text": [3, [], {}, True],
    "count": ["80", -1, 1.5, True, [], {}],
    "number": ["1", [], {}, True],
    "flag": ["true", 1, [], {}],
    "list": ["x", 3, True, {}],
    "schema": ["string", 3, []],
    "table": ["x", 3, True, [], {"a": "string"}, {"a": 3}],
}
KEYWORDS: dict[str, list[Any]] = {
    **dict.fromkeys(("title", "description", "$comment", "format", "$ref", "$id", "$anchor"), OTHER_THAN["text"]),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), OTHER_THAN["count"]),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), OTHER_THAN["count"]),
    **dict.fromkeys(("minimum", "maximum"), OTHER_THAN["number"]),
    **{key: ["1", [], {}] for key in ("exclusiveMinimum", "exclusiveMaximum")},
    "multipleOf": [*OTHER_THAN["number"], 0, -1],
    **dict.fromkeys(("uniqueItems", "readOnly", "deprecated"), OTHER_THAN["flag"]),
    **dict.fromkeys(("enum", "examples"), OTHER_THAN["list"]),
    "type": [3, [], {}, True, [3], ["string", {}]],
    "pattern": [3, [], "("],
    "required": ["a", 3, {}, [1], [[], {}]],
    **{key: ["x", 3, {}, [], ["string"], [3, {"type": "string"}]] for key in ("anyOf", "oneOf", "allOf")},
    "prefixItems": ["x", {}, [], ["string"]],
    "items": ["string", 3, [], ["string"]],
    **dict.fromkeys(("contains", "not", "if", "additionalProperties", "propertyNames"), OTHER_THAN["schema"]),
    **dict.fromkeys(("properties", "patternProperties", "$defs", "dependentSchemas"), OTHER_THAN["table"]),
    "dependencies": [*OTHER_THAN["table"], {"a": [3]}],
    "dependentRequired": ["x", [], {"a": "b"}, {"a": [3]}],
}
CASES = [(keyword, value) for keyword, values in KEYWORDS.items() for value in values]
each_case = pytest.mark.parametrize(("keyword", "value"), CASES, ids=[f"{key} {value!r}" for key, value in CASES])
CENTS = {"type": "integer", "maximum": 100}
WRONG = {"type": "string", "maxLength": "80"}


def schema_with(part: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"note": part, "cents": CENTS}, "required": ["cents"]}


def server_of(*schemas: dict[str, Any]) -> Server[Any]:
    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool(name=f"pay{place}", input_schema=schema) for place, schema in enumerate(schemas)]
        )

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text="ok")])

    return Server("shop", on_list_tools=list_tools, on_call_tool=call_tool)


def fits(schema: dict[str, Any], **values: Any) -> bool:
    return not Checker(satisfiable("pay", well_formed("pay", schema).schema)).misfits(values)


@each_case
def test_what_is_beside_a_wrong_keyword_is_checked_at_any_depth(keyword: str, value: Any) -> None:
    for part in ({keyword: value}, {"type": "array", "items": {"properties": {"x": {keyword: value}}}}):
        schema = json.loads(json.dumps(schema_with(part)))
        check = checks_of("pay", schema)

        assert well_formed("pay", schema).wrong
        assert check({"cents": 7}) == {"cents": 7}
        for wrong in ({"cents": "a lot"}, {"cents": 101}, {}):
            with pytest.raises(ValueError, match="cents"):
                check(wrong)


async def test_a_server_s_wrong_keywords_are_shown_to_no_provider_and_are_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    schemas = [schema_with({keyword: value}) for keyword, value in CASES]

    with caplog.at_level(logging.WARNING, "toolcrib"):
        async with connect(server_of(*schemas), name="shop").open() as tools:
            shown = [one["function"]["parameters"] for one in definitions(tools, "openai")]
            kinds = [(await Pipeline(tools).run(ToolCall(name, {"cents": "a lot"}))).kind for name in tools.names()]

    assert len(shown) == len(CASES)
    for (keyword, value), schema in zip(CASES, shown, strict=True):
        validators.validator_for({}).check_schema(schema)
        assert refusals(schema, "openai", strict=False) == [], (keyword, value)
    assert set(kinds) == {"failed"}
    for place, (keyword, _) in enumerate(CASES):
        [line] = [line for line in caplog.messages if f"`pay{place}`" in line]
        assert f"note.{keyword}" in line or (keyword == "dependencies" and "note.dependentRequired" in line)
        assert "`shop`" in line


@pytest.mark.parametrize("key", ["type", "required"])
async def test_a_double_in_a_list_is_one(key: str, caplog: pytest.LogCaptureFixture) -> None:
    part: dict[str, Any] = {"type": ["object", "object"], "properties": {"a": {}}, "required": ["a", "a"]}
    schema = schema_with(part)

    async with connect(server_of(schema)).open() as tools:
        both = [tools["pay0"].tool.parameters, schema_tool("pay", schema).parameters]

    assert [one["properties"]["note"][key] for one in both] == [[*dict.fromkeys(part[key])]] * 2
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"not": WRONG}, "a"),
        ({"not": {"$ref": "#/$defs/D"}}, "a"),
        ({"not": {"anyOf": [{"$ref": "#/$defs/E"}]}}, "a"),
        ({"if": WRONG, "then": False}, "a"),
        ({"if": {"$ref": "#/$defs/D"}, "then": False}, "a"),
        ({"contains": WRONG, "maxContains": 1}, ["a", "b"]),
        ({"oneOf": [WRONG, {"type": "string"}]}, "a"),
        ({"oneOf": [{"$ref": "#/$defs/E"}, {"type": "string"}]}, "a"),
        ({"not": {"not": {"not": WRONG}}}, "a"),
    ],
)
def test_a_wrong_keyword_in_a_condition_refuses_no_value(part: dict[str, Any], value: Any) -> None:
    schema = schema_with(part) | {"$defs": {"D": WRONG, "E": {"$ref": "#/$defs/D"}}}

    assert fits(schema, cents=1, note=value)
    assert not fits(schema, cents="1", note=value)
    if "oneOf" not in part:
        assert "description" in well_formed("pay", schema).schema["properties"]["note"]


def test_a_right_condition_stays() -> None:
    schema = schema_with({"not": {"type": "string", "title": 3}, "oneOf": [{"type": "integer"}, {"minimum": 5}]})

    assert not fits(schema, cents=1, note="a")
    assert not fits(schema, cents=1, note=7)


def test_items_by_place_are_checked_in_any_version() -> None:
    declared = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    schema = declared | schema_with({"type": "array", "items": [{"type": "integer"}], "additionalItems": False})

    assert fits(schema, cents=1, note=[1])
    assert not fits(schema, cents=1, note=[1, 2])
    assert not fits(schema, cents="1")


def test_a_reference_that_leads_nowhere_is_named() -> None:
    assert well_formed("pay", schema_with({"$ref": "#/$defs/Gone"})).wrong == ["properties.note.$ref"]


def test_what_is_not_checked_at_all_is_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    check = checks_of("pay", schema_with({"$dynamicAnchor": "not one"}))

    assert [check({"cents": "a lot"}) for _ in range(2)] == [{"cents": "a lot"}] * 2
    [line] = caplog.messages
    assert "the arguments of `pay`: not checked" in line

"""Schemas of drafts 3 and 4, which say so or not: read in one way by `schema_tool`, the MCP client, and for models."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from mcp.server.lowlevel import Server

from toolcrib.adapters.mcp_client import connect
from toolcrib.calls import ToolCall
from toolcrib.errors import InvalidArguments
from toolcrib.jsonschema import drops_keywords, of_newer_version, shown_arguments
from toolcrib.pipeline import Pipeline
from toolcrib.tools.from_schema import schema_tool
from toolcrib.toolsets import Toolset

DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
_NUMBER = {"type": "number"}
_LIST = {"type": "array", "items": [{"type": "integer"}], "additionalItems": False}
CASES: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "exclusiveMinimum": ({"n": _NUMBER | {"minimum": 0, "exclusiveMinimum": True}}, 1, 0),
    "exclusiveMaximum": ({"n": _NUMBER | {"maximum": 5, "exclusiveMaximum": True}}, 4, 5),
    "not exclusive": ({"n": _NUMBER | {"minimum": 0, "exclusiveMinimum": False}}, 0, -1),
    "exclusive of nothing": ({"n": _NUMBER | {"exclusiveMinimum": True}}, 1, "one"),
    "id": ({"n": {"id": "#n", "type": "integer"}}, 1, "one"),
    "items by place": ({"n": _LIST}, [1], [1, 2]),
    "required": ({"n": {"type": "integer", "required": True}}, 1, None),
    "any": ({"n": {"type": "any", "enum": [1, "a"]}}, "a", "b"),
    "another type": ({"n": {"type": "file", "maxLength": 2}}, "a", "abc"),
    "any of several": ({"n": {"type": ["integer", "any"], "maxLength": 2}}, "a", "abc"),
}
"""Properties, a value of `n` that fits them and one that does not; None for no value."""


def schema_of(properties: dict[str, Any], declared: dict[str, str]) -> dict[str, Any]:
    defined = {"n": {"$ref": "#/definitions/N"}}
    required = properties["n"].get("required")
    if required:  # it belongs to the place that refers, and not to what is referred to
        return {**declared, "id": "https://there.example/tool.json", "type": "object", "properties": properties}
    return {**declared, "type": "object", "properties": defined, "definitions": {"N": properties["n"]}}


async def answer(n: Any) -> str:
    return "ok"


async def listed(schema: dict[str, Any]) -> Any:
    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="t", input_schema=schema)])

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text="ok")])

    return connect(Server("there", on_list_tools=list_tools, on_call_tool=call_tool))


async def kinds(tools: Any, case: str) -> list[str]:
    _, fits, does_not = CASES[case]
    pipeline = Pipeline(tools)
    given = [{} if value is None else {"n": value} for value in (fits, does_not)]
    return [(await pipeline.run(ToolCall("t", arguments))).kind for arguments in given]


@pytest.mark.parametrize("declared", [DRAFT_4, {}], ids=["declared", "undeclared"])
@pytest.mark.parametrize("case", CASES)
async def test_a_schema_of_an_old_draft_is_read_in_one_way(case: str, declared: dict[str, str]) -> None:
    schema = schema_of(CASES[case][0], declared)
    made = Toolset([schema_tool("t", schema, answer)])

    async with (await listed(schema)).open() as tools:
        ways = [await kinds(made, case), await kinds(tools, case)]
        shown = [made["t"].tool.spec.parameters, tools["t"].tool.spec.parameters]

    assert ways == [["completed", "failed"]] * 2
    assert "exclusiveMinimum': True" not in str(shown)
    assert "required': True" not in str(shown)
    assert "any'" not in str(shown)
    assert "file'" not in str(shown)


@pytest.mark.parametrize("version", [{}, {"$schema": "http://json-schema.org/draft-07/schema#"}], ids=["none", "7"])
def test_dependencies_are_checked_and_shown_as_newer_versions_say_them(version: dict[str, Any]) -> None:
    needs = {"a": ["b"], "c": {"properties": {"b": {"minimum": 5}}}}
    schema: dict[str, Any] = {"type": "object", "properties": {"b": {"type": "integer"}}, "dependencies": needs}
    tool = schema_tool("take", {**version, **schema})

    shown = shown_arguments("take", tool.parameters)

    for value in ({"a": 1, "b": 1}, {"c": 1, "b": 5}):
        tool.spec.read(value)
    for value in ({"a": 1}, {"c": 1, "b": 1}):
        with pytest.raises(InvalidArguments):
            tool.spec.read(value)
    assert (shown["dependentRequired"], [*shown["dependentSchemas"]]) == ({"a": ["b"]}, ["c"])
    assert "dependencies" not in shown


@pytest.mark.parametrize(
    ("part", "is_left_out"),
    [
        ({"type": None}, True),
        ({"type": "odd"}, True),
        ({"type": ["string", "any"]}, True),
        ({"maxLength": None}, True),
        ({"default": None}, False),
        ({"enum": [None, {"type": "odd"}]}, False),
        ({"properties": {"type": {"type": "string"}}}, False),
        ({"definitions": {"a": {"type": "string"}}}, False),
    ],
)
def test_what_only_older_drafts_leave_open_is_left_out(part: Any, is_left_out: bool) -> None:
    schema = {"type": "object", "properties": {"a": part}}

    assert drops_keywords(part) is drops_keywords(schema) is is_left_out
    kept = of_newer_version("look", schema)["properties"]["a"]
    assert (set(part) - set(kept) - {"definitions"} != set()) is is_left_out

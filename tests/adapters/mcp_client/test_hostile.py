"""Servers that say odd things of their tools, which nobody here believes."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server

from tests.adapters.mcp_client.servers import called, failed
from toolcrib.adapters.mcp_client import connect
from toolcrib.code import Toolkit
from toolcrib.errors import ServerError


def telling(schema: Any, result: Any = None, **said: Any) -> Server[Any]:
    """Return a server with one tool of this schema."""

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="odd", input_schema=schema, **said)])

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        return result or types.CallToolResult(content=[types.TextContent(text=f"got {params.arguments}")])

    return Server("odd", on_list_tools=list_tools, on_call_tool=call_tool)


@pytest.mark.parametrize("schema", [{"properties": ["a"]}, {"properties": 3}, {"required": 3, "properties": {"a": {}}}])
async def test_a_schema_that_cannot_be_read_is_an_error_that_names_the_tool(schema: Any) -> None:
    with pytest.raises(ServerError, match=r"the server `odd` describes its tool `odd` in a way that cannot be read"):
        async with connect(telling({"type": "object", **schema})).open():
            pass


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "http://127.0.0.1:1/schema"}}},
        {"properties": {"a": {"$ref": "#/$defs/gone"}}},
        {"properties": {"a": {"type": "colour"}}},
        {"properties": {"a": True}},
        {"properties": {"self": {}, "a": {}, "class": {}, "a b": {}, '"""': {}}},
    ],
)
async def test_what_is_wrong_inside_a_schema_is_left_to_the_server(schema: Any) -> None:
    async with connect(telling({"type": "object", **schema})).open() as tools:
        assert await called(tools, "odd", a=1) == "got {'a': 1}"
        assert "odd" in Toolkit(tools).prompt()


async def test_arguments_with_any_name_arrive() -> None:
    names = {"self": 1, "arguments": 2, "ctx": 3, "name": 4, "a-b": 5}
    async with connect(telling({"type": "object"})).open() as tools:
        assert await called(tools, "odd", **names) == f"got {names}"


async def test_a_result_that_does_not_fit_its_own_schema_is_a_failure() -> None:
    wrong = types.CallToolResult(content=[], structured_content={"n": "three"})
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    async with connect(telling({"type": "object"}, wrong, output_schema=schema)).open() as tools:
        outcome = await failed(tools, "odd")

    assert (outcome.code, "'three' is not of type 'integer'" in outcome.message) == ("remote_tool_error", True)


async def test_words_that_look_like_code_stay_words() -> None:
    text = '"""\nimport os\nos.system("true")\n"""'
    async with connect(telling({"type": "object"}, description=text)).open() as tools:
        compile(tools["odd"].tool.stub() if "..." in tools["odd"].tool.stub() else "", "stub", "exec")
        result = await Toolkit(tools).execute_async("print(odd())")

    assert result.output == "got {}\n"

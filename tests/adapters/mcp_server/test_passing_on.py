"""What another server says of its tools and sends as results, and what of it goes to the clients unchanged."""

from __future__ import annotations

import sys
from typing import Any

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.server.lowlevel import Server

from tests.adapters.mcp_client import asking_server
from tests.adapters.mcp_server.clients import Way, every_way, text_of
from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_server import ServerOptions, build_server
from toolcrib.hooks import GlobalHooks
from toolcrib.pipeline import Run
from toolcrib.provenance import Provenance
from toolcrib.tools import prompt
from toolcrib.toolsets import Toolset

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "title": "Order",
    "$defs": {"place": {"$anchor": "place", "type": "object", "properties": {"street": {"type": "string"}}}},
    "properties": {"name": {"type": "string", "default": None}, "to": {"$ref": "#/$defs/place"}, "phone": True},
    "anyOf": [{"required": ["phone"]}, {"required": ["name"]}],
    "additionalProperties": False,
}
OUTPUT: dict[str, Any] = {"title": "Receipt", "type": "object", "properties": {"a": {"title": "A", "type": "integer"}}}
TOOL = types.Tool(
    name="order",
    title="Order a thing",
    description="Order.",
    input_schema=SCHEMA,
    output_schema=OUTPUT,
    icons=[types.Icon(src="https://example.org/i.png", mime_type="image/png")],
    annotations=types.ToolAnnotations(
        title="Orders", read_only_hint=False, destructive_hint=False, open_world_hint=True
    ),
    _meta={"ui": {"resourceUri": "ui://app"}, "vendor/x": 1},
)
RESULT = types.CallToolResult(
    content=[
        types.TextContent(text="the card is 4242", annotations=types.Annotations(audience=["user"], priority=1.0)),
        types.ResourceLink(name="receipt", uri="file:///receipt"),
        types.EmbeddedResource(
            resource=types.TextResourceContents(uri="ui://app", mime_type="text/html;profile=mcp-app", text="<b>")
        ),
    ],
    structured_content={"a": 1},
    _meta={"vendor/y": 2},
)
REFUSAL = types.CallToolResult(
    content=[types.TextContent(text="sold out"), types.ResourceLink(name="others", uri="file:///others")],
    structured_content={"left": 0},
    is_error=True,
)


def shop() -> Server[Any]:
    """Return a server with one tool, which is out of what is named `rose`."""

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[TOOL, types.Tool(name="bare", input_schema={"type": "object"})])

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return REFUSAL if (params.arguments or {}).get("name") == "rose" else RESULT

    return Server("shop", on_list_tools=list_tools, on_call_tool=call_tool)


def shape(value: Any) -> Any:
    """Return what a client sees, but for what the server that it talks to says of itself."""
    shown = value.model_dump(by_alias=True, mode="json")
    shown["_meta"] = {k: v for k, v in (shown["_meta"] or {}).items() if not k.endswith("/serverInfo")}
    return shown


@every_way
async def test_tools_and_results_of_a_server_go_through_unchanged(way: Way) -> None:
    gateway = build_server(Toolset([connect(shop(), name="shop")]))

    async with way(gateway) as client:
        order, bare = (await client.list_tools()).tools
        bought = await client.call_tool("order", {"phone": "1"})
        refused = await client.call_tool("order", {"name": "rose"})

    own = {} if way.is_new else {"execution": {"taskSupport": "optional"}}  # the gateway's own tasks
    assert shape(order) == {**shape(TOOL), **own}
    assert (bare.title, bare.annotations, bare.icons, bare.meta) == (None, None, None, None)
    assert shape(bought) == shape(RESULT)
    assert shape(refused) == shape(REFUSAL)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize(
    ("schema", "structured"),
    [
        ({"type": "array"}, [1]),
        ({"odd": 7}, {"a": 1}),
        ({"anyOf": [{"type": "object"}, {"type": "string"}]}, {"a": 1}),
    ],
)
async def test_a_result_fits_the_schema_that_its_client_is_shown(
    schema: dict[str, Any], structured: Any, mode: str
) -> None:
    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        tool = types.Tool(name="read", input_schema={"type": "object"}, output_schema=schema)
        return types.ListToolsResult(tools=[tool])

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text="words")], structured_content=structured)

    behind = Server("newer", on_list_tools=list_tools, on_call_tool=call_tool)
    async with Client(build_server(connect(behind, mode="auto")), mode=mode) as client:
        await client.list_tools()  # the client checks results by what it lists
        result = await client.call_tool("read", {})

    shown = {"result": structured} if mode == "legacy" else structured
    assert (text_of(result), result.structured_content, result.is_error) == ("words", shown, False)


async def test_what_the_host_says_of_a_tool_counts() -> None:
    said = connect(
        shop(),
        prefix="shop_",
        descriptions={"order": "Buy."},
        return_schemas={"order": {"type": "object", "properties": {"a": {"type": "number"}}}},
    )

    async with Client(build_server(said)) as client:
        order = (await client.list_tools()).tools[0]

    assert (order.name, order.title, order.description) == ("shop_order", "Order a thing", "Buy.")
    assert order.output_schema is not None
    assert order.output_schema["properties"]["a"] == {"type": "number"}


async def hide_card(ctx: Any, tool_name: str, result: Any, metadata: Any) -> Any:
    result["a"] = 0
    return result


def hide_in_place(call: Any, value: Any) -> Any:
    value["a"] = 0
    return value


class Wrapped(Toolset):
    async def _call_tool_func(self, args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        return await hide_card(ctx, tool.name, await tool.call_func(args, ctx), {})


@pytest.mark.parametrize(
    "tools",
    [
        Toolset([connect(shop())], global_hooks=GlobalHooks(post=hide_card)),
        Wrapped([connect(shop())]),
        Toolset([connect(shop())]).with_deliveries(hide_in_place),
    ],
    ids=["post hook", "wrapper", "delivery"],
)
async def test_what_a_hook_has_not_seen_is_not_passed_on(tools: Toolset) -> None:
    async with Client(build_server(tools)) as client:
        result = await client.call_tool("order", {"phone": "1"})

    assert "4242" not in result.model_dump_json()
    assert result.structured_content == {"a": 0}


async def test_nor_what_a_delivery_of_the_run_has_not_seen() -> None:
    options = ServerOptions(run=lambda principal: Run(deliveries=[hide_in_place]))

    async with Client(build_server(connect(shop()), options)) as client:
        result = await client.call_tool("order", {"phone": "1"})

    assert "4242" not in result.model_dump_json()
    assert result.structured_content == {"a": 0}


async def test_nor_what_provenance_has_not_seen() -> None:
    def open_run(principal: Any) -> Run:
        return Run(features=[Provenance()], approver=lambda request: request.grant("ann"))

    async with Client(build_server(connect(shop()), ServerOptions(run=open_run))) as client:
        result = await client.call_tool("order", {"phone": "1"})

    assert text_of(result) == '{"a": 1}'


# --- prompts


def greeter(*names: str) -> Server[Any]:
    """Return a server with prompts that say their names."""

    async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name=name) for name in names])

    async def get_prompt(ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        said = types.PromptMessage(role="user", content=types.TextContent(text=f"this is {params.name}"))
        return types.GetPromptResult(messages=[said])

    return Server("greeter", on_list_prompts=list_prompts, on_get_prompt=get_prompt)


async def prompts_of(client: Client) -> dict[str, Any]:
    """Return the prompts that are listed, with what each says."""
    listed = [one.name for one in (await client.list_prompts()).prompts]
    return {name: (await client.get_prompt(name)).messages[0].content.model_dump()["text"] for name in listed}


@every_way
async def test_prompts_are_served_by_the_names_of_their_listing(way: Way) -> None:
    north, south = connect(greeter("say hi"), name="n", prefix="n_"), connect(greeter("say hi", "völlig"), name="s")

    async with way(build_server(Toolset([north, south]).prefixed("all_"))) as client:
        said = await prompts_of(client)

    assert said == {
        "all_n_say hi": "this is say hi",
        "all_say hi": "this is say hi",
        "all_völlig": "this is völlig",
    }


@pytest.mark.parametrize("delivered", ["this was said", []])
async def test_a_prompt_passes_deliveries(delivered: Any) -> None:
    tools = Toolset([connect(greeter("hi"), name="n")]).with_deliveries(lambda call, value: delivered)

    async with Client(build_server(tools)) as client:
        reply = await client.get_prompt("hi")

    assert "this is hi" not in reply.model_dump_json()


async def test_no_server_takes_the_name_of_another_s_prompt() -> None:
    @prompt
    async def welcome() -> str:
        """Say the host's own."""
        return "the host's"

    servers = [connect(greeter("welcome"), name=name) for name in ("north", "south")]

    async with Client(build_server(Toolset([*servers, welcome]))) as client:
        said = await prompts_of(client)

    assert said == {
        "welcome": "the host's",
        "prompt_north_welcome": "this is welcome",
        "prompt_south_welcome": "this is welcome",
    }


@every_way
async def test_a_request_to_a_model_says_which_server_and_tool_it_comes_from(way: Way) -> None:
    asked: list[types.CreateMessageRequestParams] = []
    words = [sys.executable, str(asking_server.__file__)]
    gateway = build_server(Toolset([connect(words, name="asking", ask_client=True)]))

    async def sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        asked.append(params)
        return types.CreateMessageResult(role="assistant", content=types.TextContent(text="4"), model="m")

    async with way(gateway, sampling_callback=sample) as client:
        reply = await client.session.call_tool("ask", {"what": "sampling"}, allow_input_required=True)

    source = {"server": "asking", "tool": "ask"}
    if way.is_new:  # whose requests for input have no `_meta`
        assert isinstance(reply, types.InputRequiredResult)
        [key] = reply.input_requests or {}
        assert (reply.meta or {})["toolcrib/source"] == {key: source}
    else:
        assert (asked[0].meta or {}) == {"toolcrib/source": source}

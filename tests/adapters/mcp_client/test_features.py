"""What a server has besides tools: updates of its resources, completion, prompts, a log level."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import pytest
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tests.adapters.mcp_client.servers import called, serving
from tests.networks import free_port
from toolcrib.adapters.mcp_client import ServerToolset, connect
from toolcrib.errors import RemoteToolError
from toolcrib.toolsets import Toolset

both_generations = pytest.mark.parametrize("mode", ["auto", "legacy"])
LEVEL = "io.modelcontextprotocol/logLevel"


class House:
    """A server with two resources, a template, and a prompt, of both generations.

    Attributes:
        subscribed: Resources that clients of the older generation subscribe to, with their sessions.
        level: The last level that a client set.
    """

    def __init__(self) -> None:
        self.subscribed: dict[str, Any] = {}
        self.level: str | None = None
        self.bus = InMemorySubscriptionBus()
        self.ended = asyncio.Event()
        listen = ListenHandler(self.bus)

        async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
            return types.ListToolsResult(tools=[types.Tool(name="paint", input_schema={"type": "object"})])

        async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
            if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                self.level = (params.meta or {}).get(LEVEL)
            await self.update("house://rules")
            return types.CallToolResult(content=[types.TextContent(text="painted")])

        async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
            return types.ListResourcesResult(
                resources=[types.Resource(name=name, uri=f"house://{name}") for name in ("rules", "plan")]
            )

        async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
            room = types.ResourceTemplate(name="room", uri_template="house://rooms/{name}")
            return types.ListResourceTemplatesResult(resource_templates=[room])

        async def read(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
            return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text="No shoes.")])

        async def subscribe(ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
            self.subscribed[params.uri] = ctx.session
            return types.EmptyResult()

        async def unsubscribe(ctx: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
            del self.subscribed[params.uri]
            return types.EmptyResult()

        async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
            guest = types.PromptArgument(name="guest", required=True)
            return types.ListPromptsResult(prompts=[types.Prompt(name="welcome", arguments=[guest])])

        async def complete(ctx: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
            given = params.context.arguments if params.context and params.context.arguments else {}
            of = params.ref.uri if isinstance(params.ref, types.ResourceTemplateReference) else params.ref.name
            values = [f"{of} {params.argument.name}={params.argument.value}... {given}"]
            return types.CompleteResult(completion=types.Completion(values=values))

        async def set_level(ctx: Any, params: types.SetLevelRequestParams) -> types.EmptyResult:
            self.level = params.level
            return types.EmptyResult()

        async def heard(ctx: Any, params: Any) -> types.SubscriptionsListenResult:
            try:
                return await listen(ctx, params)
            finally:
                self.ended.set()

        self.server: Server[Any] = Server(
            "house",
            on_list_tools=list_tools,
            on_call_tool=call_tool,
            on_list_resources=list_resources,
            on_list_resource_templates=list_templates,
            on_read_resource=read,
            on_subscribe_resource=subscribe,
            on_unsubscribe_resource=unsubscribe,
            on_list_prompts=list_prompts,
            on_completion=complete,
        )
        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
        self.server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, heard)

    async def update(self, uri: str) -> None:
        await self.bus.publish(ResourceUpdated(uri))
        if uri in self.subscribed:
            await self.subscribed[uri].send_resource_updated(uri)

    def connected(self, mode: str, **options: Any) -> ServerToolset:
        return connect(self.server, name="house", mode=mode, **options)


@both_generations
async def test_updates_of_a_resource_come_to_those_who_subscribe(mode: str) -> None:
    house = House()
    server = house.connected(mode)

    async with server.open() as tools:
        async with server.subscribe("house://rules") as updates:
            await house.update("house://plan")
            await called(tools, "paint")
            updated = await anext(updates)
            async with server.subscribe("house://rules") as others:
                await called(tools, "paint")
                both = await anext(updates), await anext(others)
        left = dict(house.subscribed)

    assert updated == "house://rules"
    assert both == ("house://rules", "house://rules")
    assert left == {}


@both_generations
async def test_what_is_below_a_resource_counts_as_the_resource(mode: str) -> None:
    house = House()
    server = house.connected(mode)

    async with server.open(), server.subscribe("house://rooms") as updates:
        if mode == "legacy":
            house.subscribed["house://rooms/attic"] = house.subscribed["house://rooms"]
            await house.update("house://rooms/attic")
        else:
            await house.update("house://rooms")
        updated = await anext(updates)

    assert updated == ("house://rooms/attic" if mode == "legacy" else "house://rooms")


@both_generations
async def test_the_stream_of_a_newer_server_ends_with_the_subscription(mode: str) -> None:
    house = House()
    server = house.connected(mode)

    async with server.open():
        async with server.subscribe("house://rules"):
            pass
        if mode == "auto":
            await house.ended.wait()

    assert house.subscribed == {}


async def test_no_more_than_a_number_of_resources_is_subscribed_to() -> None:
    server = House().connected("legacy")

    async with server.open():
        with pytest.raises(RemoteToolError, match="100 of its resources"):
            async with server.subscribe(*(f"house://rooms/{number}" for number in range(101))):
                pass


async def test_a_server_that_announces_no_updates_is_not_subscribed_to() -> None:
    async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])

    server = connect(Server("silent", on_list_resources=list_resources), mode="legacy", required=False)

    async with server.open():
        with pytest.raises(RemoteToolError, match="does not announce updates"):
            async with server.subscribe("house://rules"):
                pass


async def test_a_subscription_goes_on_when_the_server_is_there_again() -> None:
    house, port = House(), free_port()
    app = house.server.streamable_http_app()
    server = connect(f"http://127.0.0.1:{port}/mcp", name="house", mode="legacy")

    async with serving(app, port), server.open(), server.subscribe("house://rules") as updates:
        kept = server._source.opened[-1].kept
        assert kept.connection is not None
        house.subscribed.clear()
        kept.connection.drop()
        again = await anext(updates)
        subscribed = [*house.subscribed]

    assert again == "house://rules"  # it may have been updated meanwhile
    assert subscribed == ["house://rules"]


@both_generations
async def test_arguments_of_prompts_and_of_templates_are_completed(mode: str) -> None:
    server = House().connected(mode)

    async with server.open():
        prompt = await server.complete("welcome", "guest", "A", {"room": "attic"})
        template = await server.complete("house://rooms/{name}", "name", "at")

    assert prompt == ["welcome guest=A... {'room': 'attic'}"]
    assert template == ["house://rooms/{name} name=at... {}"]


@both_generations
async def test_the_log_level_is_set(mode: str) -> None:
    house = House()

    async with house.connected(mode, log_level="warning").open() as tools:
        await called(tools, "paint")

    assert house.level == "warning"


async def test_prompts_of_one_name_of_two_servers_are_no_clash() -> None:
    async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name="welcome")])

    servers = [connect(Server(name, on_list_prompts=list_prompts), name=name) for name in ("north", "south")]

    async with Toolset(servers).open() as tools:
        names, offered = tools.names(), tools.offered()

    assert names == ["prompt_north_welcome", "prompt_south_welcome"]
    assert not offered

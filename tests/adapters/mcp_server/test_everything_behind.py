"""The protocol's own demonstration server behind a gateway, used by clients of both generations."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from tests.adapters.mcp_client.servers import EVERYTHING
from tests.adapters.mcp_server.clients import Way, every_generation, text_of
from tests.npm.programs import command
from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_server import McpServer, build_server
from toolcrib.toolsets import Toolset

PROMPT = "completable-prompt"
TEMPLATE = "demo://resource/dynamic/text/{resourceId}"


def gateway() -> McpServer:
    server = connect(command(EVERYTHING), name="everything", ask_client=True, resource_tools=False)
    return build_server(Toolset([server]))


class Person:
    """What a client does for its user."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def elicit(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params.message)
        is_page = isinstance(params, types.ElicitRequestURLParams)
        return types.ElicitResult(action="accept", content=None if is_page else {"name": "Ann"})

    async def sample(self, context: Any, params: Any) -> types.CreateMessageResult:
        return types.CreateMessageResult(role="assistant", content=types.TextContent(text="a poem"), model="m")

    async def roots(self, context: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate({"roots": [{"uri": "file:///srv/data"}]})

    def callbacks(self) -> dict[str, Any]:
        answers = {"sampling_callback": self.sample, "list_roots_callback": self.roots}
        return {"elicitation_callback": self.elicit, **answers}


@every_generation
async def test_what_the_server_asks_reaches_the_client(way: Way) -> None:
    person = Person()

    async with way(gateway(), **person.callbacks()) as client:
        form = await client.call_tool("trigger-elicitation-request", {})
        page = await client.call_tool("trigger-url-elicitation", {"url": "https://example.org/x"})
        poem = await client.call_tool("trigger-sampling-request", {"prompt": "Rhyme."})

    assert "provided the requested information" in text_of(form)
    assert "completed the URL elicitation" in text_of(page)
    assert "a poem" in text_of(poem)
    assert len(person.asked) == 2
    assert all(message.startswith("everything asks: ") for message in person.asked)


@every_generation
async def test_what_it_has_reaches_the_client(way: Way) -> None:
    steps: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append(done)

    async with way(gateway()) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        resources = (await client.list_resources()).resources
        templates = {one.uri_template for one in (await client.list_resource_templates()).resource_templates}
        read = (await client.read_resource(resources[0].uri)).contents[0]
        filled = (await client.read_resource("demo://resource/dynamic/text/3")).contents[0]
        prompt = await client.get_prompt(PROMPT, {"department": "Engineering", "name": "Alice"})
        values = (
            await client.complete(types.PromptReference(name=PROMPT), {"name": "department", "value": "E"})
        ).completion
        links = await client.call_tool("get-resource-links", {})
        image = await client.call_tool("get-tiny-image", {})
        weather = await client.call_tool("get-structured-content", {"location": "New York"})
        await client.call_tool(
            "trigger-long-running-operation", {"duration": 1, "steps": 2}, progress_callback=progress
        )
        try:
            unknown = str(await client.read_resource("demo://nothing"))
        except MCPError as error:
            unknown = error.message

    assert not any(name.startswith(("read_", "query_")) for name in tools)
    assert resources[0].name == "architecture.md"
    assert (read.uri, read.mime_type) == (resources[0].uri, "text/markdown")
    assert isinstance(filled, types.TextResourceContents)
    assert TEMPLATE in templates
    assert prompt.messages
    assert values.values == ["Engineering"]
    assert [type(part) for part in links.content[1:]] == [types.ResourceLink] * 3
    assert isinstance(image.content[1], types.ImageContent)
    assert weather.structured_content is not None
    assert steps == [1, 2]
    assert "not found" in unknown

"""Servers that do not answer: each request ends in time."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server

from tests.adapters.mcp_client.servers import called, failed
from tests.virtual_time import in_virtual_time
from toolcrib.adapters.mcp_client import Elicitation, connect
from toolcrib.adapters.mcp_client._options import Options
from toolcrib.adapters.mcp_server import build_server
from toolcrib.errors import ServerError


def silent(*silent_methods: str) -> Server[Any]:
    """Return a server that answers some requests never."""
    tool = types.Tool(name="pay", input_schema={"type": "object"})
    prompt = types.Prompt(name="hi", arguments=[types.PromptArgument(name="to")])

    def answers(method: str, result: Any) -> Any:
        async def answer(ctx: Any, params: Any) -> Any:
            if method in silent_methods:
                await asyncio.Event().wait()
            return result

        return answer

    return Server(
        "silent",
        on_list_tools=answers("tools/list", types.ListToolsResult(tools=[tool])),
        on_call_tool=answers("tools/call", types.CallToolResult(content=[types.TextContent(text="paid")])),
        on_list_prompts=answers("prompts/list", types.ListPromptsResult(prompts=[prompt])),
        on_get_prompt=answers("prompts/get", types.GetPromptResult(messages=[])),
        on_completion=answers("completion", types.CompleteResult(completion=types.Completion(values=["Ann"]))),
        on_read_resource=answers("resources/read", types.ReadResourceResult(contents=[])),
        **({"on_set_logging_level": answers("logging", None)} if "logging" in silent_methods else {}),
    )


def test_a_call_has_a_limit_unless_the_host_says_otherwise() -> None:
    with pytest.raises(ValueError, match="timeout must be more than 0 seconds"):
        Options(timeout=0)

    assert (Options().timeout, Options(timeout=None).timeout) == (300.0, None)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("behind", [False, True], ids=["direct", "gateway"])
@in_virtual_time
async def test_a_call_without_an_answer_ends_and_says_that_it_may_have_taken_effect(mode: str, behind: bool) -> None:
    tools = connect(silent("tools/call"), mode=mode, timeout=0.05)
    async with (connect(build_server(tools), mode=mode) if behind else tools).open() as opened:
        outcome = await failed(opened, "pay")

    assert "the server `silent` did not answer within 0.05 s while `pay` ran. " in outcome.text()
    assert "Whether it took effect is unknown" in outcome.text()


@pytest.mark.parametrize(
    ("method", "ask"),
    [
        ("resources/read", lambda tools: tools.read_resource("r://1")),
        ("prompts/get", lambda tools: tools.get_prompt("hi")),
        ("completion", lambda tools: tools.complete("hi", "to", "A")),
    ],
)
@in_virtual_time
async def test_every_other_request_without_an_answer_ends(method: str, ask: Any) -> None:
    tools = connect(silent(method), mode="legacy", timeout=0.05)
    async with tools.open():
        with pytest.raises(ServerError, match=r"the server `silent` did not answer within 0.05 s"):
            await ask(tools)


@in_virtual_time
async def test_a_list_of_prompts_without_an_answer_ends() -> None:
    tools = connect(silent("prompts/list"), mode="legacy", timeout=0.05, connect_timeout=0.05)
    async with tools.open():
        with pytest.raises(ServerError, match=r"the server `silent` did not answer within 0.05 s while it listed"):
            await tools.list_prompts()


@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
@in_virtual_time
async def test_a_server_that_does_not_set_its_log_level_opens() -> None:
    tools = connect(silent("logging"), mode="legacy", log_level="warning", connect_timeout=0.2)
    async with tools.open() as opened:
        assert await called(opened, "pay") == "paid"


@in_virtual_time
async def test_the_clock_of_a_call_stands_while_a_person_is_asked() -> None:
    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="book", input_schema={"type": "object"})])

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        said = await ctx.session.elicit_form("Sure?", {"type": "object", "properties": {}})
        return types.CallToolResult(content=[types.TextContent(text=said.action)])

    async def think(asked: Elicitation) -> bool:
        await asyncio.wait({asyncio.create_task(asyncio.Event().wait())}, timeout=1.5)
        return True

    server = Server("asking", on_list_tools=list_tools, on_call_tool=call_tool)
    async with connect(server, mode="legacy", elicit=think, timeout=1).open() as tools:
        assert await called(tools, "book") == "accept"

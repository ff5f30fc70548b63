"""A provider's own tools beside a session's: what a model of any format is asked with, also without a client here."""

from __future__ import annotations

from typing import Any

import pytest

from tests.formats.replies import NAMES, sdk_accepts_tools
from toolcrib.calls import ToolCall
from toolcrib.formats import ProviderOptions, WireFormat
from toolcrib.rounds import Finished, Session
from toolcrib.testing import ScriptedModel
from toolcrib.tools import Tool, ez_tool
from toolcrib.toolsets import Toolset

OWN: dict[WireFormat, dict[str, Any]] = {
    "openai": {"type": "custom", "custom": {"name": "sql"}},
    "openai_responses": {"type": "web_search"},
    "anthropic": {"type": "web_search_20250305", "name": "web_search"},
    "gemini": {"googleSearch": {}},
    "mistral": {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}},
    "bedrock": {"systemTool": {"name": "nova_grounding"}},
    "ollama": {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}},
    "cohere": {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}},
    "gemini_interactions": {"type": "google_search"},
}
"""A tool of each provider's own; where its chat has none, a function that the host describes itself."""
each_format = pytest.mark.parametrize("format", NAMES)
CALL = ToolCall("weather", {"city": "Oslo"}, "abcdefgh1")


@ez_tool
def weather(city: str) -> str:
    """Look at the weather."""
    return f"sun in {city}"


def defined(format: WireFormat, *tools: Tool[..., Any]) -> tuple[Any, ...]:
    return tuple(Toolset(tools).definitions(format=format))


@each_format
@pytest.mark.parametrize("at_each_run", [False, True])
async def test_a_provider_s_own_tools_are_offered_beside_the_session_s(format: WireFormat, at_each_run: bool) -> None:
    model, own = ScriptedModel(CALL, "Sun."), [OWN[format]]
    session = Session(model, tools=[weather], format=format, provider_tools=[] if at_each_run else own).say("Go.")

    done = await (session.run(provider_tools=own) if at_each_run else session.run())

    assert isinstance(done, Finished)
    assert (done.result, session.transcript.check()) == ("Sun.", [])
    offered = (*defined(format, weather), OWN[format])
    assert [request.tools for request in model.requests] == [offered, offered]


@each_format
async def test_a_provider_s_own_tools_may_be_the_only_ones(format: WireFormat) -> None:
    model = ScriptedModel("Sun.")

    await Session(model, format=format, provider_tools=[OWN[format]]).say("Go.").step()

    [request] = model.requests
    assert (request.tools, request.tool_choice) == ((OWN[format],), None)


@pytest.mark.parametrize("format", [name for name in NAMES if name != "gemini"])
async def test_a_tool_gives_way_to_the_provider_s_of_its_name(format: WireFormat) -> None:
    model, [own] = ScriptedModel(CALL, "Sun."), defined(format, weather)
    session = Session(model, tools=[weather], format=format)

    done = await session.say("How is Oslo?").run(provider_tools=[{**own}])

    assert done.result == "Sun."
    assert [request.tools for request in model.requests] == [(own,), (own,)]
    sdk_accepts_tools(format, [*model.requests[0].tools])


async def test_a_tool_of_free_text_stays_beside_one_of_the_provider_s_that_has_another_name() -> None:
    @ez_tool(provider=ProviderOptions(free_text=True))
    def shell(command: str) -> str:
        """Run a command."""
        return command

    model = ScriptedModel("Done.")
    await Session(model, tools=[shell], provider_tools=[OWN["openai"]]).say("Go.").step()

    assert [tool["custom"]["name"] for tool in model.requests[0].tools] == ["shell", "sql"]

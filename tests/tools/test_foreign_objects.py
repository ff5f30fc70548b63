"""Objects of other frameworks where tools are wanted."""

from collections.abc import Callable
from typing import Any

import pytest

from toolcrib import Pipeline, Session, Toolset
from toolcrib.rounds import decode
from toolcrib.testing import ScriptedModel, wire_reply
from toolcrib.tools import as_tool, ez_tool, require_own_object


@ez_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


FRAMEWORKS = [
    ("agent_framework._tools", "agent_framework"),
    ("agents.tool", "openai_agents"),
    ("claude_agent_sdk", "claude_agent_sdk"),
    ("google.adk.tools.function_tool", "google_adk"),
    ("langchain_core.tools.structured", "langchain"),
    ("langgraph.graph.state", "langchain"),
    ("pydantic_ai.tools", "pydantic_ai"),
    ("smolagents.tools", "smolagents"),
]


def made(module: str, name: str = "Theirs") -> Any:
    """Return an object whose class is from a module, with a method."""
    theirs = type(name, (), {"__module__": module, "name": "mul", "invoke": lambda self: 1})
    return type("Own", (theirs,), {"__module__": "shop"})()


WHERE: list[Callable[[Any], Any]] = [
    as_tool,
    lambda theirs: Toolset([add, theirs]),
    lambda theirs: Toolset(theirs),
    Toolset.from_object,
    lambda theirs: Pipeline([theirs]),
    lambda theirs: Session(ScriptedModel("x"), tools=[add, theirs]),
    lambda theirs: Session(ScriptedModel("x"), tools=theirs),
    lambda theirs: decode([theirs], wire_reply("openai", [])),
]
each_place = pytest.mark.parametrize("put", WHERE)


@each_place
@pytest.mark.parametrize(("module", "adapter"), FRAMEWORKS)
def test_what_is_of_another_framework_is_refused_with_the_adapter(
    put: Callable[[Any], Any], module: str, adapter: str
) -> None:
    with pytest.raises(TypeError, match=rf"`mul` .* from_tools\(\[\.\.\.\]\) of toolcrib.adapters.{adapter} makes"):
        put(made(module))


@each_place
@pytest.mark.parametrize("module", ["fastmcp.server.server", "mcp.server.mcpserver.server"])
def test_a_server_is_refused_with_how_to_connect(put: Callable[[Any], Any], module: str) -> None:
    with pytest.raises(TypeError, match=r"`mul` .* connect\(.* of toolcrib.adapters.mcp_client has its tools"):
        put(made(module))


@pytest.mark.parametrize(
    "tools", [[{"name": "add"}], {"name": "add"}, [{"type": "function", "function": {"name": "add"}}]]
)
@pytest.mark.parametrize("put", [Toolset, lambda tools: Session(ScriptedModel("x"), tools=tools)])
def test_a_definition_is_no_tool(put: Callable[[Any], Any], tools: Any) -> None:
    with pytest.raises(
        TypeError, match=r"a dict is not a tool: it describes `add` to a provider, .* Give the function"
    ):
        put(tools)


def test_an_object_of_a_users_own_is_not_refused() -> None:
    require_own_object(made("agents_of_mine.tool"))

    assert Toolset.from_object(made("mcpx.server")).names() == ["invoke"]


def test_a_session_keeps_a_list_of_tools_as_a_toolset() -> None:
    session = Session(ScriptedModel("x"), tools=[add])

    assert isinstance(session.defaults["tools"], Toolset)
    assert session.defaults["tools"].names() == ["add"]

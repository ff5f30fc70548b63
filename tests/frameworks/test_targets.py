"""Agents and tools of frameworks as the TARGET of a command, and served over MCP."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolcrib.adapters.mcp_client import connect
from toolcrib.calls import Completed, ToolCall
from toolcrib.cli import app
from toolcrib.pipeline import Pipeline, Run

ADD = '''
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: One.
        b: Another.
    """
    return a + b
'''
PAY = ADD.replace("add(a: int, b: int)", "pay(a: int, b: int)").replace("Add two numbers", "Pay")
GUARD = "from toolcrib.serving import GuardPolicy\npolicy = GuardPolicy(approve=['pay'])\n"

AGENTS = {
    "openai_agents": f"""
from agents import Agent, WebSearchTool, function_tool
{ADD}{PAY}
agent = Agent("a", tools=[function_tool(add), function_tool(pay, needs_approval=True), WebSearchTool()])
""",
    "openai_agents_guarded": f"""
from agents import Agent, function_tool
from toolcrib.adapters.openai_agents import guard
{GUARD}{ADD}{PAY}
agent = guard(Agent("a", tools=[function_tool(add), function_tool(pay)]), policy)
""",
    "langchain": f"""
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.tools import tool
from toolcrib.adapters.langchain import guard
{GUARD}{ADD}{PAY}
agent = create_agent(GenericFakeChatModel(messages=iter([])), guard([tool(add), tool(pay)], policy))
""",
    "google_adk": f"""
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool, google_search
{ADD}{PAY}
agent = LlmAgent(name="a", model="gemini-3-pro", tools=[add, FunctionTool(pay, require_confirmation=True)])
""",
    "agent_framework": f"""
from agent_framework import Agent, tool
from tests.frameworks.scripted_agent_framework import ScriptedClient
from toolcrib.adapters.agent_framework import GuardProvider
{GUARD}{ADD}{PAY}
agent = Agent(ScriptedClient(), tools=[tool(add), tool(pay)], context_providers=[GuardProvider(policy)])
""",
    "claude_agent_sdk": f"""
from claude_agent_sdk import ClaudeAgentOptions
from toolcrib.adapters.claude_agent_sdk import as_tools
from toolcrib.tools import ez_tool as _ours
{ADD}{PAY}
agent = as_tools([_ours(add), _ours(requires_approval=True)(pay)])
""",
    "smolagents": f"""
from smolagents import Model, ToolCallingAgent, tool
from toolcrib.adapters.smolagents import guard
{GUARD}{ADD}{PAY}
agent = guard(ToolCallingAgent([tool(add), tool(pay)], Model()), policy)
""",
    "pydantic_ai": f"""
from pydantic_ai import Agent, Tool
from pydantic_ai.models.test import TestModel
{ADD}{PAY}
agent = Agent(TestModel(), tools=[add, Tool(pay, requires_approval=True)])
""",
}
"""An agent with the tools `add` and `pay`, the second of which needs approval."""

GATED = {
    "langchain": """
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.tools import tool
from toolcrib.adapters.langchain import GuardMiddleware
agent = create_agent(GenericFakeChatModel(messages=iter([])), [tool(add)], middleware=[GuardMiddleware(policy)])
""",
    "langchain_asking": """
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.tools import tool
asking = HumanInTheLoopMiddleware({"add": True})
agent = create_agent(GenericFakeChatModel(messages=iter([])), [tool(add)], middleware=[asking])
""",
    "google_adk_callback": """
from google.adk.agents import LlmAgent
agent = LlmAgent(name="a", model="gemini-3-pro", tools=[add], before_tool_callback=lambda **given: {"no": "no"})
""",
    "google_adk_plugin": """
from google.adk.agents import LlmAgent
from google.adk.apps import App
from toolcrib.adapters.google_adk import GuardPlugin
agent = App(name="a", root_agent=LlmAgent(name="a", model="gemini-3-pro", tools=[add]), plugins=[GuardPlugin(policy)])
""",
    "agent_framework": """
from agent_framework import Agent, function_middleware, tool
from tests.frameworks.scripted_agent_framework import ScriptedClient
@function_middleware
async def refuse(context, call_next): ...
agent = Agent(ScriptedClient(), tools=[tool(add)], middleware=[refuse])
""",
    "claude_agent_sdk": """
from claude_agent_sdk import ClaudeAgentOptions
from toolcrib.adapters.claude_agent_sdk import guard
agent = guard(ClaudeAgentOptions(mcp_servers={"a": {"command": "a"}}, allowed_tools=["pay"]), policy)
""",
    "pydantic_ai_hooks": """
from pydantic_ai import Agent
from pydantic_ai.capabilities import Hooks
from pydantic_ai.models.test import TestModel
async def refuse(ctx, *, call, tool_def, args): raise PermissionError(call.tool_name)
agent = Agent(TestModel(), tools=[add], capabilities=[Hooks(before_tool_execute=refuse)])
""",
    "pydantic_ai_capability": """
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.test import TestModel
class Gate(AbstractCapability):
    async def wrap_tool_execute(self, ctx, *, call, tool_def, args, handler): raise PermissionError(call.tool_name)
agent = Agent(TestModel(), tools=[add], capabilities=[Gate().prefix_tools("a")])
""",
    "pydantic_ai_prepared": """
from pydantic_ai import Agent
from pydantic_ai.capabilities import PrepareTools
from pydantic_ai.models.test import TestModel
async def hide(ctx, tool_defs): return []
agent = Agent(TestModel(), tools=[add], capabilities=[PrepareTools(hide)])
""",
    "pydantic_ai_dynamic": """
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
agent = Agent(TestModel(), tools=[add], capabilities=[lambda ctx: None])
""",
}
"""Agents with gates that are around the agent, and not around its tools."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run each test in an empty folder."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name, module in sys.modules.items() if str(tmp_path) in str(getattr(module, "__file__", ""))]:
        del sys.modules[name]


def said(*words: str) -> tuple[int, str]:
    """Return the exit status of a command, and what it printed."""
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.output


@pytest.mark.parametrize("framework", AGENTS)
@pytest.mark.parametrize("attribute", ["", ":agent"])
def test_an_agent_is_a_target_and_its_tools_keep_their_gates(folder: Path, framework: str, attribute: str) -> None:
    (folder / "app.py").write_text(AGENTS[framework])
    target, pay = f"app.py{attribute}", '{"a": 1, "b": 2}'

    assert [tool["name"] for tool in json.loads(said("list", target, "--json")[1])] == ["add", "pay"]
    assert said("call", target, "add", '{"a": 1, "b": 2}') == (0, "3\n")
    assert said("call", target, "pay", pay, "--suspend")[0] == 3
    assert said("call", target, "pay", pay, "--yes") == (0, "3\n")


@pytest.mark.parametrize("framework", GATED)
def test_an_agent_whose_gates_would_be_lost_is_none(folder: Path, framework: str) -> None:
    (folder / "app.py").write_text(GUARD + ADD + GATED[framework])

    status, error = said("list", "app.py:agent")

    assert status == 2
    assert "would be lost; name the tools" in " ".join(error.split())


def test_what_is_no_gate_does_not_hide_the_tools_of_an_agent(folder: Path) -> None:
    (folder / "app.py").write_text(
        f"""{ADD}
from pydantic_ai import Agent
from pydantic_ai.capabilities import Hooks, Instrumentation, Thinking
from pydantic_ai.models.test import TestModel
async def count(ctx, request_context): return request_context
agent = Agent(TestModel(), tools=[add], capabilities=[Instrumentation(), Thinking(), Hooks(before_model_request=count)])
"""
    )

    assert said("call", "app.py", "add", '{"a": 1, "b": 2}') == (0, "3\n")


def test_two_agents_of_a_module_are_not_told_apart_and_tools_without_an_agent_are_taken(folder: Path) -> None:
    agents = AGENTS["openai_agents"]
    (folder / "two.py").write_text(f'{agents}other = Agent("b", tools=[function_tool(add)])')
    (folder / "tools.py").write_text(
        f"from langchain_core.tools import tool\n{ADD}{PAY}add, pay = tool(add), tool(pay)"
    )
    (folder / "mixed.py").write_text(f"{agents}tools = [function_tool(add), pay]")

    assert "has 2 agents (`agent`, `other`); name one: two.py:agent" in " ".join(said("list", "two.py")[1].split())
    assert said("call", "tools.py", "pay", '{"a": 1, "b": 2}') == (0, "3\n")
    assert said("call", "mixed.py:tools", "pay", '{"a": 1, "b": 2}') == (0, "3\n")


@pytest.mark.parametrize("framework", ["openai_agents", "claude_agent_sdk", "agent_framework"])
def test_the_tools_of_an_agents_mcp_servers_are_among_its_tools(folder: Path, framework: str) -> None:
    (folder / "tools.py").write_text(f"from toolcrib.tools import ez_tool\n\n\n@ez_tool{ADD}")
    command, arguments = sys.executable, ["-m", "toolcrib", "serve", str(folder / "tools.py")]
    (folder / "app.py").write_text(
        {
            "openai_agents": f"""
from agents import Agent
from agents.mcp import MCPServerStdio
server = MCPServerStdio(
    {{"command": {command!r}, "args": {arguments!r}}}, client_session_timeout_seconds=60
)
agent = Agent("a", mcp_servers=[server])
""",
            "claude_agent_sdk": f"""
from claude_agent_sdk import ClaudeAgentOptions
agent = ClaudeAgentOptions(mcp_servers={{"own": {{"command": {command!r}, "args": {arguments!r}}}}})
""",
            "agent_framework": f"""
from agent_framework import Agent, MCPStdioTool
from tests.frameworks.scripted_agent_framework import ScriptedClient
agent = Agent(ScriptedClient(), tools=[MCPStdioTool("own", {command!r}, args={arguments!r})])
""",
        }[framework]
    )

    status, printed = said("call", "app.py", "add", '{"a": 1, "b": 2}')

    assert status == 0
    assert json.loads(printed) in (3, {"result": 3})


async def test_an_agents_tools_are_served_over_mcp(folder: Path) -> None:
    (folder / "app.py").write_text(AGENTS["google_adk"])
    served = [sys.executable, "-m", "toolcrib", "serve", str(folder / "app.py")]

    async with connect(served, cwd=folder, connect_timeout=120).open() as tools:
        outcome = await Pipeline(tools).run(ToolCall("add", {"a": 1, "b": 2}), Run())
        names = tools.names()

    assert names == ["add", "pay"]
    assert isinstance(outcome, Completed)
    assert outcome.text() == "3"

"""Mistakes of a host with a guard and with answers: each error says what to write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import pytest
from agent_framework import Agent as FrameworkAgent
from agents import Agent, Runner, function_tool
from agents.realtime import RealtimeAgent
from agents.sandbox import SandboxAgent
from agents.testing import ScriptedModel, assistant_message, function_call
from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server
from claude_agent_sdk import tool as claude_tool
from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool as ADKTool
from langchain.agents import create_agent
from langchain_core.tools import tool as langchain_tool
from langgraph.prebuilt import ToolNode
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import FunctionToolset
from pydantic_ai.agent import WrapperAgent
from smolagents import ToolCallingAgent
from smolagents import tool as smolagents_tool

from tests.frameworks.adapters import ADAPTERS
from tests.frameworks.scripted import Scripted
from tests.frameworks.scripted_adk import ScriptedLlm, calling
from tests.frameworks.scripted_agent_framework import ScriptedClient
from tests.frameworks.scripted_smolagents import QUIET, Script
from toolcrib.adapters import agent_framework, google_adk, langchain, openai_agents
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import Denial
from toolcrib.pipeline import Run
from toolcrib.record import ListSink
from toolcrib.serving import GuardPolicy
from toolcrib.tools import ez_tool, tool
from toolcrib.toolsets import Toolset

GUARDS: list[Any] = [import_module(f"toolcrib.adapters.{name}").guard for name in ADAPTERS]
CLASSES: list[Any] = [langchain.GuardMiddleware, google_adk.GuardPlugin, agent_framework.GuardProvider]


@pytest.mark.parametrize("options", [{}, {"approve": ["delete"]}], ids=["nothing", "gates of its own"])
@pytest.mark.parametrize("guard", [*GUARDS, *CLASSES], ids=lambda guard: f"{guard.__module__}.{guard.__name__}")
def test_a_guard_without_a_policy_says_where_its_gates_are_given(guard: Any, options: dict[str, Any]) -> None:
    given = () if guard in CLASSES else (object(),)

    with pytest.raises(TypeError, match=r"its gates are those of a policy: \w+\(.*GuardPolicy\(approve=\[...\]\)\)"):
        guard(*given, **options)


@pytest.mark.parametrize(
    ("options", "mend"),
    [
        ({"sinks": ListSink()}, r"sinks=\[ListSink\(...\)\]"),
        ({"run": lambda: Run()}, r"run=lambda ctx: Run\(...\)"),
        ({"approve": lambda name, args: name == "delete"}, r"approve=lambda arguments, ctx: ctx.tool_name == ..."),
        ({"interrupt_on": ["delete"]}, "Did you mean `approve`"),
    ],
)
def test_a_policy_says_how_an_option_is_given(options: dict[str, Any], mend: str) -> None:
    with pytest.raises(TypeError, match=mend):
        GuardPolicy(**options)


def _adk(tool: Any) -> LlmAgent:
    return LlmAgent(name="a", model=ScriptedLlm(steps=[calling(("pay", {"euros": 3}))]), tools=[tool])


FUNCTIONS_TAKEN: dict[str, Callable[[Any], Any]] = {
    "pydantic_ai agent": lambda tool: PydanticAgent(tools=[tool]),
    "pydantic_ai toolset": lambda tool: FunctionToolset([tool]),
    "pydantic_ai decorator": lambda tool: PydanticAgent().tool_plain(tool),
    "openai_agents": function_tool,
    "openai_agents guard": lambda tool: openai_agents.guard(Agent("a", tools=[tool]), GuardPolicy()),
    "langchain agent": lambda tool: create_agent(Scripted(responses=[]), [tool]),
    "langchain node": lambda tool: ToolNode([tool]),
    "langchain tool": langchain_tool,
    "google_adk": lambda tool: asyncio.run(InMemoryRunner(_adk(tool)).run_debug("go", quiet=True)),
    "google_adk tool": lambda tool: asyncio.run(InMemoryRunner(_adk(ADKTool(tool))).run_debug("go", quiet=True)),
    "agent_framework": lambda tool: FrameworkAgent(ScriptedClient(), tools=[tool]),
    "smolagents": smolagents_tool,
    "smolagents agent": lambda tool: ToolCallingAgent([tool], Script(), **QUIET),
    "claude_agent_sdk": lambda tool: create_sdk_mcp_server("s", tools=[tool]),
}
"""Where a framework is given a function as a tool."""


@pytest.mark.parametrize("place", [*FUNCTIONS_TAKEN])
def test_a_tool_of_ours_that_needs_approval_is_no_function_for_a_framework(place: str) -> None:
    @tool(requires_approval=True, register=False)
    async def pay(euros: int) -> int:
        """Pay."""
        return euros

    with pytest.raises(Exception, match=r"as_tools\(\[|Unsupported callable|instance of BaseTool|tool.parameters"):
        FUNCTIONS_TAKEN[place](pay)


@pytest.mark.parametrize("place", ["pydantic_ai agent", "pydantic_ai toolset", "pydantic_ai decorator"])
def test_a_toolset_of_ours_among_tools_of_a_framework_names_its_adapter(place: str) -> None:
    with pytest.raises(
        AttributeError, match=r"no attribute '__name__'. Here it is .*`as_tools\(toolset\)` of its adapter"
    ):
        FUNCTIONS_TAKEN[place](Toolset([ez_tool(len)]))


@function_tool
def delete(path: str) -> str:
    """Delete a file."""
    return path


@pytest.mark.parametrize("kind", ["agent", "toolset", "agent around it"])
def test_an_agent_of_pydantic_ai_is_guarded_once(kind: str) -> None:
    guard, policy = import_module("toolcrib.adapters.pydantic_ai").guard, GuardPolicy(approve=True)
    guarded = guard(FunctionToolset([len]) if kind == "toolset" else PydanticAgent(), policy)

    with pytest.raises(TypeError, match=r"it has gates already, .* one GuardPolicy has them all"):
        guard(WrapperAgent(guarded) if kind == "agent around it" else guarded, policy)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a tool": (lambda: ez_tool(len), r"belongs to Toolcrib, .*: as_tools\(\[...\]\) of toolcrib.adapters.{adapter} "),
    "a toolset": (lambda: Toolset([ez_tool(len)]), r"as_tools\(\[...\]\) of toolcrib.adapters.{adapter} "),
    "an object": (object, "not object of builtins$"),
    "openai_agents": (lambda: Agent("a"), "not Agent of agents.agent; use guard of {other}$"),
    "langchain": (lambda: create_agent(Scripted(responses=[]), []), "use guard of {other}$"),
    "pydantic_ai": (PydanticAgent, "use guard of {other}$"),
    "google_adk": (lambda: LlmAgent(name="a"), "use guard of {other}$"),
    "agent_framework": (lambda: FrameworkAgent(ScriptedClient()), "use guard of {other}$"),
    "claude_agent_sdk": (ClaudeAgentOptions, "use guard of {other}$"),
    "smolagents": (lambda: ToolCallingAgent([], Script(), **QUIET), "use guard of {other}$"),
}
"""What a guard of an adapter is not for, and what its error says."""


@pytest.mark.parametrize(
    ("adapter", "other"), [(adapter, other) for adapter in ADAPTERS for other in WRONG if adapter != other]
)
@pytest.mark.parametrize("several", [False, True], ids=["alone", "in a list"])
def test_a_guard_says_whose_an_agent_is_that_is_not_of_its_framework(adapter: str, other: str, several: bool) -> None:
    make, mend = WRONG[other]
    guard = import_module(f"toolcrib.adapters.{adapter}").guard

    with pytest.raises(TypeError, match=mend.format(adapter=adapter, other=f"toolcrib.adapters.{other}")):
        guard([make()] if several else make(), GuardPolicy())


def test_a_toolset_for_pydantic_ai_is_no_list_of_tools_and_no_tool() -> None:
    made: Any = import_module("toolcrib.adapters.pydantic_ai").as_tools([ez_tool(len)])

    for tools in (made, [made]):
        with pytest.raises(TypeError, match=r"Agent\(toolsets=\[as_tools\(...\)\]\)"):
            PydanticAgent(tools=tools)


def test_an_agent_of_the_openai_sdk_that_brings_tools_of_its_own_is_refused() -> None:
    with pytest.raises(TypeError, match="`desk` is a SandboxAgent, which brings further tools"):
        openai_agents.guard(SandboxAgent("desk"), GuardPolicy())
    with pytest.raises(TypeError, match="not a RealtimeAgent"):
        openai_agents.guard(cast("Any", RealtimeAgent("desk")), GuardPolicy())


async def test_the_tools_of_as_tools_are_asked_about_once_in_a_guarded_agent_of_the_openai_sdk() -> None:
    @tool(requires_approval=True, register=False)
    async def pay(euros: int) -> str:
        """Pay."""
        return f"paid {euros}"

    model = ScriptedModel([[function_call("pay", {"euros": 3}, call_id="c")], [assistant_message("done")]])
    inner: Any = Agent("desk", tools=[*openai_agents.as_tools([pay])], model=model)
    agent = openai_agents.guard(openai_agents.guard(inner, GuardPolicy()), GuardPolicy(approve=["pay"]))
    state = (await Runner.run(agent, "go")).to_state()
    [request] = await openai_agents.approval_requests(state)

    done = await Runner.run(agent, await openai_agents.answers(state, request.grant("ann")))

    assert "paid 3" in [getattr(item, "output", "") for item in done.new_items]


def test_one_tool_is_given_in_a_list() -> None:
    tool: Any = delete

    with pytest.raises(TypeError, match=r"guard\(\[delete\], policy\)"):
        openai_agents.guard(tool, GuardPolicy(approve=True))


@langchain_tool
def wipe(path: str) -> str:
    """Wipe a path."""
    return path


ONE_TOOL: dict[str, Any] = {
    "openai_agents": lambda: delete,
    "langchain": lambda: wipe,
    "google_adk": lambda: ADKTool(len),
    "claude_agent_sdk": lambda: claude_tool("wipe", "Wipe a path.", {"path": str})(len),  # type: ignore[arg-type]
    "smolagents": lambda: smolagents_tool(now),
}


def now() -> str:
    """Say the time."""
    return "noon"


@pytest.mark.parametrize("adapter", ONE_TOOL)
def test_members_are_made_of_several_tools(adapter: str) -> None:
    from_tools = import_module(f"toolcrib.adapters.{adapter}").from_tools

    with pytest.raises(TypeError, match=r"from_tools takes several tools, and this is one: from_tools\(\[\w+\]\)"):
        from_tools(ONE_TOOL[adapter]())


@pytest.mark.parametrize("adapter", ["langchain", "claude_agent_sdk", "smolagents"])
def test_a_plain_function_is_no_member_where_the_framework_makes_tools_of_it(adapter: str) -> None:
    from_tools = import_module(f"toolcrib.adapters.{adapter}").from_tools

    with pytest.raises(TypeError, match=r"now is a function: wrap it with the `tool\("):
        from_tools([ONE_TOOL[adapter](), now])


def test_a_tool_of_langchain_is_guarded_in_a_list_and_its_requests_are_those_of_interrupts() -> None:
    with pytest.raises(TypeError, match=r"guard takes several tools, and this is one: guard\(\[wipe\]\)"):
        langchain.guard(wipe, GuardPolicy(approve=["wipe"]))  # type: ignore[arg-type]
    for wrong in ({"messages": []}, (1, 2)):
        with pytest.raises(TypeError, match=r"interrupts are those of a result, result\['__interrupt__'\]"):
            langchain.approval_requests(wrong)  # type: ignore[arg-type]
    assert langchain.approval_requests(None) == []


async def stopped(**options: Any) -> tuple[Agent[Any], Any]:
    """Return an agent, and its run that stopped at a call."""
    model = ScriptedModel([[function_call("delete", {"path": "a"}, call_id="c1")], [assistant_message("done")]])
    policy = GuardPolicy(approve=["delete"], **options)
    agent = openai_agents.guard(Agent(name="desk", tools=[delete], model=model), policy)
    return agent, await Runner.run(agent, "go")


async def test_requests_and_answers_say_what_they_take() -> None:
    _, result = await stopped()
    state = result.to_state()
    requests = await openai_agents.approval_requests(state)
    several: Any = [request.grant("ann") for request in requests]

    for other in (result, result.interruptions):
        with pytest.raises(TypeError, match=r"`result.to_state\(\)`"):
            await openai_agents.approval_requests(other)
    with pytest.raises(TypeError, match=r"answers\(..., \*given\)"):
        await openai_agents.answers(state, several)


async def test_their_own_no_closes_the_request_in_the_store() -> None:
    store = MemoryApprovalStore()
    agent, result = await stopped(run=lambda ctx: Run(approvals=store))
    state = result.to_state()

    state.reject(state.get_interruptions()[0], rejection_message="not that one")
    await Runner.run(agent, state)

    [entry] = await store.list()
    assert isinstance(entry.answer, Denial)
    assert (entry.state, entry.answer.message) == ("used", "not that one")

"""Tools that an agent is given after its guard: their calls pass the gates, whichever way they came."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import agent_framework
import agents
import pytest
import smolagents
from agents.testing import ScriptedModel, assistant_message, function_call
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import InMemoryRunner
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import tool as langchain_tool
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import ApprovalRequired, FunctionToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.realtime import RealtimeModel

from tests.frameworks import scripted_adk, scripted_agent_framework
from tests.frameworks.scripted import Scripted
from tests.frameworks.scripted_smolagents import QUIET, Script
from toolcrib.adapters import agent_framework as agent_framework_adapter
from toolcrib.adapters import google_adk, openai_agents, pydantic_ai
from toolcrib.adapters import langchain as langchain_adapter
from toolcrib.adapters import smolagents as smolagents_adapter
from toolcrib.serving import GuardPolicy

asked: list[str | None] = []
ran: list[int] = []


def ask(arguments: Any, ctx: Any) -> bool:
    asked.append(ctx.tool_name)
    return True


EVERY = GuardPolicy(approve=ask)


def early(euros: int) -> str:
    """Pay early.

    Args:
        euros: How much.
    """
    ran.append(euros)
    return "paid"


def late(euros: int) -> str:
    """Pay late.

    Args:
        euros: How much.
    """
    ran.append(euros)
    return "paid"


async def pydantic(change: Callable[[Any, Any], Any], **options: Any) -> None:
    async def model(messages: Any, info: Any) -> ModelResponse:
        first = sum(isinstance(message, ModelResponse) for message in messages) == 0
        return ModelResponse([ToolCallPart("late", {"euros": 3}) if first else TextPart("done")])

    own: Any = PydanticAgent(FunctionModel(model), tools=[early])
    guarded = pydantic_ai.guard(own, EVERY)
    with guarded.override(**change(own, guarded) or {}):
        await guarded.run("go", **options)


class NoRealtimeModel(RealtimeModel):
    """A model of realtime sessions, of which none is opened."""

    model_name, system, base_url = "none", "none", ""

    def connect(self, *given: Any, **options: Any) -> Any:
        raise NotImplementedError


async def pydantic_session() -> None:
    session: Any = pydantic_ai.guard(PydanticAgent(tools=[early, late]), EVERY).realtime(NoRealtimeModel())
    opened = session._agent._resolve_realtime_session(session._model, capabilities=session._capabilities)
    async with opened as resolved:
        with pytest.raises(ApprovalRequired):
            await resolved.tool_manager.handle_call(ToolCallPart("late", {"euros": 3}, "c"))


async def openai(change: Callable[[Any], Any], *first: Any) -> None:
    calls = [*first, [function_call("late", {"euros": 3}, call_id="c")], [assistant_message("done")]]
    desk: Any = agents.Agent("desk", tools=[agents.function_tool(early)], model=ScriptedModel(calls))
    guarded = openai_agents.guard(desk, EVERY)
    await agents.Runner.run(change(guarded) or guarded, "go", run_config=agents.RunConfig(tracing_disabled=True))


def other() -> agents.Agent[Any]:
    model = ScriptedModel([[function_call("late", {"euros": 3}, call_id="o")], [assistant_message("done")]])
    return agents.Agent("other", tools=[OPENAI], model=model)


def set_tools(agent: Any, tools: Any) -> None:
    agent.tools = tools


def set_slice(agent: Any, tools: Any) -> None:
    agent.tools[:1] = tools


def set_first(agent: Any, tool: Any) -> None:
    agent.tools[0] = tool


TO_OTHER = [function_call("transfer_to_other", {}, call_id="h")]
OPENAI = agents.function_tool(late)


async def adk(change: Callable[[App], None]) -> None:
    agent = LlmAgent(
        name="a", model=scripted_adk.ScriptedLlm(steps=[scripted_adk.calling(("late", {"euros": 3}))]), tools=[early]
    )
    app = google_adk.guard(agent, EVERY)
    change(app)
    await InMemoryRunner(app=app).run_debug("go", quiet=True)


async def microsoft(change: Callable[[Any], Any]) -> None:
    client = scripted_agent_framework.ScriptedClient(scripted_agent_framework.calling(("late", {"euros": 3})))
    guarded = agent_framework_adapter.guard(agent_framework.Agent(client, tools=[early]), EVERY)
    await guarded.run("go", **change(guarded) or {})


def smol(kind: str = "tools") -> Callable[[Callable[[Any], Any]], Awaitable[None]]:
    async def run(change: Callable[[Any], Any]) -> None:
        name = "late" if kind == "tools" else "helper"
        given = {"euros": 3} if kind == "tools" else {"task": "pay"}
        agent = smolagents.ToolCallingAgent([smolagents.tool(early)], Script([(name, given)]), **QUIET)
        change(smolagents_adapter.guard(agent, EVERY))
        with pytest.raises(smolagents.AgentError):
            await asyncio.to_thread(agent.run, "go")

    return run


def helper() -> Any:
    model = Script([("late", {"euros": 3})])
    agent = smolagents.ToolCallingAgent([SMOL], model, name="helper", description="Helps.", **QUIET)
    smolagents.ToolCallingAgent([], Script(), managed_agents=[agent], **QUIET)  # describes it as a tool
    return agent


SMOL = smolagents.tool(late)


async def langchain_late() -> None:
    class More(AgentMiddleware[Any, Any, Any]):
        def __init__(self) -> None:
            self.tools = [langchain_tool(late)]

    call: Any = {"name": "late", "args": {"euros": 3}, "id": "c", "type": "tool_call"}
    model = Scripted(responses=[AIMessage("", tool_calls=[call]), AIMessage("done")])
    guards = [langchain_adapter.GuardMiddleware(EVERY), More()]
    await create_agent(model, [langchain_tool(early)], middleware=guards).ainvoke({"messages": "go"})  # type: ignore[arg-type]


WAYS: dict[str, Callable[[], Awaitable[None]]] = {
    "pydantic_ai decorator": lambda: pydantic(lambda own, guarded: own.tool_plain(late) and None),
    "pydantic_ai override": lambda: pydantic(lambda own, guarded: {"tools": [late]}),
    "pydantic_ai run": lambda: pydantic(lambda own, guarded: None, toolsets=[FunctionToolset([late])]),
    "pydantic_ai realtime": pydantic_session,
    "openai_agents append": lambda: openai(lambda agent: agent.tools.append(OPENAI)),
    "openai_agents extend": lambda: openai(lambda agent: agent.tools.extend([OPENAI])),
    "openai_agents insert": lambda: openai(lambda agent: agent.tools.insert(0, OPENAI)),
    "openai_agents +=": lambda: openai(lambda agent: agent.tools.__iadd__([OPENAI]) and None),
    "openai_agents item": lambda: openai(lambda agent: set_first(agent, OPENAI)),
    "openai_agents slice": lambda: openai(lambda agent: set_slice(agent, [OPENAI])),
    "openai_agents list": lambda: openai(lambda agent: set_tools(agent, [OPENAI])),
    "openai_agents clone": lambda: openai(lambda agent: agent.clone(tools=[OPENAI])),
    "openai_agents clone of a clone": lambda: openai(lambda agent: agent.clone().clone(tools=[*agent.tools, OPENAI])),
    "openai_agents agent": lambda: openai(lambda agent: agent.handoffs.append(other()), TO_OTHER),
    "openai_agents handoff": lambda: openai(lambda agent: agent.clone(handoffs=[agents.handoff(other())]), TO_OTHER),
    "langchain middleware": langchain_late,
    "google_adk append": lambda: adk(lambda app: app.root_agent.tools.append(late)),  # type: ignore[union-attr]
    "agent_framework append": lambda: microsoft(
        lambda agent: agent.default_options["tools"].append(agent_framework.tool(late))
    ),
    "agent_framework run": lambda: microsoft(lambda agent: {"tools": [late]}),
    "smolagents item": lambda: smol()(lambda agent: agent.tools.__setitem__("late", SMOL)),
    "smolagents update": lambda: smol()(lambda agent: agent.tools.update(late=SMOL)),
    "smolagents setdefault": lambda: smol()(lambda agent: agent.tools.setdefault("late", SMOL)),
    "smolagents |=": lambda: smol()(lambda agent: agent.tools.__ior__({"late": SMOL})),
    "smolagents dict": lambda: smol()(lambda agent: set_tools(agent, {**agent.tools, "late": SMOL})),
    "smolagents managed": lambda: smol("agents")(lambda agent: agent.managed_agents.update(helper=helper())),
}
"""Ways to give a guarded agent a tool `late`, which its model calls."""


@pytest.mark.parametrize("way", [*WAYS])
async def test_a_tool_that_comes_after_the_guard_is_asked_about(way: str) -> None:
    ran.clear()
    asked.clear()

    await WAYS[way]()

    assert {*asked} == {"late"}
    assert not ran

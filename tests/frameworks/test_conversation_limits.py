"""Limits of a guard, which each conversation of an agent has for itself, and grants that hold in it."""

from __future__ import annotations

from typing import Any

from agents import Agent, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from smolagents import ToolCallingAgent
from smolagents import tool as smolagents_tool

from tests.frameworks.scripted import Scripted
from tests.frameworks.scripted_smolagents import QUIET, Script
from toolcrib.adapters import langchain, openai_agents, pydantic_ai, smolagents
from toolcrib.pipeline import CallLimits, Channel, Run
from toolcrib.serving import GuardPolicy


async def test_a_run_that_stops_for_a_person_goes_on_with_its_counts() -> None:
    ran: list[str] = []

    @function_tool
    def look(order: str) -> str:
        """Look an order up."""
        ran.append(order)
        return order

    def call(order: str) -> list[Any]:
        return [function_call("look", {"order": order}, call_id=f"c{order}")]

    model = ScriptedModel([*map(call, ("1", "2", "3", "4")), [assistant_message("done")]])
    policy = GuardPolicy(approve=lambda args, ctx: args["order"] == "2", limits=CallLimits(total=3))
    agent = openai_agents.guard(Agent(name="desk", tools=[look], model=model), policy)
    state = (await Runner.run(agent, "go")).to_state()
    [request] = await openai_agents.approval_requests(state)

    done = await Runner.run(agent, await openai_agents.answers(state, request.grant("ann")))

    assert ran == ["1", "2", "3"]
    assert done.final_output == "done"


async def test_threads_have_their_own_counts_and_grants() -> None:
    ran: list[str] = []

    @langchain_tool
    def delete(path: str) -> str:
        """Delete a file."""
        ran.append(path)
        return path

    def call(path: str) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": "delete", "args": {"path": path}, "id": path, "type": "tool_call"}])

    said = [call("a"), AIMessage("done"), call("b"), AIMessage("done"), call("c"), AIMessage("done"), call("d")]
    policy = GuardPolicy(approve=["delete"], limits=CallLimits(total=2))
    agent: Any = create_agent(
        Scripted(responses=said),
        tools=[delete],
        middleware=[langchain.GuardMiddleware(policy)],
        checkpointer=InMemorySaver(),
    )
    first, second = [{"configurable": {"thread_id": id}} for id in "12"]

    asked = (await agent.ainvoke({"messages": "go"}, first))["__interrupt__"]
    [request] = langchain.approval_requests(asked)
    await agent.ainvoke(Command(resume=langchain.answers(asked, request.always("ann"))), first)
    await agent.ainvoke({"messages": "more"}, first)
    over = await agent.ainvoke({"messages": "still more"}, first)
    other = await agent.ainvoke({"messages": "go"}, second)

    assert ran == ["a", "b"]
    assert "they are used up" in over["messages"][-2].content
    [request] = langchain.approval_requests(other["__interrupt__"])
    assert request.arguments == {"path": "d"}


async def test_a_conversation_of_several_runs_has_one_count() -> None:
    ran: list[int] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asks = messages[-1].parts[-1].part_kind == "user-prompt"
        return ModelResponse(parts=[ToolCallPart("count", {}) if asks else TextPart("done")])

    agent: PydanticAgent[None, str] = PydanticAgent(FunctionModel(model))

    @agent.tool_plain
    def count() -> int:
        """Count."""
        ran.append(1)
        return len(ran)

    guarded = pydantic_ai.guard(agent, GuardPolicy(limits=CallLimits(per_tool=2)))
    history: list[ModelMessage] = []
    for _ in range(3):
        history = (await guarded.run("go", message_history=history)).all_messages()
    await guarded.run("go")

    assert len(ran) == 3


async def test_runs_of_the_openai_sdk_that_name_one_conversation_have_one_count() -> None:
    ran: list[str] = []

    @function_tool
    def look(order: str) -> str:
        """Look an order up."""
        ran.append(order)
        return order

    turns = [([function_call("look", {"order": id}, call_id=id)], [assistant_message("done")]) for id in "123"]
    model = ScriptedModel([part for turn in turns for part in turn])
    policy = GuardPolicy(
        limits=CallLimits(total=1), run=lambda ctx: Run(channel=Channel(conversation_id=ctx.context["chat"]))
    )
    agent = openai_agents.guard(Agent(name="desk", tools=[look], model=model), policy)
    for chat in ("a", "a", "b"):
        await Runner.run(agent, "go", context={"chat": chat})

    assert ran == ["1", "3"]


def test_tasks_of_smolagents_that_name_several_conversations_have_several_counts() -> None:
    ran: list[str] = []

    def look(order: str) -> str:
        """Look an order up.

        Args:
            order: Its number.
        """
        ran.append(order)
        return order

    policy = GuardPolicy(
        limits=CallLimits(total=1), run=lambda agent: Run(channel=Channel(conversation_id=agent.state["chat"]))
    )
    agent = smolagents.guard(ToolCallingAgent([smolagents_tool(look)], Script(), **QUIET), policy)
    for chat, order in (("a", "1"), ("a", "2"), ("b", "3")):
        agent.model = Script([("look", {"order": order})])
        agent.run("go", additional_args={"chat": chat})

    assert ran == ["1", "3"]

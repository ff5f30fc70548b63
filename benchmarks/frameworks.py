"""A call inside an agent of another framework: its own tool beside one of ours, gates included.

The agent's model follows a script: ten turns with a call each, and a last word. Figures are CPU time, per call of the
whole run of the agent, as that is what its user waits for.
"""

# ruff: noqa: PLC0415 -- a contender's process imports what that contender needs, and nothing of the others

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections.abc import Awaitable, Callable
from time import process_time
from typing import Any

from benchmarks._measure import Contender, Measure, Metric, Sample, Target
from benchmarks._timing import MICROSECONDS
from benchmarks._tools import get_weather

COUNT = 10
ARGUMENTS = {"city": "Oslo", "unit": "c"}
_REPEATED = 5


def frameworks_sample(
    batch: Callable[[], Awaitable[Any]] | None = None, sync: Callable[[], Any] | None = None
) -> Sample:
    """Return a sample of CPU microseconds per call; a batch is one run of an agent, and returns its last result."""
    runner = asyncio.Runner()

    def once() -> Any:
        return sync() if sync is not None else runner.run(_awaited(batch))

    if "Oslo" not in str(once()):
        raise RuntimeError("the tool was not called")

    def timed() -> float:
        started = process_time()
        once()
        return process_time() - started

    def sample() -> dict[str, float]:
        gc.collect()
        return {"us": min(timed() for _ in range(_REPEATED)) / COUNT * MICROSECONDS}

    return sample


async def _awaited(batch: Callable[[], Awaitable[Any]] | None) -> Any:
    if batch is None:
        raise TypeError("nothing to run")
    return await batch()


def _weather() -> Any:
    from toolcrib.tools import ez_tool

    return ez_tool(get_weather)


def _openai_agents(make: Callable[[], list[Any]]) -> Sample:
    os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
    from agents import Agent, RunConfig, Runner
    from agents.testing import ScriptedModel, assistant_message, function_call

    tools, config = make(), RunConfig(tracing_disabled=True)

    async def batch() -> Any:
        calls = [[function_call("get_weather", json.dumps(ARGUMENTS), call_id=f"c{n}")] for n in range(COUNT)]
        agent = Agent(name="a", tools=tools, model=ScriptedModel([*calls, [assistant_message("done")]]))
        result = await Runner.run(agent, "go", run_config=config, max_turns=COUNT + 2)
        return [item.output for item in result.new_items if item.type == "tool_call_output_item"][-1]

    return frameworks_sample(batch)


def openai_agents_own() -> Sample:
    from agents import function_tool

    return _openai_agents(lambda: [function_tool(get_weather)])


def openai_agents_toolcrib() -> Sample:
    from toolcrib.adapters.openai_agents import as_tools

    return _openai_agents(lambda: [*as_tools([_weather()])])


def _langchain(make: Callable[[], list[Any]]) -> Sample:
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
    from langchain_core.messages import AIMessage

    class Script(FakeMessagesListChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

    calls = [{"name": "get_weather", "args": ARGUMENTS, "id": f"c{n}", "type": "tool_call"} for n in range(COUNT)]
    script = Script(responses=[*(AIMessage("", tool_calls=[call]) for call in calls), AIMessage("done")])
    agent: Any = create_agent(script, tools=make())

    async def batch() -> Any:
        result = await agent.ainvoke({"messages": "go"}, {"recursion_limit": 100})
        return result["messages"][-2].content

    return frameworks_sample(batch)


def langchain_own() -> Sample:
    from langchain_core.tools import tool

    return _langchain(lambda: [tool(get_weather)])


def langchain_toolcrib() -> Sample:
    from toolcrib.adapters.langchain import as_tools

    return _langchain(lambda: [*as_tools([_weather()])])


def _google_adk(make: Callable[[], list[Any]]) -> Sample:
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    class Script(BaseLlm):
        model: str = "script"
        turn: int = 0

        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            self.turn += 1
            call = types.FunctionCall(name="get_weather", args=dict(ARGUMENTS), id=f"c{self.turn}")
            part = types.Part(text="done") if self.turn % (COUNT + 1) == 0 else types.Part(function_call=call)
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    runner = InMemoryRunner(agent=LlmAgent(name="a", model=Script(), tools=make()), app_name="a")
    said = types.Content(role="user", parts=[types.Part(text="go")])

    async def batch() -> Any:
        session = await runner.session_service.create_session(app_name="a", user_id="u")
        events = [e async for e in runner.run_async(user_id="u", session_id=session.id, new_message=said)]
        return [reply.response for event in events for reply in event.get_function_responses()][-1]

    return frameworks_sample(batch)


def google_adk_own() -> Sample:
    return _google_adk(lambda: [get_weather])


def google_adk_toolcrib() -> Sample:
    from toolcrib.adapters.google_adk import as_tools

    return _google_adk(lambda: [*as_tools([_weather()])])


def _agent_framework(own: bool) -> Sample:
    from agent_framework import (
        Agent,
        BaseChatClient,
        ChatMiddlewareLayer,
        ChatResponse,
        Content,
        FunctionInvocationLayer,
        Message,
        tool,
    )

    from toolcrib.adapters.agent_framework import as_tools

    class Script(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
        turn = 0

        async def _inner_get_response(self, **options: Any) -> Any:
            self.turn += 1
            call = Content.from_function_call(f"c{self.turn}", "get_weather", arguments=dict(ARGUMENTS))
            said = Content.from_text("done") if self.turn % (COUNT + 1) == 0 else call
            return ChatResponse(messages=[Message(role="assistant", contents=[said])])

    given: dict[str, Any] = {"tools": [tool(get_weather)]} if own else {}
    if not own:
        given = {"context_providers": [as_tools([_weather()])]}
    agent: Any = Agent(Script(), **given)

    async def batch() -> Any:
        response = await agent.run("go")
        found = [c for m in response.messages for c in m.contents if c.type == "function_result"]
        return found[-1].result

    return frameworks_sample(batch)


def agent_framework_own() -> Sample:
    return _agent_framework(own=True)


def agent_framework_toolcrib() -> Sample:
    return _agent_framework(own=False)


def _smolagents(own: bool) -> Sample:
    from smolagents import LogLevel, Model, ToolCallingAgent, tool
    from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole

    from toolcrib.adapters.smolagents import as_tools

    class Script(Model):
        turn = 0

        def generate(self, messages: Any, *args: Any, **options: Any) -> Any:
            self.turn += 1
            name, arguments = "get_weather", dict(ARGUMENTS)
            if self.turn % (COUNT + 1) == 0:
                name, arguments = "final_answer", {"answer": "done"}
            function = ChatMessageToolCallFunction(name=name, arguments=arguments)
            return ChatMessage(
                MessageRole.ASSISTANT, "", [ChatMessageToolCall(function=function, id="c", type="function")]
            )

    @tool
    def weather_now(city: str, unit: str = "c") -> dict:
        """Return the weather of a city.

        Args:
            city: The city's name.
            unit: Celsius or Fahrenheit.
        """
        return {"city": city, "temp": 21, "unit": unit}

    weather_now.name = "get_weather"
    quiet: Any = {"verbosity_level": LogLevel.OFF}
    agent = ToolCallingAgent([weather_now] if own else [], Script(), **quiet)
    if not own:
        as_tools([_weather()], agent)

    def batch() -> Any:
        agent.run("go", max_steps=COUNT + 2)
        return agent.memory.steps[-2].observations

    return frameworks_sample(sync=batch)


def smolagents_own() -> Sample:
    return _smolagents(own=True)


def smolagents_toolcrib() -> Sample:
    return _smolagents(own=False)


def _pydantic_ai(**given: Any) -> Sample:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    turn = 0

    async def script(messages: Any, info: Any) -> ModelResponse:
        nonlocal turn
        turn += 1
        if turn % (COUNT + 1) == 0:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("get_weather", json.dumps(ARGUMENTS), tool_call_id=f"c{turn}")])

    agent = Agent(FunctionModel(script), **given)

    async def batch() -> Any:
        result = await agent.run("go")
        return result.all_messages()[-2].parts[-1]

    return frameworks_sample(batch)


def pydantic_ai_own() -> Sample:
    from pydantic_ai import FunctionToolset

    return _pydantic_ai(toolsets=[FunctionToolset([get_weather])])


def pydantic_ai_agents_own() -> Sample:
    return _pydantic_ai(tools=[get_weather])


def pydantic_ai_toolcrib() -> Sample:
    from toolcrib.adapters.pydantic_ai import as_tools

    return _pydantic_ai(toolsets=[as_tools([_weather()])])


def _claude_agent_sdk(own: bool) -> Sample:
    from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, query, tool

    from tests.ways_in.claude_agent_sdk import ScriptedCli
    from toolcrib.adapters.claude_agent_sdk import as_tools

    async def weather(given: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": json.dumps(await get_weather(**given))}]}

    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"type": "string"}},
        "required": ["city"],
    }
    theirs = create_sdk_mcp_server("w", tools=[tool("get_weather", "Say the weather.", schema)(weather)])
    options = ClaudeAgentOptions(mcp_servers={"w": theirs}, allowed_tools=["mcp__w"])
    if not own:
        options = as_tools([_weather()], name="w")

    async def batch() -> Any:
        cli = ScriptedCli(options, [[(f"c{n}", "mcp__w__get_weather", dict(ARGUMENTS))] for n in range(COUNT)])
        async for _ in query(prompt="go", options=options, transport=cli):
            pass
        return [*cli.results.values()][-1]

    return frameworks_sample(batch)


def claude_agent_sdk_own() -> Sample:
    return _claude_agent_sdk(own=True)


def claude_agent_sdk_toolcrib() -> Sample:
    return _claude_agent_sdk(own=False)


_PAIRS: dict[str, tuple[Callable[[], Sample], Callable[[], Sample]]] = {
    "openai-agents": (openai_agents_own, openai_agents_toolcrib),
    "langchain": (langchain_own, langchain_toolcrib),
    "google-adk": (google_adk_own, google_adk_toolcrib),
    "agent-framework": (agent_framework_own, agent_framework_toolcrib),
    "claude-agent-sdk": (claude_agent_sdk_own, claude_agent_sdk_toolcrib),
    "smolagents": (smolagents_own, smolagents_toolcrib),
    "pydantic-ai": (pydantic_ai_own, pydantic_ai_toolcrib),
}

_BESIDE = {"pydantic-ai": (Contender("pydantic-ai, a tool of the agent itself", pydantic_ai_agents_own),)}

_NOTES = {
    "agent-framework": ("ours is middleware, and a middleware that does nothing costs 1.15 times already.",),
    "smolagents": ("its own tool is a plain function.",),
    "pydantic-ai": (
        "its own tool is in a toolset, as ours is: an agent with a toolset beside its own tools asks both in tasks of "
        "their own, for every request to the model.",
    ),
}

MEASURES: tuple[Measure, ...] = tuple(
    Measure(
        name=f"frameworks-{name}",
        title=f"one call in an agent of {name}, its own tool or ours, CPU time",
        metrics=(Metric("us", "per call", "us"),),
        contenders=(
            Contender(f"{name}, its own tool", own),
            Contender(f"toolcrib in {name}", ours),
            *_BESIDE.get(name, ()),
        ),
        baseline=f"{name}, its own tool",
        often=3,
        targets=(Target("us", f"toolcrib in {name}", f"{name}, its own tool", 1.2),),
        notes=("a turn of the agent with its scripted model is in every figure.", *_NOTES.get(name, ())),
    )
    for name, (own, ours) in _PAIRS.items()
)

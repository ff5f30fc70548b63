"""A conversation with an agent of each framework: what its model calls, what is asked, and what is said."""

from __future__ import annotations

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from agent_framework import Agent as FrameworkAgent
from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query
from claude_agent_sdk import tool as claude_tool
from google.adk.agents import LlmAgent
from google.adk.runners import Runner as ADKRunner
from google.adk.sessions import InMemorySessionService
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool as lc_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from smolagents import AgentError, ToolCallingAgent
from smolagents import tool as smol_tool
from smolagents.memory import ActionStep

from tests.frameworks import scripted_adk, scripted_agent_framework
from tests.frameworks.scripted import Scripted
from tests.frameworks.scripted_smolagents import QUIET, Script
from tests.ways_in.claude_agent_sdk import ScriptedCli
from toolcrib.adapters import agent_framework, claude_agent_sdk, google_adk, langchain, openai_agents, smolagents
from toolcrib.adapters import pydantic_ai as pydantic
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.serving import GuardPolicy

__all__ = ["CHATS", "Chat"]

Turn = list[tuple[str, dict[str, Any]]]
"""The calls that a model makes in one answer."""

_IDS = itertools.count()


class Chat(ABC):
    """A conversation with an agent whose model makes the calls of its turns, and then says that it is done.

    Args:
        turns: What the model calls.
        ours: Tools of ours, given by `as_tools`.
        theirs: Functions, made tools of the framework; with a policy they are guarded by `guard`.
        policy: The policy of the guard.
        options: Options of `as_tools`.

    Attributes:
        adapter: The module of the adapter.
        asked: What a person has to decide now.
    """

    adapter: Any

    def __init__(
        self,
        *turns: Turn,
        ours: Any = (),
        theirs: Iterable[Callable[..., Any]] = (),
        policy: GuardPolicy | None = None,
        **options: Any,
    ) -> None:
        self.asked: list[ApprovalRequest] = []
        self._ours, self._policy, self._options = ours, policy, options
        self._functions, self._theirs = [*theirs], [self.tool(function) for function in theirs]
        self._open([*turns])

    @staticmethod
    @abstractmethod
    def tool(function: Callable[..., Any]) -> Any:
        """Return a function as a tool of the framework."""

    @abstractmethod
    def _open(self, turns: list[Turn]) -> None: ...

    @abstractmethod
    async def say(self) -> str:
        """Have the agent begin, and return what its model was given for its calls."""

    @abstractmethod
    async def answer(self, *given: Grant | Denial) -> str:
        """Have the agent go on with answers, and return what its model was given for its calls."""

    def _given(self) -> Any:
        """Return our tools as `as_tools` gives them."""
        return self.adapter.as_tools(self._ours, **self._options)


class OpenAIAgentsChat(Chat):
    adapter = openai_agents
    tool = staticmethod(function_tool)

    def _open(self, turns: list[Turn]) -> None:
        script = [[function_call(name, about, call_id=f"c{next(_IDS)}") for name, about in turn] for turn in turns]
        model = ScriptedModel([*script, [assistant_message("done")]])
        agent = Agent("a", tools=[*self._given(), *self._theirs], model=model)
        self._agent = agent if self._policy is None else openai_agents.guard(agent, self._policy)

    async def say(self) -> str:
        return await self._run("go")

    async def answer(self, *given: Grant | Denial) -> str:
        return await self._run(await openai_agents.answers(self._state, *given))

    async def _run(self, said: Any) -> str:
        result = await Runner.run(self._agent, said, run_config=RunConfig(tracing_disabled=True))
        self._state = result.to_state()
        self.asked = await openai_agents.approval_requests(self._state)
        return "\n".join(str(item.output) for item in result.new_items if item.type == "tool_call_output_item")


class LangChainChat(Chat):
    adapter = langchain
    tool = staticmethod(lc_tool)

    def _open(self, turns: list[Turn]) -> None:
        calls: Any = [
            [{"name": name, "args": about, "id": f"c{next(_IDS)}", "type": "tool_call"} for name, about in turn]
            for turn in turns
        ]
        model = Scripted(responses=[*(AIMessage("", tool_calls=turn) for turn in calls), AIMessage("done")])
        around: Any = [] if self._policy is None else [langchain.GuardMiddleware(self._policy)]
        tools = [*self._given(), *self._theirs]
        self._agent: Any = create_agent(model, tools, middleware=around, checkpointer=InMemorySaver())

    async def say(self) -> str:
        return await self._run({"messages": "go"})

    async def answer(self, *given: Grant | Denial) -> str:
        return await self._run(Command(resume=langchain.answers(self._interrupts, *given)))

    async def _run(self, said: Any) -> str:
        result = await self._agent.ainvoke(said, {"configurable": {"thread_id": "t"}})
        self._interrupts = result.get("__interrupt__") or ()
        self.asked = langchain.approval_requests(self._interrupts)
        return "\n".join(str(message.content) for message in result["messages"] if isinstance(message, ToolMessage))


class GoogleADKChat(Chat):
    adapter = google_adk
    tool = staticmethod(lambda function: function)

    def _open(self, turns: list[Turn]) -> None:
        model = scripted_adk.ScriptedLlm(steps=[scripted_adk.calling(*turn) for turn in turns])
        agent = LlmAgent(name="a", model=model, tools=[*self._given(), *self._theirs])
        named: Any = {"app_name": "a", "agent": agent}
        if self._policy is not None:
            named = {"app": google_adk.guard(agent, self._policy)}
        self._runner = ADKRunner(**named, session_service=InMemorySessionService(), auto_create_session=True)

    async def say(self) -> str:
        return await self._run(scripted_adk.saying("go"))

    async def answer(self, *given: Grant | Denial) -> str:
        return await self._run(google_adk.answers(self._events, *given))

    async def _run(self, said: Any) -> str:
        run = self._runner.run_async(user_id="ann", session_id="s", new_message=said)
        self._events = [event async for event in run]
        self.asked = google_adk.approval_requests(self._events)
        return "\n".join(str(reply.response) for event in self._events for reply in event.get_function_responses())


class AgentFrameworkChat(Chat):
    adapter = agent_framework
    tool = staticmethod(lambda function: function)

    def _open(self, turns: list[Turn]) -> None:
        client = scripted_agent_framework.ScriptedClient(*(scripted_agent_framework.calling(*turn) for turn in turns))
        agent: Any = FrameworkAgent(client, tools=self._theirs, context_providers=[self._given()])
        self._agent = agent if self._policy is None else agent_framework.guard(agent, self._policy)
        self._session = self._agent.create_session()

    async def say(self) -> str:
        return await self._run("go")

    async def answer(self, *given: Grant | Denial) -> str:
        message = await agent_framework.answers(self._asked, *given, agent=self._agent, session=self._session)
        return await self._run(message)

    async def _run(self, said: Any) -> str:
        response = await self._agent.run(said, session=self._session)
        self._asked = response.user_input_requests
        self.asked = agent_framework.approval_requests(self._asked)
        return "\n".join(scripted_agent_framework.outputs(response))


class ClaudeAgentSDKChat(Chat):
    adapter = claude_agent_sdk

    @staticmethod
    def tool(function: Callable[..., Any]) -> Any:
        async def handler(given: dict[str, Any]) -> dict[str, Any]:
            return {"content": [{"type": "text", "text": str(function(**given))}]}

        parameters = {name: kind for name, kind in function.__annotations__.items() if name != "return"}
        return claude_tool(function.__name__, function.__doc__ or "", parameters)(handler)

    def _open(self, turns: list[Turn]) -> None:
        own = {function.__name__ for function in self._functions}
        self._turns = [
            [(f"c{next(_IDS)}", name if name in own else f"mcp__toolcrib__{name}", about) for name, about in turn]
            for turn in turns
        ]
        options = ClaudeAgentOptions(permission_mode="bypassPermissions", tools=sorted(own) or None)
        if self._ours:
            options = claude_agent_sdk.as_tools(self._ours, options, **self._options)
        self._sessions: dict[str, Any] = {}
        self._gated: Any = options if self._policy is None else claude_agent_sdk.guard(options, self._policy)

    async def say(self) -> str:
        return await self._run(self._turns)

    async def answer(self, *given: Grant | Denial) -> str:
        self._gated = await claude_agent_sdk.answers(self._gated, self._session, *given)
        return await self._run([])

    async def _run(self, turns: Any) -> str:
        builtin = {function.__name__: lambda given, run=function: run(**given) for function in self._functions}
        cli = ScriptedCli(self._gated, turns, self._sessions, builtin)
        async for message in query(prompt="go", options=self._gated, transport=cli):
            self._session = message.session_id if isinstance(message, ResultMessage) else ""
        self.asked = claude_agent_sdk.approval_requests(self._gated, self._session)
        return "\n".join(map(str, cli.results.values()))


class SmolagentsChat(Chat):
    adapter = smolagents
    tool = staticmethod(smol_tool)

    def _open(self, turns: list[Turn]) -> None:
        agent = ToolCallingAgent(self._theirs, Script(*turns), **QUIET)
        self._agent = agent if self._policy is None else smolagents.guard(agent, self._policy)
        if self._ours:
            smolagents.as_tools(self._ours, self._agent, **self._options)

    async def say(self) -> str:
        return await self._run("go")

    async def answer(self, *given: Grant | Denial) -> str:
        task = await asyncio.to_thread(smolagents.answers, self._agent, *given)
        return f"{task}\n{await self._run(task, reset=False)}"

    async def _run(self, said: str, **options: Any) -> str:
        try:
            await asyncio.to_thread(self._agent.run, said, **options)
        except AgentError:
            if not smolagents.approval_requests(self._agent):
                raise
        self.asked = smolagents.approval_requests(self._agent)
        return "\n".join(str(step.observations) for step in self._agent.memory.steps if isinstance(step, ActionStep))


class PydanticAIChat(Chat):
    adapter = pydantic
    tool = staticmethod(lambda function: function)

    def _open(self, turns: list[Turn]) -> None:
        self._calls = [[ToolCallPart(name, about, f"c{next(_IDS)}") for name, about in turn] for turn in turns]
        toolsets = [self._given()]
        agent: Any = PydanticAgent(
            FunctionModel(self._model), toolsets=toolsets, tools=self._theirs, output_type=[str, DeferredToolRequests]
        )
        self._agent = agent if self._policy is None else pydantic.guard(agent, self._policy)
        self._answering = toolsets[0] if self._policy is None else self._agent

    async def _model(self, messages: Any, info: Any) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        return ModelResponse(self._calls[turn] if turn < len(self._calls) else [TextPart("done")])

    async def say(self) -> str:
        return await self._run(user_prompt="go")

    async def answer(self, *given: Grant | Denial) -> str:
        results = await pydantic.answers(self._result.output, *given, toolset=self._answering)
        return await self._run(message_history=self._result.all_messages(), deferred_tool_results=results)

    async def _run(self, **said: Any) -> str:
        self._result = await self._agent.run(**said)
        waits = isinstance(self._result.output, DeferredToolRequests)
        self.asked = pydantic.approval_requests(self._result.output) if waits else []
        parts = [part for message in self._result.all_messages() for part in message.parts]
        return "\n".join(str(part.content) for part in parts if isinstance(part, ToolReturnPart | RetryPromptPart))


CHATS: dict[str, type[Chat]] = {
    "pydantic_ai": PydanticAIChat,
    "openai_agents": OpenAIAgentsChat,
    "langchain": LangChainChat,
    "google_adk": GoogleADKChat,
    "agent_framework": AgentFrameworkChat,
    "claude_agent_sdk": ClaudeAgentSDKChat,
    "smolagents": SmolagentsChat,
}
"""The conversations, by the name of the adapter."""

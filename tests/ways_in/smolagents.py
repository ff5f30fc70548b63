"""Ways in that need the extra `smolagents`: agents of smolagents, whose scripted model makes the call."""

from __future__ import annotations

from typing import Any, ClassVar

from smolagents import AgentError, CodeAgent, LogLevel, Model, MultiStepAgent, ToolCallingAgent
from smolagents.memory import ActionStep
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole

from tests.ways_in.framework import Conversation, FrameworkWay
from toolcrib.adapters.smolagents import approval_requests, as_tools, run_agent
from toolcrib.approvals import MemorySuspendedCalls
from toolcrib.pipeline import Run
from toolcrib.testing._ways import Ability, RunWay, Way, WayRequest

__all__ = ["smolagents_ways"]

_LACKS: frozenset[Ability] = frozenset({"json", "id", "media"})
"""A tool of smolagents is given values and no id; an image is shown as the picture that PIL makes of it."""


class _Scripted(Model):
    def __init__(self, script: list[ChatMessage]) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] -- smolagents is not typed
        self._script = script

    def generate(self, messages: Any, *args: Any, **options: Any) -> ChatMessage:
        """Say what comes next."""
        return self._script.pop(0)


class SmolagentsWay(FrameworkWay):
    """An agent of smolagents that calls tools; answered in a new agent, from its suspended calls."""

    title = "smolagents"
    abilities: ClassVar[frozenset[Ability]] = RunWay.abilities - _LACKS - {"model"}  # it checks arguments itself

    async def begin(self, request: WayRequest, run: Run, calls: MemorySuspendedCalls) -> Conversation:
        agent = self._agent(request, run, calls, self._call(request), self._last())
        return await self._conversed(agent, calls, task="call it")

    async def go_on(self, request: WayRequest, run: Run, stopped: Conversation) -> Conversation:
        agent = self._agent(request, run, stopped.calls, self._last())
        given = stopped.requests if request.answer is None else (request.answer,)
        return await self._conversed(agent, stopped.calls, given=given)

    def _call(self, request: WayRequest) -> ChatMessage:
        return _calling(request.new.name, request.json_arguments)

    def _last(self) -> ChatMessage:
        return _calling("final_answer", {"answer": "done"})

    def _new(self, model: Model) -> MultiStepAgent:
        return ToolCallingAgent([], model, verbosity_level=LogLevel.OFF)

    def _agent(self, request: WayRequest, run: Run, calls: MemorySuspendedCalls, *script: ChatMessage) -> Any:
        return as_tools(request.toolset, self._new(_Scripted([*script])), run=lambda agent: run, suspended=calls)

    async def _conversed(self, agent: MultiStepAgent, calls: MemorySuspendedCalls, **said: Any) -> Conversation:
        try:
            await run_agent(agent, **said)
        except AgentError:
            requests = tuple(approval_requests(agent))
            if not requests:
                raise
            return Conversation(calls, requests=requests)
        steps = [step for step in agent.memory.steps[1:] if isinstance(step, ActionStep)]
        told = [str(step.observations) + str(step.error or "") for step in steps]
        requests = tuple(approval_requests(agent))  # of calls that are suspended again
        return Conversation(calls, requests=requests, shown="\n".join([str(agent.task), *told]))


class SmolagentsCodeWay(SmolagentsWay):
    """An agent of smolagents whose model writes programs."""

    title = "smolagents code"
    abilities: ClassVar[frozenset[Ability]] = RunWay.abilities - _LACKS

    def _call(self, request: WayRequest) -> ChatMessage:
        return _program(f"{request.new.name}(**{request.json_arguments!r})")

    def _last(self) -> ChatMessage:
        return _program("final_answer('done')")

    def _new(self, model: Model) -> MultiStepAgent:
        return CodeAgent([], model, verbosity_level=LogLevel.OFF)


def _calling(name: str, arguments: dict[str, Any]) -> ChatMessage:
    function = ChatMessageToolCallFunction(name=name, arguments=arguments)
    return ChatMessage(MessageRole.ASSISTANT, "", [ChatMessageToolCall(function=function, id="c1", type="function")])


def _program(code: str) -> ChatMessage:
    return ChatMessage(MessageRole.ASSISTANT, f"<code>\n{code}\n</code>")


smolagents_ways: tuple[Way, ...] = (SmolagentsWay(), SmolagentsCodeWay())

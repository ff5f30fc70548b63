"""Way in that needs the extra `openai-agents`: an agent of that SDK, whose scripted model makes the call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from agents import Agent, ModelBehaviorError, RunConfig, RunContextWrapper, Runner, RunState
from agents.testing import ScriptedModel, assistant_message, function_call

from tests.ways_in.framework import Conversation, FrameworkWay, NotOffered
from toolcrib.adapters.openai_agents import answers, approval_requests, as_tools
from toolcrib.approvals import MemorySuspendedCalls
from toolcrib.pipeline import Run
from toolcrib.testing._ways import Ability, RunWay, Way, WayRequest

__all__ = ["openai_agents_ways"]


class OpenAIAgentsWay(FrameworkWay):
    """An agent of the OpenAI Agents SDK; answered in a new agent, from the JSON of its state."""

    title = "openai_agents"
    abilities: ClassVar[frozenset[Ability]] = RunWay.abilities

    async def begin(self, request: WayRequest, run: Run, calls: MemorySuspendedCalls) -> Conversation:
        script = [[function_call(request.new.name, _text(request), call_id=request.new.id)]]
        return await _conversed(_agent(request, run, calls, script), "call it", run, calls)

    async def go_on(self, request: WayRequest, run: Run, stopped: Conversation) -> Conversation:
        agent = _agent(request, run, stopped.calls, [])
        state = await RunState.from_json(agent, stopped.state, context_override=RunContextWrapper(run.deps))
        if request.answer is not None:
            await answers(state, request.answer)
        return await _conversed(agent, state, run, stopped.calls)


async def _conversed(agent: Agent[Any], said: Any, run: Run, calls: MemorySuspendedCalls) -> Conversation:
    untraced = RunConfig(tracing_disabled=True)
    try:
        result = await Runner.run(agent, said, context=run.deps, run_config=untraced)
    except ModelBehaviorError as error:
        raise NotOffered from error
    if result.interruptions:
        state = result.to_state()
        requests = await approval_requests(state)
        if requests:
            saved = json.loads(json.dumps(state.to_json(context_serializer=lambda context: {})))
            return Conversation(calls, saved, tuple(requests))
        state.approve(result.interruptions[0])  # malformed arguments, about which the SDK itself asks
        result = await Runner.run(agent, state, run_config=untraced)
    return Conversation(calls, shown="\n".join(map(_shown, result.to_input_list())))


def _agent(request: WayRequest, run: Run, calls: MemorySuspendedCalls, script: list[Any]) -> Agent[Any]:
    model = ScriptedModel([*script, [assistant_message("done")]])
    return Agent(name="way", tools=[*as_tools(request.toolset, run=lambda ctx: run, suspended=calls)], model=model)


def _text(request: WayRequest) -> str:
    raw = request.new.arguments
    if isinstance(raw, Mapping):
        return json.dumps(request.json_arguments)
    return raw if isinstance(raw, str) else raw.decode()


def _shown(item: Any) -> str:
    return str(item.get("output", ""))


openai_agents_ways: tuple[Way, ...] = (OpenAIAgentsWay(),)

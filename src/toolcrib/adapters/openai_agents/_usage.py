"""Usage of a run of an agent of the OpenAI Agents SDK, on our record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from agents import Agent, ModelResponse, RunContextWrapper, RunHooks, Tool

from toolcrib.adapters.openai_agents._guard import GuardedAgent
from toolcrib.adapters.openai_agents._tools import Invocation
from toolcrib.serving.frameworks import UsageNames

_USAGE = UsageNames(
    "input_tokens",
    "output_tokens",
    "input_tokens_details.cached_tokens",
    "input_tokens_details.cache_write_tokens",  # of newer releases of its client
    "output_tokens_details.reasoning_tokens",
)


class UsageHooks(RunHooks[Any]):
    """Hooks that record what each request to a model takes: `Runner.run(agent, ..., hooks=UsageHooks(tools))`.

    The record has it in the run of the tools' calls. The SDK asks no tool after the last request of a run.

    Args:
        tools: The agent's tools that `as_tools` or `guard` made, or the agent that `guard` made.
    """

    def __init__(self, tools: Iterable[Tool] | Agent[Any]) -> None:
        if isinstance(tools, GuardedAgent) and tools.gate is not None:
            found = [tools.gate.agent_itself]
        else:
            given = tools.tools if isinstance(tools, Agent) else tools
            found = [invocation for invocation in map(Invocation.of, given) if invocation is not None]
        self._of_runs = {id(invocation.tools.runs): invocation for invocation in found}

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Record one request."""
        request = _USAGE.request(uuid4().hex, response.usage, _model_of(agent))
        for invocation in self._of_runs.values():
            invocation.tools.record_usage(invocation.run_of(context), [request])


def _model_of(agent: Agent[Any]) -> str:
    """Return the name of the model that an agent asks; empty where a run or a provider chooses it."""
    model: Any = agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", "")
    return model if isinstance(model, str) else ""

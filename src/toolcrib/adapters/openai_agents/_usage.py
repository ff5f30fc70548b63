"""Usage of a run of an agent of the OpenAI Agents SDK, on our record."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import ismethod
from typing import Any
from uuid import uuid4

from agents import Agent, FunctionTool, ModelResponse, RunContextWrapper, RunHooks, Tool

from toolcrib.adapters.openai_agents._guard import GuardedAgent
from toolcrib.adapters.openai_agents._tools import Invocation
from toolcrib.serving.frameworks import CountedRequest

__all__ = ["UsageHooks"]


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
            owners = [
                tool.on_invoke_tool.__self__
                for tool in given
                if isinstance(tool, FunctionTool) and ismethod(tool.on_invoke_tool)
            ]
            found = [owner for owner in owners if isinstance(owner, Invocation)]
        self._of_runs = {id(invocation.tools.runs): invocation for invocation in found}

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Record one request."""
        usage = response.usage
        request = CountedRequest(
            uuid4().hex,
            usage.input_tokens,
            usage.output_tokens,
            usage.input_tokens_details.cached_tokens,
            _model_of(agent),
            getattr(usage.input_tokens_details, "cache_write_tokens", 0),  # of newer releases of its client
            usage.output_tokens_details.reasoning_tokens,
        )
        for invocation in self._of_runs.values():
            invocation.tools.record_usage(invocation.run_of(context), [request])


def _model_of(agent: Agent[Any]) -> str:
    """Return the name of the model that an agent asks; empty where a run or a provider chooses it."""
    model: Any = agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", "")
    return model if isinstance(model, str) else ""

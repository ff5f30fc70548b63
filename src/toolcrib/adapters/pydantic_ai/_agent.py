"""Agent of Pydantic AI in one call: `Agent(toolsets=[...])` with the toolset's hooks beside the model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.tools import DeferredToolRequests

from toolcrib.adapters.pydantic_ai._toolset import OpenRun, as_tools
from toolcrib.hooks import GlobalHooks
from toolcrib.pipeline import Run
from toolcrib.toolsets import Toolset


def create_agent(
    model: Any,
    *,
    tools: Iterable[Any] = (),
    pre_hooks: Mapping[str, Any] | None = None,
    post_hooks: Mapping[str, Any] | None = None,
    global_hooks: GlobalHooks | None = None,
    run: Run | OpenRun | None = None,
    **options: Any,
) -> Agent[Any, Any]:
    """Return a Pydantic AI agent with these tools; its run ends with `DeferredToolRequests` when a person is asked.

    Args:
        model: What `pydantic_ai.Agent` takes as one.
        tools: What `Toolset` takes.
        run: The run of the calls, or what opens it; see `as_tools`.
        options: Everything else that `pydantic_ai.Agent` takes.
    """
    toolset = Toolset(tools, pre_hooks=pre_hooks, post_hooks=post_hooks, global_hooks=global_hooks)
    toolsets = [as_tools(toolset, run=run), *(options.pop("toolsets", None) or ())]
    output = options.pop("output_type", str)
    outputs: list[Any] = [*output] if isinstance(output, list | tuple) else [output]
    if DeferredToolRequests not in outputs:
        outputs.append(DeferredToolRequests)
    return Agent(model, toolsets=toolsets, output_type=outputs, **options)


def stream_agent(
    agent: Agent[Any, Any], prompt: Any = None, **options: Any
) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
    """Return a run of an agent, to be entered, that gives its events as they come.

    Args:
        agent: What `create_agent` returned.
        prompt: What the user says; None for a run that goes on from deferred results.
        options: What `Agent.run_stream_events` takes: `deps`, `message_history`, `deferred_tool_results`.
    """
    return agent.run_stream_events(prompt, **options)

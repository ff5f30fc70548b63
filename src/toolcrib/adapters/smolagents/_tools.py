"""Tools of smolagents, made of a toolset and given to an agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from smolagents import MultiStepAgent, Tool

from toolcrib.adapters.smolagents._calls import ENTRY, AgentCalls, tools_of
from toolcrib.adapters.smolagents._inputs import inputs_of, output_type_of
from toolcrib.approvals import SuspendedCallStore
from toolcrib.errors import explain_options
from toolcrib.pipeline import Run
from toolcrib.record import Sink
from toolcrib.serving.frameworks import FrameworkRuns, FrameworkTools, OpenFrameworkRun
from toolcrib.toolsets import ToolsetLike

A = TypeVar("A", bound=MultiStepAgent)


@explain_options()
def as_tools(
    tools: ToolsetLike,
    agent: A,
    *,
    run: Run | OpenFrameworkRun | None = None,
    sinks: Iterable[Sink] = (),
    suspended: SuspendedCallStore | None = None,
) -> A:
    """Add tools to an agent, and return it; every call goes over the pipeline.

    A call that needs approval, and has no approver, ends the run of the agent after the step, with smolagents' own
    `AgentError`: `approval_requests` says what a person is asked, and `answers` makes the task that the agent goes on
    with.

    Args:
        tools: The tools; members that list themselves have to be known: `async with toolset.open() as opened`.
        agent: The agent: tools of smolagents know nothing of theirs by themselves.
        run: The run of the calls, or a function that opens one for each task, given the agent; without it, the run of
            the tool that the agent runs in, or a new one. `deps` are the agent's `state`, which holds
            `additional_args`, where the run has none.
        sinks: Where the events of calls go.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.

    Raises:
        ValueError: The agent has a tool of that name, or runs its programs where the tools cannot be.
    """
    bridge = FrameworkTools(tools, FrameworkRuns(ENTRY, run, suspended), sinks)
    calls = AgentCalls(agent, bridge.runs)
    taken = next((name for name in bridge.entries if name in tools_of(agent)), None)
    if taken is not None:
        raise ValueError(f"the agent has a tool `{taken}` already; give one of them another name: toolset.renamed(...)")
    for entry in bridge.entries.values():
        returns = entry.return_schema
        AgentTool(
            calls,
            bridge,
            entry.name,
            description=entry.description,
            inputs=inputs_of(entry.parameters),
            output_type=output_type_of(returns),
            output_schema=dict(returns) if returns is not None and returns.get("type") == "object" else None,
        )
    return agent


class AgentTool(Tool):
    """One tool as an agent calls it."""

    skip_forward_signature_validation = True  # its parameters are those of the schema

    def __init__(self, calls: AgentCalls, tools: FrameworkTools, name: str, **described: Any) -> None:
        self.is_initialized = True
        self.calls, self.tools, self.name = calls, tools, name
        self.description, self.inputs = described["description"], described["inputs"]
        self.output_type, self.output_schema = described["output_type"], described["output_schema"]
        calls.tools[name] = tools_of(calls.agent)[name] = self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.calls.loop.run(self.call(dict(zip(self.inputs, args, strict=False)) | kwargs))

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        return await self.calls.make(self.tools, self.name, arguments)

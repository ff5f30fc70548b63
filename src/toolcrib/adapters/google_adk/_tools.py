"""Tools of ADK, made of a toolset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.adk.tools import BaseTool, ToolContext
from google.genai import types

from toolcrib.adapters.google_adk._calls import ENTRY, make, reply_to
from toolcrib.approvals import SuspendedCallStore
from toolcrib.errors import explain_options
from toolcrib.pipeline import Run
from toolcrib.record import Sink
from toolcrib.serving.frameworks import FrameworkRuns, FrameworkTools, OpenFrameworkRun
from toolcrib.toolsets import ToolsetLike


@explain_options()
def as_tools(
    tools: ToolsetLike,
    *,
    run: Run | OpenFrameworkRun | None = None,
    sinks: Iterable[Sink] = (),
    suspended: SuspendedCallStore | None = None,
) -> list[BaseTool]:
    """Return the tools for `LlmAgent(tools=[...])`; every call goes over the pipeline.

    A call that needs approval asks for ADK's confirmation: `approval_requests` says what a person is asked, and
    `answers` makes the message that the runner goes on with.

    Args:
        tools: The tools; members that list themselves have to be known: `async with toolset.open() as opened`.
        run: The run of the calls, or a function that opens one for each invocation, given ADK's `ToolContext`; without
            it, the run of the tool that the agent runs in, or a new one, named like the invocation. The principal is
            ADK's user where the run has none, and the session is the conversation.
        sinks: Where the events of calls go.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.
    """
    bridge = FrameworkTools(tools, FrameworkRuns(ENTRY, run, suspended), sinks)
    return [GatedTool(bridge, name) for name in bridge.entries]


class GatedTool(BaseTool):
    """One tool as ADK calls it."""

    def __init__(self, tools: FrameworkTools, name: str) -> None:
        entry = tools.entries[name]
        super().__init__(name=name, description=entry.description)
        self.tools, self._parameters = tools, entry.parameters

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return reply_to(await make(self.tools, self.name, args, tool_context))

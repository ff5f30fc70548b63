"""Names of the tools of an agent of ADK and of those below it, as far as they are known before a run."""

from __future__ import annotations

from typing import Any

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.tools import AgentTool, FunctionTool
from google.adk.tools.base_toolset import BaseToolset

from toolcrib.adapters.google_adk._tools import GatedTool


class KnownTools:
    """The tools of agents that were added.

    Attributes:
        names: Their names.
        unlisted: The agents with toolsets, such as MCP servers, whose tools their first run lists.
        may_be_more: Whether there may be tools that are not known then: of a node of a graph, or of a toolset that
            selects them call by call.
        apart: The agents that are tools and run without the plugins of the app.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.unlisted: set[str] = set()
        self.apart: set[str] = set()
        self.may_be_more = False

    def add(self, agent: object) -> None:
        """Add the tools of an agent and of those below it; agents themselves may be tools, too."""
        if not isinstance(agent, BaseAgent):
            self.may_be_more = True
            return
        for sub_agent in agent.sub_agents:
            self.names.add(sub_agent.name)
            self.add(sub_agent)
        node: Any = agent
        for tool in node.tools if isinstance(agent, LlmAgent) else ():
            self._add_tool(tool, agent.name)

    def _add_tool(self, tool: Any, agent: str) -> None:
        match tool:
            case AgentTool():
                self.names.add(tool.name)
                self.add(tool.agent)
                if runs_apart(tool):
                    self.apart.add(tool.name)
            case FunctionTool() | GatedTool():
                self.names.add(tool.name)
            case BaseToolset():
                self.unlisted.add(agent)
                is_theirs = type(tool).__module__.startswith("google.adk.tools.mcp_tool.")
                self.may_be_more |= callable(tool.tool_filter) or not is_theirs
            case _ if callable(tool):
                self.names.add(FunctionTool(tool).name)
            case _:
                self.may_be_more = True  # a tool of a provider has several names


def runs_apart(tool: object) -> bool:
    """Return whether a tool is an agent that runs without the plugins of the app: no gate is around its tools."""
    return isinstance(tool, AgentTool) and not tool.include_plugins

"""Gates around the tools that agents of ADK run, as a plugin of their runner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import AgentTool, FunctionTool, ToolContext
from google.adk.tools import BaseTool as TheirTool
from google.adk.tools.base_toolset import BaseToolset

from toolcrib.adapters.google_adk._calls import ENTRY, make, record_event, reply_to, run_of
from toolcrib.adapters.google_adk._members import Member
from toolcrib.adapters.google_adk._tools import GatedTool
from toolcrib.approvals import SuspendedCallStore
from toolcrib.serving import GuardPolicy, takes_policy
from toolcrib.serving.frameworks import GuardedTools

_OF_ADK = ("load_artifacts", "load_memory", "set_model_response", "transfer_to_agent")
"""Tools that ADK itself gives agents, by their other options."""

_APART = "its agent runs without the plugins of the app, as of AgentTool(..., include_plugins=False)"


@takes_policy
def guard(guarded: App | BaseAgent, policy: GuardPolicy, *, suspended: SuspendedCallStore | None = None) -> App:
    """Return an app with the gates of a policy around every tool that its agents run: one with a further `GuardPlugin`.

    Args:
        guarded: An app, or an agent, which becomes the root of an app of its name.
        policy: The gates.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.

    Raises:
        ToolConstraintError: No tool has a name that the policy has: here where all tools are functions and agents, or
            in a run before its first request.
        ValueError: An agent that is a tool runs without the plugins of the app, and the policy does not leave it.
    """
    app = guarded if isinstance(guarded, App) else App(name=guarded.name, root_agent=guarded)
    plugin = GuardPlugin(policy, suspended=suspended)
    plugin.check_names(app.root_agent, are_all=not app.plugins)
    return app.model_copy(update={"plugins": [*app.plugins, plugin]})


class UsagePlugin(BasePlugin):
    """Records what each request to a model takes: `Runner(..., plugins=[UsagePlugin(tools)])`.

    The record has it in the run of the tools' calls. A `GuardPlugin` does so by itself.

    Args:
        tools: The tools of the runner's agents that `as_tools` made.
    """

    def __init__(self, tools: Iterable[TheirTool], *, name: str = "toolcrib_usage") -> None:
        super().__init__(name=name)
        self._ours = {id(tool.tools): tool.tools for tool in tools if isinstance(tool, GatedTool)}

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        """Record a request."""
        for tools in self._ours.values():
            record_event(tools, event, ToolContext(invocation_context))
        return None


class GuardPlugin(UsagePlugin):
    """Gates around every tool that the agents of a runner run: `Runner(..., plugins=[GuardPlugin(policy)])`.

    Args:
        policy: The gates.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.
    """

    @takes_policy
    def __init__(self, policy: GuardPolicy, *, suspended: SuspendedCallStore | None = None) -> None:
        super().__init__([], name="toolcrib_guard")
        self._tools = GuardedTools(ENTRY, policy, suspended)
        self._ours[0] = self._tools.none
        self._unlisted: set[str] | None = None
        self._are_all = False

    def check_names(self, root: object, *, are_all: bool) -> None:
        """Check the names of the policy where all tools of an agent, and of those below it, are known before a run.

        Args:
            root: The agent.
            are_all: Whether nothing else brings tools.
        """
        known = _KnownTools()
        known.add(root)
        for name in known.apart:
            self._tools.refuse(name, _APART)
        self._unlisted, self._are_all = known.unlisted, are_all and not known.may_be_more
        if known.names:
            self._check(known.names)

    def _check(self, names: Iterable[str]) -> None:
        are_all = self._are_all and not self._unlisted
        self._tools.check_names((*names, *(_OF_ADK if are_all else ())), are_all=are_all)

    async def before_agent_callback(self, *, agent: BaseAgent, callback_context: CallbackContext) -> None:
        """Check the names of the policy at the first run of a runner that has the plugin itself."""
        if self._unlisted is None:
            self.check_names(agent.root_agent, are_all=False)

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Open the run of the calls, and refuse tools that the model's provider runs, unless the policy leaves them."""
        (self._unlisted or set()).discard(callback_context.agent_name)
        self._check(llm_request.tools_dict)
        for name in [name for name, tool in llm_request.tools_dict.items() if _runs_apart(tool)]:
            self._tools.refuse(name, _APART)
        run_of(self._tools.none, ToolContext(callback_context.get_invocation_context()))
        for tool in llm_request.config.tools or []:
            candidate: Any = tool
            described: dict[str, Any] = (
                candidate.model_dump(exclude_none=True) if hasattr(candidate, "model_dump") else {}
            )
            for name in described.keys() - {"function_declarations"}:
                self._tools.refuse(name)
        return None

    async def before_tool_callback(
        self, *, tool: TheirTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Make a call through the gates, in the place of ADK itself."""
        if self._tools.leaves(tool.name):
            return None
        guarded = self._tools.guard(tool.name, tool, lambda: Member(tool).tool())
        return reply_to(await make(guarded, tool.name, tool_args, tool_context))


class _KnownTools:
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
            match tool:
                case AgentTool():
                    self.names.add(tool.name)
                    self.add(tool.agent)
                    if _runs_apart(tool):
                        self.apart.add(tool.name)
                case FunctionTool() | GatedTool():
                    self.names.add(tool.name)
                case BaseToolset():
                    self.unlisted.add(agent.name)
                    is_theirs = type(tool).__module__.startswith("google.adk.tools.mcp_tool.")
                    self.may_be_more |= callable(tool.tool_filter) or not is_theirs
                case _ if callable(tool):
                    self.names.add(FunctionTool(tool).name)
                case _:
                    self.may_be_more = True  # a tool of a provider has several names


def _runs_apart(tool: object) -> bool:
    """Return whether a tool is an agent that runs without the plugins of the app: no gate is around its tools."""
    return isinstance(tool, AgentTool) and not tool.include_plugins

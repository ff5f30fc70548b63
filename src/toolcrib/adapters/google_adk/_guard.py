"""Gates around the tools that agents of ADK run, as a plugin of their runner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import BaseTool as TheirTool
from google.adk.tools import ToolContext

from toolcrib.adapters.google_adk._calls import ENTRY, make, record_event, reply_to, run_of
from toolcrib.adapters.google_adk._known_tools import KnownTools, runs_apart
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
        known = KnownTools()
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
        for name in [name for name, tool in llm_request.tools_dict.items() if runs_apart(tool)]:
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

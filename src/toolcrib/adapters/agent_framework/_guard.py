"""Gates around the tools that an agent of the framework has, and these tools as members of a toolset."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from functools import partial
from typing import Any, TypeVar, cast

from agent_framework import (
    Agent,
    AgentMiddleware,
    AgentSession,
    ChatContext,
    ChatMiddleware,
    FunctionInvocationContext,
    FunctionTool,
    HistoryProvider,
    RawAgent,
)
from agent_framework.exceptions import MiddlewareException, UserInputRequiredException

from toolcrib.adapters.agent_framework._calls import ENTRY, CallOfAgent, Gates, Next, contents_of
from toolcrib.adapters.agent_framework._members import Member, from_tools, value_of
from toolcrib.adapters.agent_framework._tools import GatedProvider, ToolProvider
from toolcrib.approvals import SuspendedCallStore
from toolcrib.calls import Completed, Outcome
from toolcrib.pipeline import Run
from toolcrib.schema import RunContext
from toolcrib.serving import GuardPolicy, takes_policy
from toolcrib.serving.frameworks import AgentTools, FrameworkTools, GuardedTools, gates_lost, provided
from toolcrib.tools import Tool
from toolcrib.toolsets import Toolset

A = TypeVar("A", bound="RawAgent[Any]")


@takes_policy
def guard(agent: A, policy: GuardPolicy, *, suspended: SuspendedCallStore | None = None) -> A:
    """Return an agent with the gates of a policy around every tool that it runs: one with a further `GuardProvider`.

    A call that needs approval is one of the response's `user_input_requests`: `approval_requests` says what a person
    is asked, and `answers` makes the message that the agent goes on with, in the same session.

    Args:
        policy: The gates; a function that opens its runs is given the `AgentSession`.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.

    Raises:
        ToolConstraintError: No tool has a name that the policy has, and all tools of the agent are functions that add
            no others.
    """
    guarded, provider = copy(agent), GuardProvider(policy, suspended=suspended)
    tools: Sequence[Any] = agent.default_options.get("tools") or ()
    are_functions = all(isinstance(tool, FunctionTool) and _adds_none(tool) for tool in tools)
    brings_more = any(not isinstance(provider, HistoryProvider) for provider in agent.context_providers)
    if tools and are_functions and not agent.mcp_tools and not brings_more:
        GuardPolicy.checked(policy).check_names(_name_of(tool) for tool in tools)
    guarded.context_providers = [*agent.context_providers, provider]
    return guarded


def _adds_none(tool: FunctionTool) -> bool:
    """Return whether a tool is given no context, by which it could add others to the run."""
    return tool._context_parameter_name is None  # pyright: ignore[reportPrivateUsage] -- nothing else says it


class GuardProvider(GatedProvider):
    """Gates around every tool that an agent runs: `Agent(client, ..., context_providers=[GuardProvider(policy)])`.

    Args:
        policy: The gates; a function that opens its runs is given the `AgentSession`.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.
        source_id: The provider's name in the agent.
    """

    @takes_policy
    def __init__(
        self, policy: GuardPolicy, *, suspended: SuspendedCallStore | None = None, source_id: str = "toolcrib_guard"
    ) -> None:
        self.policy = policy
        super().__init__(source_id, _GuardGates(GuardedTools(ENTRY, policy, suspended)))


class _GuardGates(Gates):
    """The gates of a policy, around each tool that an agent has."""

    def __init__(self, tools: GuardedTools) -> None:
        super().__init__(tools.runs, tools.sinks)
        self._tools = tools

    async def call(self, context: FunctionInvocationContext, run: Run, call_next: Next) -> None:
        if self._tools.leaves(context.function.name):
            await call_next()
            return
        call = CallOfAgent(context, run)
        handling = _Handling(context, call_next, call.arguments)
        function = context.function
        asks = function.approval_mode == "always_require"
        tools = self._tools.guard(function.name, function, lambda: _Handled(function).tool(requires_approval=asks))
        outcome = await call.make(tools, {_Handling: handling})
        if outcome is not None:
            handling.reply(outcome, as_it_is=not tools.pipeline.has_deliveries(context.function.name, run))

    def reads_requests(self, run: Run, session: AgentSession) -> bool:
        return True

    async def before_model(self, context: ChatContext, run: Run) -> None:
        await super().before_model(context, run)
        tools: Sequence[Any] = (context.options or {}).get("tools") or ()
        self._tools.check_names(_name_of(tool) for tool in tools)
        for tool in tools:
            if not isinstance(tool, FunctionTool):
                self._tools.refuse(_name_of(tool))

    def known(self, context: ChatContext) -> Toolset:
        functions = [tool for tool in (context.options or {}).get("tools") or () if isinstance(tool, FunctionTool)]
        return Toolset([Member(tool).tool() for tool in functions])

    def tools_of(self, name: str) -> FrameworkTools | None:
        return self._tools.find(name)


def _name_of(tool: Any) -> str:
    if not isinstance(tool, Mapping):
        return str(getattr(tool, "name", type(tool).__name__))
    described = cast("Mapping[str, Any]", tool)
    return str(described.get("name") or described.get("type"))


class _Handling:
    """One call of a guarded tool: its arguments and its outcome."""

    def __init__(self, context: FunctionInvocationContext, call_next: Next, arguments: dict[str, Any]) -> None:
        self._context, self._call_next, self._arguments = context, call_next, arguments
        self._made, self._value = False, None
        self._signal: Exception | None = None

    async def make(self, tool: Member, ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        """Run the tool with these arguments, and return its value."""
        context = self._context
        if arguments != self._arguments and "approval_response" in context.metadata:
            return await Member.make(tool, ctx, arguments)  # the framework would ask about its own arguments again
        if arguments != self._arguments:
            context.arguments = arguments
        try:
            await self._call_next()
        except (MiddlewareException, UserInputRequiredException) as signal:
            self._signal = signal
            raise
        self._made, self._value = True, value_of(context.result)
        return self._value

    def reply(self, outcome: Outcome, *, as_it_is: bool) -> None:
        """Leave the result of the tool itself where no call was made of it, or set the outcome of the call.

        Args:
            as_it_is: Whether the result may go out as the tool gave it: it passes no deliveries.

        Raises:
            MiddlewareException: Another middleware, or the tool, ended the agent's run.
            UserInputRequiredException: The tool itself asks the user.
        """
        if self._signal is not None:
            raise self._signal
        is_made = self._made and isinstance(outcome, Completed) and outcome.value is self._value
        if not (as_it_is and is_made):
            self._context.result = contents_of(outcome)


class _Handled(Member):
    """A tool that is run by the framework itself."""

    async def make(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        handling = provided(ctx, _Handling)
        return await (super().make(ctx, arguments) if handling is None else handling.make(self, ctx, arguments))


def member_of(value: object) -> Toolset | Tool[..., Any] | None:
    """Return the tools of an agent, or a function tool, as a member for `Toolset([...])`; None for anything else.

    Of an agent these are its function tools, those of its MCP servers, which are connected while the toolset is open,
    and those of `as_tools`. The gates of `guard` are around them.

    Raises:
        TypeError: The agent has middleware around its tools, which would not be around them elsewhere.
    """
    if isinstance(value, FunctionTool):
        return None if value.declaration_only else from_tools([value])[0]
    if not isinstance(value, Agent):
        return None
    if any(not isinstance(layer, AgentMiddleware | ChatMiddleware) for layer in value.middleware or ()):
        raise gates_lost("the middleware")
    return Toolset([AgentTools(partial(_opened, value))])


@asynccontextmanager
async def _opened(agent: Agent[Any], ctx: RunContext[Any]) -> AsyncGenerator[Toolset]:
    async with AsyncExitStack() as stack:
        tools_of_agent: list[Any] = [*(agent.default_options.get("tools") or ())]
        for server in agent.mcp_tools:
            tools_of_agent += (await stack.enter_async_context(server)).functions
        theirs = [tool for tool in tools_of_agent if isinstance(tool, FunctionTool) and not tool.declaration_only]
        ours = [provider.toolset for provider in agent.context_providers if isinstance(provider, ToolProvider)]
        tools = Toolset([*from_tools(theirs), *ours])
        for provider in agent.context_providers:
            if isinstance(provider, GuardProvider):
                tools = provider.policy.around(tools)
        yield tools

"""Gates around the tools that an agent of Pydantic AI has, those of its MCP servers and capabilities included."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from inspect import isawaitable
from typing import Any, Self, cast, overload

import pydantic_ai
from pydantic_ai import Agent
from pydantic_ai.agent import AbstractAgent, WrapperAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    FilteredToolset,
    FunctionToolset,
    PrefixedToolset,
    PreparedToolset,
    RenamedToolset,
    ToolsetTool,
    WrapperToolset,
)

from toolcrib.adapters.pydantic_ai._deferred_calls import PASS_THROUGH
from toolcrib.adapters.pydantic_ai._source import PydanticToolset
from toolcrib.adapters.pydantic_ai._toolset import ToolcribToolset, ToolsetRun
from toolcrib.errors import explain_missing
from toolcrib.pipeline import Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.serving import GuardPolicy, takes_policy
from toolcrib.serving.frameworks import ConversationRuns
from toolcrib.toolsets import Toolset

_DURABLE = ("pydantic_ai.durable_exec.dbos.", "pydantic_ai.durable_exec.temporal.")
"""Capabilities with which a run in a workflow takes no others."""


@overload
def guard(guarded: AbstractAgent[Any, Any], policy: GuardPolicy) -> GuardedAgent: ...
@overload
def guard(guarded: AbstractToolset[Any], policy: GuardPolicy) -> GuardedToolset: ...
@takes_policy
def guard(
    guarded: AbstractAgent[Any, Any] | AbstractToolset[Any], policy: GuardPolicy
) -> GuardedAgent | GuardedToolset:
    """Return an agent, or a toolset, of Pydantic AI with the gates of a policy around each tool.

    Of an agent these are all tools of its runs: its own, those of its toolsets and MCP servers, and those that its
    capabilities add. A run that waits for a person ends with `DeferredToolRequests`: `approval_requests` says what is
    asked, and `answers` makes what the next run takes.

    Args:
        policy: The gates; a function that opens its runs is given Pydantic AI's `RunContext`.

    Raises:
        ToolConstraintError: No tool has a name that the policy has: here where all tools are known, such as functions,
            or in a run before its first request.
        TypeError: It is guarded already.
        ValueError: In a run: a tool is executed outside of the agent, or by its provider, and the policy does not
            leave it.
    """
    policy = GuardPolicy.checked(policy)
    if not isinstance(cast("object", guarded), AbstractAgent | AbstractToolset):
        mend = "guard(FunctionToolset(tools), policy) for functions"
        raise TypeError(f"guard takes an agent or a toolset of Pydantic AI, and not {guarded!r:.80}; {mend}")
    inner: object = guarded
    while isinstance(inner, WrapperAgent) and not isinstance(inner, GuardedAgent):
        inner = inner.wrapped
    if isinstance(inner, GuardedAgent | GuardedToolset):
        raise TypeError("it has gates already, and would ask about a call twice: one GuardPolicy has them all")
    names, are_all = _names_of(guarded)
    if names and are_all:
        policy.check_names(names)
    return GuardedAgent(guarded, policy) if isinstance(guarded, AbstractAgent) else GuardedToolset(guarded, policy)


class GuardedToolset(ToolcribToolset[Any]):
    """A toolset whose tools are guarded. Made by `guard`.

    Attributes:
        guarded: The toolset itself.
        tools: The tools with the gates around them: those of the last step of a run; before it, those that the toolset
            lists outside of a run.
    """

    def __init__(
        self, guarded: AbstractToolset[Any], policy: GuardPolicy, runs: ConversationRuns | None = None
    ) -> None:
        tools = Toolset([_GuardedSource(PydanticToolset(guarded), policy)])
        super().__init__(tools, policy.opened_run, policy.sinks, guarded.id, runs or ConversationRuns(policy.limits))
        self.guarded, self._policy = guarded, policy

    async def for_run(self, ctx: pydantic_ai.RunContext[Any]) -> AbstractToolset[Any]:
        """Return the toolset for one run of the agent, with the run's limits and counts."""
        return _GuardedRun(self, self.open_run(ctx), ctx, await self.guarded.for_run(ctx), self._policy)


class _GuardedSource:
    """The guarded tools as a source of a toolset, for what is answered outside a run of the agent."""

    def __init__(self, source: PydanticToolset, policy: GuardPolicy) -> None:
        self._source, self._policy = source, policy

    @asynccontextmanager
    async def open_source(self, ctx: RunContext[Any]) -> AsyncGenerator[Toolset]:
        async with self._source.open_source(ctx) as tools:
            self._policy.check_names(tools.names(), are_all=False)
            yield self._policy.around(tools)


class _GuardedRun(ToolsetRun[Any]):
    """The guarded tools in one run of an agent, as each of its steps has them."""

    def __init__(
        self,
        toolset: GuardedToolset,
        run: Run,
        ctx: pydantic_ai.RunContext[Any],
        guarded: AbstractToolset[Any],
        policy: GuardPolicy,
    ) -> None:
        super().__init__(toolset, run, ctx, Pipeline(Toolset(), sinks=toolset.sinks))
        self._guarded, self._policy = guarded, policy
        self._hidden, _ = _names_of(toolset.guarded)  # some of these may be listed in later steps
        self._are_all = not _may_list_more(toolset.guarded)
        self._source = PydanticToolset(guarded)
        self._step: dict[str, ToolsetTool[Any]] = {}

    async def __aenter__(self) -> Self:
        await self._guarded.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        await super().__aexit__(*error)
        return await self._guarded.__aexit__(*error)

    async def for_run_step(self, ctx: pydantic_ai.RunContext[Any]) -> AbstractToolset[Any]:
        self._guarded = await self._guarded.for_run_step(ctx)
        return self

    async def get_instructions(self, ctx: pydantic_ai.RunContext[Any]) -> Any:
        return await self._guarded.get_instructions(ctx)

    async def get_tools(self, ctx: pydantic_ai.RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        self._latest = ctx
        self._record()
        theirs = await self._guarded.get_tools(ctx)
        step = {name: tool for name, tool in theirs.items() if name not in self._policy.leave}
        outside = next((name for name, tool in step.items() if tool.tool_def.kind == "external"), None)
        if outside is not None:
            self._policy.refuse(outside, "it is executed outside of the agent")
        if step != self._step:
            self._policy.check_names((*theirs, *self._hidden), are_all=self._are_all)
            members = Toolset([self._source.member(self._guarded, tool) for tool in step.values()])
            self._toolset.tools = self._policy.around(members)
            self._pipeline = Pipeline(self._toolset.tools, sinks=self._toolset.sinks)
            self._step = step
        return {name: self._guarded_tool(tool) if name in step else tool for name, tool in theirs.items()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: pydantic_ai.RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if name not in self._step:
            return await self._guarded.call_tool(name, tool_args, ctx, tool)
        return await super().call_tool(name, tool_args, ctx, tool)

    def _guarded_tool(self, tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
        """Return a tool as the agent has it, but that the pipeline reads its arguments and asks about its calls."""
        definition = replace(tool.tool_def, kind="function")
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=tool.max_retries, args_validator=PASS_THROUGH)


class _GuardCapability(AbstractCapability[Any]):
    """The gates of a policy around the toolset of an agent's run, whatever it is made of."""

    @takes_policy
    def __init__(self, policy: GuardPolicy, guarded: GuardedToolset) -> None:
        self._policy, self.guarded = policy, guarded
        self._runs = ConversationRuns(policy.limits)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        self.guarded = GuardedToolset(toolset, self._policy, self._runs)
        return self.guarded


@explain_missing(
    dict.fromkeys(
        ("tool", "tool_plain", "toolset", "output_validator", "instructions", "system_prompt"),
        "the agent itself: its decorators are used on it before `guard(agent, policy)`",
    )
)
class GuardedAgent(WrapperAgent[Any, Any]):
    """An agent whose tools are guarded. Made by `guard`."""

    def __init__(self, agent: AbstractAgent[Any, Any], policy: GuardPolicy) -> None:
        super().__init__(agent)
        self._gates = _GuardCapability(policy, GuardedToolset(CombinedToolset(agent.toolsets), policy))

    @property
    def guarded(self) -> GuardedToolset:
        """The tools with the gates around them: those of the last run here, and before it those of the toolsets."""
        return self._gates.guarded

    def realtime(self, model: Any, *, capabilities: Sequence[Any] | None = None, **options: Any) -> Any:
        """Bind the agent, with the gates around its tools, to a realtime model; see `pydantic_ai.Agent.realtime`.

        A call that needs approval is refused, unless the run has an approver: such a session waits for nobody.
        """
        return super().realtime(model, capabilities=[*(capabilities or ()), self._gates], **options)

    @asynccontextmanager
    async def iter(
        self,
        user_prompt: Any = None,
        *,
        output_type: Any = None,
        capabilities: Sequence[Any] | None = None,
        **options: Any,
    ) -> AsyncGenerator[Any]:
        """Run the agent with the gates around its tools; see `pydantic_ai.Agent.iter`."""
        _require_plain_run(self.wrapped)
        if isawaitable(options.get("deferred_tool_results")):
            raise TypeError("the results are what `await answers(...)` returns")
        ends: Any = self.wrapped.output_type if output_type is None else output_type
        ends = [*ends] if isinstance(ends, list | tuple) else [ends]
        outputs = None if DeferredToolRequests in ends else [*ends, DeferredToolRequests]
        run_options: Any = {**options, "capabilities": [*(capabilities or ()), self._gates]}
        if outputs is not None:
            run_options["output_type"] = outputs
        elif output_type is not None:
            run_options["output_type"] = output_type
        agent = self.wrapped
        if outputs is not None and output_type is None and _with_requests(agent) is not agent:
            agent = _with_requests(agent)
            run_options.pop("output_type")
        async with cast("Agent[Any, Any]", agent).iter(user_prompt, **run_options) as run:
            yield run


def _require_plain_run(agent: AbstractAgent[Any, Any]) -> None:
    """Check that a run takes a capability of its own; raises UserError in a workflow of one that makes it durable."""
    capabilities: list[Any] = []
    agent.root_capability.apply(capabilities.append)
    for capability in capabilities:
        is_durable = any(base.__module__.startswith(_DURABLE) for base in type(capability).__mro__)
        if not is_durable or not capability.in_durable_context:
            continue
        name = type(capability).__name__
        raise UserError(
            f"an agent with the capability {name} takes no gates in a workflow: put them around its toolsets, "
            "Agent(toolsets=[guard(FunctionToolset([...], id='tools'), policy)], capabilities=[...])"
        )


def _with_requests(agent: AbstractAgent[Any, Any]) -> AbstractAgent[Any, Any]:
    """Return a copy of an agent with output validators whose runs may end with requests; any other agent itself.

    Pydantic AI takes no output type for one run of such an agent, and shows no requests to its validators.
    """
    if isinstance(agent, WrapperAgent):
        inner = agent.wrapped
        wrapped = _with_requests(inner)
        if wrapped is inner:
            return agent
        wrapper = copy(agent)
        wrapper.wrapped = wrapped
        return wrapper
    if not isinstance(agent, Agent):
        return agent
    changed = copy(cast("Any", agent))  # what a run may end with is set in its constructor alone
    if not changed._output_validators:
        return agent
    changed._output_schema = copy(changed._output_schema)
    changed._output_schema.allows_deferred_tools = True
    return changed


def _names_of(guarded: AbstractAgent[Any, Any] | AbstractToolset[Any]) -> tuple[set[str], bool]:
    """Return the names of tools of an agent or a toolset that are known now, and whether these are all."""
    match guarded:
        case AbstractAgent():
            capabilities: list[AbstractCapability[Any]] = []
            guarded.root_capability.apply(capabilities.append)
            names, are_all = _names_of(CombinedToolset(guarded.toolsets))
            return names, are_all and not any(_is_around_tools(type(capability)) for capability in capabilities)
        case CombinedToolset():
            parts = [_names_of(part) for part in guarded.toolsets]
            return set[str]().union(*(names for names, _ in parts)), all(are_all for _, are_all in parts)
        case FunctionToolset():
            return {*guarded.tools}, _is_theirs(guarded)
        case ToolcribToolset():
            return {*guarded.tools.entries}, guarded.tools.is_open
        case WrapperToolset() if _is_theirs(guarded):
            names, are_all = _names_of(guarded.wrapped)
            new = {old: new for new, old in guarded.name_map.items()} if isinstance(guarded, RenamedToolset) else {}
            prefix = f"{guarded.prefix}_" if isinstance(guarded, PrefixedToolset) else ""
            return {prefix + new.get(name, name) for name in names}, are_all
        case _:
            return set(), False


def _may_list_more(toolset: AbstractToolset[Any]) -> bool:
    """Return whether a toolset may list tools later in a run that it has not listed at first."""
    if _names_of(toolset)[1]:
        return False
    match toolset:
        case CombinedToolset():
            return any(_may_list_more(part) for part in toolset.toolsets)
        case FilteredToolset() | ToolcribToolset():
            return True
        case PreparedToolset() if not toolset.prepare_func.__module__.startswith("pydantic_ai."):
            return True
        case WrapperToolset() if _is_theirs(toolset):
            return _may_list_more(toolset.wrapped)
        case _:
            return not _is_theirs(toolset) or type(toolset).__name__ == "DynamicToolset"


def _is_theirs(toolset: AbstractToolset[Any]) -> bool:
    return type(toolset).__module__.startswith("pydantic_ai.")


def _is_around_tools(capability: type[AbstractCapability[Any]]) -> bool:
    """Return whether a capability of the host's may rename the tools of its agent, or add some."""
    is_own = not capability.__module__.startswith("pydantic_ai.")
    return is_own and capability.get_wrapper_toolset is not AbstractCapability.get_wrapper_toolset

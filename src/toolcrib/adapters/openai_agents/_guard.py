"""Gates around the tools that an agent of the OpenAI Agents SDK has, those of MCP servers too; and its usage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from inspect import isawaitable
from typing import Any, Self, SupportsIndex, TypeVar, cast, overload
from uuid import uuid4

from agents import Agent, FunctionTool, Handoff, ModelResponse, RunContextWrapper, RunHooks, Tool

from toolcrib._short_repr import kind_of
from toolcrib.adapters.openai_agents._members import member
from toolcrib.adapters.openai_agents._tools import ENTRY, Invocation
from toolcrib.approvals import SuspendedCallStore
from toolcrib.serving import GuardPolicy, require_theirs, takes_policy
from toolcrib.serving.frameworks import GuardedTools, UsageNames

T = TypeVar("T")
V = TypeVar("V")


@overload
def guard(
    guarded: Agent[T], policy: GuardPolicy, *, suspended: SuspendedCallStore | None = None
) -> GuardedAgent[T]: ...
@overload
def guard(
    guarded: Iterable[Tool], policy: GuardPolicy, *, suspended: SuspendedCallStore | None = None
) -> list[Tool]: ...
@takes_policy
def guard(
    guarded: Agent[Any] | Iterable[Tool], policy: GuardPolicy, *, suspended: SuspendedCallStore | None = None
) -> GuardedAgent[Any] | list[Tool]:
    """Return an agent, or tools, of the SDK with the gates of a policy around each tool.

    Of an agent these are its own tools, those of its MCP servers, and those of the agents that it hands off to. What
    runs inside an agent that is a tool of another one (`agent.as_tool()`) is guarded where that agent is.

    Args:
        policy: The gates.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.

    Raises:
        ValueError: The SDK or a provider runs one of the tools itself, and the policy does not leave it; or no tool has
            a name that the policy has.
    """
    if isinstance(guarded, FunctionTool):
        raise TypeError(f"guard takes an agent or several tools, as in guard([{guarded.name}], policy)")
    if not isinstance(guarded, Agent | Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
        raise TypeError(f"guard takes an Agent, or tools, and not {kind_of(guarded)}")
    gate = _Gate(GuardedTools(ENTRY, policy, suspended))
    result = gate.agent(guarded) if isinstance(guarded, Agent) else [gate.tool(tool) for tool in guarded]
    gate.check_names()
    return result


class _GuardedList(list[V]):
    """Tools, or handoffs, of a guarded agent: what is added later is guarded, too."""

    def __init__(self, values: Iterable[V], put: Callable[[V], V]) -> None:
        super().__init__(map(put, values))
        self._put = put

    def append(self, value: V) -> None:
        super().append(self._put(value))

    def extend(self, values: Iterable[V]) -> None:
        super().extend(map(self._put, values))

    def insert(self, at: SupportsIndex, value: V) -> None:
        super().insert(at, self._put(value))

    def __iadd__(self, values: Iterable[V]) -> Self:
        self.extend(values)
        return self

    def __setitem__(self, at: Any, value: Any) -> None:
        super().__setitem__(at, [*map(self._put, value)] if isinstance(at, slice) else self._put(value))


@dataclass
class GuardedAgent(Agent[T]):
    """An agent whose tools are guarded, those that it or a clone is given later, too. Made by `guard`."""

    gate: _Gate | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tools, self.handoffs = self.tools, self.handoffs

    def __setattr__(self, name: str, value: Any) -> None:
        if self.gate is not None and name in ("tools", "handoffs") and isinstance(value, list):
            put: Any = self.gate.tool if name == "tools" else self.gate.handoff
            value = _GuardedList(cast("list[Any]", value), put)
        super().__setattr__(name, value)

    async def get_all_tools(self, run_context: RunContextWrapper[T]) -> list[Tool]:
        """Return the tools that the model is shown, before its first request: the run of their calls is opened here."""
        found = await super().get_all_tools(run_context)
        if self.gate is not None:
            self.gate.agent_itself.open_run(run_context)
        return found

    async def get_mcp_tools(self, run_context: RunContextWrapper[T]) -> list[Tool]:
        """Return the tools of the agent's MCP servers, guarded."""
        found = await super().get_mcp_tools(run_context)
        if self.gate is None:
            return found
        guarded = [self.gate.tool(tool) for tool in found]
        self.gate.check_names(self.name)
        return guarded


class _Gate:
    """The gates of one policy, in the runs of one guarded agent.

    Attributes:
        agent_itself: The object in the agent's place where none of its tools is called.
    """

    def __init__(self, tools: GuardedTools) -> None:
        self._tools = tools
        self._made: dict[int, tuple[Agent[Any], GuardedAgent[Any]]] = {}  # agents may hand off in a circle
        self._names: set[str] = set()
        self._unlisted: set[str] = set()  # the agents whose MCP servers have listed no tools yet
        self._are_all = True
        self.agent_itself = Invocation(tools.none, "")

    def check_names(self, listed: str = "") -> None:
        """Check the names of the policy; once the MCP servers of all agents have listed tools, there are no others."""
        self._unlisted.discard(listed)
        self._tools.check_names(self._names, are_all=self._are_all and not self._unlisted)

    def agent(self, agent: Agent[Any]) -> GuardedAgent[Any]:
        known = self._made.get(id(agent))
        if known is not None:
            return known[1]
        if isinstance(agent, GuardedAgent) and agent.gate is self:
            return agent
        if agent.mcp_servers:
            self._unlisted.add(agent.name)
            self._are_all &= not any(callable(getattr(server, "tool_filter", None)) for server in agent.mcp_servers)
        values: dict[str, Any] = {
            attribute.name: getattr(agent, attribute.name) for attribute in fields(agent) if attribute.init
        }
        if not values.keys() <= {attribute.name for attribute in fields(GuardedAgent)}:
            raise TypeError(f"`{agent.name}` is {kind_of(agent)}, which brings further tools: guard an Agent")
        values |= {"handoffs": [], "gate": self}
        guarded: GuardedAgent[Any] = GuardedAgent(**values)
        self._made[id(agent)] = agent, guarded
        guarded.handoffs = agent.handoffs
        return guarded

    def tool(self, tool: Tool) -> Tool:
        known = Invocation.of(tool)
        if known is not None and known.tools.runs is self._tools.runs:
            return tool
        require_theirs(tool, __name__)
        self._names.add(tool.name)
        if not isinstance(tool, FunctionTool):
            self._tools.refuse(tool.name, "the SDK or a provider runs it itself")
        if self._tools.leaves(tool.name) or not isinstance(tool, FunctionTool):
            return tool
        guarded = self._tools.around(member(tool, in_agent=True))
        invocation = Invocation(guarded, tool.name)
        asks = invocation.needs_approval if guarded.may_ask(tool.name) else False

        async def is_enabled(ctx: RunContextWrapper[Any], agent: Any) -> bool:
            await invocation.read_decisions(ctx)
            enabled: Any = tool.is_enabled(ctx, agent) if callable(tool.is_enabled) else tool.is_enabled
            return bool(await enabled if isawaitable(enabled) else enabled)

        return replace(tool, on_invoke_tool=invocation.invoke, needs_approval=asks, is_enabled=is_enabled)

    def handoff(self, handoff: Agent[Any] | Handoff[Any, Any]) -> Agent[Any] | Handoff[Any, Any]:
        if isinstance(handoff, Agent):
            return self.agent(handoff)
        invoke: Callable[[RunContextWrapper[Any], str], Awaitable[Any]] = handoff.on_invoke_handoff
        self._are_all = False

        async def guarded(ctx: RunContextWrapper[Any], arguments: str) -> Any:
            return self.agent(await invoke(ctx, arguments))

        return replace(handoff, on_invoke_handoff=guarded)


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
            values = tools.tools if isinstance(tools, Agent) else tools
            found = [invocation for invocation in map(Invocation.of, values) if invocation is not None]
        self._of_runs = {id(invocation.tools.runs): invocation for invocation in found}

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Record one request."""
        model: Any = agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", "")
        name = model if isinstance(model, str) else ""  # else a run or a provider chooses it
        request = _USAGE.request(uuid4().hex, response.usage, name)
        for invocation in self._of_runs.values():
            invocation.tools.record_usage(invocation.run_of(context), [request])

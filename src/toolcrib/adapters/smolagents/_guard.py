"""Gates around the tools that an agent of smolagents already has, tools of MCP servers and of the Hub included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

from smolagents import CodeAgent, LocalPythonExecutor, MultiStepAgent

from toolcrib.adapters.smolagents._calls import ENTRY, FINAL_ANSWER, AgentCalls, managed_by, tools_of
from toolcrib.adapters.smolagents._executor import SandboxExecutor
from toolcrib.adapters.smolagents._members import Member
from toolcrib.adapters.smolagents._tools import AgentTool
from toolcrib.approvals import SuspendedCallStore
from toolcrib.serving import GuardPolicy, takes_policy
from toolcrib.serving.frameworks import FrameworkTools, GuardedTools

A = TypeVar("A", bound=MultiStepAgent)


@takes_policy
def guard(agent: A, policy: GuardPolicy, *, suspended: SuspendedCallStore | None = None) -> A:
    """Put the gates of a policy around each tool of an agent and of the agents that it manages, and return the agent.

    The agent itself is changed. Its `final_answer` stays as it is: it ends the run.

    Args:
        policy: The gates.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.

    Raises:
        ValueError: The programs of an agent run where its tools cannot be guarded, or a tool has gates already and
            the policy does not leave it.
    """
    guarded = GuardedTools(ENTRY, policy, suspended)
    guarded.check_names(_check(agent, guarded), are_all=True)
    _put(agent, guarded, None)
    return agent


def _check(agent: MultiStepAgent, guarded: GuardedTools) -> set[str]:
    """Refuse what cannot be guarded, before anything is changed; return the names of all tools."""
    if isinstance(agent, CodeAgent) and not isinstance(agent.python_executor, LocalPythonExecutor | SandboxExecutor):
        raise ValueError(
            f"the tools of this agent run in its {type(agent.python_executor).__name__}, out of reach of any gate: "
            "CodeAgent(executor=SandboxExecutor()) runs its programs in our sandbox"
        )
    for name, tool in tools_of(agent).items():
        if isinstance(tool, AgentTool) and not guarded.leaves(name):
            raise ValueError(
                f"`{name}` has gates already. Put those of the policy on its toolset, or leave it as it is: "
                f"GuardPolicy(leave=[{name!r}])"
            )
    names = [_check(managed, guarded) for managed in managed_by(agent)]
    return {*tools_of(agent)}.union(*names)


def _put(agent: MultiStepAgent, guarded: GuardedTools, above: AgentCalls | None) -> None:
    calls = AgentCalls(agent, guarded.runs, above)

    def put(theirs: Mapping[str, Any]) -> dict[str, Any]:
        unguarded = {
            n: t for n, t in theirs.items() if n == FINAL_ANSWER or guarded.leaves(n) or isinstance(t, AgentTool)
        }
        bridge = guarded.around(*(Member(tool).tool() for name, tool in theirs.items() if name not in unguarded))
        return {
            name: unguarded[name] if name in unguarded else _tool(calls, bridge, name, theirs[name]) for name in theirs
        }

    def put_managed(theirs: Mapping[str, Any]) -> dict[str, Any]:
        for their in theirs.values():
            if getattr(their, "_toolcrib_guard", None) is not guarded:
                _check(their, guarded)
                _put(their, guarded, calls)
        return {**theirs}

    kind: Any = type(agent)
    namespace = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__setattr__": _guard_and_set}
    agent.__class__ = type(kind.__name__, (kind,), namespace)
    vars(agent).update({"_toolcrib_guard": guarded, "_toolcrib_put": {"tools": put, "managed_agents": put_managed}})
    for name in ("tools", "managed_agents"):
        setattr(agent, name, getattr(agent, name))


def _tool(calls: AgentCalls, bridge: FrameworkTools, name: str, theirs: Any) -> AgentTool:
    described = {key: getattr(theirs, key) for key in ("description", "inputs", "output_type", "output_schema")}
    return AgentTool(calls, bridge, name, **described)


def _guard_and_set(agent: Any, name: str, value: Any) -> None:
    """Set an attribute of a guarded agent: tools, and agents, that it is given later are guarded, too."""
    put = getattr(agent, "_toolcrib_put", {}).get(name)
    super(type(agent), agent).__setattr__(name, value if put is None else _GuardedDict(value, put))


class _GuardedDict(dict[str, Any]):
    """Tools, or managed agents, of a guarded agent, by name."""

    def __init__(self, given: Mapping[str, Any], put: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
        super().__init__(put(given))
        self._put = put

    def __setitem__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, *items: Any, **named: Any) -> None:
        super().update(self._put(dict(*items, **named)))

    def __ior__(self, items: Any) -> Self:
        self.update(items)
        return self

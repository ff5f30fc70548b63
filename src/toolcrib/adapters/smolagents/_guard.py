"""Gates around the tools that an agent of smolagents already has, tools of MCP servers and of the Hub included."""

from __future__ import annotations

from typing import TypeVar

from smolagents import CodeAgent, LocalPythonExecutor, MultiStepAgent

from toolcrib.adapters.smolagents._calls import ENTRY, FINAL_ANSWER, AgentCalls, managed_by, tools_of
from toolcrib.adapters.smolagents._executor import SandboxExecutor
from toolcrib.adapters.smolagents._members import Member
from toolcrib.adapters.smolagents._tools import AgentTool
from toolcrib.approvals import SuspendedCallStore
from toolcrib.serving import GuardPolicy, takes_policy
from toolcrib.serving.frameworks import GuardedTools

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
    names = [_check(each, guarded) for each in managed_by(agent)]
    return {*tools_of(agent)}.union(*names)


def _put(agent: MultiStepAgent, guarded: GuardedTools, above: AgentCalls | None) -> None:
    calls = AgentCalls(agent, guarded.runs, above)
    theirs = {name: tool for name, tool in tools_of(agent).items() if name != FINAL_ANSWER and not guarded.leaves(name)}
    bridge = guarded.around(*(Member(tool).tool() for tool in theirs.values()))
    for name, tool in theirs.items():
        described = {key: getattr(tool, key) for key in ("description", "inputs", "output_type", "output_schema")}
        AgentTool(calls, bridge, name, **described)
    for each in managed_by(agent):
        _put(each, guarded, calls)

"""Tools that an agent of another framework has, with the gates of a policy around each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from toolcrib.approvals import SuspendedCallStore
from toolcrib.serving._guard_policy import GuardPolicy
from toolcrib.serving.frameworks._runs import FrameworkRuns
from toolcrib.serving.frameworks._tools import FrameworkTools
from toolcrib.tools import Tool
from toolcrib.toolsets import Toolset


class GuardedTools:
    """The tools of agents with the gates of one policy around them.

    Args:
        entry: Which way the calls come, for the record.
        policy: The gates.
        suspended: Where suspended calls are kept; when None, beside the approval store of their run, or in memory.

    Attributes:
        runs: The runs of the calls.
        sinks: Where their events go, besides those of a run.
        none: The value in place of the agent where none of its tools is called.
    """

    def __init__(self, entry: str, policy: GuardPolicy, suspended: SuspendedCallStore | None) -> None:
        policy = GuardPolicy.checked(policy)
        self.runs, self.sinks = FrameworkRuns(entry, policy.opened_run, suspended, policy.limits), policy.sinks
        self.none = FrameworkTools(Toolset(), self.runs, policy.sinks)
        self._policy = policy
        self._known: dict[str, tuple[object, FrameworkTools]] = {}

    def leaves(self, name: str) -> bool:
        """Return whether the policy leaves a tool as it is."""
        return name in self._policy.leave

    def refuse(self, name: str, because: str = "the model's provider runs it itself") -> None:
        """Refuse a tool that cannot be guarded.

        Raises:
            ValueError: The policy does not leave it.
        """
        self._policy.refuse(name, because)

    def check_names(self, names: Iterable[str], *, are_all: bool = False, by_words: bool = True) -> None:
        """Check that the tools that the policy names are among those of an agent.

        Args:
            names: The agent's tools, as far as they are known.
            are_all: Whether there are no others.
            by_words: Whether a name that is a part of that of a tool is nearly that.

        Raises:
            ToolConstraintError: There is no such tool.
        """
        self._policy.check_names(names, are_all=are_all, by_words=by_words)

    def around(self, *members: Tool[..., Any]) -> FrameworkTools:
        """Return tools, as members, with the gates around them."""
        return FrameworkTools(self._policy.around(Toolset(members)), self.runs, self.sinks)

    def guard(self, name: str, theirs: object, member: Callable[[], Tool[..., Any]]) -> FrameworkTools:
        """Return a tool of the framework with the gates around it, which are made once.

        Args:
            name: Its name.
            theirs: The tool itself: another one of this name has gates of its own from then on.
            member: Makes it a member of a toolset.
        """
        known = self._known.get(name)
        if known is None or known[0] is not theirs:
            known = self._known[name] = theirs, self.around(member())
        return known[1]

    def find(self, name: str) -> FrameworkTools | None:
        """Return a tool that was guarded before; None where it is not known."""
        return self._known[name][1] if name in self._known else None

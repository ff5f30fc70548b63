"""Options of a run: its budget, what it has to call, who keeps its calls, and what is shown of errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias

from toolcrib import approvals as _approvals
from toolcrib import record
from toolcrib.hooks import require_number, target_name
from toolcrib.toolsets import Selectable

__all__ = [
    "CallJournal",
    "CallLimits",
    "ErrorPolicy",
    "Requirement",
    "must_call",
    "require_options",
    "require_policies",
]

ErrorPolicy: TypeAlias = Literal["message", "masked"]
"""What the model is shown of an unexpected exception: its message, or a reference to the log."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The budget of a run; None is no limit.

    Attributes:
        total: Calls in the run.
        per_tool: Calls of one tool: a number for each of them, or numbers by name.
        concurrency: Executions at a time, in one event loop. What a tool itself calls runs within the tool's execution.
    """

    total: int | None = None
    per_tool: int | Mapping[str, int] | None = None
    concurrency: int | None = None

    def __post_init__(self) -> None:
        several = dict(self.per_tool).values() if isinstance(self.per_tool, Mapping) else (self.per_tool,)
        require_number("CallLimits", "total", self.total, least=0)
        require_number("CallLimits", "concurrency", self.concurrency, least=1)
        for value in several:
            require_number("CallLimits", "per_tool", value, least=0)

    def of(self, tool: str) -> int | None:
        """Return how often one tool may be called."""
        return self.per_tool.get(tool) if isinstance(self.per_tool, Mapping) else self.per_tool


@dataclass(frozen=True, slots=True)
class Requirement:
    """A tool that a run has to complete; made by `must_call`.

    Attributes:
        before_finish: Whether the run is unfinished without it; else `Run.remarks` says so and no more.
    """

    tool: str
    before_finish: bool = True


def must_call(tool: Selectable, *, before_finish: bool = True) -> Requirement:
    """Require that a tool completes in a run: `Run(requirements=(must_call("save"),))`; or give its selector."""
    return Requirement(target_name(tool), before_finish)


class RunOptions(Protocol):
    """The options of a run that a host may mistake for something else."""

    limits: Any
    approver: Any
    approvals: Any
    principal: Any
    available: Any
    sinks: Any
    requirements: Any


def require_options(run: RunOptions) -> None:
    """Check that the options of a run are what they are for; raises TypeError for what would fail its calls later."""
    if run.approver is not None:
        _approvals.require_approver("Run", run.approver)
    if run.approvals is not None:
        mend = "a store, as in SqliteApprovalStore('approvals.db')"
        _require("approvals", run.approvals, _approvals.ApprovalStore, mend)
    _require("limits", run.limits, CallLimits, "CallLimits, as in CallLimits(total=3)")
    _require("principal", run.principal, str, "a name")
    if isinstance(run.available, str):
        raise TypeError(f"Run: available is not a text; give a set of names, as in available={{{run.available!r:.40}}}")
    if run.sinks:
        _require_each("sinks", run.sinks, record.Sink, "sinks, as in sinks=[ListSink()]")
    mend = "requirements, as in requirements=(must_call('save'),)"
    _require_each("requirements", run.requirements, Requirement, mend)


def require_policies(errors: object, hook_errors: object) -> None:
    """Check what a run does about errors; raises ValueError for a word that there is not."""
    for name, given, words in (
        ("errors", errors, ("message", "masked")),
        ("hook_errors", hook_errors, ("raise", "fail")),
    ):
        if given not in words:
            raise ValueError(f"Run: {name} is {given!r:.80}; give {words[0]!r} or {words[1]!r}")


def _require(name: str, value: object, kind: type, mend: str) -> None:
    if value is not None and not _fits(value, kind):
        raise TypeError(f"Run: {name} is not {value!r:.80}; give {mend}")


def _require_each(name: str, values: Iterable[object], kind: type, mend: str) -> None:
    for value in values:
        if not _fits(value, kind):
            raise TypeError(f"Run: {name} has {value!r:.80}; give {mend}")


def _fits(value: object, kind: type) -> bool:
    return _is_subclass(type(value), kind) or isinstance(value, kind)


@lru_cache(maxsize=256)
def _is_subclass(cls: type, kind: type) -> bool:
    """Return whether a class is of a kind, known from its first object: a protocol takes long to say so."""
    return issubclass(cls, kind)


class CallJournal(Protocol):
    """Keeps each call of a run before it is executed, so that another process knows that it may have been done."""

    async def begin(self, call: Any) -> None:
        """Keep a `Call` that is about to be executed: its tool runs when this has returned."""
        ...

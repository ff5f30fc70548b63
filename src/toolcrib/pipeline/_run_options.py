"""Options of a run: its budget, what it has to call, who keeps its calls, and what is shown of errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from toolcrib.hooks import target_name
from toolcrib.toolsets import Selectable

__all__ = ["CallJournal", "CallLimits", "ErrorPolicy", "Requirement", "must_call"]

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
        for name, value, least in (("total", self.total, 0), ("concurrency", self.concurrency, 1)):
            if value is not None and value < least:
                raise ValueError(f"CallLimits: {name} must be at least {least}, and is {value}")
        for value in several:
            if value is not None and value < 0:
                raise ValueError(f"CallLimits: per_tool must be at least 0, and is {value}")

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


class CallJournal(Protocol):
    """Keeps each call of a run before it is executed, so that another process knows that it may have been done."""

    async def begin(self, call: Any) -> None:
        """Keep a `Call` that is about to be executed: its tool runs when this has returned."""
        ...

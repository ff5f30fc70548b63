"""Decisions of hooks, and the note that a call keeps of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = ["Ask", "Complete", "Decision", "DecisionNote", "Reject", "RunNormally"]


@dataclass(frozen=True, slots=True)
class RunNormally:
    """Go on, with `input` (edited or not) as the tool's input."""

    input: Any


@dataclass(frozen=True, slots=True)
class Complete:
    """Answer the model with `output`; the tool does not run."""

    output: Any


@dataclass(frozen=True, slots=True)
class Reject:
    """Answer the model with `reason`; the tool does not run."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Have a person asked, for `reason`; later hooks still run, and may reject or complete."""

    reason: str
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


Decision: TypeAlias = RunNormally | Complete | Reject | Ask


@dataclass(frozen=True, slots=True)
class DecisionNote:
    """One line of a call's history: which hook decided what."""

    hook: str
    decision: Literal["run", "complete", "reject", "ask"]
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the note as JSON shapes."""
        return {"hook": self.hook, "decision": self.decision, "reason": self.reason}

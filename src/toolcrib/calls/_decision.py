"""Decisions of hooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from toolcrib.errors import explain_options


@dataclass(frozen=True, slots=True)
class RunNormally:
    """Continue with `input` (edited or not) as the tool's input."""

    input: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Complete:
    """Answer the model with `output`; the tool does not run."""

    output: Any


@explain_options()
@dataclass(frozen=True, slots=True)
class Reject:
    """Answer the model with `reason`; the tool does not run."""

    reason: str


@explain_options()
@dataclass(frozen=True, slots=True)
class Ask:
    """Request for a person's approval, with its `reason`; later hooks still run, and may reject or complete.

    Attributes:
        reason: The reason, for the person.
        metadata: The facts that they are shown besides the arguments.
        origins: The values that a gate asks about, as JSON shapes: the call keeps them under the gate's name, the
            request shows them, and the gate's feature is given them when they are approved.
    """

    reason: str
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    origins: Sequence[Mapping[str, str]] = ()


Decision: TypeAlias = RunNormally | Complete | Reject | Ask
"""The return value of a decision hook."""

"""Interrupts of a graph as approval requests, and answers as what the graph is resumed with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from langgraph.types import Interrupt

from toolcrib.approvals import meant_by
from toolcrib.calls import ApprovalRequest, Denial, Grant

__all__ = ["KEY", "answers", "approval_requests"]

KEY = "toolcrib"
"""The entry of ours in the value of an interrupt."""


def approval_requests(interrupts: Iterable[Interrupt]) -> list[ApprovalRequest]:
    """Return what a person has to decide, of `result["__interrupt__"]`; interrupts of other code are left out."""
    return [request for _, request in _asked(interrupts)]


def answers(interrupts: Iterable[Interrupt], *given: Grant | Denial) -> dict[str, Any]:
    """Return answers as `Command(resume=...)` takes them, for some or all of the interrupts.

    Raises:
        ApprovalError: An answer is for nothing that is asked.
    """
    asked = _asked(interrupts)
    made: dict[str, Any] = {}
    for answer in given:
        made |= dict.fromkeys(meant_by(answer, asked), answer.to_dict())
    return made


def _asked(interrupts: Iterable[Interrupt]) -> list[tuple[str, ApprovalRequest]]:
    found: list[tuple[str, ApprovalRequest]] = []
    for interrupt in interrupts:
        value: Any = interrupt.value
        if isinstance(value, Mapping) and KEY in value:
            found.append((interrupt.id, ApprovalRequest.from_dict(cast("Mapping[str, Any]", value)[KEY])))
    return found

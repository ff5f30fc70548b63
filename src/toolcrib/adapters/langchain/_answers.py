"""Interrupts of a graph as approval requests, and answers as what the graph is resumed with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from langgraph.types import Interrupt

from toolcrib.approvals import is_answer_to
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.errors import ApprovalError

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
        found = [id for id, request in asked if is_answer_to(answer, request)]
        if not found:
            meant = answer.request_id or answer.call_id
            raise ApprovalError(answer.tool, f"no call that waits is meant by it ({meant})")
        made |= dict.fromkeys(found, answer.to_dict())
    return made


def _asked(interrupts: Iterable[Interrupt]) -> list[tuple[str, ApprovalRequest]]:
    found: list[tuple[str, ApprovalRequest]] = []
    for interrupt in interrupts:
        value: Any = interrupt.value
        if isinstance(value, Mapping) and KEY in value:
            found.append((interrupt.id, ApprovalRequest.from_dict(cast("Mapping[str, Any]", value)[KEY])))
    return found

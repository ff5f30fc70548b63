"""Interrupts of a graph as approval requests, and answers as what the graph is resumed with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langgraph.types import Interrupt

from toolcrib.calls import ApprovalRequest
from toolcrib.serving.frameworks import Given, answer_payload, answered, request_in


def approval_requests(interrupts: Iterable[Interrupt]) -> list[ApprovalRequest]:
    """Return what a person has to decide, of `result["__interrupt__"]`; interrupts of other code are left out."""
    return [request for _, request in _asked(interrupts)]


def answers(interrupts: Iterable[Interrupt], *given: Given) -> dict[str, Any]:
    """Return answers as `Command(resume=...)` takes them, for some or all of the interrupts.

    Args:
        interrupts: What the graph asked: `result["__interrupt__"]`.
        given: The answers of a person; or a request itself, whose answer the approval store has.

    Raises:
        ApprovalError: An answer is for nothing that is asked.
    """
    return {id: answer_payload(answer) for id, answer in answered(_asked(interrupts), given)}


def _asked(interrupts: Iterable[Interrupt]) -> list[tuple[str, ApprovalRequest]]:
    found = [(interrupt.id, request_in(interrupt.value)) for interrupt in interrupts]
    return [(id, request) for id, request in found if request is not None]

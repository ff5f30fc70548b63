"""Confirmations that ADK asks for, as approval requests, and answers as the message that it goes on with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from google.adk.events import Event
from google.genai import types

from toolcrib.approvals import meant_by
from toolcrib.calls import ApprovalRequest, Denial, Grant

__all__ = ["CONFIRMATION", "CONFIRMED_BY", "KEY", "answers", "approval_requests"]

KEY = "toolcrib"
"""The entry of ours in the payload of a confirmation."""

CONFIRMED_BY = "toolcrib_confirmation"
"""The entry of the payload that has the id of a further confirmation: ADK gives its event to the session alone."""

CONFIRMATION = "adk_request_confirmation"
"""The function by which ADK asks its client for a confirmation."""


def approval_requests(events: Iterable[Event]) -> list[ApprovalRequest]:
    """Return what a person has to decide, of the events of a run; confirmations of other tools are left out."""
    return [request for _, request in _asked(events)]


def answers(events: Iterable[Event], *given: Grant | Denial) -> types.Content:
    """Return answers as the `new_message` that the next run of the agent is given.

    Raises:
        ApprovalError: An answer is for nothing that is asked.
    """
    asked = _asked(events)
    parts: list[types.Part] = []
    for answer in given:
        response = {"confirmed": isinstance(answer, Grant), "payload": {KEY: answer.to_dict()}}
        parts += [_part(id, response) for id in meant_by(answer, asked)]
    return types.Content(role="user", parts=parts)


def _part(id: str, response: dict[str, Any]) -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id=id, name=CONFIRMATION, response=response))


def _asked(events: Iterable[Event]) -> list[tuple[str, ApprovalRequest]]:
    found: dict[str, ApprovalRequest] = {}
    for event in events:
        for call in event.get_function_calls():
            arguments: Any = call.args or {}
            payload: Any = arguments.get("toolConfirmation", {}).get("payload") if call.name == CONFIRMATION else None
            _add(found, call.id or "", payload)
        for confirmation in event.actions.requested_tool_confirmations.values():
            again: Any = confirmation.payload
            if isinstance(again, Mapping) and CONFIRMED_BY in again:
                _add(found, str(cast("Mapping[str, Any]", again)[CONFIRMED_BY]), again)
    return list(found.items())


def _add(found: dict[str, ApprovalRequest], id: str, payload: Any) -> None:
    if isinstance(payload, Mapping) and KEY in payload:
        found[id] = ApprovalRequest.from_dict(cast("Mapping[str, Any]", payload)[KEY])

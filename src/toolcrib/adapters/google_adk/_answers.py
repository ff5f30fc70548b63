"""Confirmations that ADK asks for, as approval requests, and answers as the message that it goes on with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from google.adk.events import Event
from google.genai import types

from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.serving.frameworks import answered, request_in

__all__ = ["CONFIRMATION", "CONFIRMED_BY", "KEY", "answers", "approval_requests"]

KEY = "toolcrib"
"""The entry of an answer in the payload of a confirmation."""

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
    return types.Content(role="user", parts=[_part(id, answer) for id, answer in answered(_asked(events), given)])


def _part(id: str, answer: Grant | Denial) -> types.Part:
    response: dict[str, Any] = {"confirmed": isinstance(answer, Grant), "payload": {KEY: answer.to_dict()}}
    return types.Part(function_response=types.FunctionResponse(id=id, name=CONFIRMATION, response=response))


def _asked(events: Iterable[Event]) -> list[tuple[str, ApprovalRequest]]:
    found = ((id, request_in(payload)) for event in events for id, payload in _payloads(event))
    return [*{id: (id, request) for id, request in found if request is not None}.values()]


def _payloads(event: Event) -> Iterator[tuple[str, Any]]:
    """Yield the payloads of the confirmations that an event asks for, each with the id of its call."""
    for call in event.get_function_calls():
        arguments: Any = call.args or {}
        if call.name == CONFIRMATION:
            yield call.id or "", arguments.get("toolConfirmation", {}).get("payload")
    for confirmation in event.actions.requested_tool_confirmations.values():
        payload: Any = confirmation.payload
        if isinstance(payload, Mapping) and CONFIRMED_BY in payload:
            again = cast("Mapping[str, Any]", payload)
            yield str(again[CONFIRMED_BY]), again

"""Confirmations that ADK asks for, as approval requests, and answers as the message that it goes on with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from google.adk.events import Event
from google.genai import types

from toolcrib.calls import ApprovalRequest, Denial
from toolcrib.serving.frameworks import (
    Given,
    answer_payload,
    answered,
    request_in,
    request_of_framework,
    require_plain,
    require_stopped,
)

KEY = "toolcrib"
"""The entry of an answer in the payload of a confirmation."""

CONFIRMED_BY = "toolcrib_confirmation"
"""The entry of the payload that has the id of a further confirmation: ADK gives its event to the session alone."""

CONFIRMATION = "adk_request_confirmation"
"""The function by which ADK asks its client for a confirmation."""


def approval_requests(events: Iterable[Event]) -> list[ApprovalRequest]:
    """Return the requests that a person must still answer, of the events of a run or of a whole session.

    That is what our gates ask, and what ADK itself asks: of a tool with `require_confirmation`, or one that calls
    `request_confirmation`.
    """
    return [request for _, _, request in _confirmations(events)]


def answers(events: Iterable[Event], *given: Given) -> types.Content:
    """Return answers as the `new_message` that the next run of the agent is given.

    Args:
        events: The events of the agent's run, or of its session.
        given: The answers of a person; or a request itself, whose answer the approval store has.

    Raises:
        ApprovalError: An answer is for nothing that is asked, or answers ADK's own question with more than a yes or no.
    """
    asked = {id: (confirmation, request) for id, confirmation, request in _confirmations(events)}
    waiting = ((id, request) for id, (_, request) in asked.items())
    parts = [_part(id, asked[id][0], answer) for id, answer in answered(waiting, given)]
    return types.Content(role="user", parts=parts)


def confirmed_request(events: Iterable[Event], call_id: str) -> str | None:
    """Return the id of the request about a call that was confirmed last; None where none was."""
    asked: dict[str, ApprovalRequest] = {}
    confirmed: str | None = None
    for event in events:
        asked.update((id, request) for id, _, request in _asked_in(event) if request.call_id == call_id)
        confirmed = next((asked[id].id for id in _replied_to(event) if id in asked), confirmed)
    return confirmed


def _replied_to(event: Event) -> list[str]:
    return [reply.id or "" for reply in event.get_function_responses()]


def _part(id: str, asked: Mapping[str, Any], answer: Given) -> types.Part:
    payload: Any = {KEY: answer_payload(answer)}
    if request_in(asked.get("payload")) is None:
        require_plain(answer, "the confirmation")
        payload = asked.get("payload")  # the tool's own, which it reads
    response: dict[str, Any] = {"confirmed": not isinstance(answer, Denial), "payload": payload}
    return types.Part(function_response=types.FunctionResponse(id=id, name=CONFIRMATION, response=response))


def _confirmations(events: Iterable[Event]) -> list[tuple[str, Mapping[str, Any], ApprovalRequest]]:
    """Return the confirmations that wait, each with the id of its call and its request."""
    require_stopped("it takes the events of a run or of a session", events, Iterable)
    found: dict[str, tuple[str, Mapping[str, Any], ApprovalRequest]] = {}
    for event in events:
        for id in _replied_to(event):
            found.pop(id, None)
        for id, confirmation, request in _asked_in(event):
            found[id] = id, confirmation, request
    return [*found.values()]


def _asked_in(event: Event) -> Iterator[tuple[str, Mapping[str, Any], ApprovalRequest]]:
    for call in event.get_function_calls():
        if call.name == CONFIRMATION:
            arguments: Any = call.args or {}
            asked: dict[str, Any] = arguments.get("toolConfirmation") or {}
            original: dict[str, Any] = arguments.get("originalFunctionCall") or {}
            call_id, tool = original.get("id") or "", original.get("name") or ""
            args: dict[str, Any] = original.get("args") or {}
            request = request_in(asked.get("payload"))
            id, hint = call.id or "", asked.get("hint") or ""
            yield id, asked, request or request_of_framework(id, call_id, tool, args, hint)
    for confirmation in event.actions.requested_tool_confirmations.values():
        payload: Any = confirmation.payload
        request = request_in(payload)
        if request is not None and CONFIRMED_BY in payload:
            yield str(payload[CONFIRMED_BY]), {"payload": payload}, request

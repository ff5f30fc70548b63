"""Approval requests as contents of the framework, and the answers that contents are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from agent_framework import Content, FunctionInvocationContext

from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.serving import answer_of, is_as_seen

__all__ = ["answer_in", "approval_requests", "asked_in", "request_content", "response_content"]

_KEY = "toolcrib"
"""The entry of ours in the additional properties of a content."""


def approval_requests(contents: Iterable[Content]) -> list[ApprovalRequest]:
    """Return what a person has to decide, of `response.user_input_requests`; requests of other tools are left out."""
    return [request for _, request in asked_in(contents)]


def asked_in(contents: Iterable[Content]) -> list[tuple[Content, ApprovalRequest]]:
    """Return the contents that ask for an approval of ours, each with its request."""
    found: list[tuple[Content, ApprovalRequest]] = []
    for content in contents:
        payload = content.additional_properties.get(_KEY)
        if content.type == "function_approval_request" and isinstance(payload, Mapping):
            found.append((content, ApprovalRequest.from_dict(cast("Mapping[str, Any]", payload))))
    return found


def request_content(
    context: FunctionInvocationContext, arguments: Mapping[str, Any], asked: ApprovalRequest
) -> Content:
    """Return the content that asks for an approval in the place of a call's result."""
    call_id: str = context.metadata["call_id"]
    own_id: str = context.metadata.get("function_call_occurrence_id") or call_id
    call = Content.from_function_call(call_id, context.function.name, arguments=dict(arguments), id=own_id)
    about = {"reason": asked.text(), _KEY: asked.to_dict()}
    return Content.from_function_approval_request(own_id, call, additional_properties=about)


def response_content(asked: Content, answer: Grant | Denial) -> Content:
    """Return the content that answers one."""
    response = asked.to_function_approval_response(isinstance(answer, Grant))
    response.additional_properties = {_KEY: answer.to_dict()}
    return response


def answer_in(context: FunctionInvocationContext, request: ApprovalRequest) -> Grant | Denial | None:
    """Return the answer that the framework took from a person; None where there is none that counts.

    One that names no request counts for the arguments that the framework shows.
    """
    response: Any = context.metadata.get("approval_response")
    if not isinstance(response, Content) or response.approved is not True:
        return None
    payload = response.additional_properties.get(_KEY)
    if isinstance(payload, Mapping) and "kind" in payload:
        return answer_of(request, cast("Mapping[str, Any]", payload))
    return request.grant() if is_as_seen(request) else None

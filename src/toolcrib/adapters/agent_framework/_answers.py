"""Approval requests as contents of the framework, and the answers that contents are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from agent_framework import Content, FunctionInvocationContext

from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.serving.frameworks import (
    Given,
    answer_of,
    answer_payload,
    is_as_seen,
    plain_grant,
    request_in,
    request_of_framework,
    request_payload,
    require_plain,
    require_stopped,
)

_KEY = "toolcrib"
"""The entry of an answer in the additional properties of a content."""


def approval_requests(contents: Iterable[Content]) -> list[ApprovalRequest]:
    """Return the requests that a person must answer, of `response.user_input_requests`.

    That is what our gates ask, and what the framework itself asks of a tool with `approval_mode="always_require"`.
    """
    return [request for _, request in asked_in(contents)]


def asked_in(contents: Iterable[Content]) -> Iterator[tuple[Content, ApprovalRequest]]:
    """Yield the contents that ask for an approval, each with its request."""
    require_stopped("it takes `response.user_input_requests`", contents, Iterable)
    for content in contents:
        if content.type != "function_approval_request":
            continue
        request = request_in(content.additional_properties)
        call = content.function_call
        if request is None and call is not None:
            call_id = call.call_id or content.id or ""
            arguments = call.parse_arguments() or {}
            request = request_of_framework(content.id or call_id, call_id, call.name or "", arguments)
        if request is not None:
            yield content, request


def request_content(
    context: FunctionInvocationContext, arguments: Mapping[str, Any], asked: ApprovalRequest
) -> Content:
    """Return the content that asks for an approval in the place of a call's result."""
    call_id: str = context.metadata["call_id"]
    own_id: str = context.metadata.get("function_call_occurrence_id") or call_id
    call = Content.from_function_call(call_id, context.function.name, arguments=dict(arguments), id=own_id)
    about = {"reason": asked.text(), **request_payload(asked)}
    return Content.from_function_approval_request(own_id, call, additional_properties=about)


def response_content(asked: Content, answer: Given) -> Content:
    """Return the content that answers one.

    Raises:
        ApprovalError: It answers a question of the framework's own with more than a yes or no to this call.
    """
    response = asked.to_function_approval_response(not isinstance(answer, Denial))
    if request_in(asked.additional_properties) is not None:
        response.additional_properties = {_KEY: answer_payload(answer)}
        return response
    require_plain(answer, "`approval_mode`")
    if isinstance(answer, Grant):
        response.additional_properties = {_KEY: {"approver": answer.by}}
    return response


def answer_in(context: FunctionInvocationContext, request: ApprovalRequest, *, is_known: bool) -> Grant | Denial | None:
    """Return the answer that the framework took from a person, or None without one that counts.

    One that names no request counts for the arguments that the framework shows, and only where it has shown the call:
    beside a call that asks, it approves all others of the round by itself.

    Args:
        is_known: Whether it was asked before, so that the answer is to it.
    """
    response: Any = context.metadata.get("approval_response")
    if not isinstance(response, Content) or response.approved is not True:
        return None
    payload = response.additional_properties.get(_KEY)
    fields = cast("Mapping[str, Any]", payload if isinstance(payload, Mapping) else {})
    if "kind" in fields:
        return answer_of(request, fields)
    was_shown = is_known or bool(fields) or context.function.approval_mode == "always_require"
    return plain_grant(request, fields.get("approver", "host")) if was_shown and is_as_seen(request) else None

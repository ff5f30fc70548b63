"""Approval of a suspended call by its client: the form for its user, the answers, and the reply without them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolcrib.adapters.mcp_server._client_link import McpClientLink, declares
from toolcrib.adapters.mcp_server._replies import clean, error_result
from toolcrib.approvals import Approver
from toolcrib.calls import DOUBT_ANSWERS, ApprovalRequest, Denial, Grant
from toolcrib.errors import ClientAnswerError
from toolcrib.serving import PendingApprovals

UNVERIFIED = "client via elicitation (unverified)"
"""The approver of a grant that the client gave: it is not known which person answered."""

_log = logging.getLogger("toolcrib.adapters")
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "Whether the call may be made with these arguments.",
            "enum": ["approve", "deny"],
        },
        "message": {"type": "string", "title": "Message", "description": "Shown to the model with a denial."},
    },
    "required": ["decision"],
}
_OF_DOUBT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Answer",
            "description": "What is to become of the call, which may have run already.",
            "enum": [*DOUBT_ANSWERS],
            "enumNames": [*DOUBT_ANSWERS.values()],
        },
        "result": {"type": "string", "title": "Result", "description": "If it was done: its result, as JSON."},
        "message": {"type": "string", "title": "Message", "description": "Shown to the model if it must not be done."},
    },
    "required": ["decision"],
}


@dataclass(frozen=True, slots=True)
class Suspension:
    """A call, or a program, that waits for a person.

    Attributes:
        state: The state it continues from, as JSON shapes; it holds the real arguments.
        executed: Whether it waits for nobody, as another process or task executes it now.
    """

    requests: tuple[ApprovalRequest, ...]
    state: Mapping[str, Any]
    text: str
    executed: bool = False

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(request.id for request in self.requests)


def is_stateless(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client is of the newer generation, which gets a request for input as a result."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def can_elicit(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client declares that its user can fill in a form, and can be reached."""
    can_fill_in = declares(ctx.session.client_capabilities, "elicit")
    return can_fill_in and (is_stateless(ctx) or ctx.session.can_send_request)


# --- a request during the call, of the older generation and of tasks


def form_approver(link: McpClientLink, pending: PendingApprovals) -> Approver:
    """Return an approver that asks the client's user by a form; a closed form leaves the call suspended.

    Args:
        pending: The pending requests, among which the form counts.
    """
    opens_pages = declares(link.declared, "elicit_url")

    async def approver(request: ApprovalRequest) -> Grant | Denial | None:
        if request.asked_by is not None:  # a form with approve and deny has no fields for what another server asks
            return None
        page = "" if request.consent is None or not opens_pages else request.consent.url
        try:
            async with pending.form(request):
                result = await link.ask(_page_for(request, page) if page else _form_for(request), request.id)
        except ClientAnswerError as error:  # the client is not ours
            _log.warning("the client did not answer the request %s: %s", request.id, error)
            return None
        if page:  # what counts is what the user does there
            return request.deny(message="", by=UNVERIFIED) if result.action == "decline" else None
        return _answer(request, result)

    return approver


def _page_for(request: ApprovalRequest, url: str) -> types.ElicitRequest:
    """Return the request that has the client open the page where its user consents."""
    params = types.ElicitRequestURLParams(message=clean(request.reason), url=url, elicitation_id=request.id)
    return types.ElicitRequest(params=params)


# --- the newer one: forms in a result, answers in the next request


def forms_for(requests: Sequence[ApprovalRequest]) -> dict[str, types.InputRequest]:
    """Return a form for each approval request, by its id."""
    return {request.id: _form_for(request) for request in requests}


def _form_for(request: ApprovalRequest) -> types.ElicitRequest:
    schema = _OF_DOUBT if request.in_doubt else _FORM
    params = types.ElicitRequestFormParams(message=clean(request.text()), requested_schema=schema)
    return types.ElicitRequest(params=params)


def answers_from_forms(
    requests: Sequence[ApprovalRequest], responses: Mapping[str, Any] | None
) -> list[Grant | Denial]:
    """Return the answers of the client to these requests; a closed form does not count as one."""
    filled = responses or {}
    found = [(request, filled.get(request.id)) for request in requests]
    answers = [_answer(request, result) for request, result in found if isinstance(result, types.ElicitResult)]
    return [answer for answer in answers if answer is not None]


def _answer(request: ApprovalRequest, result: types.ElicitResult) -> Grant | Denial | None:
    """Return the answer of a form: only a plain `approve`, or the result of a call that was done, grants."""
    content = result.content or {}
    message = content.get("message")
    reason = message if isinstance(message, str) else ""
    if result.action == "cancel":
        return None
    if result.action == "accept" and content.get("decision") == "approve":
        return request.grant(UNVERIFIED, message=reason)
    if request.in_doubt and result.action == "accept" and content.get("decision") == "done":
        return request.done(_result_in(content.get("result")), UNVERIFIED, reason)
    return request.deny(message=reason, by=UNVERIFIED)


def _result_in(text: object) -> Any:
    """Return the result that a person typed: of JSON its value, else the text itself."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text


# --- the reply without an answer


def suspended_result(suspension: Suspension, answered_in: str, *, because: str = "") -> types.CallToolResult:
    """Return the result for a call that waits for an answer in the store.

    Args:
        because: Why the client itself was not asked.
    """
    is_consent = all(request.consent is not None for request in suspension.requests)
    is_in_doubt = any(request.in_doubt for request in suspension.requests)
    goes_on = "with its result" if suspension.executed else "as they answered" if is_in_doubt else "and runs once"
    where = f"{because}A person answers it in {answered_in}; no tool and no command of yours does. "
    text = (
        f"{suspension.text}\n{'' if is_consent or suspension.executed else where}"
        f"Make exactly the same call again after that: it goes on from here, {goes_on}."
    )
    asked = [
        {"id": r.id, "tool": r.tool, "arguments": dict(r.arguments), "reason": r.reason, "answered_in": answered_in}
        for r in suspension.requests
    ]
    return error_result(text, {"status": "suspended", "requests": asked})


def is_suspended_result(result: types.CallToolResult) -> bool:
    """Return whether a result is that of a suspended call."""
    return result.is_error and result.structured_content is not None

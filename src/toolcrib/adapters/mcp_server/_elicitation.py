"""Asking about a call that waits: what the client is told, the form that its user fills in, and what that says."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from toolcrib.adapters.mcp_server._replies import clean, error_result
from toolcrib.approvals import Approver
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.serving._pending_limit import PendingApprovals

__all__ = [
    "UNVERIFIED",
    "Halted",
    "Waits",
    "answers_in",
    "asked_through",
    "can_elicit",
    "forms_for",
    "is_stateless",
    "is_waiting",
    "waiting_result",
]

UNVERIFIED = "client via elicitation (unverified)"
"""Who a grant says answered, where the client did and nobody knows on whose word."""

_log = logging.getLogger("toolcrib.adapters")
_AWAITING = "awaiting_approval"
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "Whether the call may be made with these arguments.",
            "enum": ["approve", "deny"],
        },
        "message": {"type": "string", "title": "Message", "description": "What the model is told with a no."},
    },
    "required": ["decision"],
}


@dataclass(frozen=True, slots=True)
class Halted:
    """A call, or a program, that waits for a person.

    Attributes:
        requests: What they are asked.
        state: What it is taken up from, as JSON shapes; it holds the real arguments.
        text: What a model is told.
    """

    requests: tuple[ApprovalRequest, ...]
    state: Mapping[str, Any]
    text: str


@runtime_checkable
class Waits(Protocol):
    """A store that can be waited for."""

    async def wait(self, request_id: str, timeout: float | None = None) -> Grant | Denial | None:
        """Return the answer to a request once it has one; None after `timeout` seconds."""
        ...


def is_stateless(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client is of the generation that is asked for input by a result, and comes back with it."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def can_elicit(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client says that it can have its user fill in a form, and can be reached."""
    declared = ctx.session.client_capabilities
    elicitation = None if declared is None else declared.elicitation
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False
    return is_stateless(ctx) or ctx.session.can_send_request


# --- the older generation: a request of the server's while the call waits


def asked_through(ctx: ServerRequestContext[Any, Any], pending: PendingApprovals) -> Approver:
    """Return an approver that has the client's user fill in a form; None as its answer leaves the call suspended.

    Args:
        pending: Where the form counts among what waits for an answer.
    """

    async def approver(request: ApprovalRequest) -> Grant | Denial | None:
        try:
            async with pending.form(request):
                result = await ctx.session.elicit_form(clean(request.text()), _FORM, related_request_id=ctx.request_id)
        except (MCPError, ValidationError) as error:  # what a client answers is its own
            _log.warning("the client did not answer the question %s: %s", request.id, error)
            return None
        return _answer(request, result)

    return approver


# --- the newer one: forms in a result, answers in the next request


def forms_for(requests: Sequence[ApprovalRequest]) -> dict[str, types.InputRequest]:
    """Return a form for each question, by its id."""
    params = {r.id: types.ElicitRequestFormParams(message=clean(r.text()), requested_schema=_FORM) for r in requests}
    return {key: types.ElicitRequest(params=form) for key, form in params.items()}


def answers_in(requests: Sequence[ApprovalRequest], responses: Mapping[str, Any] | None) -> list[Grant | Denial]:
    """Return what the client answered to these questions; a form that was closed is no answer."""
    given = responses or {}
    found = [(request, given.get(request.id)) for request in requests]
    answers = [_answer(request, result) for request, result in found if isinstance(result, types.ElicitResult)]
    return [answer for answer in answers if answer is not None]


def _answer(request: ApprovalRequest, result: types.ElicitResult) -> Grant | Denial | None:
    """Return what a form says: only a plain `approve` is a yes."""
    content = result.content or {}
    message = content.get("message")
    said = message if isinstance(message, str) else ""
    if result.action == "cancel":
        return None
    if result.action == "accept" and content.get("decision") == "approve":
        return request.grant(UNVERIFIED, message=said)
    return request.deny(said, UNVERIFIED)


# --- the store


def waiting_result(halted: Halted, approve_with: str, *, because: str = "") -> types.CallToolResult:
    """Return what a client is told of a call that waits for an answer in the store.

    Args:
        approve_with: How a person answers, with `{id}` for the request.
        because: Why the client was not asked itself.
    """
    ways = [approve_with.replace("{id}", request.id) for request in halted.requests]
    listed = "\n".join(f"  {way}" for way in ways)
    text = (
        f"{halted.text}\n{because}Ask the person in charge to answer it:\n{listed}\n"
        "Then make exactly the same call again: it goes on from here, and runs once."
    )
    asked = [
        {"id": r.id, "tool": r.tool, "arguments": dict(r.arguments), "reason": r.reason, "approve_with": way}
        for r, way in zip(halted.requests, ways, strict=True)
    ]
    return error_result(text, {"status": _AWAITING, "requests": asked})


def is_waiting(result: types.CallToolResult) -> bool:
    """Return whether a client was told that its call waits."""
    return result.is_error and result.structured_content is not None

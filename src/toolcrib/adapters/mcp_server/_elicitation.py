"""Approval of a suspended call by its client: the form for its user, the answers, and the reply without them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolcrib.adapters.mcp_server._client_link import McpClientLink, declares
from toolcrib.adapters.mcp_server._replies import clean, error_result
from toolcrib.approvals import Approver, GrantForm, misfit
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
_CONFIRM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "Whether all of this may run without a further question.",
            "enum": ["allow", "back"],
        },
    },
    "required": ["decision"],
}
_ARGUMENT = "argument "  # begins the name of the field for an argument


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


def counts_alone(request: ApprovalRequest) -> bool:
    """Return whether a yes of the client's user is enough for a request, so that it can be asked by a form."""
    return not misfit(request.grant(UNVERIFIED), request)


# --- a request during the call, of the older generation and of tasks


def form_approver(link: McpClientLink, pending: PendingApprovals, longest: timedelta | None) -> Approver:
    """Return an approver that asks the client's user by a form; a closed form leaves the call suspended.

    Args:
        pending: The pending requests, among which the form counts.
        longest: The longest time for which the client may let further calls run; None where it may not.
    """
    opens_pages = declares(link.declared, "elicit_url")

    async def approver(request: ApprovalRequest) -> Grant | Denial | None:
        if request.asked_by is not None:  # a form with approve and deny has no fields for what another server asks
            return None
        if not counts_alone(request):
            return None
        page = "" if request.consent is None or not opens_pages else request.consent.url
        try:
            async with pending.form(request):
                asked = _page_for(request, page) if page else _form_for(request, longest)
                result = await link.ask(asked, request.id)
                answer = None if page else _answer(request, result, longest)
                if isinstance(answer, Grant) and answer.standing:
                    confirmed = _confirms(await link.ask(_confirmation_of(answer), _confirmation_key(request)))
                    answer = answer if confirmed else None
        except ClientAnswerError as error:  # the client is not ours
            _log.warning("the client did not answer the request %s: %s", request.id, error)
            return None
        if page:  # what counts is what the user does there
            declined = result.action == "decline"
            return request.deny(message=_why_not(request, result, longest), by=UNVERIFIED) if declined else None
        return answer

    return approver


def _page_for(request: ApprovalRequest, url: str) -> types.ElicitRequest:
    """Return the request that has the client open the page where its user consents."""
    params = types.ElicitRequestURLParams(message=clean(request.reason), url=url, elicitation_id=request.id)
    return types.ElicitRequest(params=params)


# --- the newer one: forms in a result, answers in the next request


def forms_for(
    requests: Sequence[ApprovalRequest],
    longest: timedelta | None = None,
    unconfirmed: Mapping[str, Grant] | None = None,
) -> dict[str, types.InputRequest]:
    """Return a form for each approval request, by its id; for a standing grant, one that shows its words."""
    forms: dict[str, types.InputRequest] = {}
    for request in requests:
        if (grant := (unconfirmed or {}).get(request.id)) is not None:
            forms[_confirmation_key(request)] = _confirmation_of(grant)
        else:
            forms[request.id] = _form_for(request, longest)
    return forms


def _form_for(request: ApprovalRequest, longest: timedelta | None) -> types.ElicitRequest:
    schema = _schema_for(request, longest)
    params = types.ElicitRequestFormParams(message=clean(request.text()), requested_schema=schema)
    return types.ElicitRequest(params=params)


def _schema_for(request: ApprovalRequest, longest: timedelta | None) -> dict[str, Any]:
    if longest is not None and GrantForm.fits(request):
        decision = {
            **_FORM["properties"]["decision"],
            "enum": ["approve", "always", "deny"],
            "enumNames": ["Yes, this call", "Yes, and further calls as the fields below say", "No"],
        }
        fields = GrantForm.schema(request, longest)["properties"]
        bounds = {
            clean(f"{_ARGUMENT}{name}"): {**field, "description": f"With always: {field['description']}"}
            for name, field in fields.pop("bounds")["properties"].items()
        }
        if "summed" in fields:
            fields["summed"]["enum"] = [clean(name) for name in fields["summed"]["enum"]]
        message = _FORM["properties"]["message"]
        return {**_FORM, "properties": {"decision": decision, **bounds, **fields, "message": message}}
    return _OF_DOUBT if request.in_doubt else _FORM


def _confirmation_key(request: ApprovalRequest) -> str:
    return f"{request.id}.confirm"


def _confirmation_of(grant: Grant) -> types.ElicitRequest:
    """Return the form that shows a standing grant word for word before it counts."""
    params = types.ElicitRequestFormParams(message=clean(grant.text()), requested_schema=_CONFIRM)
    return types.ElicitRequest(params=params)


def _confirms(result: object) -> bool:
    if not isinstance(result, types.ElicitResult) or result.action != "accept":
        return False
    return (result.content or {}).get("decision") == "allow"


def answers_from_forms(
    requests: Sequence[ApprovalRequest],
    responses: Mapping[str, Any] | None,
    longest: timedelta | None = None,
    unconfirmed: Mapping[str, Grant] | None = None,
) -> tuple[list[Grant | Denial], dict[str, Grant]]:
    """Return the answers of the client to these requests, and the standing grants that it has to confirm.

    A closed form does not count as an answer, and a standing grant counts where the form which shows it comes back.

    Args:
        unconfirmed: The standing grants that the client was shown, by request.
    """
    filled, shown = responses or {}, unconfirmed or {}
    answers, found = list[Grant | Denial](), list[Grant | Denial | None]()
    for request in requests:
        result = filled.get(request.id)
        if request.id in shown:
            answers += [shown[request.id]] if _confirms(filled.get(_confirmation_key(request))) else []
        elif isinstance(result, types.ElicitResult):
            found.append(_answer(request, result, longest))
    standing = {answer.request_id or "": answer for answer in found if isinstance(answer, Grant) and answer.standing}
    return [
        *answers,
        *(answer for answer in found if answer is not None and answer.request_id not in standing),
    ], standing


def _answer(request: ApprovalRequest, result: types.ElicitResult, longest: timedelta | None) -> Grant | Denial | None:
    """Return the answer of a form: only a plain `approve`, bounds, or the result of a call that was done, grants."""
    content = result.content or {}
    message = content.get("message")
    reason = message if isinstance(message, str) else ""
    if result.action == "cancel":
        return None
    if result.action == "accept" and content.get("decision") == "approve":
        return request.grant(UNVERIFIED, message=reason)
    if request.in_doubt and result.action == "accept" and content.get("decision") == "done":
        return request.done(_result_in(content.get("result")), UNVERIFIED, reason)
    if result.action == "accept" and content.get("decision") == "always":
        return _standing(request, content, reason, longest)
    return request.deny(message=_why_not(request, result, longest) or reason, by=UNVERIFIED)


def _why_not(request: ApprovalRequest, result: types.ElicitResult, longest: timedelta | None) -> str:
    """Return the reason for which a form does not count as an answer; empty for one that does."""
    if result.action == "decline":
        return f"The user of the client declined to answer whether `{request.tool}` may run; it did not run."
    decision, known = (result.content or {}).get("decision"), _schema_for(request, longest)["properties"]["decision"]
    if decision in known["enum"]:
        return ""
    words = ", ".join(repr(word) for word in known["enum"])
    return (
        f"The form that the client sent is not valid: `decision` is {decision!r:.40}, and has to be one of {words}. "
        f"Nobody denied `{request.tool}`, and it did not run."
    )


def _standing(
    request: ApprovalRequest, content: Mapping[str, Any], reason: str, longest: timedelta | None
) -> Grant | Denial:
    """Return the standing grant of a form; a denial that says what is wrong with it, where it makes none."""
    names = {clean(f"{_ARGUMENT}{place}"): place for place in GrantForm.places(request)}
    try:
        if longest is None:
            raise ValueError("a client may answer for its call alone here")
        bounds = {name: content.get(key) for key, name in names.items()}
        limits = {name: value for name, value in content.items() if name not in {"decision", "message", *names}}
        form = GrantForm.from_dict({"bounds": bounds, **limits})
        return form.grant(request, UNVERIFIED, reason, longest=longest)
    except ValueError as error:
        return request.deny(message=f"Nothing was approved, this call neither: {error}.", by=UNVERIFIED)


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

"""Answer form: the fields that a person sent, as a grant or a denial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast, get_args

from toolcrib._json_writer import read_json
from toolcrib.approvals import ApprovalEntry, answer_problems, typed_bounds
from toolcrib.calls import ApprovalRequest, Denial, Grant, GrantScope, Identity, TimesOfDay
from toolcrib.console._guard import Visitor

_LONGEST_NAME = 80
_LONGEST_MESSAGE = 10_000


@dataclass
class AnswerError(Exception):
    """A field of the form is not an answer."""

    field: str
    problems: list[str]


def answer_to(entry: ApprovalEntry, sent: Mapping[str, Any], visitor: Visitor) -> Grant | Denial:
    """Return the answer of a person to a request.

    Raises:
        AnswerError: A field is missing or invalid.
    """
    request = entry.request
    by = _approver(sent, visitor)
    message = _text(sent, "message", _LONGEST_MESSAGE)
    match sent.get("answer"):
        case "deny":
            return request.deny(message=message, by=by)
        case "approve":
            if sent.get("arguments") is None:
                if request.asked_by is not None:
                    _require_fit(request, request.grant(by), "arguments", "Fill in what is asked for.")
                return request.grant(by, message=message)
            arguments = arguments_of(request, sent["arguments"])
            return request.grant(by, message=message, override_args=arguments)
        case "done":
            return request.done(_result(request, sent), by, message)
        case "always" if request.asked_by is not None:
            raise AnswerError("answer", [f"{request.asked_by} asks this during one call: it is answered once."])
        case "always":
            return _always(request, sent, by, message)
        case other:
            raise AnswerError("answer", [f"it must be approve, deny, done or always, and not {other!r}"])


def arguments_of(request: ApprovalRequest, sent: Any) -> dict[str, Any]:
    """Return the arguments that replace the request's, from an object or JSON text.

    Raises:
        AnswerError: They are not an object, hold a hidden secret, or do not fit the tool's schema.
    """
    try:
        typed: Any = read_json(sent) if isinstance(sent, str) else sent
    except (ValueError, RecursionError) as error:
        raise AnswerError("arguments", [f"This is not JSON: {error}"]) from None
    if not isinstance(typed, dict):
        raise AnswerError("arguments", ["The arguments must be a JSON object: {...}"])
    arguments = cast("dict[str, Any]", typed)
    _require_fit(request, request.grant(override_args=arguments), "arguments")
    return arguments


def _require_fit(request: ApprovalRequest, answer: Grant, field: str, *before: str) -> None:
    """Raise AnswerError where what a person gave does not fit what the request asks for."""
    if problems := answer_problems(request, answer):
        raise AnswerError(field, [*before, *problems])


def _result(request: ApprovalRequest, sent: Mapping[str, Any]) -> Any:
    """Parse the result of a call in doubt, given as JSON text.

    Raises:
        AnswerError: It is not JSON, or does not fit what the tool says that it returns.
    """
    text = sent.get("result")
    if not isinstance(text, str):
        raise AnswerError("result", ["Give the result of the call as JSON."])
    try:
        result: Any = read_json(text)
    except (ValueError, RecursionError) as error:
        raise AnswerError("result", [f"This is not JSON: {error}"]) from None
    _require_fit(request, request.done(result), "result")
    return result


def _approver(sent: Mapping[str, Any], visitor: Visitor) -> str | Identity:
    """Return who answers: the identity of a login, or the name that was typed."""
    if visitor.name:
        return visitor.identity or Identity(visitor.name, "console")
    name = " ".join(_text(sent, "name", _LONGEST_NAME).split())
    if not name or not name.isprintable():
        raise AnswerError("name", ["Say who you are: the name goes into the record."])
    return f"{name} (console)"


def _text(sent: Mapping[str, Any], field: str, longest: int) -> str:
    value = sent.get(field, "")
    if not isinstance(value, str) or len(value) > longest:
        raise AnswerError(field, [f"It must be a text of {longest} characters at most."])
    return value


def _always(request: ApprovalRequest, sent: Mapping[str, Any], by: str | Identity, message: str) -> Grant:
    scope, uses = _scope(request, sent), sent.get("uses")
    if uses is not None and (isinstance(uses, bool) or not isinstance(uses, int) or uses < 1):
        raise AnswerError("uses", ["It must be a number of calls, 1 or more, or null for any number."])
    total, typed = _total(sent), _typed_bounds(sent) if scope == "within" else None
    try:
        bounds = None if typed is None else typed_bounds(request, typed)
        limits: dict[str, Any] = {"within": bounds, "uses": uses, "total": total}
        limits["times"] = TimesOfDay.parse(times) if (times := _text(sent, "times", _LONGEST_NAME)) else None
        return request.always(by, scope=scope, expires=_expiry(sent), message=message, **limits)
    except ValueError as error:
        raise AnswerError("within", [f"{error}."]) from None


def _total(sent: Mapping[str, Any]) -> tuple[str, Any] | None:
    total: Any = sent.get("total")
    if total is None:
        return None
    listed = cast("list[Any]", total) if isinstance(total, list) else []
    if len(listed) != 2:
        raise AnswerError("total", ['It must be an argument and its limit, as in ["amount", 200], or null.'])
    return str(listed[0]), listed[1]


def _typed_bounds(sent: Mapping[str, Any]) -> dict[str, str]:
    fields: Any = sent.get("within")
    typed: dict[str, Any] = cast("dict[str, Any]", fields) if isinstance(fields, dict) else {"": None}
    if not all(isinstance(text, str) for text in typed.values()):
        raise AnswerError("within", ['It must be a bound for each argument that may differ: {"amount": "<= 50"}.'])
    return typed


def _scope(request: ApprovalRequest, sent: Mapping[str, Any]) -> GrantScope:
    scope = sent.get("scope", "arguments")
    if scope not in get_args(GrantScope) or (scope == "values" and not request.origins):
        values = ", values" if request.origins else ""
        raise AnswerError("scope", [f"It must be tool, arguments, within{values}, and not {scope!r}."])
    return scope


def _expiry(sent: Mapping[str, Any]) -> timedelta | None:
    hours = sent.get("hours")
    if hours is None:
        return None
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not 0 < hours <= 24 * 366 * 10:
        raise AnswerError("hours", ["It must be a number of hours, or null for no end."])
    return timedelta(hours=hours)

"""Answers of a person: the fields that they filled in, and edits that do not fit the tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final, cast

import toolcrib.approvals as approvals
from toolcrib._json_writer import RepeatedKeyError, read_json
from toolcrib.calls import ApprovalRequest, Bound, Grant
from toolcrib.errors import ApprovalError

_YES: Final = frozenset({"y", "yes", "true"})
_NO: Final = frozenset({"n", "no", "false"})


def answered_fields(request: ApprovalRequest, answer: Grant) -> dict[str, Any]:
    """Return the fields that a person filled in, with the defaults that they left; nothing is checked.

    They are an object as `override_args` or `user_input`, or its JSON text. Where one field is asked for, its value
    alone will do. A bare yes leaves the fields as they are shown; of one field that wants yes or no, it is the answer.

    Raises:
        ValueError: The text has a key twice.
    """
    filled: Any = answer.user_input if answer.override_args is None else answer.override_args
    parts: Mapping[str, Mapping[str, Any]] = (request.parameters or {}).get("properties", {})
    fields = dict(request.arguments)
    only = next(iter(parts)) if len(parts) == 1 else None
    found = _object_in(filled)
    if found is not None:
        return {**fields, **found}
    if only is None:
        return fields
    if filled is not None:
        return {only: field_value(parts[only], filled) if isinstance(filled, str) else filled}
    if parts[only].get("type") == "boolean" and only not in fields:
        return {only: True}
    return fields


def typed_bounds(request: ApprovalRequest, typed: Mapping[str, str]) -> dict[str, Bound]:
    """Return the bounds of arguments that a person typed, for `request.always(within=...)`.

    Args:
        request: The request.
        typed: The bounds as text for `Bound.parse`, by argument, or by the path to a part of one.

    Raises:
        ValueError: One is not a bound; the error names the argument.
    """
    bounds: dict[str, Bound] = {}
    for name, text in typed.items():
        try:
            if text.strip():
                bounds[name] = Bound.parse(text, request.arguments.get(name))
        except ValueError as error:
            raise ValueError(f"`{name}`: {error}") from None
    return bounds


def _object_in(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, str):
        try:
            value = read_json(value)
        except RepeatedKeyError:
            raise
        except (ValueError, RecursionError):
            return None
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def field_value(part: Mapping[str, Any], text: str) -> Any:
    """Return the value of a field that a person typed, by the field's JSON schema; else the text itself.

    A boolean takes yes and no, and a list takes its items with commas between them.
    """
    kind, line = part.get("type"), text.strip()
    if kind == "boolean" and line.lower() in _YES | _NO:
        return line.lower() in _YES
    if kind == "array" and not line.startswith("["):
        items: Mapping[str, Any] = part.get("items", {})
        return [_chosen(items, item.strip()) for item in line.split(",") if item.strip()]
    if kind == "string":
        return _chosen(part, text)
    try:
        return read_json(line)
    except (ValueError, RecursionError):
        return _chosen(part, text)


def field_choices(part: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """Return the values that a field, or an item of a list, may have, each with its title; empty where any will do."""
    listed = cast("Mapping[str, Any]", part.get("items", {})) if part.get("type") == "array" else part
    several: Sequence[Mapping[str, Any]] = listed.get("oneOf") or listed.get("anyOf") or ()
    titled = [(choice["const"], str(choice.get("title", choice["const"]))) for choice in several if "const" in choice]
    named: Sequence[Any] = [listed["const"]] if "const" in listed else listed.get("enum", ())
    return titled or [(value, str(value)) for value in named]


def _chosen(part: Mapping[str, Any], text: str) -> Any:
    """Return the choice that a person named by its value or title; the text where no choice has it."""
    choices = field_choices(part)
    return next((value for value, title in choices if text.strip() in (str(value), title)), text)


def require_fit(request: ApprovalRequest, answer: Grant) -> None:
    """Raise ApprovalError for an edit or a result that does not fit the tool: the call waits on, and no yes is used up.

    Without the extra `schema` nothing is checked here; the pipeline refuses it when it is used.
    """
    if (answer.override_args is None and answer.done is None) or find_spec("jsonschema") is None:
        return
    if problems := approvals.answer_problems(request, answer):  # loaded now, with the checker of schemas
        kind = "edit" if answer.done is None else "result"
        raise ApprovalError(request.tool, f"the {kind} does not fit the tool: {'; '.join(problems)}")

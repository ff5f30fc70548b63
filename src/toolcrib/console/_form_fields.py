"""Fields of a form in which a person edits arguments or gives a result, made from the tool's JSON schema.

A value is the text that JSON has for it, or, of a text field, the text itself: a browser's own numbers would lose
digits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from toolcrib.approvals import GrantForm
from toolcrib.calls import ApprovalRequest, cut
from toolcrib.errors import SchemaTooLarge
from toolcrib.jsonschema import SchemaWalk, alternatives, as_one, kinds_of, properties_of, values_of, wrapped

_DEEPEST = 3  # objects in one another; what is deeper is JSON text
_MOST_FIELDS = 40
_MOST_CHOICES = 100
_LONG_TEXT = 80
_LONGEST_HELP = 500
_MOST_LEVELS = 10  # of choices of one type, and references, in one another
_LONGEST_SHOWN = 60


def bound_fields(request: ApprovalRequest) -> list[dict[str, Any]]:
    """Return a field for each argument and part of one, for what it may be in further calls; none for too many."""
    if len(request.arguments) > _MOST_FIELDS:
        return []
    numbers = GrantForm.numbers(request)
    return [
        {
            "name": name,
            "value": cut(json.dumps(value, ensure_ascii=False), _LONGEST_SHOWN),
            "is_number": name in numbers,
            "suggestion": f"<= {value}" if name in request.arguments and _is_number(value) else "",
        }
        for name, value in GrantForm.places(request).items()
    ]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _TooMany(Exception):
    """The form would have more fields than a person fills in."""


def form_fields(schema: Mapping[str, Any] | None, arguments: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the fields of a form; None for a schema without any, or with too many."""
    if schema is None:
        return None
    try:
        return _Form(schema).fields(schema, arguments, 0) or None
    except (_TooMany, SchemaTooLarge):
        return None


def result_field(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the field in which a person gives the result of a call; `json` where no other holds its values."""
    root = wrapped(schema or {}, "Result")
    try:
        (field,) = _Form(root).fields(root, {}, 0)
    except (_TooMany, SchemaTooLarge):
        return result_field(None)
    return field | ({"name": "Result, as JSON"} if field["kind"] == "json" else {})


class _Form:
    """Makes the fields of one schema, which may be a stranger's."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._walk, self._left = SchemaWalk(root), _MOST_FIELDS

    def fields(self, schema: Mapping[str, Any], values: Mapping[str, Any], depth: int) -> list[dict[str, Any]]:
        """Return a field for each property of an object, and for each further value."""
        properties, required = properties_of(schema), schema.get("required", ())
        names = [*properties, *(name for name in values if name not in properties)]
        self._left -= len(names)
        if self._left < 0:
            raise _TooMany
        return [
            {
                "name": name,
                "required": name in required,
                "given": name in values,
                "help": cut(str(_mapping(properties.get(name)).get("description", "")), _LONGEST_HELP),
                **self._kind(_mapping(properties.get(name)), name in values, values.get(name), depth),
            }
            for name in names
        ]

    def _kind(self, about: Mapping[str, Any], is_given: bool, value: Any, depth: int) -> dict[str, Any]:
        """Return the kind of a field with its value; `json` where no other shows the value."""
        about, nullable = self._resolved(about)
        shown: dict[str, Any] = {"value": _text(value) if is_given else "", "nullable": nullable}
        kind = about.get("type")
        choices = values_of(about) or ([True, False] if kind == "boolean" else [])
        if 0 < len(choices) <= _MOST_CHOICES:
            texts = [_text(choice) for choice in (*choices, *((None,) if nullable and None not in choices else ()))]
            if not is_given or shown["value"] in texts:
                return {**shown, "kind": "choice", "choices": texts}
        is_closed = bool(properties_of(about)) and not about.get("additionalProperties")
        if kind == "object" and depth < _DEEPEST and is_closed and (isinstance(value, Mapping) or not is_given):
            return {**shown, "kind": "group", "fields": self.fields(about, _mapping(value), depth + 1)}
        if kind == "string" and _is_of(value, (str,), is_given, nullable):
            text = value if isinstance(value, str) else ""
            long = "\n" in text or len(text) > _LONG_TEXT
            return {**shown, "kind": "text", "value": text, "long": long, "null": is_given and value is None}
        if kind in ("integer", "number") and _is_of(value, (int, float), is_given, nullable):
            return {**shown, "kind": "number", "value": "" if value is None else shown["value"]}
        return {**shown, "kind": "json"}

    def _resolved(self, about: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
        """Return a schema behind its references, and whether it takes null beside what it is."""
        nullable = False
        for _ in range(_MOST_LEVELS):
            about = as_one({"allOf": [about]}, self._walk)
            parts = [_mapping(alternative) for alternative in alternatives(about)]
            parts = parts or [{**about, "type": kind} for kind in kinds_of(about)]
            others = [part for part in parts if part.get("type") != "null"]
            if len(others) != 1 or others == [about]:
                break
            about, nullable = others[0], nullable or len(parts) > 1
        return about, nullable


def _is_of(value: Any, types: tuple[type, ...], is_given: bool, nullable: bool) -> bool:
    if not is_given or (value is None and nullable):
        return True
    return isinstance(value, types) and not isinstance(value, bool)


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)

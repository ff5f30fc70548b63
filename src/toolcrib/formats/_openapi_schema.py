"""The subset of OpenAPI 3.0 that Gemini's declarations take as a schema, made from JSON Schema.

References are written out, `null` becomes `nullable`, and a constraint that the subset cannot say goes into the
description. Source: https://ai.google.dev/api/caching#FunctionDeclaration and #Schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from toolcrib.formats._constraints import PROSE, described
from toolcrib.schema import SchemaWalk, ref_of

__all__ = ["openapi_schema"]

_KEPT = (
    "type", "format", "description", "nullable", "enum", "items", "minItems", "maxItems", "properties", "required",
    "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "minimum", "maximum", "anyOf", "default",
)  # fmt: skip
_TEXT_FORMATS = frozenset({"float", "double", "int32", "int64", "enum", "date-time"})
_IN_PROSE = ("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems")  # what the subset has no word for


def openapi_schema(tool: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a schema in the subset; None for an object without properties, which is refused and has to be left out."""
    if schema.get("type") == "object" and not schema.get("properties"):
        return None
    return _schema(schema, SchemaWalk(schema, tool))


def _schema(schema: Any, walk: SchemaWalk) -> dict[str, Any]:
    """Return `schema` in the subset."""
    if not isinstance(schema, Mapping):  # `true`: anything
        return {}
    ref = ref_of(schema)
    if ref is not None and ref in walk.open:  # a recursive type has no end; the innermost level is any object
        return {"type": "object", "description": f"{ref.rpartition('/')[2]}, as above"}
    with walk.part(ref):
        return _written_out(walk.resolved(schema), walk)


def _written_out(source: dict[str, Any], walk: SchemaWalk) -> dict[str, Any]:
    for part in source.pop("allOf", ()):
        source = {**walk.resolved(part), **source}
    constraints = _constraints(source)
    _choose_type(source)
    made = {key: value for key, value in source.items() if key in _KEPT and value is not None}
    if "properties" in made:
        made["properties"] = {key: _schema(part, walk) for key, part in made["properties"].items()}
    items = source.get("items", source.get("prefixItems"))
    if items is not None:
        made["items"] = _items(items, walk)
    if "anyOf" in made:
        made = _merge([_schema(part, walk) for part in made.pop("anyOf")], made)
    return described(made, constraints)


def _merge(choices: list[dict[str, Any]], outer: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its choices; a single one is no choice and becomes part of it."""
    return {**outer, "anyOf": choices} if len(choices) > 1 else {**choices[0], **outer}


def _items(items: Any, walk: SchemaWalk) -> dict[str, Any]:
    if not isinstance(items, list):
        return _schema(items, walk)
    choices = [_schema(item, walk) for item in cast("list[Any]", items)]
    different = [choice for index, choice in enumerate(choices) if choice not in choices[:index]]
    return different[0] if len(different) == 1 else {"anyOf": different}


def _choose_type(source: dict[str, Any]) -> None:
    """Turn what JSON Schema says of types into one type, `anyOf` and `nullable`."""
    choices = list(source.pop("oneOf", ())) + list(source.pop("anyOf", ()))
    kinds: Any = source.get("type")
    if isinstance(kinds, list):
        several = [kind for kind in cast("list[str]", kinds) if kind != "null"]
        if "null" in kinds:
            source["nullable"] = True
        del source["type"]
        if len(several) == 1:
            source["type"] = several[0]
        else:
            choices += [{"type": kind} for kind in several]
    if {"type": "null"} in choices:
        choices.remove({"type": "null"})
        source["nullable"] = True
    if choices:
        source["anyOf"] = choices


def _constraints(source: dict[str, Any]) -> str:
    """Take out of `source` the constraints that the subset cannot keep, and return them in prose."""
    if "const" in source:
        source["enum"] = [source.pop("const")]
    words: list[str] = []
    values = source.get("enum")
    if isinstance(values, list):
        texts = [value for value in cast("list[Any]", values) if value is not None]
        if None in values:
            source["nullable"] = True
        if all(isinstance(value, str) for value in texts):
            source.update(enum=texts)
            source.setdefault("type", "string")
        else:
            words.append(f"one of: {', '.join(map(json.dumps, texts))}")
            del source["enum"]
    if source.get("format", "date-time") not in _TEXT_FORMATS:
        words.append(PROSE["format"].format(source.pop("format")))
    found = [key for key in _IN_PROSE if source.get(key, False) is not False]
    return ", ".join([*words, *(PROSE[key].format(source[key]) for key in found)])

"""Schemas of Gemini's declarations: JSON Schema, or the subset of OpenAPI 3.0 that older SDKs and models take.

What a form has no keyword for goes into the description, so that no type is lost without a word. In the subset,
references are written out and `null` becomes `nullable`.
Source: https://ai.google.dev/api/caching#FunctionDeclaration and #Schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

from toolcrib.jsonschema import SchemaWalk, describe_shape, described, in_prose, ref_of, rewrite

_BOTH = frozenset(
    {"type", "format", "description", "enum", "items", "minItems", "maxItems", "properties", "required", "anyOf"}
    | {"minProperties", "maxProperties", "minLength", "maxLength", "pattern", "minimum", "maximum", "default"}
)
_JSON = _BOTH | {"$ref", "$defs", "prefixItems", "oneOf", "additionalProperties"}
_OPENAPI = _BOTH | {"nullable"}
_BESIDE_REF = frozenset({"$ref", "description", "default"})
_TEXT_FORMATS = frozenset({"float", "double", "int32", "int64", "enum", "date-time"})
_FIRST_SDK = (1, 16)  # with `parameters_json_schema`


@cache
def takes_json_schema() -> bool:
    """Return whether the SDK that is installed, if there is one, knows a declaration's schema as JSON Schema."""
    try:
        installed = version("google-genai")
    except PackageNotFoundError:  # the request is written by other means
        return True
    numbers = [int(part) for part in installed.split(".")[:2] if part.isdecimal()]
    return tuple(numbers) >= _FIRST_SDK


def json_schema(schema: Any) -> Any:
    """Return a schema as JSON Schema with the keywords that Gemini knows."""
    if not isinstance(schema, Mapping):
        return schema
    source = rewrite(cast("Mapping[str, Any]", schema), json_schema)
    words = _values(source)
    words += [in_prose(source, _JSON if ref_of(source) is None else _BESIDE_REF)]
    return described(source, ", ".join(filter(None, words)))


def openapi_schema(tool: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a schema in the subset; None for an object without properties, which is refused and has to be left out."""
    if schema.get("type") == "object" and not schema.get("properties"):
        return None
    return _schema(schema, SchemaWalk(schema, tool))


def _schema(schema: Any, walk: SchemaWalk) -> dict[str, Any]:
    """Return `schema` in the subset."""
    ref = ref_of(schema)
    if ref is not None and ref in walk.open:  # a recursive type has no end; the innermost level is any object
        return {"type": "object", "description": f"{ref.rpartition('/')[2]}, as above"}
    with walk.part(ref):
        return _written_out(walk.resolved(schema), walk)


def _written_out(source: dict[str, Any], walk: SchemaWalk) -> dict[str, Any]:
    source.pop("$defs", None)
    words = [_lost(source, walk)]
    _choose_type(source)
    words += _values(source)
    if source.get("format", "date-time") not in _TEXT_FORMATS:
        words.append(in_prose(source, source.keys() - {"format"}))
    items = source.pop("items", None)
    items = source.pop("prefixItems", items)
    words.append(in_prose(source, _OPENAPI))
    if "properties" in source:
        source["properties"] = {key: _schema(part, walk) for key, part in source["properties"].items()}
    if items is not None:
        source["items"] = _items(items, walk)
    if "anyOf" in source:
        choices = [_schema(part, walk) for part in source.pop("anyOf")]
        source = {**source, "anyOf": choices} if len(choices) > 1 else {**choices[0], **source}
    return described(source, ", ".join(filter(None, words)))


def _lost(source: dict[str, Any], walk: SchemaWalk) -> str:
    """Return in words the type that the subset cannot say: names that are not known before, a place's own type."""
    values, parts = source.pop("additionalProperties", None), source.get("prefixItems")
    if isinstance(parts, list):
        return f"a list of {describe_shape({'type': 'array', 'prefixItems': parts}, walk=walk)}"
    if isinstance(values, Mapping):
        shape = describe_shape(cast("Mapping[str, Any]", values), walk=walk)
        more = "other names, each with" if source.get("properties") else "an object of any names, each with"
        return f"{more} {shape}"
    if source.get("type") == "object" and not source.get("properties"):
        return "an object of any names"
    remaining = source.keys() & {"type", "anyOf", "oneOf", "enum", "const", "properties"}
    return "" if remaining else "any JSON value"


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
            of_array = {key: source.pop(key) for key in ("items", "prefixItems") if key in source} or {"items": {}}
            choices += [{"type": kind, **(of_array if kind == "array" else {})} for kind in several]
    if None in (source.get("enum") or ()):
        source["nullable"] = True
    if {"type": "null"} in choices:
        choices.remove({"type": "null"})
        source["nullable"] = True
    if choices:
        source["anyOf"] = choices


def _values(source: dict[str, Any]) -> list[str]:
    """Keep the values of an enum if they are texts, none of them empty, and return others in words."""
    if "const" in source:
        source["enum"] = [source.pop("const")]
    values = source.get("enum")
    if not isinstance(values, list):
        return []
    texts = [value for value in cast("list[Any]", values) if value is not None]
    if not all(isinstance(value, str) and value for value in texts) or not texts:
        del source["enum"]
        return [f"one of: {', '.join(json.dumps(value, ensure_ascii=False) for value in cast('list[Any]', values))}"]
    source["enum"] = texts
    if None not in values or "nullable" in source:
        source.setdefault("type", "string")
    else:
        source.pop("type", None)
        source["anyOf"] = [{"type": "string", "enum": source.pop("enum")}, {"type": "null"}]
    return []

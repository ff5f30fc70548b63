"""Words about schemas and values: constraints in prose, for a description, and types and places, for a message."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from toolcrib.jsonschema._visitor import HOLDERS, alternatives, kinds_of, properties_of, subschemas, values_of

_LONGEST_VALUE = 60  # characters of a wrong value that are worth reading
_MOST_VALUES = 100  # of one enum, that a search knows
_LONGEST_NAME = 200  # characters of a key; callers may make up any

PROSE = {
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} names",
    "maxProperties": "at most {} names",
    "pattern": "matching {}",
    "format": "format: {}",
    "uniqueItems": "no item twice",
}
"""Keywords that bound a value, each with what it says of it."""

_SILENT = frozenset(  # these say nothing of the value itself
    {"title", "examples", "example", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"}
    | {"discriminator", "contentEncoding", "contentMediaType"}
)


def in_prose(source: dict[str, Any], kept: Collection[str]) -> str:
    """Remove from `source` the keywords that are not `kept`, and return what they say, in prose."""
    words: list[str] = []
    for key in [key for key in source if key not in kept]:
        value = source.pop(key)
        is_flag = key not in HOLDERS or key == "additionalProperties"
        if key in _SILENT or (value is False and is_flag) or value is None:
            continue
        words.append(PROSE[key].format(value) if key in PROSE else f"{key}: {json.dumps(value, ensure_ascii=False)}")
    return ", ".join(words)


def described(schema: dict[str, Any], words: str) -> dict[str, Any]:
    """Return a schema with something added to its description."""
    if not words:
        return schema
    text = schema.get("description")
    return {**schema, "description": f"{text} ({words})" if text else words}


def type_words(schema: Mapping[str, Any]) -> str:
    """Return the type in JSON's words: `string`, `array of integer`, `"c" or "f"`; empty when any will do."""
    values, kinds = values_of(schema), kinds_of(schema)
    if values is not None:
        return " or ".join(json.dumps(value, ensure_ascii=False) for value in values)
    if kinds == ["array"]:
        items = schema.get("items")
        inner = type_words(cast("Mapping[str, Any]", items)) if isinstance(items, Mapping) else ""
        return f"array of {inner}" if inner else "array"
    if kinds:
        return " or ".join(kinds)
    words = [type_words(choice) for choice in alternatives(schema) or schema.get("allOf", ())]
    return " or ".join(dict.fromkeys(words)) if all(words) else ""


def path_of(parts: Sequence[int | str]) -> str:
    """Return `("stops", 0, "city")` as `stops[0].city`."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{_short(part)}" if text else _short(part)
    return text


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}... ({len(name)} characters)"


def brief(value: Any) -> str:
    """Return a wrong value for a message: short ones as JSON, long text cut, containers by their kind."""
    if value is None or isinstance(value, str | bool | int | float):
        try:
            text = json.dumps(value, ensure_ascii=False)
        except ValueError:  # more digits than Python writes
            return "an integer of thousands of digits"
        return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}... ({len(text)} characters)"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple | set | frozenset):
        return "an array"
    return f"a Python {type(value).__name__}"


def schema_texts(schema: Any) -> Iterator[str]:
    """Yield the names of properties and definitions, descriptions and allowed values in a schema, for a search."""
    for part in subschemas(schema):
        if "description" in part:
            yield str(part["description"])
        yield from map(str, (values_of(part) or ())[:_MOST_VALUES])
        for keyword in ("properties", "$defs"):
            yield from map(str, properties_of(part, keyword))

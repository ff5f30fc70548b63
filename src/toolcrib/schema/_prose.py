"""Constraints of a JSON schema in prose, for a description, where a provider has no keyword for them."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

__all__ = ["PROSE", "described", "in_prose"]

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
_SILENT = frozenset(  # these say nothing of the value itself
    {"title", "examples", "example", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"}
    | {"discriminator", "contentEncoding", "contentMediaType"}
)


def in_prose(source: dict[str, Any], kept: Collection[str]) -> str:
    """Take out of `source` the keywords that are not `kept`, and return what they say, in prose."""
    words: list[str] = []
    for key in [key for key in source if key not in kept]:
        value = source.pop(key)
        if key in _SILENT or value is False or value is None:
            continue
        words.append(PROSE[key].format(value) if key in PROSE else f"{key}: {json.dumps(value, ensure_ascii=False)}")
    return ", ".join(words)


def described(schema: dict[str, Any], words: str) -> dict[str, Any]:
    """Return a schema with something added to its description."""
    if not words:
        return schema
    text = schema.get("description")
    return {**schema, "description": f"{text} ({words})" if text else words}

"""The rules of strict mode as the providers write them down, checked by other means than the library's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolcrib.formats import WireFormat

_ALWAYS = {
    "type", "description", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref",
    "$defs",
}  # fmt: skip
_NUMBERS = {"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
_OPENAI = _ALWAYS | _NUMBERS | {"pattern", "format", "minItems", "maxItems"}
_KNOWN: dict[WireFormat, set[str]] = {
    "openai": _OPENAI,
    "openai_responses": _OPENAI,
    "anthropic": _ALWAYS | {"pattern", "format", "default", "minItems"},
    "bedrock": _ALWAYS | {"pattern", "format", "default", "minItems"},
    "mistral": _OPENAI | {"default", "minLength", "maxLength"},
    "cohere": _ALWAYS | {"format"},
}


def not_strict(schema: Any, provider: WireFormat, path: str = "") -> Iterator[str]:
    """Yield where a schema breaks the rules of its provider's strict mode."""
    unknown = set(schema) - _KNOWN[provider]
    if unknown:
        yield f"{path}: {unknown}"
    if not {"type", "anyOf", "$ref", "enum", "const"} & set(schema):
        yield f"{path}: anything"
    kinds = schema.get("type", [])
    if kinds == "object" or "object" in kinds:
        yield from _not_closed(schema, provider, path)
    if (kinds == "array" or "array" in kinds) and "items" not in schema:
        yield f"{path}: items"
    if provider in ("anthropic", "bedrock") and schema.get("minItems", 0) > 1:
        yield f"{path}: minItems"
    for key in ("properties", "$defs"):
        for name, part in schema.get(key, {}).items():
            yield from not_strict(part, provider, f"{path}.{name}")
    for part in [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]:
        yield from not_strict(part, provider, f"{path}[]")


def _not_closed(schema: Any, provider: WireFormat, path: str) -> Iterator[str]:
    if schema.get("additionalProperties") is not False:
        yield f"{path}: open"
    if provider == "cohere" and not schema.get("required"):
        yield f"{path}: nothing required"
    names, required = set(schema.get("properties", {})), set(schema.get("required", ()))
    if not required <= names or (provider.startswith("openai") and required != names):
        yield f"{path}: required {required} of {names}"

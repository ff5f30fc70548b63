"""Strict mode's nulls: where every property is required, a model says null for one that it leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

__all__ = ["without_filler"]


def without_filler(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without nulls for properties that are optional and do not accept null, at any depth.

    Args:
        arguments: What a model sent for a tool that was defined with `strict=True`.
        parameters: The JSON schema of the tool's arguments as it was before, with its optional properties.
    """
    return cast("dict[str, Any]", _clean(arguments, parameters, parameters))


def _clean(value: object, schema: object, root: Mapping[str, Any]) -> object:
    choices = list(_choices(schema, root))
    if isinstance(value, list):
        items = next((choice["items"] for choice in choices if "items" in choice), None)
        return [_clean(part, items, root) for part in cast("list[object]", value)]
    if not isinstance(value, Mapping):
        return value
    named = cast("Mapping[str, object]", value)
    fitting = [choice for choice in choices if set(named) <= set(choice.get("properties", ()))]
    if not fitting:
        return dict(named)
    chosen = fitting[0]
    properties = cast("Mapping[str, object]", chosen["properties"])
    kept = {
        key: part
        for key, part in named.items()
        if part is not None or key in chosen.get("required", ()) or _takes_null(properties[key], root)
    }
    return {key: _clean(part, properties[key], root) for key, part in kept.items()}


def _choices(schema: object, root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what a schema may be: itself, or what it refers to or chooses from."""
    if not isinstance(schema, Mapping):
        return []
    named = cast("Mapping[str, Any]", schema)
    ref = named.get("$ref")
    if isinstance(ref, str):
        return _choices(root.get("$defs", {}).get(ref.removeprefix("#/$defs/")), root)
    inner = [part for key in ("anyOf", "oneOf", "allOf") for part in named.get(key, ())]
    return [named, *(choice for part in inner for choice in _choices(part, root))]


def _takes_null(schema: object, root: Mapping[str, Any]) -> bool:
    return any(_is_nullable(choice) for choice in _choices(schema, root))


def _is_nullable(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    if "enum" in schema:
        return None in schema["enum"]
    if "const" in schema:
        return schema["const"] is None
    return kind == "null" or (isinstance(kind, list) and "null" in kind) or _says_nothing(schema)


def _says_nothing(schema: Mapping[str, Any]) -> bool:
    return not {"type", "anyOf", "oneOf", "allOf", "enum", "const", "$ref"} & set(schema)

"""Parameters of a tool as smolagents describes them, and the other way round."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

__all__ = ["inputs_of", "output_type_of", "parameters_of"]

_TYPES = frozenset({"string", "boolean", "integer", "number", "array", "object", "null"})
_DEEPEST = 8  # of a schema that names itself


def inputs_of(parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the `inputs` of a tool whose parameters are this JSON schema."""
    named = cast("Mapping[str, Any]", parameters.get("$defs", {}))
    required = parameters.get("required", ())
    return {
        name: _input(_inlined(schema, named), name in required)
        for name, schema in parameters.get("properties", {}).items()
    }


def parameters_of(inputs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON schema of the parameters of one of their tools."""
    properties: dict[str, Any] = {}
    for name, given in inputs.items():
        types = [given["type"]] if isinstance(given["type"], str) else list(given["type"])
        known = [kind for kind in types if kind in _TYPES]
        schema = {key: value for key, value in given.items() if key not in ("type", "nullable")}
        if given.get("nullable") and "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
        if len(known) == len(types):
            schema["type"] = [*dict.fromkeys([*known, *(["null"] if given.get("nullable") else [])])]
        properties[name] = schema
    required = [name for name, given in inputs.items() if not given.get("nullable")]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def output_type_of(schema: Mapping[str, Any] | None) -> str:
    """Return the `output_type` of a tool whose results are as this JSON schema says."""
    kind = None if schema is None else schema.get("type")
    return kind if isinstance(kind, str) and kind in _TYPES else "any"


def _input(schema: dict[str, Any], required: bool) -> dict[str, Any]:
    several = [*schema.pop("anyOf", ()), *schema.pop("oneOf", ())]
    kinds = [kind for part in (schema, *several) for kind in _kinds(part)]
    types = [*dict.fromkeys(kinds)] if all(map(_kinds, several)) else []
    text = str(schema.get("description", ""))
    if any(not part.keys() <= {"type", "description"} for part in several):
        text = f"{text} JSON schema: {json.dumps({'anyOf': several})}".strip()
    left = [kind for kind in types if kind != "null"]
    made = {**schema, "type": left[0] if len(left) == 1 else left or "any", "description": text}
    return made if required and "null" not in types else {**made, "nullable": True}


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    if "enum" in schema and "type" not in schema:
        return [*dict.fromkeys(_kind(value) for value in schema["enum"])]
    if "const" in schema and "type" not in schema:
        return [_kind(schema["const"])]
    kind: Any = schema.get("type", ())
    return [kind] if isinstance(kind, str) else [*kind]


def _kind(value: object) -> str:
    names: dict[type, str] = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
    }
    return names.get(type(value), "null")


def _inlined(schema: Any, named: Mapping[str, Any], deep: int = 0) -> Any:
    """Return a schema with what it names in the place of the names: smolagents shows no definitions."""
    match schema:
        case {"$ref": str() as ref, **rest}:
            found: Any = named.get(ref.rpartition("/")[2]) if deep < _DEEPEST else None
            return {**_inlined(found or {}, named, deep + 1), **rest}
        case dict():
            return {key: _inlined(part, named, deep) for key, part in cast("dict[str, Any]", schema).items()}
        case list():
            return [_inlined(part, named, deep) for part in cast("list[Any]", schema)]
        case _:
            return schema

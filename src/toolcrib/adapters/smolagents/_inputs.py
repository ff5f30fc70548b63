"""Parameters of a tool as smolagents describes them, and the other way round."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolcrib.jsonschema import (
    CHOICES,
    SchemaWalk,
    alternatives,
    kind_of,
    kinds_of,
    properties_of,
    values_of,
    written_out,
)

_TYPES = frozenset({"string", "boolean", "integer", "number", "array", "object", "null"})


def inputs_of(parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the `inputs` of a tool whose parameters are this JSON schema."""
    required, walk = parameters.get("required", ()), SchemaWalk(parameters)
    return {
        name: _input(written_out(schema, walk) if isinstance(schema, Mapping) else {}, name in required)
        for name, schema in properties_of(parameters).items()
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
    several: list[dict[str, Any]] = [part if isinstance(part, dict) else {} for part in alternatives(schema)]
    schema = {key: value for key, value in schema.items() if key not in CHOICES}
    kinds = [kind for part in (schema, *several) for kind in _kinds(part)]
    types = [*dict.fromkeys(kinds)] if all(map(_kinds, several)) else []
    text = str(schema.get("description", ""))
    if any(not part.keys() <= {"type", "description"} for part in several):
        text = f"{text} JSON schema: {json.dumps({'anyOf': several})}".strip()
    left = [kind for kind in types if kind != "null"]
    shown = {**schema, "type": left[0] if len(left) == 1 else left or "any", "description": text}
    return shown if required and "null" not in types else {**shown, "nullable": True}


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    return kinds_of(schema) or [*dict.fromkeys(kind_of(value) for value in values_of(schema) or ())]

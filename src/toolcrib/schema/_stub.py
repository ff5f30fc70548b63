"""A tool as Python: its signature on one line, and a function without a body."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from toolcrib.schema._parameters import EMPTY, Resolved

__all__ = ["signature_text", "stub_text"]

_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list[Any]",
    "object": "dict[str, Any]",
    "null": "None",
}


def signature_text(name: str, parameters: Sequence[Resolved], signature: inspect.Signature | None, returns: Any) -> str:
    parts: list[str] = []
    for p in parameters:
        text = p.name if p.annotation is Any else f"{p.name}: {inspect.formatannotation(p.annotation)}"
        parts.append(text if p.default is EMPTY else f"{text} = {p.default!r}")
    arrow = "" if returns is None else f" -> {inspect.formatannotation(returns)}"
    return f"{name}({', '.join(parts)}){arrow}"


def stub_text(
    name: str, parameters: Mapping[str, Any], returns: Mapping[str, Any] | None, doc: str, is_async: bool
) -> str:
    parts: list[str] = []
    for key, schema in parameters.get("properties", {}).items():
        kind = _TYPES.get(str(schema.get("type")), "Any")
        parts.append(f"{key}: {kind}" + ("" if key in parameters.get("required", ()) else " = ..."))
    result = _TYPES.get(str(returns.get("type")), "Any") if returns else "Any"
    body = f'    """{doc}"""\n    ...' if doc else "    ..."
    return f"{'async ' if is_async else ''}def {name}({', '.join(parts)}) -> {result}:\n{body}"

"""Anthropic: the schema of a tool's input, and what strict tools may come to in one request.

Source: https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs, schema complexity limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from toolcrib.errors import FormatError
from toolcrib.formats._strict import ANTHROPIC_RULES, check_root, strict_schema
from toolcrib.formats._wire import Item

__all__ = ["check_request", "input_schema"]

_TOOLS, _OPTIONAL, _UNIONS = 20, 24, 16


def input_schema(tool: str, parameters: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    """Return the schema; FormatError for a parameter's name that is refused."""
    check_root(tool, "anthropic", parameters)
    for name in parameters.get("properties", ()):
        if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name):
            rule = "up to 64 letters, digits, `_`, `.` and `-`; rename it or give it an alias"
            raise FormatError(tool, "anthropic", f"the name of the parameter `{name}` is none of {rule}")
    if strict:
        return strict_schema(tool, "anthropic", parameters, ANTHROPIC_RULES)
    return {"type": "object", **parameters}


def check_request(definitions: list[Item]) -> None:
    """Raise FormatError for the tool with which strict definitions become too many."""
    optional = unions = 0
    for number, tool in enumerate(definitions, 1):
        objects = list(_schemas(tool["input_schema"]))
        optional += sum(len(part.get("properties", ())) - len(part.get("required", ())) for part in objects)
        unions += sum("anyOf" in part or isinstance(part.get("type"), list) for part in objects)
        told: tuple[tuple[int, int, str], ...] = (
            (number, _TOOLS, "strict tools"),
            (optional, _OPTIONAL, "optional parameters"),
            (unions, _UNIONS, "parameters of several types"),
        )
        for count, most, what in told:
            if count > most:
                problem = f"a request takes {most} {what} in strict mode, and with this tool there are {count}"
                raise FormatError(tool["name"], "anthropic", f"{problem}; offer fewer tools, or leave `strict` out")


def _schemas(schema: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        named = cast("Mapping[str, Any]", schema)
        yield named
        inner = [*named.get("properties", {}).values(), *named.get("$defs", {}).values(), *named.get("anyOf", ())]
        for part in [*inner, named.get("items")]:
            yield from _schemas(part)

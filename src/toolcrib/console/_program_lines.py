"""Lines of a program on which a call may have been made."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, cast

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def call_lines(source: str, tool: str, arguments: Any) -> list[int]:
    """Return the lines on which a program calls a tool, from 1: those that fit the arguments, if any do.

    Several lines may fit, since a call is recorded without its line.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a model wrote it, perhaps in a dialect
        return []
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _tool_named(node.func) == tool]
    given: Mapping[str, Any] = cast("Mapping[str, Any]", arguments) if isinstance(arguments, Mapping) else _NOTHING
    fitting = [call for call in calls if all(_fits(value, given.get(name)) for name, value in _keywords(call))]
    fitting = [call for call in fitting if _positions_fit(call, given)]
    return sorted({call.lineno for call in fitting or calls})


def _tool_named(node: ast.expr) -> str | None:
    """Return the tool that a function's name in a program means: `parent.child` is `parent__child`."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=parent, attr=name):
            before = _tool_named(parent)
            return None if before is None else f"{before}__{name}"
        case _:
            return None


def _keywords(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg, keyword.value


def _positions_fit(call: ast.Call, given: Mapping[str, Any]) -> bool:
    literals = [value.value for value in call.args if isinstance(value, ast.Constant)]
    values = list(given.values())
    return all(any(_same(literal, value) for value in values) for literal in literals)


def _fits(value: ast.expr, given: Any) -> bool:
    """Return whether an argument in a program can have this value; any expression but a literal can."""
    return not isinstance(value, ast.Constant) or _same(value.value, given)


def _same(literal: object, given: Any) -> bool:
    return literal == given and isinstance(literal, bool) == isinstance(given, bool)

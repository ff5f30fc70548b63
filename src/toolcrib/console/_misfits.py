"""Problems of JSON values with a schema, in words for a person who edits them."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

__all__ = ["misfits"]

_MAX_PROBLEMS = 20
_MAX_DEPTH = 60  # schemas inside schemas; a hostile one may refer to itself
_MAX_CHECKS = 20_000
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}

_LIMITS: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("minimum", "at least", operator.ge),
    ("maximum", "at most", operator.le),
    ("exclusiveMinimum", "more than", operator.gt),
    ("exclusiveMaximum", "less than", operator.lt),
)


def misfits(value: Any, schema: Mapping[str, Any]) -> list[str]:
    """Return where a value does not fit a JSON schema, a line each: `stops[0].city: a string is needed, not 5`.

    Keywords that tool schemas do not use are not checked here; the tool's own validation comes in any case.
    """
    try:
        found = _Check(schema).problems(value, schema, "")
    except (AttributeError, KeyError, TypeError, ValueError):  # it is no schema; others may have written it
        return []
    return found[:_MAX_PROBLEMS]


class _Check:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._definitions: Mapping[str, Any] = root.get("$defs", {})
        self._deep = self._checks = 0

    def problems(self, value: Any, schema: Any, path: str) -> list[str]:
        """Return the problems of a value; none where the schema never ends."""
        self._checks += 1
        if not isinstance(schema, Mapping) or self._deep >= _MAX_DEPTH or self._checks > _MAX_CHECKS:
            return []
        self._deep += 1
        try:
            return self._problems(value, cast("Mapping[str, Any]", schema), path)
        finally:
            self._deep -= 1

    def _problems(self, value: Any, schema: Mapping[str, Any], path: str) -> list[str]:
        rule = self._resolved(schema)
        where = path or "the arguments"
        for several in ("anyOf", "oneOf"):
            if several in rule:
                return self._any_of(value, rule[several], path)
        if "const" in rule and value != rule["const"]:
            return [f"{where}: only {_text(rule['const'])} will do"]
        if "enum" in rule and value not in rule["enum"]:
            return [f"{where}: one of {', '.join(map(_text, rule['enum']))} is needed, not {_text(value)}"]
        named = rule.get("type")
        types: list[str] = [named] if isinstance(named, str) else list(named or ())
        if types and not any(_is(value, one) for one in types):
            return [f"{where}: {' or '.join(map(_article, types))} is needed, not {_text(value)}"]
        return [*_bounds(value, rule, where), *self._inside(value, rule, path)]

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        for _ in range(20):
            name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
            found = self._definitions.get(name) if name else None
            if not isinstance(found, Mapping):
                break
            schema = cast("Mapping[str, Any]", found)
        return schema

    def _any_of(self, value: Any, choices: list[Any], path: str) -> list[str]:
        tried = [self.problems(value, choice, path) for choice in choices]
        return (
            [] if any(not found for found in tried) else min(tried, key=lambda found: ("null" in found[0], len(found)))
        )

    def _inside(self, value: Any, rule: Mapping[str, Any], path: str) -> list[str]:
        if isinstance(value, list):
            items = enumerate(cast("list[Any]", value))
            return [p for n, item in items for p in self.problems(item, rule.get("items"), f"{path}[{n}]")]
        if not isinstance(value, dict):
            return []
        parts: Mapping[str, Any] = rule.get("properties", {})
        extra = rule.get("additionalProperties", True)
        found = [f"{_join(path, name)}: it is missing" for name in rule.get("required", ()) if name not in value]
        for name, held in cast("dict[str, Any]", value).items():
            if name in parts:
                found += self.problems(held, parts[name], _join(path, name))
            elif extra is False:
                found.append(f"{_join(path, name)}: there is no such argument; there are {', '.join(parts) or 'none'}")
            else:
                found += self.problems(held, extra, _join(path, name))
        return found


def _bounds(value: Any, rule: Mapping[str, Any], where: str) -> list[str]:
    found: list[str] = []
    if isinstance(value, int | float) and not isinstance(value, bool):
        for word, says, fits in _LIMITS:
            limit: Any = rule.get(word)
            if isinstance(limit, int | float) and not fits(value, limit):
                found.append(f"{where}: it must be {says} {limit}")
    if isinstance(value, str | list | dict):
        size = len(cast("Any", value))
        kind = {str: "Length", list: "Items", dict: "Properties"}[type(cast("Any", value))]
        if size < rule.get(f"min{kind}", 0):
            found.append(f"{where}: it is too short; {rule[f'min{kind}']} is the least")
        if size > rule.get(f"max{kind}", size):
            found.append(f"{where}: it is too long; {rule[f'max{kind}']} is the most")
    return found


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, (object,)))


def _article(kind: str) -> str:
    return kind if kind == "null" else f"{'an' if kind[0] in 'aio' else 'a'} {kind}"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"

"""Values that fit a JSON schema: made at random from its keywords, and kept where `jsonschema` says that they fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators

_TEXTS = ("", "a", "ab", "abc", "abcd1", "a1", "2024", "é", "x", "X-1", "2025-01-31", "https://a.example", "/a/b")
_ANY: tuple[Any, ...] = ("a", 1, 2.5, True, None, [], {}, ["a"], {"k": 1})
_DEEP = 5


def _check_pattern(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not re.search(pattern, value, re.ASCII):  # as ECMAScript has classes, and RE2
        yield ValidationError("")


_Validator: Any = validators.extend(Draft202012Validator, {"pattern": _check_pattern})


def fitting(schema: Mapping[str, Any], number: int) -> Iterator[Any]:
    """Yield up to `number` values that fit a schema, the same ones each time."""
    validator = _Validator(dict(schema))
    for seed in range(number):
        made = (_Maker(schema, Random(f"{seed} {attempt}")).value(schema) for attempt in range(12))
        found = next((value for value in made if validator.is_valid(value)), None)
        if found is not None:
            yield found


def _takes_null(schema: Mapping[str, Any]) -> bool:
    return "null" in schema.get("type", ()) or {"type": "null"} in schema.get("anyOf", ())


class _Maker:
    def __init__(self, root: Mapping[str, Any], random: Random) -> None:
        self._root, self._random, self._deep = root, random, 0

    def value(self, schema: Any) -> Any:
        """Return a value that may fit a schema."""
        if not isinstance(schema, Mapping) or not schema:
            return self._random.choice(_ANY)
        self._deep += 1
        try:
            return self._value(schema)
        finally:
            self._deep -= 1

    def _value(self, schema: Mapping[str, Any]) -> Any:
        if self._deep > _DEEP and _takes_null(schema):
            return None
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            return self.value(self._root["$defs"][name])
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._random.choice(schema["enum"])
        choices = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
        if choices and "properties" not in schema:
            return self.value(self._random.choice(choices))
        parts = [schema, *schema.get("allOf", ()), *([self._random.choice(choices)] if choices else ())]
        kind = next((part["type"] for part in parts if "type" in part), "object" if choices else None)
        kind = self._random.choice(kind) if isinstance(kind, list) else kind
        made = [self._of(kind, part) for part in parts]
        return {name: value for part in made for name, value in part.items()} if kind == "object" else made[0]

    def _of(self, kind: Any, schema: Mapping[str, Any]) -> Any:
        match kind:
            case "string":
                return self._random.choice(_TEXTS)
            case "integer" | "number":
                return self._number(kind, schema)
            case "boolean":
                return self._random.random() < 0.5
            case "array":
                return self._list(schema)
            case "object":
                return self._object(schema)
            case "null":
                return None
            case _:
                return self._random.choice(_ANY)

    def _number(self, kind: str, schema: Mapping[str, Any]) -> Any:
        lowest = schema.get("minimum", schema.get("exclusiveMinimum", -3))
        near = [lowest, lowest + 1, schema.get("maximum", 3), 0, 6, 12]
        return self._random.choice(near if kind == "integer" else [*near, lowest + 0.5])

    def _list(self, schema: Mapping[str, Any]) -> list[Any]:
        least = schema.get("minItems", 0)
        items = schema.get("items", {})
        first, items = (items, {}) if isinstance(items, list) else (schema.get("prefixItems", ()), items)
        made = [self.value(part) for part in first]
        wanted = least + self._random.randint(0, 1 if self._deep < _DEEP else 0)
        return [*made, *(self.value(items) for _ in range(wanted - len(made)) if items is not False)]

    def _object(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        table, required = schema.get("properties", {}), schema.get("required", ())
        chosen = [n for n in table if n in required or (self._deep < _DEEP and self._random.random() < 0.4)]
        made = {name: self.value(table[name]) for name in chosen}
        rest = schema.get("additionalProperties", True)
        if rest is not False and self._random.random() < 0.2:
            made["more"] = self.value({} if rest is True else rest)
        return made

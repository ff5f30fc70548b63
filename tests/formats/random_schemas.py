"""JSON schemas of arguments at random: objects in objects, references with more beside them, choices at the root."""

from __future__ import annotations

from random import Random
from typing import Any

NAMES = ("a", "b", "c", "d")
_PARTS: tuple[dict[str, Any], ...] = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "boolean"},
    {"type": ["string", "null"]},
    {"type": "string", "maxLength": 2},
    {"type": "integer", "minimum": 2},
    {"const": "x"},
    {"const": 1},
    {"enum": ["x", "y"]},
    {"enum": ["x", 1, None]},
)


def strict_schema(seed: int) -> dict[str, Any]:
    """Return a schema that strict modes take: nothing in it may hold any names."""
    return _Maker(Random(f"strict {seed}")).strict()


def root_choice(seed: int) -> dict[str, Any]:
    """Return a schema with a choice of objects at its root."""
    return _Maker(Random(f"root {seed}")).root()


class _Maker:
    def __init__(self, random: Random) -> None:
        self._random = random

    def strict(self) -> dict[str, Any]:
        whole = self._with_more(self._object())
        definitions = {"A": self._object(deep=1), "B": self._with_more(self._object(deep=1))}
        if self._random.random() < 0.3:
            whole = {**self._beside(), "$ref": "#/$defs/B"}
        return {**whole, "$defs": definitions}

    def _object(self, deep: int = 0) -> dict[str, Any]:
        names = self._some(NAMES)
        table = {name: self._part(deep) for name in names}
        required = [name for name in names if self._coin() and "$ref" not in table[name]]  # what holds itself ends
        return {"type": "object", "properties": table, "required": required}

    def _part(self, deep: int) -> dict[str, Any]:
        match self._random.randrange(9):
            case 0 if deep < 2:
                return self._with_more(self._object(deep + 1))
            case 1 if deep < 2:
                return {"type": "array", "items": self._with_more(self._object(deep + 1))}
            case 2:
                return {"$ref": self._random.choice(["#", "#/$defs/A", "#/$defs/B"])}
            case 3:
                return {"$ref": self._random.choice(["#/$defs/A", "#"]), **self._beside()}
            case _:
                return dict(self._random.choice(_PARTS))

    def _beside(self) -> dict[str, Any]:
        names = self._some(("e", "f", "g"))
        table = {name: dict(self._random.choice(_PARTS)) for name in names}
        return {"properties": table, "required": [name for name in names if self._coin()]}

    def _with_more(self, schema: dict[str, Any]) -> dict[str, Any]:
        match self._random.randrange(6):
            case 0:
                return {**schema, "allOf": [self._beside(), self._beside()]}
            case 1:
                return {**schema, self._random.choice(["anyOf", "oneOf"]): [self._beside(), self._beside()]}
            case _:
                return schema

    def root(self) -> dict[str, Any]:
        outer = self._branch(NAMES[:2]) if self._random.random() < 0.6 else {"type": "object"}
        closed = {"additionalProperties": False} if self._random.random() < 0.2 else {}
        choices = [self._branch(NAMES) for _ in range(self._random.randint(2, 3))]
        if self._random.random() < 0.1:
            choices[0] = {self._random.choice(["anyOf", "oneOf"]): [self._branch(NAMES), self._branch(NAMES)]}
        return {**outer, **closed, self._random.choice(["anyOf", "oneOf"]): choices}

    def _branch(self, names: tuple[str, ...]) -> dict[str, Any]:
        if self._random.random() < 0.1:
            return {}
        table = {name: dict(self._random.choice(_PARTS)) for name in self._some(names)}
        required = [name for name in names if name in table and self._coin()]
        required += [name for name in names if name not in table and self._random.random() < 0.1]
        made: dict[str, Any] = {"type": "object"} if self._coin() else {}
        made |= {"properties": table} if table else {}
        made |= {"required": required} if required else {}
        rest = self._random.choice([None, None, None, False, False, {"type": "integer"}])
        return made if rest is None else {**made, "additionalProperties": rest}

    def _some(self, names: tuple[str, ...]) -> list[str]:
        return [name for name in names if self._coin()]

    def _coin(self) -> bool:
        return self._random.random() < 0.5

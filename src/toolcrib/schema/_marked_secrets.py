"""Secrets in values of a JSON schema: what it marks with `writeOnly` or `format: password`, at any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, cast

from toolcrib._passwords import REDACTED
from toolcrib.jsonschema import SchemaWalk, pointed_at, properties_of, ref_of, subschemas

_BESIDE = ("allOf", "anyOf", "oneOf")
_BRANCHES = ("then", "else")
_OTHERS = ("additionalProperties", "unevaluatedProperties")


class MarkedSecrets:
    """The arguments that a JSON schema marks as secret.

    Args:
        read: Returns the schema, whose references lead into itself; it is called when the first call is written.
    """

    def __init__(self, read: Callable[[], Mapping[str, Any]]) -> None:
        self._read = read

    @cached_property
    def _schema(self) -> Mapping[str, Any]:
        return self._read()

    @cached_property
    def names(self) -> frozenset[str]:
        """The arguments with something secret in them, `*` for those that are not declared."""
        if not any(map(_is_marked, subschemas(self._schema))):
            return frozenset()
        declared = SchemaWalk(self._schema).properties(self._schema)
        others = {"*": [self._schema[key] for key in (*_OTHERS, "patternProperties") if key in self._schema]}
        parts = {name: [part] for name, part in declared.items()} | others
        return frozenset(name for name, part in parts.items() if self._holds_secret(part))

    def hide(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments as JSON shapes with what is secret hidden."""
        return self._parts_hidden(values, [*self._beside([self._schema])])

    def _hidden(self, value: Any, schemas: Iterable[Any]) -> Any:
        parts = [*self._beside(schemas)]
        if value is None or not parts:
            return value
        if any(map(_is_marked, parts)):
            return REDACTED
        if isinstance(value, Mapping):
            return self._parts_hidden(cast("Mapping[str, Any]", value), parts)
        if isinstance(value, list):
            items = enumerate(cast("list[Any]", value))
            return [self._hidden(item, [inner for part in parts for inner in _of_item(part, at)]) for at, item in items]
        return value

    def _parts_hidden(self, values: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> dict[str, Any]:
        return {
            name: self._hidden(value, [inner for part in parts for inner in _of_property(part, name)])
            for name, value in values.items()
        }

    def _beside(self, schemas: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
        """Yield schemas, and all that say something of the same value: what they refer to, and their choices."""
        waiting, visited = [*schemas], set[int]()
        while waiting:
            schema = waiting.pop()
            if not isinstance(schema, Mapping) or id(cast("object", schema)) in visited:
                continue
            named = cast("Mapping[str, Any]", schema)
            visited.add(id(named))
            yield named
            waiting += [part for key in _BESIDE if isinstance(named.get(key), list) for part in named[key]]
            waiting += [named.get(key) for key in _BRANCHES]
            waiting.append(self._target(named))

    def _target(self, schema: Mapping[str, Any]) -> Any:
        ref = ref_of(schema)
        return None if ref is None or not ref.startswith("#") else pointed_at(self._schema, ref[1:])

    def _holds_secret(self, schemas: list[Any]) -> bool:
        waiting, visited = schemas, set[int]()
        while waiting:
            for part in subschemas(waiting.pop(), definitions=False):
                if _is_marked(part):
                    return True
                target = self._target(part)
                if target is not None and id(target) not in visited:
                    visited.add(id(target))
                    waiting.append(target)
        return False


def _is_marked(schema: Mapping[str, Any]) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def _of_property(schema: Mapping[str, Any], name: str) -> list[Any]:
    """Return the schemas of a property; each matching pattern counts."""
    declared = properties_of(schema)
    if name in declared:
        return [declared[name]]
    return [*properties_of(schema, "patternProperties").values(), *(schema.get(key) for key in _OTHERS)]


def _of_item(schema: Mapping[str, Any], at: int) -> list[Any]:
    """Return the schemas of an item of a list."""
    first: Any = schema.get("prefixItems", schema.get("items"))
    if not isinstance(first, list):
        return [first]
    items = cast("list[Any]", first)
    return [items[at] if at < len(items) else schema.get("items", schema.get("additionalItems"))]

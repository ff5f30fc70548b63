"""Visitor of JSON schemas: the keywords that hold other schemas, and what one schema says by itself.

Whatever reads or rewrites schemas finds the schemas inside one here. A keyword that is not in the tables holds values:
what looks like a schema in a `default`, a `const` or an `enum` is not a schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, cast
from urllib.parse import unquote

_ONE = frozenset(
    {"items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames"}
    | {"additionalItems", "contentSchema", "unevaluatedItems", "unevaluatedProperties"}
)
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "items"})
_TABLES = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})

HOLDERS = _ONE | _LISTS | _TABLES
"""Keywords that hold schemas."""

CHOICES: tuple[Literal["anyOf"], Literal["oneOf"]] = ("anyOf", "oneOf")
"""Keywords whose schemas are alternatives."""

ABOUT = frozenset(
    {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly"}
    | {"$comment", "$schema", "$defs", "discriminator"}
)
"""Keywords that say something about a value, and not what fits."""


_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def rewrite(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a copy of a schema with `change` applied to the schemas directly inside it, and to nothing else.

    The schemas `true` and `false` stay as they are.
    """
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _TABLES and isinstance(value, Mapping):
            table = cast("Mapping[str, Any]", value)
            result[key] = {name: change(part) if isinstance(part, Mapping) else part for name, part in table.items()}
        elif key in _LISTS and isinstance(value, list):
            parts = cast("list[Any]", value)
            result[key] = [change(part) if isinstance(part, Mapping) else part for part in parts]
        elif key in _ONE and isinstance(value, Mapping):
            result[key] = change(value)
        else:
            result[key] = value
    return result


def children(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """Yield the schemas directly inside a schema, each with the keys that lead to it; not `true` and `false`."""
    for key, value in schema.items():
        if key in _TABLES and isinstance(value, Mapping):
            named = cast("Mapping[str, Any]", value).items()
        elif key in _LISTS and isinstance(value, list):
            named = enumerate(cast("list[Any]", value))
        elif key in _ONE and isinstance(value, Mapping):
            yield (key,), cast("Mapping[str, Any]", value)
            continue
        else:
            continue
        for name, part in named:
            if isinstance(part, Mapping):
                yield (key, name), cast("Mapping[str, Any]", part)


def subschemas(schema: Any, *, definitions: bool = True) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and every schema in it, at any depth; references are not followed.

    Args:
        schema: The schema; one that is not an object has no parts.
        definitions: Whether those in `$defs` are parts.
    """
    waiting = [cast("Mapping[str, Any]", schema)] if isinstance(schema, Mapping) else []
    while waiting:
        part = waiting.pop()
        yield part
        waiting += reversed([inner for keys, inner in children(part) if definitions or keys[0] != "$defs"])


def ref_of(schema: Any) -> str | None:
    """Return the reference that a schema has; None for one without."""
    ref: Any = cast("Mapping[str, Any]", schema).get("$ref") if isinstance(schema, Mapping) else None
    return ref if isinstance(ref, str) else None


def definitions_in(schema: Any) -> Iterator[str]:
    """Yield the names of the definitions in `$defs` that a schema refers to by itself; its own are not looked into."""
    for part in subschemas(schema, definitions=False):
        ref = ref_of(part)
        if ref is not None:
            yield ref.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")


def pointed_at(root: Any, pointer: str) -> Any:
    """Return the target of a JSON pointer in a reference, from `/` on; None where there is nothing."""
    target = root
    for part in pointer.split("/")[1:]:
        step = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and step.isdecimal():
            items = cast("list[Any]", target)
            target = items[int(step)] if int(step) < len(items) else None
        else:
            target = cast("Mapping[str, Any]", target).get(step) if isinstance(target, Mapping) else None
    return target


# --- what one schema says


def values_of(schema: Any) -> list[Any] | None:
    """Return the only values that a schema allows by `const` or `enum`; None where it names none."""
    named: Mapping[str, Any] = cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    if "const" in named:
        return [named["const"]]
    values: Any = named.get("enum")
    return cast("list[Any]", values) if isinstance(values, list) else None


def kinds_of(schema: Mapping[str, Any]) -> list[str]:
    """Return the types of a schema's `type`; empty where it has none."""
    kinds: Any = schema.get("type")
    return [kinds] if isinstance(kinds, str) else cast("list[str]", kinds) if isinstance(kinds, list) else []


def kind_of(value: object) -> str:
    """Return the type of JSON that a value has: `integer` for an int, `number` for a float."""
    return next((kind for type_, kind in _KINDS.items() if isinstance(value, type_)), "null")


def alternatives(schema: Mapping[str, Any]) -> list[Any]:
    """Return the schemas of `anyOf`, or else of `oneOf`; a value that has to fit both fits one of the former."""
    return next((cast("list[Any]", schema[key]) for key in CHOICES if isinstance(schema.get(key), list)), list[Any]())


def properties_of(schema: Mapping[str, Any], keyword: str = "properties") -> Mapping[str, Any]:
    """Return the properties of an object schema, or another table of schemas; empty where it has none."""
    table: Any = schema.get(keyword)
    return cast("Mapping[str, Any]", table) if isinstance(table, Mapping) else {}


def wrapped(schema: Mapping[str, Any], name: str, **about: Any) -> dict[str, Any]:
    """Return the schema of an object that has a value of `schema` as its one property, required.

    Args:
        schema: A schema whose references lead to its `$defs`; these stay at the root.
        name: The name of the property.
        about: Other keywords of the object.
    """
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    outer: dict[str, Any] = {"type": "object", "properties": {name: inner}, "required": [name], **about}
    return {**outer, "$defs": schema["$defs"]} if "$defs" in schema else outer

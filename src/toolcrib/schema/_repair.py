"""Repair of JSON schemas of another party: what no value could ever fit is read as its author meant it.

A model is shown, and its arguments are checked against, the same repaired schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, cast

from toolcrib.schema._json_schema import map_subschemas
from toolcrib.schema._merge import ABOUT, merged
from toolcrib.schema._schema_walk import SchemaWalk, ref_of

__all__ = ["as_one", "conjunction", "satisfiable"]

_BRANCHES = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")


def satisfiable(tool: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema that something can fit, as far as its faults are those that generators of schemas make.

    A name that is required is declared, also where other names are refused. An object that has to fit several schemas
    at once may have the names of all of them, where one refuses others. An enum without values says nothing of what has
    to be given; one of an optional property still allows it no value.

    Raises:
        SchemaTooLarge: What its references lead to comes to too much; names the tool.
    """
    return _repaired(schema, SchemaWalk(schema, tool), needed=True, known=frozenset())


def _repaired(part: Any, walk: SchemaWalk, *, needed: bool, known: Set[str]) -> Any:
    """Return one part of a schema, repaired.

    Args:
        needed: The value has to be there.
        known: The names that the object around a branch of a choice declares.
    """
    if not isinstance(part, Mapping):
        return part
    with walk.part():
        source = cast("Mapping[str, Any]", part)
        made = dict(source)
        if needed and made.get("enum") == []:
            del made["enum"]
        if isinstance(made.get("allOf"), list) and (joined := _joined(made, walk)) is not None:
            made = joined
        _declare_required(made, known)
        table = _table(made)
        required = cast("list[str]", made.get("required", ())) if isinstance(made.get("required"), list) else ()
        inside = known | table.keys()
        done = {key: made.pop(key) for key in ("properties", *_BRANCHES) if key in made}
        made = map_subschemas(made, lambda inner: _repaired(inner, walk, needed=True, known=frozenset()))
        if table:
            made["properties"] = {
                name: _repaired(inner, walk, needed=name in required, known=frozenset())
                for name, inner in table.items()
            }
        elif "properties" in done:
            made["properties"] = done["properties"]
        branches = {key: done[key] for key in _BRANCHES if key in done}
        made |= map_subschemas(branches, lambda inner: _repaired(inner, walk, needed=needed, known=inside))
        return {key: made[key] for key in (*source, *made) if key in made}


def _declare_required(made: dict[str, Any], known: Set[str]) -> None:
    names, table = made.get("required"), _table(made)
    rest: Any = made.get("additionalProperties")
    if not isinstance(names, list) or not (table or rest is False):
        return
    declared = known | table.keys()
    missing = [name for name in cast("list[Any]", names) if isinstance(name, str) and name not in declared]
    if missing:
        part: Any = cast("Any", rest) if isinstance(rest, Mapping) else {}
        made["properties"] = {**table, **dict.fromkeys(missing, part)}


def _joined(made: Mapping[str, Any], walk: SchemaWalk) -> dict[str, Any] | None:
    """Return an object with the parts that it has to fit as one, where one of them is closed; None for any other."""
    parts = conjunction(made["allOf"], walk)
    outer = {key: value for key, value in made.items() if key != "allOf"}
    if parts is None or not any(part.get("additionalProperties") is False for part in (outer, *parts)):
        return None
    if ref_of(outer) is not None or not all(_is_object(part) for part in (outer, *parts)):
        return None
    return merged(outer, *parts)


def as_one(schema: dict[str, Any], walk: SchemaWalk) -> dict[str, Any]:
    """Return a schema with what it has to fit at once (`allOf`) as part of it, as far as that can be written."""
    parts = conjunction(schema["allOf"], walk) if isinstance(schema.get("allOf"), list) else None
    if parts is None:
        return schema
    return merged({key: value for key, value in schema.items() if key != "allOf"}, *parts)


def conjunction(parts: Any, walk: SchemaWalk) -> list[dict[str, Any]] | None:
    """Return the schemas of an `allOf`, and those of their own, each resolved and once; None where that has no end."""
    found: list[dict[str, Any]] = []
    waiting, followed = list(reversed(parts)), set[str]()
    while waiting:
        part = waiting.pop()
        walk.count()
        ref = ref_of(part)
        if part is True or ref in followed:
            continue
        if not isinstance(part, Mapping) or ref in walk.open:
            return None
        followed |= set() if ref is None else {ref}
        named = _resolved(cast("Mapping[str, Any]", part), walk)
        waiting += reversed(named.pop("allOf", None) or ())
        found.append({key: value for key, value in named.items() if key != "$defs"})
    return found


def _resolved(part: Mapping[str, Any], walk: SchemaWalk) -> dict[str, Any]:
    if ref_of(part) is None:
        return dict(part)
    beside = {key: value for key, value in part.items() if key != "$ref"}
    target = walk.resolved({"$ref": part["$ref"]})
    return merged(beside, target) if beside.keys() - ABOUT else {**target, **beside}


def _is_object(part: Mapping[str, Any]) -> bool:
    return part.get("type", "object") in ("object", ["object"])


def _table(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    table = schema.get("properties")
    return cast("Mapping[str, Any]", table) if isinstance(table, Mapping) else {}

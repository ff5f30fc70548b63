"""Repair of JSON schemas of another party: what no value could ever fit is read as its author meant it.

A model is shown, and its arguments are checked against, the same repaired schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, cast

from toolcrib.jsonschema._composition import conjunction, merged
from toolcrib.jsonschema._visitor import properties_of, ref_of, rewrite
from toolcrib.jsonschema._walk import SchemaWalk

__all__ = ["satisfiable"]

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
        repaired = dict(source)
        if needed and repaired.get("enum") == []:
            del repaired["enum"]
        if isinstance(repaired.get("allOf"), list) and (joined := _joined(repaired, walk)) is not None:
            repaired = joined
        _declare_required(repaired, known)
        table = properties_of(repaired)
        required = cast("list[str]", repaired.get("required", ())) if isinstance(repaired.get("required"), list) else ()
        inside = known | table.keys()
        done = {key: repaired.pop(key) for key in ("properties", *_BRANCHES) if key in repaired}
        repaired = rewrite(repaired, lambda inner: _repaired(inner, walk, needed=True, known=frozenset()))
        if table:
            repaired["properties"] = {
                name: _repaired(inner, walk, needed=name in required, known=frozenset())
                for name, inner in table.items()
            }
        elif "properties" in done:
            repaired["properties"] = done["properties"]
        branches = {key: done[key] for key in _BRANCHES if key in done}
        repaired |= rewrite(branches, lambda inner: _repaired(inner, walk, needed=needed, known=inside))
        return {key: repaired[key] for key in (*source, *repaired) if key in repaired}


def _declare_required(schema: dict[str, Any], known: Set[str]) -> None:
    names, table = schema.get("required"), properties_of(schema)
    rest: Any = schema.get("additionalProperties")
    if not isinstance(names, list) or not (table or rest is False):
        return
    declared = known | table.keys()
    missing = [name for name in cast("list[Any]", names) if isinstance(name, str) and name not in declared]
    if missing:
        part: Any = cast("Any", rest) if isinstance(rest, Mapping) else {}
        schema["properties"] = {**table, **dict.fromkeys(missing, part)}


def _joined(schema: Mapping[str, Any], walk: SchemaWalk) -> dict[str, Any] | None:
    """Return an object with the parts that it has to fit as one, where one of them is closed; None for any other."""
    parts = conjunction(schema["allOf"], walk)
    outer = {key: value for key, value in schema.items() if key != "allOf"}
    if parts is None or not any(part.get("additionalProperties") is False for part in (outer, *parts)):
        return None
    if ref_of(outer) is not None or not all(_is_object(part) for part in (outer, *parts)):
        return None
    return merged(outer, *parts)


def _is_object(part: Mapping[str, Any]) -> bool:
    return part.get("type", "object") in ("object", ["object"])

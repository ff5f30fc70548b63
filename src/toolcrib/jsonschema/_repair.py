"""Repair of JSON schemas of another party: what no value could ever fit is read as its author meant it.

A model is shown, and its arguments are checked against, the same repaired schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, cast

from toolcrib.jsonschema._composition import conjunction, merged
from toolcrib.jsonschema._visitor import children, properties_of, ref_of, rewrite
from toolcrib.jsonschema._walk import SchemaWalk, check_nesting

__all__ = ["of_newer_version", "satisfiable"]

_OLD_VERSIONS = ("http://json-schema.org/draft-03/schema", "http://json-schema.org/draft-04/schema")
_KINDS = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_MAY_BE_NULL = frozenset({"const", "default", "example"})
_LIMITS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
_LISTED_ITEMS = "http://json-schema.org/draft-07/schema#"  # the last version whose `items` may be a list
_BRANCHES = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")


def of_newer_version(tool: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with what only drafts 3 and 4 say in their way said as the drafts after them do.

    An exclusive limit was `true` beside the limit, and a property itself said that it is required. A type of another
    name than JSON Schema has, as `any` and `file`, was one that any value fits. A schema that names no version is often
    of these. A keyword that is null is left out, and null in a list of types is the type of that name.

    Raises:
        SchemaTooLarge: It is nested too deep to be read; names the tool.
    """
    check_nesting(tool, schema)
    newer = _newer(schema)
    declared = newer.get("$schema")
    is_old = isinstance(declared, str) and declared.rstrip("#") in _OLD_VERSIONS
    if is_old or (declared is None and _lists_items(newer)):
        newer["$schema"] = _LISTED_ITEMS
    return newer


def _newer(part: Mapping[str, Any]) -> dict[str, Any]:
    newer = rewrite({key: value for key, value in part.items() if value is not None or key in _MAY_BE_NULL}, _newer)
    kinds: Any = newer.get("type")
    named = cast("list[Any]", kinds) if isinstance(kinds, list) else [kinds]
    if any(isinstance(kind, str) and kind not in _KINDS for kind in named):
        del newer["type"]
    elif None in named and isinstance(kinds, list):
        newer["type"] = [*dict.fromkeys("null" if kind is None else kind for kind in named)]
    for exclusive, limit in _LIMITS:
        if isinstance(newer.get(exclusive), bool) and newer.pop(exclusive) and limit in newer:
            newer[exclusive] = newer.pop(limit)
    table = properties_of(newer).items()
    flagged = [name for name, inner in table if _flag(inner) is True]
    rest: Any = newer.get("required", [])
    if flagged and isinstance(rest, list):
        newer["required"] = [*cast("list[Any]", rest), *(name for name in flagged if name not in rest)]
    if table:
        newer["properties"] = {name: _without_flag(inner) for name, inner in table}
    return newer


def _flag(part: Any) -> Any:
    return cast("Mapping[str, Any]", part).get("required") if isinstance(part, Mapping) else None


def _without_flag(part: Any) -> Any:
    if not isinstance(_flag(part), bool):
        return part
    return {name: value for name, value in cast("Mapping[str, Any]", part).items() if name != "required"}


def _lists_items(part: Mapping[str, Any]) -> bool:
    return isinstance(part.get("items"), list) or any(_lists_items(inner) for _, inner in children(part))


def satisfiable(tool: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema that something can fit, as far as its faults are those that generators of schemas make.

    A name that is required is declared, also where other names are refused. An object that has to fit several schemas
    at once may have the names of all of them, where one refuses others. An enum without values says nothing of what has
    to be given; one of an optional property still allows it no value.

    Raises:
        SchemaTooLarge: What its references lead to comes to too much; names the tool.
    """
    schema = of_newer_version(tool, schema)
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

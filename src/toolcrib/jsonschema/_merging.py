"""Merging of JSON schemas: one schema that says what several say together.

Two objects that are both closed to other names are closed to the names of both: parts of an `allOf` that each refuse
what the other one declares could be fitted by nothing, and their authors mean the whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import lcm
from typing import Any, cast

from toolcrib.jsonschema._visitor import ABOUT, properties_of, ref_of, values_of

_LARGEST = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_SMALLEST = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_OBJECT = frozenset({"properties", "patternProperties", "additionalProperties", "required"})
_VALUES = frozenset({"const", "enum"})
_TOGETHER: tuple[tuple[str, ...], ...] = (  # keywords that mean something only beside each other
    ("if", "then", "else"),
    ("prefixItems", "items", "additionalItems"),
    ("contains", "minContains", "maxContains"),
)


def merged(first: Mapping[str, Any], *others: Mapping[str, Any]) -> dict[str, Any]:
    """Return one schema that says what several say; what cannot be said in one stays in its `allOf`.

    What is said about the value is that of the first which says it. References are not followed.
    """
    merged_schema: dict[str, Any] = dict(first)
    for other in others:
        rest: dict[str, Any] = {}
        groups = {key: group for group in _TOGETHER for key in group}
        for key, value in other.items():
            if key in _OBJECT or key in _VALUES or key == "allOf":
                continue
            group = groups.get(key, (key,))
            if key not in merged_schema and not merged_schema.keys() & set(group):
                continue
            if all(merged_schema.get(grouped) == other.get(grouped) for grouped in group):
                continue
            found = _stricter(key, merged_schema.get(key), value)
            if key in ABOUT and key in merged_schema:
                continue
            if found is None:
                rest |= {grouped: other[grouped] for grouped in group if grouped in other}
            else:
                merged_schema[key] = found
        skipped = {"allOf", *_OBJECT, *_VALUES, *rest, *merged_schema}
        merged_schema |= {key: value for key, value in other.items() if key not in skipped}
        if not _merge_values(merged_schema, other):
            rest |= {key: other[key] for key in _VALUES if key in other}
        _merge_objects(merged_schema, other)
        parts = [*merged_schema.get("allOf", ()), *other.get("allOf", ()), *([rest] if rest else ())]
        merged_schema = {**merged_schema, "allOf": parts} if parts else merged_schema
    return merged_schema


def merged_reference(beside: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any]:
    """Return the target of a reference, merged with the keywords beside the reference."""
    return merged(beside, target) if beside.keys() - ABOUT else {**target, **beside}


def both_of(schema: Any, other: Any) -> Any:
    """Return a schema that says what two say, either of which may be `true` or `false`."""
    if schema == other or other in (True, {}):
        return schema
    if schema in (True, {}):
        return other
    if schema is False or other is False:
        return False
    if ref_of(schema) is not None or ref_of(other) is not None:
        return {"allOf": [schema, other]}
    return merged(schema, other)


def no_value_fits(schema: Mapping[str, Any]) -> bool:
    """Return whether two of the parts of a merged schema have no type or no value in common."""
    rest = [cast("Mapping[str, Any]", part) for part in schema.get("allOf", ()) if isinstance(part, Mapping)]
    if "type" in schema and any(
        _kinds_of_both(schema["type"], part["type"]) is None for part in rest if "type" in part
    ):
        return True
    mine, theirs = values_of(schema), [values for part in rest if (values := values_of(part)) is not None]
    return mine is not None and any(all(value not in mine for value in values) for values in theirs)


def _stricter(key: str, value: Any, other: Any) -> Any:
    """Return the value of a keyword that satisfies both given values; None where no value does."""
    if key in _LARGEST and _are_numbers(value, other):
        return max(value, other)
    if key in _SMALLEST and _are_numbers(value, other):
        return min(value, other)
    if key == "uniqueItems":
        return bool(value) or bool(other)
    if key == "multipleOf" and isinstance(value, int) and isinstance(other, int) and value > 0 and other > 0:
        return lcm(value, other)
    if key == "items" and isinstance(value, Mapping) and isinstance(other, Mapping):
        return both_of(value, other)
    return _kinds_of_both(value, other) if key == "type" else None


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _kinds_of_both(first: Any, second: Any) -> Any:
    """Return the types of JSON that two keywords `type` allow, or None."""
    mine, theirs = (
        cast("list[str]", keyword if isinstance(keyword, list) else [keyword]) for keyword in (first, second)
    )
    kinds = [kind for kind in mine if kind in theirs or (kind == "integer" and "number" in theirs)]
    kinds += [kind for kind in theirs if kind == "integer" and "number" in mine and kind not in kinds]
    return None if not kinds else kinds[0] if len(kinds) == 1 else kinds


def _merge_values(merged_schema: dict[str, Any], other: Mapping[str, Any]) -> bool:
    """Put the values that two schemas allow into the first; False where no value is allowed by both."""
    theirs = values_of(other)
    if theirs is None:
        return True
    mine = values_of(merged_schema)
    if mine is None:
        merged_schema |= {key: other[key] for key in _VALUES if key in other}
        return True
    allowed = {json.dumps(value, sort_keys=True) for value in theirs}
    both = [value for value in mine if json.dumps(value, sort_keys=True) in allowed]
    if not both:
        return False
    merged_schema.pop("const", None)
    merged_schema["enum"] = both
    return True


def _merge_objects(merged_schema: dict[str, Any], other: Mapping[str, Any]) -> None:
    """Put what another schema says of an object into the first."""
    rest, theirs = merged_schema.get("additionalProperties", True), other.get("additionalProperties", True)
    names = [*dict.fromkeys([*properties_of(merged_schema), *properties_of(other)])]
    properties = {name: _property(name, merged_schema, other) for name in names}
    patterns: dict[str, Any] = {**properties_of(merged_schema, "patternProperties")}
    for pattern, part in properties_of(other, "patternProperties").items():
        patterns[pattern] = both_of(patterns[pattern], part) if pattern in patterns else part
    required = [*dict.fromkeys([*_names(merged_schema), *_names(other)])]
    merged_schema |= {"properties": properties} if properties else {}
    merged_schema |= {"patternProperties": patterns} if patterns else {}
    merged_schema |= {"required": required} if required else {}
    if "additionalProperties" in merged_schema or "additionalProperties" in other:
        merged_schema["additionalProperties"] = both_of(rest, theirs)


def _property(name: str, first: Mapping[str, Any], other: Mapping[str, Any]) -> Any:
    found = [(properties_of(schema).get(name), schema) for schema in (first, other)]
    merged_part: Any = True
    for part, schema in found:
        rest = schema.get("additionalProperties", True)
        if part is not None:
            merged_part = both_of(merged_part, part)
        elif isinstance(rest, Mapping) and not schema.get("patternProperties"):
            merged_part = both_of(merged_part, rest)
    return {} if merged_part is True else merged_part


def _names(schema: Mapping[str, Any]) -> Sequence[str]:
    names = schema.get("required")
    return cast("list[str]", names) if isinstance(names, list) else ()

"""Composition of JSON schemas: what a value has to fit at once as one schema, and choices with what is beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolcrib.jsonschema._merging import merged, no_value_fits
from toolcrib.jsonschema._visitor import CHOICES, properties_of, ref_of
from toolcrib.jsonschema._walk import SchemaWalk


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
        named = walk.resolved(part)
        waiting += reversed(named.pop("allOf", None) or ())
        found.append({key: value for key, value in named.items() if key != "$defs"})
    return found


def branches(schema: Any, walk: SchemaWalk) -> list[dict[str, Any]]:
    """Return the schemas of which a value that fits a schema fits one: each choice, with what is said beside it.

    What references lead to, and the parts of an `allOf`, are part of them. Choices that lead to themselves, or that no
    value fits, are left out.

    Raises:
        SchemaTooLarge: They come to too much.
    """
    found: list[dict[str, Any]] = []
    waiting: list[tuple[Any, dict[str, Any], frozenset[str]]] = [(schema, {}, frozenset())]
    while waiting:
        choice, beside, followed = waiting.pop()
        walk.count()
        ref = ref_of(choice)
        if choice is False or ref in followed:
            continue
        resolved = walk.resolved(choice)
        part = _without_refused(as_one(merged(resolved, beside), walk), resolved)
        if no_value_fits(part):
            continue
        key = next((key for key in CHOICES if isinstance(part.get(key), list)), None)
        if key is None:
            found.append({name: value for name, value in part.items() if name != "$defs"})
            continue
        choices = cast("list[Any]", part.pop(key))
        waiting += [(inner, part, followed if ref is None else followed | {ref}) for inner in reversed(choices)]
    return found


def _without_refused(part: dict[str, Any], choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return a choice and what is said beside it without the optional properties that the choice refuses."""
    if choice.get("additionalProperties") is not False or choice.get("patternProperties"):
        return part
    names = {*properties_of(choice), *part.get("required", ())}
    return {**part, "properties": {name: schema for name, schema in properties_of(part).items() if name in names}}

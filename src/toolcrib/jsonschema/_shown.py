"""Schemas of arguments as providers are shown them: one object at the root, and nothing that a provider refuses.

What fits the schema that is shown fits the one that arguments are checked against, but for what is said in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cached_property
from typing import Any, cast

from toolcrib.jsonschema._composition import as_one
from toolcrib.jsonschema._merging import both_of, merged
from toolcrib.jsonschema._portable import portable
from toolcrib.jsonschema._repair import referring
from toolcrib.jsonschema._united import MOST_WORDS, united, write_unevaluated
from toolcrib.jsonschema._visitor import (
    ABOUT,
    CHOICES,
    definitions_in,
    kind_of,
    kinds_of,
    properties_of,
    ref_of,
    rewrite,
    subschemas,
    values_of,
)
from toolcrib.jsonschema._walk import SchemaWalk
from toolcrib.jsonschema._words import described, in_prose

_WHOLE = ("$defs", "$schema", "$id")  # what says something of a whole schema
_AT_ROOT = ("enum", "const", "not", "allOf")  # what no provider takes at the root
_OF_KIND = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("pattern", "minLength", "maxLength"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_TYPED = ("type", "$ref", "anyOf", "oneOf", "allOf", "not", "if")


def shown_arguments(tool: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's arguments for a provider.

    A choice at its root becomes one object with the arguments of every choice, and its description says which belong
    together. Arrays say what is in them, and everything that has to be of one type says of which. Patterns are written
    as every provider reads them, and one that cannot be written so stands in a description.

    Raises:
        SchemaTooLarge: Writing out its references comes to too much.
    """
    walk = SchemaWalk(parameters, tool)
    # a schema of arguments without a choice at its root
    shown_schema: dict[str, Any] = {key: value for key, value in parameters.items() if key not in _WHOLE}
    if isinstance(shown_schema.get("type"), list) and "object" in shown_schema["type"]:
        shown_schema["type"] = "object"
    shown_schema = as_one({"type": "object", **shown_schema}, walk)
    words: list[str] = []
    for key in CHOICES:
        if isinstance(choices := shown_schema.pop(key, None), list):
            shown_schema, text = united(shown_schema, cast("list[Any]", choices), key, walk)
            words.append(text)
    lost = {key: shown_schema.pop(key) for key in _AT_ROOT if key in shown_schema}
    words.append(in_prose(lost, ()))
    return _shown(described(shown_schema, "; ".join(filter(None, words))[:MOST_WORDS]), walk)


def shown_value(tool: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a value for a provider, such as that of a tool's result.

    Raises:
        SchemaTooLarge: Writing out its references comes to too much.
    """
    root = {key: part for key, part in schema.items() if key not in _WHOLE}
    return _shown(root, SchemaWalk(schema, tool))


def _shown(schema: Mapping[str, Any], walk: SchemaWalk) -> dict[str, Any]:
    """Return a schema as a provider is shown it, with the definitions that it uses."""
    definitions = properties_of(walk.root, "$defs")
    shown = _Shown(walk)
    shown_schema, used = shown.of(schema), dict[str, Any]()
    waiting = list(definitions_in(shown_schema)) if definitions else []
    while waiting:
        name = waiting.pop()
        if name in definitions and name not in used:
            used[name] = shown.of(definitions[name])
            waiting += definitions_in(used[name])
    return (
        {**shown_schema, "$defs": {name: used[name] for name in definitions if name in used}} if used else shown_schema
    )


# --- the root


# --- each part


class _Shown:
    """The parts of one schema, as they are shown."""

    def __init__(self, walk: SchemaWalk) -> None:
        self._walk = walk

    def of(self, part: Any) -> Any:
        """Return one part of a schema."""
        if not isinstance(part, Mapping):
            return part
        with self._walk.part():
            return self._written(dict(cast("Mapping[str, Any]", part)))

    def _written(self, shown_schema: dict[str, Any]) -> dict[str, Any]:
        if "allOf" in shown_schema:
            shown_schema = self._joined(shown_schema)
        ref = ref_of(shown_schema)
        beside = shown_schema.keys() - ABOUT - {"$ref"}
        if ref is not None and beside:
            if ref in self._walk.open:  # a type that holds itself cannot be written out
                words = in_prose({key: shown_schema.pop(key) for key in list(shown_schema) if key in beside}, ())
                return described(shown_schema, words)
            with self._walk.part(ref):
                beside_ref = {key: value for key, value in shown_schema.items() if key != "$ref"}
                return self._written(merged(beside_ref, self._walk.resolved({"$ref": ref})))
        if ref is not None:
            return shown_schema
        shown_schema = self._choices(shown_schema)
        _infer_type(shown_schema)
        _write_items(shown_schema)
        write_unevaluated(shown_schema)
        # Gemini refuses an object that requires a property and does not declare it
        table, rest = properties_of(shown_schema), shown_schema.get("additionalProperties", True)
        missing = [name for name in shown_schema.get("required", ()) if name not in table]
        if missing and rest is not False:
            shown_schema["properties"] = {**table, **{name: {} if rest is True else rest for name in missing}}
        shown_schema = self._conditions(self._patterns(shown_schema))
        # optional properties that nothing fits
        if table := properties_of(shown_schema):
            required = shown_schema.get("required") or ()
            shown_schema["properties"] = {
                name: part for name, part in table.items() if name in required or not _is_impossible(part)
            }
        _write_booleans(shown_schema)
        unchanged = {key: shown_schema.pop(key) for key in ("not", "if") if key in shown_schema}
        return {**rewrite(shown_schema, self.of), **unchanged}

    def _joined(self, shown_schema: dict[str, Any]) -> dict[str, Any]:
        """Return one schema in place of several that a value must all satisfy, where that can be written."""
        parts: Any = shown_schema["allOf"]
        ref = ref_of(parts[0]) if len(parts) == 1 else None
        if ref is not None and len(parts[0]) == 1 and not shown_schema.keys() - ABOUT - {"allOf"}:
            return {**{key: value for key, value in shown_schema.items() if key != "allOf"}, "$ref": ref}
        return as_one(shown_schema, self._walk)

    def _choices(self, shown_schema: dict[str, Any]) -> dict[str, Any]:
        """Return an object whose choices have the arguments that they require; those that only require are in words."""
        kinds = kinds_of(shown_schema)
        if kinds != ["object"] and (kinds or "properties" not in shown_schema):
            return shown_schema
        for key in CHOICES:
            choices: Any = shown_schema.get(key)
            if isinstance(choices, list) and all(map(_only_requires, cast("list[Any]", choices))):
                rest = {name: part for name, part in shown_schema.items() if name != key}
                united_schema, words = united(rest, cast("list[Any]", choices), key, self._walk)
                shown_schema = described(united_schema, words[:MOST_WORDS])
            elif isinstance(choices, list):
                table = properties_of(shown_schema)
                shown_schema[key] = [_declaring(choice, table) for choice in cast("list[Any]", choices)]
        return shown_schema

    def _patterns(self, shown_schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema whose patterns every provider reads; the others are said in words."""
        written, lost = _written_patterns(shown_schema)
        return described(written, ", ".join(in_prose({key: part}, ()) for key, part in lost.items()))

    def _conditions(self, shown_schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema whose conditions are written exactly; the others are said in words.

        What fits less than a condition fits more of what the condition refuses, and nothing of a condition may be left
        out.
        """
        lost: dict[str, Any] = {}
        for condition, dependent in (("not", ()), ("if", ("then", "else"))):
            if condition not in shown_schema:
                continue
            try:
                shown_schema[condition] = self._exact(shown_schema[condition])
            except _InexactError:
                lost |= {key: shown_schema.pop(key) for key in (condition, *dependent) if key in shown_schema}
        return described(shown_schema, in_prose(lost, ()))

    def _exact(self, part: Any) -> Any:
        """Return a part of a condition as every provider takes it, which fits what the part fits and no more.

        Raises:
            _InexactError: It cannot be written so.
        """
        if not isinstance(part, Mapping):
            return part
        with self._walk.part():
            schema, lost = _written_patterns(cast("Mapping[str, Any]", part))
            of_ref = definitions_in({key: part for key, part in schema.items() if key == "$ref"})
            if lost or schema.get("enum") == [] or self._inexact & set(of_ref):
                raise _InexactError
            _write_items(schema)
            ref, beside = ref_of(schema), schema.keys() - ABOUT - {"$ref"}
            if ref is not None and beside:
                parts = [{"$ref": ref}, {key: schema.pop(key) for key in [*schema] if key in beside and key != "allOf"}]
                del schema["$ref"]
                schema["allOf"] = [*schema.get("allOf", ()), *parts]
            return rewrite(schema, self._exact)

    @cached_property
    def _inexact(self) -> Set[str]:
        """The definitions that cannot be written exactly, nor what refers to them."""
        table = properties_of(self._walk.root, "$defs")
        lossy = {
            name for name, part in table.items() if any(_written_patterns(schema)[1] for schema in subschemas(part))
        }
        return referring(table, lossy)


def _only_requires(choice: Any) -> bool:
    if not isinstance(choice, Mapping):
        return False
    named = cast("Mapping[str, Any]", choice)
    return not named.keys() - ABOUT - {"type", "required"} and kinds_of(named) in ([], ["object"])


def _declaring(choice: Any, table: Mapping[str, Any]) -> Any:
    """Return a choice with what the object around it says of the properties that the choice requires."""
    if not isinstance(choice, Mapping) or ref_of(choice) is not None:
        return cast("Any", choice)
    named = dict(cast("Mapping[str, Any]", choice))
    declared = properties_of(named)
    missing = {name: table[name] for name in named.get("required", ()) if name in table and name not in declared}
    return {**named, "properties": {**declared, **missing}} if missing else named


def _is_impossible(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return part is False
    named = cast("Mapping[str, Any]", part)
    return named.get("enum") == [] or any(all(choice is False for choice in named.get(key, [True])) for key in CHOICES)


class _InexactError(Exception):
    """A condition cannot be written as every provider takes it."""


def _written_patterns(schema: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a copy of a schema whose patterns every provider reads, and what of it cannot be written so."""
    written, lost = dict(schema), dict[str, Any]()
    if "pattern" in schema:
        text = portable(schema["pattern"])
        if text is None:
            lost["pattern"] = written.pop("pattern")
        else:
            written["pattern"] = text
    table, unwritten = dict[str, Any](), dict[str, Any]()
    for pattern, part in properties_of(schema, "patternProperties").items():
        text = portable(pattern)
        if text is None:
            unwritten[pattern] = part
        else:
            table[text] = both_of(table[text], part) if text in table else part
    written |= {"patternProperties": table} if table or unwritten else {}
    lost |= {"patternProperties": unwritten} if unwritten else {}
    return written, lost


def _write_items(shown_schema: dict[str, Any]) -> None:
    """Write the items of an array as JSON Schema 2020-12 does."""
    if isinstance(shown_schema.get("items"), list):
        shown_schema["prefixItems"] = shown_schema.pop("items")
        shown_schema["items"] = shown_schema.pop("additionalItems", True)
    if "array" in kinds_of(shown_schema) and not shown_schema.keys() & {"items", "prefixItems"}:
        shown_schema["items"] = {}


def _write_booleans(shown_schema: dict[str, Any]) -> None:
    """Write `true` and `false` in the place of schemas as objects, as Gemini wants them; drop choices of `false`."""
    for key in ("properties", "patternProperties"):
        if table := properties_of(shown_schema, key):
            shown_schema[key] = {name: _as_object(part) for name, part in table.items()}
    for key in (*CHOICES, "prefixItems"):
        parts: Any = shown_schema.get(key)
        if isinstance(parts, list):
            choices = [part for part in cast("list[Any]", parts) if part is not False or key == "prefixItems"]
            shown_schema[key] = [_as_object(part) for part in choices or [False]]
    if "items" in shown_schema and shown_schema["items"] is True:
        shown_schema["items"] = {}


def _as_object(part: Any) -> Any:
    return part if not isinstance(part, bool) else {} if part else {"not": {}}


def _infer_type(shown_schema: dict[str, Any]) -> None:
    """Add the type to a schema that says something of one type alone."""
    if shown_schema.keys() & set(_TYPED):
        return
    values = values_of(shown_schema)
    if values is not None:
        kinds = list(dict.fromkeys(map(kind_of, values)))
        if kinds:
            shown_schema["type"] = kinds[0] if len(kinds) == 1 else kinds
        return
    kind = next((kind for kind, keywords in _OF_KIND.items() if shown_schema.keys() & set(keywords)), None)
    if kind is not None:
        shown_schema["type"] = kind

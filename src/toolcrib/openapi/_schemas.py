"""Schemas of an OpenAPI document as JSON Schema: each definition once, references among them kept.

What is said only to people or to other programs (examples, XML, titles) is left out, and what is not JSON Schema, too,
so that the result always is one. Requests are without the properties that only servers write, answers without those
that only clients do.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import Any, Literal, NamedTuple, TypeAlias, cast
from urllib.parse import unquote
from warnings import catch_warnings, simplefilter

from toolcrib.errors import DocumentError
from toolcrib.jsonschema import CHOICES, HOLDERS, definitions_in, keyword_fits, ref_of, rewrite
from toolcrib.openapi._document import Document, Place
from toolcrib.openapi._shapes import mapping_of
from toolcrib.openapi._texts import brief

Direction: TypeAlias = Literal["request", "answer"]
_HIDDEN: Mapping[str, str] = {"request": "readOnly", "answer": "writeOnly"}
_DEEPEST = 60
_TEXT_CHARS = 160  # of the description of one argument or property
_SLACK = 3_000  # characters that a schema may be longer than wanted before arguments are shown in part
_ELSEWHERE = "More about it is in the API's documentation."
_SCHEMAS = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_TABLES = ("properties", "patternProperties", "dependentSchemas")
_EXCLUSIVE = ("exclusiveMaximum", "exclusiveMinimum")  # truth values in OpenAPI 3.0


_VARIANTS = " with its variants"  # of the key of a definition


class _Cut(NamedTuple):
    """A definition as deep as some levels, its characters, and the levels that are left at its references."""

    schema: dict[str, Any]
    size: int
    reached: dict[str, int]


class Schemas:
    """The schemas of a document, in one direction."""

    def __init__(self, document: Document, direction: Direction) -> None:
        self._document, self._hidden = document, _HIDDEN[direction]
        self._names: dict[str, str] = {}
        self._numbers: dict[str, int] = {}  # the last one that tells definitions of one name apart
        self._places: dict[str, Place] = {}
        self._converted: dict[str, dict[str, Any]] = {}
        self._sizes: dict[str, int] = {}
        self._refs: dict[str, tuple[str, ...]] = {}
        self._cuts: dict[tuple[str, int], _Cut] = {}

    # --- converting

    def converted(self, schema: Any, base: str) -> dict[str, Any]:
        """Return a schema as JSON Schema, whose references lead to `#/$defs/NAME`.

        Raises:
            DocumentError: It is nested too deep, or refers to nothing.
        """
        return self._of(schema, base, 0)

    def _of(self, schema: Any, base: str, depth: int, is_part: bool = False) -> dict[str, Any]:
        """Return a schema; `is_part` is what another one has to fit besides, and not any of its variants."""
        if depth > _DEEPEST:
            raise self._document.error(f"has a schema that is nested more than {_DEEPEST} levels deep")
        if schema is False:
            return {"not": {}}
        if not isinstance(schema, Mapping):
            if schema is not None and schema is not True:
                self._document.log_wrong(f"schema {schema!r:.60}")
            return {}
        named = cast("Mapping[str, Any]", schema)
        ref = named.get("$ref")
        if not isinstance(ref, str):
            return self._written(named, base, depth)
        converted = {"$ref": f"#/$defs/{self._name(ref, base, is_part=is_part)}"}
        if not self._document.is_3_0:
            return {**converted, **self._written(named, base, depth)}
        text = brief(named.get("description"), _TEXT_CHARS)  # 3.0 ignores what stands beside a reference
        return {**converted, "description": text} if text else converted

    def _written(self, schema: Mapping[str, Any], base: str, depth: int) -> dict[str, Any]:
        plain = {key: value for key, value in schema.items() if key in _PLAIN and (key, value) != ("enum", [])}
        converted = {
            key: value
            for key, value in plain.items()
            if keyword_fits("maximum" if key == "multipleOf" else key, value)  # that of 0 is said with its place
        }
        if "pattern" in converted and not _is_pattern(converted["pattern"]):
            del converted["pattern"]
        text = brief(schema.get("description"), _TEXT_CHARS)
        converted |= {"description": text} if text else {}
        for key in _SCHEMAS:
            if isinstance(schema.get(key), Mapping | bool):
                converted[key] = self._of(schema[key], base, depth + 1)
        for key in _LISTS:
            if isinstance(schema.get(key), list) and schema[key]:
                converted[key] = [self._of(part, base, depth + 1, key == "allOf") for part in schema[key]]
        for key in _TABLES:
            if isinstance(schema.get(key), Mapping):
                converted[key] = self._table(schema[key], base, depth)
        if "patternProperties" in converted:
            converted["patternProperties"] = {
                key: part for key, part in converted["patternProperties"].items() if _is_pattern(key)
            }
        self._log_wrong(schema, converted)
        self._drop_hidden(schema, converted, base)
        if "discriminator" in schema and "oneOf" in converted:
            converted = _discriminated(schema["discriminator"], converted)
        return _of_3_0(schema, converted) if self._document.is_3_0 else converted

    def _log_wrong(self, schema: Mapping[str, Any], converted: Mapping[str, Any]) -> None:
        """Log the keywords that are left out, as their values are not those of JSON Schema."""
        for key in (schema.keys() & _KEYWORDS) - converted.keys():
            if not (self._document.is_3_0 and key in _EXCLUSIVE and isinstance(schema[key], bool)):
                self._document.log_wrong(f"`{key}` of {schema[key]!r:.60}")
        for key in schema.keys() & {"patternProperties"} & converted.keys():
            for name in schema[key].keys() - converted[key].keys():
                self._document.log_wrong(f"`{key}` of {name!r:.60}")

    def _table(self, table: Mapping[str, Any], base: str, depth: int) -> dict[str, Any]:
        return {str(name): self._of(part, base, depth + 1) for name, part in table.items()}

    def _drop_hidden(self, schema: Mapping[str, Any], converted: dict[str, Any], base: str) -> None:
        """Leave out the properties that the other side writes."""
        parts: Any = schema.get("properties")
        if not isinstance(parts, Mapping):
            return
        table = cast("Mapping[str, Any]", parts)
        hidden = {name for name, part in table.items() if self._is_hidden(part, base)}
        if hidden:
            converted["properties"] = {
                name: part for name, part in converted["properties"].items() if name not in hidden
            }
            if required := [name for name in converted.pop("required", ()) if name not in hidden]:
                converted["required"] = required

    def _is_hidden(self, part: Any, base: str) -> bool:
        if isinstance(part, Mapping) and cast("Any", part).get(self._hidden) is True:
            return True
        found = self._document.place(part, base).value
        return isinstance(found, Mapping) and cast("Any", found).get(self._hidden) is True

    # --- definitions

    def _variants(self, place: Place) -> list[dict[str, Any]]:
        """Return references to the variants of a schema that stands for them; none of any other schema."""
        plain_key = place.key.removesuffix(_VARIANTS)
        if plain_key == place.key:
            return []
        table = mapping_of(mapping_of(mapping_of(place.value).get("discriminator")).get("mapping"))
        refs = [ref if "/" in ref or "#" in ref else f"#/components/schemas/{ref}" for ref in map(str, table.values())]
        try:
            found = {self._document.find(ref, place.base).key: ref for ref in refs}
        except DocumentError:  # what a mapping names need not be there
            return []
        names = (self._name(ref, place.base, is_part=key == plain_key) for key, ref in found.items())
        return [{"$ref": f"#/$defs/{name}"} for name in names]

    def _name(self, ref: str, base: str, is_part: bool = False) -> str:
        """Return the name of the definition that a reference leads to; the first reference to it names it."""
        place = self._document.find(ref, base)
        if not is_part and _has_variants(place.value):
            place = place._replace(key=f"{place.key}{_VARIANTS}")
        if place.key not in self._names:
            last = re.split(r"[/#]", place.key.removesuffix(_VARIANTS).rstrip("/#"))[-1]
            wanted = re.sub(r"[^A-Za-z0-9_]+", "_", unquote(last)).strip("_")[:60] or "Whole"
            name = wanted
            while name in self._places:
                self._numbers[wanted] = self._numbers.get(wanted, 1) + 1
                name = f"{wanted}_{self._numbers[wanted]}"
            self._names[place.key], self._places[name] = name, place
        return self._names[place.key]

    def definition(self, name: str) -> dict[str, Any]:
        """Return a definition by its name."""
        if name not in self._converted:
            place = self._places[name]
            variants = self._variants(place)
            facts = mapping_of(place.value).get("discriminator")
            schema = _discriminated(facts, {"oneOf": variants}) if variants else self.converted(place.value, place.base)
            self._converted[name] = schema
        return self._converted[name]

    def _refs_of(self, name: str) -> tuple[str, ...]:
        if name not in self._refs:
            self._refs[name] = tuple(dict.fromkeys(definitions_in(self.definition(name))))
        return self._refs[name]

    def size(self, name: str) -> int:
        """Return the characters of a definition."""
        if name not in self._sizes:
            self._sizes[name] = len(json.dumps(self.definition(name)))
        return self._sizes[name]

    def with_definitions(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a converted schema with all definitions that it needs."""
        return self._with(schema, self._needed(schema))

    def _with(self, schema: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
        definitions = {name: self.definition(name) for name in names}
        return {**schema, "$defs": definitions} if definitions else schema

    def _needed(self, schema: dict[str, Any]) -> Iterator[str]:
        """Yield the names of the definitions that a schema needs, each once, the nearest first."""
        needed = dict.fromkeys(definitions_in(schema))
        waiting = deque(needed)
        while waiting:
            name = waiting.popleft()
            yield name
            further = [other for other in self._refs_of(name) if other not in needed]
            needed |= dict.fromkeys(further)
            waiting += further

    def shown(self, schema: dict[str, Any], most: int) -> dict[str, Any]:
        """Return a converted schema with its definitions in at most about `most` characters.

        Where it is longer, what is deepest in it becomes any object or list, and as little of it as possible; of one
        that is too wide even so, whole arguments do.
        """
        converted = self._within(schema, most)
        if converted is not None:
            return converted
        for levels in (6, 5, 4, 3, 2, 1):
            cut = self._cut(schema, levels, most)
            if cut is not None:
                return cut
        cut = self._cut(schema, 1, 8 * most) or self._cut(schema, 0, None)
        return _narrowed(_without_texts(cut or {}), most)

    def _within(self, schema: dict[str, Any], most: int) -> dict[str, Any] | None:
        """Return a schema with all of its definitions; None where that is too long."""
        room, names = most - len(json.dumps(schema)), list[str]()
        for name in self._needed(schema):
            if room < 0:
                break
            room -= self.size(name)
            names.append(name)
        return None if room < 0 else self._with(schema, names)

    def _cut(self, schema: dict[str, Any], levels: int, most: int | None) -> dict[str, Any] | None:
        """Return a schema with what is at most so many levels deep; None where that is longer than `most`."""
        reached: dict[str, int] = {}
        converted = _levels(schema, levels + 1, reached)  # the arguments themselves are the first
        room = None if most is None else most - len(json.dumps(converted))
        definitions: dict[str, Any] = {}
        waiting = [(-deep, name) for name, deep in reached.items()]
        heapify(waiting)  # the one with most levels left comes first: no other one can add to them
        while waiting:
            if room is not None and room < 0:
                return None
            deep, name = heappop(waiting)
            if name in definitions:
                continue
            cut = self._cut_definition(name, -deep)
            definitions[name], room = cut.schema, None if room is None else room - cut.size
            for other, further in cut.reached.items():
                if other not in definitions:
                    heappush(waiting, (-further, other))
        if room is not None and room < 0:
            return None
        return {**converted, "$defs": definitions} if definitions else converted

    def _cut_definition(self, name: str, levels: int) -> _Cut:
        if (name, levels) not in self._cuts:
            reached: dict[str, int] = {}
            converted = _levels(self.definition(name), levels, reached)
            self._cuts[name, levels] = _Cut(converted, len(json.dumps(converted)), reached)
        return self._cuts[name, levels]


def is_binary(schema: Any) -> bool:
    """Return whether a schema is that of bytes: `format: binary`, or text of a media type that is not written down."""
    if not isinstance(schema, Mapping):
        return False
    named = cast("Mapping[str, Any]", schema)
    if named.get("format") == "binary":
        return True
    return "contentMediaType" in named and "contentEncoding" not in named


def _has_variants(schema: Any) -> bool:
    """Return whether a schema names its variants in its discriminator alone."""
    named = mapping_of(schema)
    return bool(mapping_of(mapping_of(named.get("discriminator")).get("mapping"))) and not named.keys() & {
        "anyOf",
        "oneOf",
    }


# --- rules


_PLAIN = frozenset(
    {"type", "required", "enum", "const", "default", "format", "pattern", "contentEncoding", "contentMediaType"}
    | {"uniqueItems", "writeOnly", "multipleOf", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"}
    | {"maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"}
)


@lru_cache(maxsize=10_000)
def _is_pattern(text: str) -> bool:
    """Return whether a text is a pattern that a schema may have here; those of ECMAScript alone are left out."""
    try:
        with catch_warnings():
            simplefilter("error")  # Python warns of what it is to read in another way one day
            re.compile(text)
    except (re.error, Warning, RecursionError, OverflowError):
        return False
    return True


_KEYWORDS = frozenset({*_PLAIN, *_SCHEMAS, *_LISTS, *_TABLES})


def _of_3_0(schema: Mapping[str, Any], converted: dict[str, Any]) -> dict[str, Any]:
    """Convert the keywords of OpenAPI 3.0 to JSON Schema: exclusive limits, and null."""
    for exclusive, limit in (("exclusiveMaximum", "maximum"), ("exclusiveMinimum", "minimum")):
        if schema.get(exclusive) is True and limit in converted:
            converted[exclusive] = converted.pop(limit)
    if schema.get("nullable") is not True:
        return converted
    if "enum" in converted and None not in converted["enum"]:
        converted["enum"] = [*converted["enum"], None]
    if isinstance(converted.get("type"), str):
        converted["type"] = [converted["type"], "null"]
    elif "type" not in converted:
        choices = next((key for key in ("anyOf", "oneOf") if key in converted), None)
        if choices is not None:
            converted[choices] = [*converted[choices], {"type": "null"}]
        elif "allOf" in converted:
            text = {key: converted.pop(key) for key in ("description", "default") if key in converted}
            converted = {"anyOf": [converted, {"type": "null"}], **text}
    return converted


def _discriminated(discriminator: Any, converted: dict[str, Any]) -> dict[str, Any]:
    """Return a choice that a property decides: it may look like several of them, and the text says how to choose."""
    choices = {key: value for key, value in converted.items() if key != "oneOf"} | {"anyOf": converted["oneOf"]}
    facts: Any = cast("Any", discriminator) if isinstance(discriminator, Mapping) else {}
    name, table = facts.get("propertyName"), facts.get("mapping")
    if not isinstance(name, str):
        return choices
    values = ", ".join(map(str, cast("Mapping[str, Any]", table))) if isinstance(table, Mapping) else ""
    text = f"`{name}` says which{f': {values}' if values else ''}."[:_TEXT_CHARS]
    return {**choices, "description": " ".join(filter(None, (converted.get("description"), text)))}


# --- cutting


def _levels(schema: dict[str, Any], levels: int, reached: dict[str, int]) -> dict[str, Any]:
    """Return a schema as deep as so many levels of objects and lists; notes how many remain at each reference."""
    ref = ref_of(schema)
    if ref is not None:
        name = ref.removeprefix("#/$defs/")
        reached[name] = max(levels, reached.get(name, 0))
    if levels <= 0:
        inside = schema.keys() & HOLDERS
        if not inside:
            return schema
        rest = {key: value for key, value in schema.items() if key not in inside | {"required", "description"}}
        if "type" not in rest and "properties" in inside and "$ref" not in rest:
            rest["type"] = "object"
        text = schema.get("description", "")
        return {**rest, "description": f"{text} {_ELSEWHERE}".strip()}
    beside = {key: schema[key] for key in ("allOf", *CHOICES) if key in schema}
    inside = {key: part for key, part in schema.items() if key not in beside}
    return {
        **schema,
        **rewrite(beside, lambda part: _levels(part, levels, reached)),
        **rewrite(inside, lambda part: _levels(part, levels - 1, reached)),
    }


def _narrowed(schema: dict[str, Any], most: int) -> dict[str, Any]:
    """Return a schema with as many arguments as fit, the smallest first; of the others it says as little as can be."""
    if len(json.dumps(schema)) <= most + _SLACK:
        return schema
    definitions, arguments = schema.get("$defs", {}), mapping_of(schema.get("properties"))
    if not arguments:  # an answer
        return {key: value for key, value in schema.items() if key == "type"}
    needs = {name: _needed({name: part}, definitions, most) for name, part in arguments.items()}
    required, room = schema.get("required", ()), most
    converted, kept_definitions = dict[str, Any](), dict[str, Any]()
    for name in sorted(arguments, key=lambda argument: (sum(needs[argument].values()), argument not in required)):
        part, size = arguments[name], sum(needs[name].values())
        if size > room:
            ref = str(mapping_of(part).get("$ref", "")).removeprefix("#/$defs/")
            kind = mapping_of(definitions.get(ref, part)).get("type")
            part = {**({} if kind is None else {"type": kind}), "description": _ELSEWHERE}
            size = len(json.dumps({name: part}))
        else:
            kept_definitions |= {key: definitions[key] for key in needs[name] if key in definitions}
        if size <= room or name in required:
            converted[name], room = part, room - size
    narrowed = {key: value for key, value in schema.items() if key not in ("$defs", "additionalProperties")}
    if len(converted) == len(arguments):
        narrowed["additionalProperties"] = False
    ordered = {name: converted[name] for name in arguments if name in converted}
    return {**narrowed, "properties": ordered, **({"$defs": kept_definitions} if kept_definitions else {})}


def _needed(part: Mapping[str, Any], definitions: Mapping[str, Any], most: int) -> dict[str, int]:
    """Return the characters of an argument, by the empty name, and of each definition that it needs, up to `most`."""
    sizes, waiting = {"": len(json.dumps(part))}, [name for value in part.values() for name in definitions_in(value)]
    room = most - sizes[""]
    while waiting and room >= 0:
        name = waiting.pop()
        if name not in sizes:
            sizes[name] = len(json.dumps(definitions[name]))
            room -= sizes[name]
            waiting += definitions_in(definitions[name])
    return sizes


def _without_texts(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without descriptions, which say nothing that a call needs."""
    return rewrite({key: part for key, part in schema.items() if key != "description"}, _without_texts)

"""Strict schemas: a JSON schema in the subset that a provider's strict mode takes, and back from what a model sends.

What each provider takes is in its own module, as `StrictRules`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from toolcrib._numbers import count_text
from toolcrib.errors import FormatError
from toolcrib.jsonschema import (
    ABOUT,
    CHOICES,
    SchemaWalk,
    branches,
    children,
    definitions_in,
    describe_shape,
    described,
    in_prose,
    kind_of,
    kinds_of,
    properties_of,
    ref_of,
    subschemas,
    values_of,
)

# Keywords and formats of text that the strict mode of every provider knows, and the constraints of numbers:
STRUCTURE = frozenset(
    {"type", "description", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf"}
    | {"$ref", "$defs"}
)
NUMBERS = frozenset({"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
TEXT_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """Limits for the size of one schema."""

    properties: int
    depth: int
    text: int
    values: int
    long_enum: int
    long_enum_text: int

    def exceeded(self, schema: Mapping[str, Any], tool: str) -> str | None:
        """Return the limit that `schema` breaks, in words; None when it is within all of them."""
        parts = list(subschemas(schema))
        names = [name for part in parts for key in ("properties", "$defs") for name in part.get(key, ())]
        enums = [cast("list[Any]", part["enum"]) for part in parts if isinstance(part.get("enum"), list)]
        consts = [part["const"] for part in parts if "const" in part]
        texts = [*names, *(value for values in enums for value in values), *consts]
        if sum(len(part.get("properties", ())) for part in parts) > self.properties:
            return f"at most {self.properties} properties"
        if _depth(schema, SchemaWalk(schema, tool)) > self.depth:
            return f"at most {self.depth} levels of objects in objects"
        if sum(len(text) for text in texts if isinstance(text, str)) > self.text:
            return f"at most {self.text} characters of names and values"
        if sum(map(len, enums)) > self.values:
            return f"at most {self.values} values in its enums"
        if any(len(v) > self.long_enum and len("".join(map(str, v))) > self.long_enum_text for v in enums):
            return f"at most {self.long_enum_text} characters in an enum of more than {self.long_enum} values"
        return None


@dataclass(frozen=True, slots=True)
class StrictRules:
    """The rules of a provider's strict mode.

    Attributes:
        keywords: Those it knows. What another says goes into the description.
        formats: The formats of text that it knows.
        all_required: Whether every property has to be required; an optional one then accepts null.
        recursive: Whether a type may hold itself.
        small_arrays: Whether `minItems` may only be 0 or 1.
        plain_patterns: Whether patterns may not look around, back or at the borders of words.
        limits: The limits of the whole schema.
    """

    keywords: frozenset[str]
    formats: frozenset[str] = TEXT_FORMATS
    all_required: bool = False
    recursive: bool = True
    small_arrays: bool = False
    plain_patterns: bool = False
    limits: SchemaLimits | None = None


def check_root(tool: str, title: str, parameters: Mapping[str, Any]) -> None:
    """Raise FormatError unless the arguments are one object and no choice of several: no provider takes another."""
    choice = next((key for key in ("anyOf", "oneOf", "allOf", "enum", "not") if key in parameters), None)
    if choice is not None or parameters.get("type", "object") != "object":
        problem = (
            f"the schema of its arguments has `{choice}` at the top" if choice else "its arguments are not an object"
        )
        raise FormatError(tool, title, f"{problem}; put them into one named parameter")


def strict_schema(tool: str, title: str, parameters: Mapping[str, Any], rules: StrictRules) -> dict[str, Any]:
    """Return the schema of a tool's arguments as strict mode takes it.

    Raises:
        FormatError: Something in it cannot be said; names the field and what would mend it.
        SchemaTooLarge: Writing out its references comes to too much.
    """
    written = _Strict(tool, title, parameters, rules, SchemaWalk(parameters, tool)).root()
    problem = rules.limits.exceeded(written, tool) if rules.limits else None
    if problem:
        raise FormatError(tool, title, f"strict mode takes {problem}; leave `strict` out or make the schema smaller")
    return written


@dataclass(slots=True)
class _Strict:
    tool: str
    title: str
    source: Mapping[str, Any]
    rules: StrictRules
    walk: SchemaWalk
    recursive: dict[str, bool] = field(default_factory=dict[str, bool])

    def root(self) -> dict[str, Any]:
        written = self.schema({"type": "object", **{k: v for k, v in self.source.items() if k != "$defs"}}, "")
        definitions = cast("Mapping[str, Any]", self.source.get("$defs", {}))
        used = self._reached(written)
        if not self.rules.recursive:
            for name in sorted(used):
                if self._holds_itself(name):
                    self.refuse(f"`{name}`", "holds itself", "end it at a fixed depth, or leave `strict` out")
        if used:
            written["$defs"] = {name: self.schema(part, name) for name, part in definitions.items() if name in used}
        return written

    def refuse(self, place: str, fault: str, mend: str) -> None:
        raise FormatError(self.tool, self.title, f"in strict mode {place or 'the arguments'} {fault}; {mend}")

    def schema(self, part: object, path: str) -> dict[str, Any]:
        """Return the schema at `path` as strict mode takes it."""
        with self.walk.part():
            return self._schema(part, path)

    def _schema(self, part: object, path: str) -> dict[str, Any]:
        source = self._choices(dict(cast("Mapping[str, Any]", part)) if isinstance(part, Mapping) else {}, path)
        if "$ref" in source:
            return self._reference(source, path)
        self._arrays(source)
        self._texts(source)
        self._values(source, path)
        kind = source.get("type")
        if kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in source:
            self._object(source, path)
        elif not {"type", "anyOf", "enum", "const"} & set(source):
            self.refuse(f"`{path}`", "may hold anything", "give it a type")
        written = described(source, in_prose(source, self.rules.keywords))
        if "items" in written:
            written["items"] = self.schema(written["items"], f"{path}[]")
        if "anyOf" in written:
            written["anyOf"] = [self.schema(choice, path) for choice in written["anyOf"]]
        return written

    def _choices(self, source: dict[str, Any], path: str) -> dict[str, Any]:
        """Return a schema with `anyOf` for its choices, each with all that is said beside them."""
        if "allOf" in source:
            self.refuse(f"`{path}`", "has to fit several schemas at once (`allOf`)", "write them as one")
        if source.keys().isdisjoint(CHOICES):
            return source
        about = {key: value for key, value in source.items() if key in ABOUT}
        rest = {key: value for key, value in source.items() if key not in ABOUT}
        options = branches(rest, self.walk) if len(rest) > 1 else next(iter(rest.values()))
        if not options:
            self.refuse(f"`{path}`", "has no choice that a value can fit", "correct its choices")
        return {"anyOf": options, **about} if len(options) != 1 else {**self.walk.resolved(options[0]), **about}

    def _reference(self, source: dict[str, Any], path: str) -> dict[str, Any]:
        """Return a reference alone: nothing may stand beside it. What does goes where it is written out, or around."""
        name = str(source["$ref"]).removeprefix("#/$defs/")
        beside = {key: value for key, value in source.items() if key not in ("$ref", "default")}
        definitions = cast("Mapping[str, Mapping[str, Any]]", self.source.get("$defs", {}))
        if name not in definitions:
            self.refuse(f"`{path}`", f"refers to `{source['$ref']}`, which is not there", "put it into `$defs`")
        if self._holds_itself(name) and "description" in beside:  # a type that holds itself cannot be written out
            return {"anyOf": [{"$ref": source["$ref"]}], "description": beside["description"]}
        if not beside or self._holds_itself(name):
            return {"$ref": source["$ref"]}
        return self.schema({**definitions[name], **beside}, path)

    def _arrays(self, source: dict[str, Any]) -> None:
        """Write a fixed sequence as an array of any of its parts, of that length; drop a length that is not taken."""
        if "prefixItems" in source:
            parts = cast("list[Any]", source.pop("prefixItems"))
            different = [part for index, part in enumerate(parts) if part not in parts[:index]]
            source["items"] = different[0] if len(different) == 1 else {"anyOf": different}
            if len(different) > 1:
                shape = describe_shape({"type": "array", "prefixItems": parts}, walk=self.walk)
                source.update(described(source, f"in this order: {shape}"))
            source |= {"minItems": len(parts), "maxItems": len(parts)}
        if source.get("items") is False:
            del source["items"]
        if self.rules.small_arrays and source.get("minItems", 0) > 1:
            source.update(described(source, f"at least {count_text(source.pop('minItems'), 'item')}"))

    def _values(self, source: dict[str, Any], path: str) -> None:
        """Drop values that are not of the type beside them: none would fit, and the provider refuses the request."""
        kinds, values = kinds_of(source), values_of(source)
        if not kinds or values is None:
            return
        fitting = [value for value in values if _is_one_of(value, kinds)]
        if not fitting:
            text = json.dumps(values, ensure_ascii=False, default=str)
            mend = "correct the values or the type"
            self.refuse(f"`{path}`", f"has none but the values {text}, which are not of its type", mend)
        if "enum" in source:
            source["enum"] = fitting

    def _texts(self, source: dict[str, Any]) -> None:
        format = source.get("format")
        if format is not None and format not in self.rules.formats:
            source.update(described(source, f"format: {source.pop('format')}"))
        pattern = source.get("pattern")
        if self.rules.plain_patterns and isinstance(pattern, str) and re.search(r"\(\?[=!<]|\\[bB\d]", pattern):
            source.update(described(source, f"matching {source.pop('pattern')}"))

    def _object(self, source: dict[str, Any], path: str) -> None:
        """Close an object, and make its properties required where they have to be."""
        properties = cast("Mapping[str, Any]", source.get("properties", {}))
        extra = source.get("additionalProperties", None if properties or not path else True)
        if extra not in (None, False) or "patternProperties" in source:
            mend = "declare its names, make it a list of pairs, or leave `strict` out"
            self.refuse(f"`{path}`" if path else "", "may hold any names", mend)
        required = cast("list[str]", source.get("required", []))
        closed: dict[str, Any] = {}
        for name, part in properties.items():
            inner = self.schema(part, f"{path}.{name}".lstrip("."))
            optional = self.rules.all_required and name not in required
            closed[name] = _or_null(inner) if optional else inner
        source["properties"] = closed
        source["required"] = list(closed) if self.rules.all_required else [name for name in required if name in closed]
        source["additionalProperties"] = False

    def _reached(self, part: object) -> set[str]:
        """Return the names of all definitions that a schema refers to, directly or through others."""
        definitions = cast("Mapping[str, object]", self.source.get("$defs", {}))
        found: set[str] = set()
        waiting = set(definitions_in(part))
        while waiting:
            name = waiting.pop()
            if name in found or name not in definitions:
                continue
            self.walk.count()
            found.add(name)
            if name not in self.walk.memo:
                self.walk.memo[name] = set(definitions_in(definitions[name]))
            waiting |= self.walk.memo[name]
        return found

    def _holds_itself(self, name: str) -> bool:
        if name not in self.recursive:
            self.recursive[name] = name in self._reached(self.walk.root["$defs"][name])
        return self.recursive[name]


def _is_one_of(value: object, kinds: Sequence[str]) -> bool:
    """Return whether a JSON value has one of the types of JSON Schema."""
    kind = kind_of(value)
    is_whole = isinstance(value, float) and value.is_integer()
    return kind in kinds or (kind == "integer" and "number" in kinds) or (is_whole and "integer" in kinds)


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that accepts null too."""
    kind = schema.get("type")
    if "anyOf" in schema:
        choices = cast("list[Any]", schema["anyOf"])
        return schema if {"type": "null"} in choices else {**schema, "anyOf": [*choices, {"type": "null"}]}
    if "$ref" in schema or kind is None or "const" in schema:
        outer = {"description": schema["description"]} if "description" in schema else {}
        inner = {key: value for key, value in schema.items() if key not in outer}
        return {"anyOf": [inner, {"type": "null"}], **outer}
    kinds = cast("list[str]", kind if isinstance(kind, list) else [kind])
    nullable = {**schema, "type": kinds if "null" in kinds else [*kinds, "null"]}
    if "enum" in schema and None not in schema["enum"]:
        nullable["enum"] = [*schema["enum"], None]
    return nullable


# --- the size of a schema


def _depth(schema: object, walk: SchemaWalk) -> int:
    """Return how many objects are in each other; inside a recursive type, the type itself counts no more."""
    if not isinstance(schema, Mapping):
        return 0
    ref = ref_of(schema)
    if ref is None:
        named = cast("Mapping[str, Any]", schema)
        within = [part for keys, part in children(named) if keys[0] != "$defs"]
        return max((_depth(part, walk) for part in within), default=0) + ("properties" in named)
    if ref not in walk.memo:
        walk.memo[ref] = 0
        with walk.part(ref):
            walk.memo[ref] = _depth(walk.resolved(schema), walk)
    return walk.memo[ref]


# --- what a model sends for a tool that was defined strictly


def without_filler(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without nulls for properties that are optional and do not accept null, at any depth.

    Args:
        arguments: The arguments that a model sent for a tool that was defined with `strict=True`.
        parameters: The JSON schema of the tool's arguments as it was before, with its optional properties.

    Raises:
        SchemaTooLarge: Writing out its references comes to too much.
    """
    return cast("dict[str, Any]", _clean(arguments, parameters, SchemaWalk(parameters)))


def _clean(value: object, schema: object, walk: SchemaWalk) -> object:
    if not isinstance(value, list | Mapping):
        return value
    options = branches(schema, walk)
    if isinstance(value, list):
        items = enumerate(cast("list[object]", value))
        return [_clean(part, _item(options, place), walk) for place, part in items]
    named = cast("Mapping[str, object]", value)
    declared = {name: part for option in reversed(options) for name, part in properties_of(option).items()}
    if not named or not set(named) <= declared.keys():  # the model is told of the others
        return dict(named)
    chosen = min(options, key=lambda option: _misfits(named, option, walk))
    properties = properties_of(chosen)
    required = set[str].intersection(*(set(option.get("required", ())) for option in options))
    fields = {
        key: part
        for key, part in named.items()
        if part is not None or key in required or (key in properties and _takes_null(properties[key], walk))
    }
    return {key: _clean(part, properties.get(key, declared[key]), walk) for key, part in fields.items()}


def _item(options: Sequence[Mapping[str, Any]], place: int) -> object:
    for option in options:
        prefix = cast("list[object]", option.get("prefixItems") or [])
        if place < len(prefix):
            return prefix[place]
        if "items" in option:
            return option["items"]
    return None


def _misfits(value: Mapping[str, object], schema: Mapping[str, Any], walk: SchemaWalk) -> tuple[int, int]:
    """Return how many properties of an object say that it is not of a schema, and how many the schema does not have."""
    properties, required = properties_of(schema), cast("list[str]", schema.get("required", ()))
    names = {name for name, part in value.items() if part is not None}
    constants = {name: values_of(properties[name]) for name in names & properties.keys()}
    wrong = [name for name, values in constants.items() if values is not None and value[name] not in values]
    wrong += [name for name in required if name not in names and not _takes_null(properties.get(name), walk)]
    unknown = len(names - properties.keys())
    return len(wrong) + unknown * (schema.get("additionalProperties") is False), unknown


def _takes_null(schema: object, walk: SchemaWalk) -> bool:
    return any(map(_is_nullable, branches(schema, walk)))


def _is_nullable(schema: Mapping[str, Any]) -> bool:
    kinds, values = kinds_of(schema), values_of(schema)
    if not kinds and values is None:
        return schema.keys().isdisjoint({"$ref", *CHOICES, "allOf"})
    return (not kinds or "null" in kinds) and (values is None or None in values)

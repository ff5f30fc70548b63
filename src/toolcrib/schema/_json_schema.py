"""JSON schemas as models read them: without titles, `X | None` as X that may be null, no secret defaults.

`X | None` becomes `{"type": [x, "null"], ...}` where X has one type, and stays `anyOf` with null where X is a
reference, a union or a schema without a type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import CoreSchema, PydanticSerializationError, core_schema

from toolcrib.schema._core_schema import holds_secret
from toolcrib.schema._json_form import Notes, is_finite, json_form
from toolcrib.schema._schema_walk import SchemaWalk

__all__ = [
    "SchemaGenerator",
    "as_object",
    "map_subschemas",
    "part_at",
    "properties_of",
    "subschemas",
    "tidy",
    "type_words",
]

_ONE = frozenset(
    {"items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames"}
    | {"additionalItems", "contentSchema", "unevaluatedItems", "unevaluatedProperties"}
)
_MANY = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "items"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


class SchemaGenerator(GenerateJsonSchema):
    """Pydantic's generator, silent about defaults without a JSON form, and without defaults that are secret."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 -- as pydantic declares it

    _core_definitions: Mapping[str, CoreSchema] = {}

    def generate(self, schema: CoreSchema, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        """Return the schema of the whole."""
        made = super().generate(schema, mode)
        if mode == "validation":
            _require_tags(made, made.get("$defs", {}))
        return made

    def definitions_schema(self, schema: core_schema.DefinitionsSchema) -> JsonSchemaValue:
        """Return the schema, having kept the definitions to look references up in."""
        found = {part.get("ref", ""): part for part in schema["definitions"]}
        self._core_definitions = {**self._core_definitions, **found}
        return super().definitions_schema(schema)

    def field_is_required(
        self, field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField, total: bool
    ) -> bool:
        """Return whether a key is always there; in a result it is, though it have a default."""
        if self.mode == "serialization" and field["type"] != "typed-dict-field":
            return not field.get("serialization_exclude_if")
        return super().field_is_required(field, total)

    def encode_default(self, dft: Any) -> Any:
        """Return a default in its JSON form; pydantic warns of one that has none, and leaves it out."""
        notes = Notes([], [])
        made = json_form(dft, {"redact": True, "notes": notes})
        if notes.without_form or not is_finite(dft):
            raise PydanticSerializationError(f"{made} has no JSON form")
        return made

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Return the schema with its default, unless the default is secret."""
        if holds_secret(schema["schema"], self._core_definitions.get):
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


def _require_tags(schema: Any, definitions: Mapping[str, Any]) -> None:
    """Have the discriminator of a union required: pydantic wants it even where it has a default."""
    if isinstance(schema, list):
        for part in cast("list[Any]", schema):
            _require_tags(part, definitions)
    if not isinstance(schema, dict):
        return
    named = cast("dict[str, Any]", schema)
    match named.get("discriminator"):
        case {"propertyName": str(key), "mapping": {**members}}:
            for ref in members.values():
                member = definitions.get(str(ref).removeprefix("#/$defs/"), {})
                if key in member.get("properties", ()):
                    member["properties"][key].pop("default", None)
                    member["required"] = list(dict.fromkeys([*member.get("required", ()), key]))
        case _:
            pass
    for part in named.values():
        _require_tags(part, definitions)


# --- tidying ---------------------------------------------------------------------------------------------------------


def map_subschemas(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a copy of `schema` with `change` applied to the schemas directly inside it, and to nothing else."""
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, Mapping):
            result[key] = {name: change(part) for name, part in cast("Mapping[str, Any]", value).items()}
        elif key in _MANY and isinstance(value, list):
            result[key] = [change(part) for part in cast("list[Any]", value)]
        elif key in _ONE and isinstance(value, Mapping):
            result[key] = change(value)
        else:
            result[key] = value
    return result


def subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the schemas directly inside `schema`, each with the keys that lead to it."""
    for key, value in schema.items():
        inside: list[Any] = []
        map_subschemas({key: value}, inside.append)
        keys: Iterable[Any] = cast("Mapping[str, Any]", value) if key in _NAMED and inside else range(len(inside))
        for name, part in zip(keys, inside, strict=True):
            yield (key,) if part is value else (key, name), part


def tidy(schema: Any) -> Any:
    """Return `schema` without titles and defaults that JSON cannot say, and with `X | null` folded into X."""
    if not isinstance(schema, Mapping):
        return schema
    result = map_subschemas(cast("Mapping[str, Any]", schema), tidy)
    result.pop("title", None)
    if "default" in result and not _is_json(result["default"]):
        del result["default"]
    choices = result.get("anyOf")
    return _fold_null(result, cast("list[Any]", choices)) if isinstance(choices, list) else result


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _fold_null(schema: dict[str, Any], choices: list[Any]) -> dict[str, Any]:
    rest = [choice for choice in choices if choice != {"type": "null"}]
    if len(rest) != 1 or len(choices) != 2 or not isinstance(rest[0], dict):
        return schema
    folded = dict(cast("dict[str, Any]", rest[0]))
    if isinstance(folded.get("type"), str):
        folded["type"] = [folded["type"], "null"]
    elif "const" not in folded and "enum" not in folded:
        return schema
    values: list[Any] = [folded.pop("const")] if "const" in folded else folded.get("enum", [])
    if values:
        folded["enum"] = values if None in values else [*values, None]
    return {**folded, **{key: value for key, value in schema.items() if key != "anyOf"}}


def as_object(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's arguments as an object at the top: a recursive model's own reference resolved."""
    if "$ref" in schema:
        schema = SchemaWalk(schema).resolved(schema)
    return {key: value for key, value in schema.items() if key != "description"}


# --- reading ---------------------------------------------------------------------------------------------------------


def properties_of(schema: Any, walk: SchemaWalk) -> dict[str, Any]:
    """Return the properties that an object schema declares, in any of its choices."""
    found: dict[str, Any] = {}
    for choice in walk.choices(schema):
        declared: Mapping[str, Any] = choice.get("properties") or {}
        for name, part in declared.items():
            found.setdefault(name, part)
    return found


def part_at(walk: SchemaWalk, path: Sequence[int | str]) -> dict[str, Any]:
    """Return the schema of the value at `path`, empty where it is not declared."""
    schema: Any = walk.root
    for part in path:
        inside = _key if isinstance(part, str) else _item
        schema = inside(schema, cast("Any", part), walk)
    return walk.resolved(schema)


def _key(schema: Any, name: str, walk: SchemaWalk) -> Any:
    found = properties_of(schema, walk)
    rest = (choice["additionalProperties"] for choice in walk.choices(schema) if "additionalProperties" in choice)
    return found[name] if name in found else next(rest, None)


def _item(schema: Any, place: int, walk: SchemaWalk) -> Any:
    for choice in walk.choices(schema):
        prefix: list[Any] = choice.get("prefixItems") or []
        if place < len(prefix):
            return prefix[place]
        if "items" in choice:
            return choice["items"]
    return None


def type_words(schema: Mapping[str, Any]) -> str:
    """Return the type in JSON's words: `string`, `array of integer`, `"c" or "f"`; empty when any will do."""
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if isinstance(schema.get("enum"), list):
        return " or ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(cast("list[str]", kind))
    if kind == "array":
        items = schema.get("items")
        inner = type_words(cast("Mapping[str, Any]", items)) if isinstance(items, Mapping) else ""
        return f"array of {inner}" if inner else "array"
    if isinstance(kind, str):
        return kind
    words = [type_words(choice) for key in ("anyOf", "oneOf", "allOf") for choice in schema.get(key, ())]
    return " or ".join(words) if all(words) else ""

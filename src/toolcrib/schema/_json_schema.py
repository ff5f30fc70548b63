"""JSON schemas as models read them: without titles, `X | None` as X that may be null, no secret defaults.

`X | None` becomes `{"type": [x, "null"], ...}` where X has one type, and stays `anyOf` with null where X is a
reference, a union or a schema without a type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import CoreSchema, PydanticSerializationError, core_schema

from toolcrib.jsonschema import SchemaWalk, rewrite, subschemas
from toolcrib.schema._core_schema import holds_secret
from toolcrib.schema._json_form import Notes, infinite_place, json_form


class SchemaGenerator(GenerateJsonSchema):
    """Pydantic's generator, silent about defaults without a JSON form, and without defaults that are secret."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 -- as pydantic declares it

    _core_definitions: Mapping[str, CoreSchema] = {}

    def generate(self, schema: CoreSchema, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        """Return the schema of the whole."""
        json_schema = super().generate(schema, mode)
        if mode == "validation":
            # pydantic wants the discriminator of a union even where it has a default
            for part in subschemas(json_schema):
                match part.get("discriminator"):
                    case {"propertyName": str(key), "mapping": {**members}}:
                        for ref in members.values():
                            member = json_schema.get("$defs", {}).get(str(ref).removeprefix("#/$defs/"), {})
                            if key in member.get("properties", ()):
                                member["properties"][key].pop("default", None)
                                member["required"] = list(dict.fromkeys([*member.get("required", ()), key]))
                    case _:
                        pass
        return json_schema

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
        form = json_form(dft, {"redact": True, "notes": notes})
        if notes.without_form or infinite_place(dft) is not None:
            raise PydanticSerializationError(f"{form} has no JSON form")
        return form

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Return the schema with its default, unless the default is secret."""
        if holds_secret(schema["schema"], self._core_definitions.get):
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


# --- tidying ---------------------------------------------------------------------------------------------------------


def tidy(schema: Any) -> Any:
    """Return `schema` without titles and defaults that JSON cannot say, and with `X | null` folded into X."""
    if not isinstance(schema, Mapping):
        return schema
    result = rewrite(cast("Mapping[str, Any]", schema), tidy)
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

"""JSON schemas as models read them: without titles, `X | None` as X that may be null, no secret defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from toolcrib.schema._secrets import holds_secret

__all__ = ["SchemaGenerator", "tidy"]

_ONE = ("items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames")
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "dependentSchemas")


class SchemaGenerator(GenerateJsonSchema):
    """Pydantic's generator, silent about defaults without a JSON form and about defaults that are secret."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 -- pydantic's own declaration

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Return the schema with its default, unless the value is a secret."""
        if holds_secret(schema["schema"], self._definition):
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def _definition(self, ref: str) -> CoreSchema | None:
        return None


def map_subschemas(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a copy of `schema` with `change` applied to the schemas directly inside it, and to nothing else."""
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, Mapping):
            result[key] = {name: change(part) for name, part in cast(Mapping[str, Any], value).items()}
        elif key in _MANY and isinstance(value, list):
            result[key] = [change(part) for part in cast(list[Any], value)]
        elif key in _ONE and isinstance(value, Mapping):
            result[key] = change(value)
        else:
            result[key] = value
    return result


def tidy(schema: Any) -> Any:
    """Return `schema` without titles, and with `X | null` folded into X where one type says it."""
    if not isinstance(schema, Mapping):
        return schema
    named = cast(Mapping[str, Any], schema)
    result = map_subschemas(named, tidy)
    if isinstance(result.get("title"), str):
        del result["title"]
    choices = result.get("anyOf")
    if isinstance(choices, list):
        return _fold_null(result, cast(list[Any], choices))
    return result


def _fold_null(schema: dict[str, Any], choices: list[Any]) -> dict[str, Any]:
    rest = [choice for choice in choices if choice != {"type": "null"}]
    if len(rest) != 1 or len(choices) != 2 or not isinstance(rest[0], dict):
        return schema
    only = cast(dict[str, Any], rest[0])
    if not isinstance(only.get("type"), str) or "not" in only:
        return schema
    folded = {**only, "type": [only["type"], "null"]}
    if "const" in folded:
        folded["enum"] = [folded.pop("const"), None]
    elif isinstance(folded.get("enum"), list):
        folded["enum"] = [*folded["enum"], None]
    return {**folded, **{key: value for key, value in schema.items() if key != "anyOf"}}

"""Find what is secret in an input, by the core schema that pydantic made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import CoreSchema

from toolcrib.schema._markers import hide_when_asked

__all__ = ["holds_secret", "secret_fields"]

_NOT_SCHEMAS = frozenset({"metadata", "default", "expected", "config", "cls", "serialization"})


def holds_secret(
    schema: Any, definition: Callable[[str], CoreSchema | None], seen: frozenset[str] = frozenset()
) -> bool:
    """Return whether a core schema has a secret type or a `Redacted` anywhere in it.

    Args:
        definition: Looks up what a reference names; None where it is not known.
    """
    if isinstance(schema, list | tuple):
        return any(holds_secret(part, definition, seen) for part in cast("list[Any]", schema))
    if not isinstance(schema, dict):
        return False
    named = cast("dict[str, Any]", schema)
    if _hides(named.get("serialization")):
        return True
    if named.get("type") == "definition-ref":
        ref = named["schema_ref"]
        return ref not in seen and holds_secret(definition(ref), definition, seen | {ref})
    return any(holds_secret(part, definition, seen) for key, part in named.items() if key not in _NOT_SCHEMAS)


def _hides(serialization: Any) -> bool:
    if not isinstance(serialization, Mapping):
        return False
    function: Any = cast("Mapping[str, Any]", serialization).get("function")
    if function is hide_when_asked:
        return True
    module, name = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    return module == "pydantic.types" and name.startswith("_serialize_secret")  # SecretStr, SecretBytes, Secret[T]


def secret_fields(model: type[BaseModel]) -> frozenset[str]:
    """Return the fields of `model` that have something secret in them, `*` for its extra values."""
    schema: Any = model.__pydantic_core_schema__
    definitions: dict[str, Any] = {}
    if schema["type"] == "definitions":
        definitions = {part["ref"]: part for part in schema["definitions"]}
        schema = schema["schema"]
    if schema["type"] == "definition-ref":
        schema = definitions[schema["schema_ref"]]
    while schema["type"] not in ("model-fields",) and "schema" in schema:  # validators stand around the fields
        schema = schema["schema"]
    if schema["type"] != "model-fields":
        return frozenset({"*"}) if holds_secret(schema, definitions.get) else frozenset()
    found = {name for name, part in schema["fields"].items() if holds_secret(part, definitions.get)}
    if holds_secret(schema.get("extras_schema"), definitions.get):
        found.add("*")
    return frozenset(found)

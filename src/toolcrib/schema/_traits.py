"""What a core schema says of an input: what in it is secret, and whether it holds sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

from pydantic import BaseModel
from pydantic_core import CoreSchema

from toolcrib.schema._markers import hide_when_asked
from toolcrib.schema._root import ROOT, is_root

__all__ = ["Traits", "holds_secret", "traits_of"]

Lookup: TypeAlias = Callable[[str], CoreSchema | None]
Test: TypeAlias = Callable[[Mapping[str, Any]], bool]

_NOT_SCHEMAS = frozenset({"metadata", "default", "expected", "config", "cls", "serialization"})


class Traits(NamedTuple):
    """What a dump of an input has to look after.

    Attributes:
        secrets: The fields that have something secret in them, `*` for the values that are not declared.
        sets: There are sets in it, whose order is another in each process.
    """

    secrets: frozenset[str]
    sets: bool


def traits_of(model: type[BaseModel]) -> Traits:
    """Return the traits of a model's fields."""
    schema: Any = model.__pydantic_core_schema__
    definitions: dict[str, Any] = {}
    if schema["type"] == "definitions":
        definitions = {part["ref"]: part for part in schema["definitions"]}
        schema = schema["schema"]
    if schema["type"] == "definition-ref":
        schema = definitions[schema["schema_ref"]]
    sets = _finds(schema, _is_set, definitions.get)
    if is_root(model):
        return Traits(frozenset({ROOT} if holds_secret(schema, definitions.get) else ()), sets)
    while schema["type"] != "model-fields" and "schema" in schema:  # validators stand around the fields
        schema = schema["schema"]
    if schema["type"] != "model-fields":
        return Traits(frozenset({"*"} if holds_secret(schema, definitions.get) else ()), sets)
    parts = {**schema["fields"], "*": schema.get("extras_schema")}
    return Traits(frozenset(name for name, part in parts.items() if holds_secret(part, definitions.get)), sets)


def holds_secret(schema: Any, definition: Lookup) -> bool:
    """Return whether a core schema has a secret type or a `Redacted` anywhere in it.

    Args:
        definition: Looks up what a reference names; None where it is not known.
    """
    return _finds(schema, _is_secret, definition)


def _finds(schema: Any, test: Test, definition: Lookup, seen: frozenset[str] = frozenset()) -> bool:
    if isinstance(schema, list | tuple):
        return any(_finds(part, test, definition, seen) for part in cast("list[Any]", schema))
    if not isinstance(schema, dict):
        return False
    named = cast("dict[str, Any]", schema)
    if test(named):
        return True
    if named.get("type") == "definition-ref":
        ref = named["schema_ref"]
        return ref not in seen and _finds(definition(ref), test, definition, seen | {ref})
    skipped = _NOT_SCHEMAS if isinstance(named.get("type"), str) else ()  # else these are fields or choices by name
    return any(_finds(part, test, definition, seen) for key, part in named.items() if key not in skipped)


def _is_set(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") in ("set", "frozenset")


def _is_secret(schema: Mapping[str, Any]) -> bool:
    serialization: Any = schema.get("serialization")
    if not isinstance(serialization, Mapping):
        return False
    function: Any = cast("Mapping[str, Any]", serialization).get("function")
    if function is hide_when_asked:
        return True
    module, name = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    return module == "pydantic.types" and name.startswith("_serialize_secret")  # SecretStr, SecretBytes, Secret[T]

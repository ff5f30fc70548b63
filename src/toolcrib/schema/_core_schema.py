"""Core schemas of pydantic: the fields of an input, and what in them is secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from pydantic_core import CoreSchema

from toolcrib.schema._markers import hide_when_asked

_Lookup: TypeAlias = Callable[[str], CoreSchema | None]
_NOT_SCHEMAS = frozenset({"metadata", "default", "expected", "config", "cls", "serialization"})


class Fields(NamedTuple):
    """The fields of an input.

    Attributes:
        named: The schema of each field.
        extras: The schema of the values that it does not declare; None where it says nothing of them.
        definitions: The definitions that references in these schemas name.
    """

    named: Mapping[str, Mapping[str, Any]]
    extras: Any
    definitions: Sequence[Any]

    def definition(self, ref: str) -> Any:
        """Return the definition of a reference; None where it is unknown."""
        return next((part for part in self.definitions if part["ref"] == ref), None)


def fields_of(schema: Any) -> Fields:
    """Return the fields of a model; none where its core schema is not that of a model with fields."""
    definitions: Sequence[Any] = schema.get("definitions", ())
    found = Fields({}, None, definitions)
    schema = schema["schema"] if definitions else schema
    if schema["type"] == "definition-ref":
        schema = found.definition(schema["schema_ref"])
    while schema["type"] != "model-fields":  # validators stand around the fields
        if "schema" not in schema:
            return found._replace(extras=schema)
        schema = schema["schema"]
    return Fields(schema["fields"], schema.get("extras_schema"), definitions)


def secrets_of(schema: CoreSchema) -> frozenset[str]:
    """Return the fields of a model that have something secret in them, `*` for the values that are not declared."""
    found = fields_of(schema)
    parts = {**found.named, "*": found.extras}
    return frozenset(name for name, part in parts.items() if holds_secret(part, found.definition))


def type_holds_secret(schema: CoreSchema) -> bool:
    """Return whether a type has a secret type or a `Redacted` anywhere in it, given its whole core schema."""
    return holds_secret(schema, lambda ref: None)  # what a reference names is looked through, too


def holds_secret(schema: Any, definition: _Lookup, followed: frozenset[str] = frozenset()) -> bool:
    """Return whether a core schema has a secret type or a `Redacted` anywhere in it.

    Args:
        definition: Looks up what a reference names; None where it is not known.
        followed: The references that led here.
    """
    if isinstance(schema, list | tuple):
        return any(holds_secret(part, definition, followed) for part in cast("Sequence[Any]", schema))
    if not isinstance(schema, dict):
        return False
    named = cast("dict[str, Any]", schema)
    writing: Any = named.get("serialization")
    function: Any = cast("dict[str, Any]", writing).get("function") if isinstance(writing, dict) else None
    if function is hide_when_asked or is_secret_function(function):
        return True
    if named.get("type") == "definition-ref":
        ref = named["schema_ref"]
        return ref not in followed and holds_secret(definition(ref), definition, followed | {ref})
    skipped = _NOT_SCHEMAS if isinstance(named.get("type"), str) else ()  # else these are fields or choices by name
    return any(holds_secret(part, definition, followed) for key, part in named.items() if key not in skipped)


def runs_code(schema: Any) -> bool:
    """Return whether a core schema has code that a value goes through, so that it may not be what it was made of."""
    if isinstance(schema, list | tuple):
        return any(map(runs_code, cast("Sequence[Any]", schema)))
    if not isinstance(schema, dict):
        return False
    named = cast("dict[str, Any]", schema)
    kind = named.get("type")
    if not isinstance(kind, str):  # fields or choices by name
        return any(map(runs_code, named.values()))
    if kind in ("json", "call") or named.get("custom_init") or named.get("post_init"):
        return True
    if kind.startswith("function-"):
        function: Any = cast("dict[str, Any]", named["function"])["function"]
        if not getattr(function, "__module__", "").startswith("toolcrib.schema."):
            return True
    return any(runs_code(part) for key, part in named.items() if key not in _NOT_SCHEMAS)


def is_secret_function(function: Any) -> bool:
    """Return whether a function is what pydantic writes SecretStr, SecretBytes and Secret[T] with."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    return module == "pydantic.types" and name.startswith("_serialize_secret")

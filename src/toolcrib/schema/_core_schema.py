"""Core schemas of pydantic: the fields of an input, and what in them is secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
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


class Facts(NamedTuple):
    """Facts about a core schema, of all of its parts.

    Attributes:
        kinds: The kinds of its parts.
        runs_code: It has code that a value goes through, so that it may not be what it was made of.
        is_styled: The author of a type in it has values written in a way of their own.
        has_aliases: A part is read under another key than its name.
        may_be_infinite: Pydantic takes a number in it that is not finite, though nothing says that one may be.
        is_plain: Pydantic's own JSON form of a value is the canonical one: it has no other, and is read back.
    """

    kinds: frozenset[str]
    runs_code: bool
    is_styled: bool
    has_aliases: bool
    may_be_infinite: bool
    is_plain: bool


def facts_of(schema: Any, config: Mapping[str, Any] | None = None) -> Facts:
    """Return the facts about a core schema, or about parts of one that stand in a model of this configuration."""
    parts = list(_parts(schema, config or {}))
    numbers = [_number_rule(part, config) for part, config in parts]
    return Facts(
        frozenset(part["type"] for part, _ in parts),
        any(_runs_code(part) for part, _ in parts),
        any(_is_styled(part) for part, _ in parts),
        any("validation_alias" in part or "serialization_alias" in part for part, _ in parts),
        False in numbers and True not in numbers,
        all(_is_plain(part, config) for part, config in parts),
    )


def _parts(schema: Any, config: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield each part of a core schema, with the configuration of the nearest model, dataclass or TypedDict."""
    if isinstance(schema, list | tuple):
        for part in cast("Sequence[Any]", schema):
            yield from _parts(part, config)
    elif isinstance(schema, dict):
        named = cast("dict[str, Any]", schema)
        is_part = isinstance(named.get("type"), str)  # else these are fields or choices by name
        if is_part:
            config = named.get("config") or config
            yield named, config
        for key, part in named.items():
            if not is_part or key not in _NOT_SCHEMAS:
                yield from _parts(part, config)


def _runs_code(part: Mapping[str, Any]) -> bool:
    kind: str = part["type"]
    if kind in ("json", "call") or part.get("custom_init") or part.get("post_init"):
        return True
    return kind.startswith("function-") and not _is_of_package(part["function"]["function"])


def _is_styled(part: Mapping[str, Any]) -> bool:
    function: Any = part.get("serialization", {}).get("function")
    is_pydantics = getattr(function, "__module__", None) or type(function).__module__
    return function is not None and not _is_of_package(function) and not is_pydantics.startswith("pydantic.")


def _is_of_package(function: Any) -> bool:
    module: str = getattr(function, "__module__", None) or type(function).__module__
    return module.startswith("toolcrib.schema.")


def _number_rule(part: Mapping[str, Any], config: Mapping[str, Any]) -> bool | None:
    """Return whether a part says that numbers may be infinite, False where it takes them and does not say so."""
    kind: str = part["type"]
    default: Any = part.get("default")
    if kind == "default" and isinstance(default, float) and not isfinite(default):
        return True
    allowed: bool | None = part.get("allow_inf_nan", config.get("allow_inf_nan"))
    if kind in ("float", "decimal") and allowed is not None:
        return allowed or None
    any_items = kind in _CONTAINERS and _CONTAINERS[kind] not in part
    any_extras = config.get("extra_fields_behavior") == "allow" and kind == "model-fields"
    return False if kind in ("any", "complex", "float") or any_items or any_extras else None


def _is_plain(part: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    kind: str = part["type"]
    if kind not in _PLAIN or (kind in _CONTAINERS and _CONTAINERS[kind] not in part):
        return False
    members: Sequence[Any] = part.get("members", part.get("expected", ()))
    odd = part.keys() & {"serialization_exclude", "serialization_exclude_if", "validation_alias"}
    is_open = config.get("extra_fields_behavior") == "allow"
    is_odd = part.get("init") is False or part.get("allow_inf_nan") is True or is_open or len(odd) > 0
    is_text_key = kind != "dict" or part["keys_schema"]["type"] == "str"
    is_own = "function" in part.get("serialization", ()) or any(key.startswith("ser_json") for key in config)
    return is_text_key and not is_odd and not is_own and all(isinstance(member, str | int) for member in members)


_CONTAINERS: Mapping[str, str] = {
    "deque": "items_schema", "dict": "values_schema", "frozenset": "items_schema", "json": "schema",
    "list": "items_schema", "set": "items_schema", "tuple": "items_schema",
}  # fmt: skip
_PLAIN = frozenset(
    {
        "bool", "dataclass", "dataclass-args", "dataclass-field", "date", "datetime", "default", "definition-ref",
        "definitions", "dict", "enum", "float", "int", "list", "literal", "model", "model-field", "model-fields",
        "none", "nullable", "str", "tagged-union", "time", "timedelta", "typed-dict", "typed-dict-field", "union",
        "uuid",
    }
)  # fmt: skip


def is_secret_function(function: Any) -> bool:
    """Return whether a function is what pydantic writes SecretStr, SecretBytes and Secret[T] with."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    return module == "pydantic.types" and name.startswith("_serialize_secret")

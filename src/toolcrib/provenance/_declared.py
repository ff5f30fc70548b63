"""Labels and receivers that a tool declares: by its options, the marks of its parameters, and its schema."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any, Final, cast, get_args
from weakref import WeakKeyDictionary

from pydantic import AliasChoices
from pydantic.fields import FieldInfo

from toolcrib.errors import SchemaError
from toolcrib.jsonschema import properties_of, subschemas
from toolcrib.provenance._policy import ToolLabels
from toolcrib.provenance._question import argument_of
from toolcrib.provenance._values import keys_of, leaves_of
from toolcrib.schema import Content, Decides
from toolcrib.tools import Tool

_RECEIVER: Final = re.compile(r"[@#/]|\w\.[^\W\d_]{2}")  # an address, a channel, a link or a host

_declared_labels: WeakKeyDictionary[Tool[..., Any], ToolLabels] = WeakKeyDictionary()


def declared_labels(tool: Tool[..., Any]) -> ToolLabels:
    """Return the labels that a tool declares."""
    found = _declared_labels.get(tool)
    if found is None:
        options = tool.options
        content, deciding = frozenset(options.content) | _marked(tool, Content), _marked(tool, Decides)
        found = _declared_labels[tool] = ToolLabels(
            effect=options.effect or "execute",
            source=options.source,
            content=content - deciding,
            readers=options.readers,
            fields=_fields(tool),
            deciding=deciding,
        )
    return found


def _marked(tool: Tool[..., Any], mark: type) -> frozenset[str]:
    """Return the parameters with a mark, also by the names that a model gives them by."""
    try:
        fields = tool.spec.input_model.model_fields
    except SchemaError:  # a host may pass what has no schema
        return frozenset()
    marked = [(name, field.validation_alias) for name, field in fields.items() if _has_mark(field, mark)]
    names = chain(*((name, *(key.choices if isinstance(key, AliasChoices) else [key])) for name, key in marked))
    return frozenset(name for name in names if isinstance(name, str))


def _has_mark(field: FieldInfo, mark: type) -> bool:
    """Return whether a parameter has a mark; one that decides has it in whatever part of its type."""
    parts: list[Any] = [*field.metadata, *([field.annotation] if mark is Decides else [])]
    for part in parts:  # to which those of each type are added
        parts += [*getattr(part, "__metadata__", ()), *get_args(part)]
    return any(part is mark or isinstance(part, mark) for part in parts)


def _fields(tool: Tool[..., Any]) -> frozenset[str]:
    """Return the names of all properties in the schema of the arguments."""
    try:
        parts = subschemas(tool.spec.parameters)
    except SchemaError:  # a host may pass what has no schema
        return frozenset()
    return frozenset(name for part in parts for name in properties_of(part))


def without_defaults(tool: Tool[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that differ from their defaults, which are the tool's own choice."""
    try:
        properties: Mapping[str, Any] = tool.spec.parameters.get("properties", {})
    except SchemaError:  # a host may pass what has no schema
        properties = {}
    return {name: value for name, value in values.items() if not _is_default(value, properties.get(name))}


def other_receivers(
    tool: Tool[..., Any], given: Mapping[str, Any], content: Collection[str], labels: ToolLabels
) -> Iterator[str]:
    """Yield keys of arguments, and texts that a tool takes for arguments that are not given, which may be receivers.

    An address, a link or a channel may be one; without a required argument that decides, each text may be.
    """
    yield from (key for path, key in keys_of(given) if key not in labels.fields and argument_of(path) not in content)
    try:
        parameters = tool.spec.parameters
    except SchemaError:  # a host may pass what has no schema
        return
    is_addressed = any(name not in content for name in parameters.get("required", ()))
    for name, schema in properties_of(parameters).items():
        if name not in given and name not in content and isinstance(schema, dict):
            for _, value in leaves_of(cast("dict[str, Any]", schema).get("default")):
                if isinstance(value, str) and (not is_addressed or _RECEIVER.search(value) is not None):
                    yield value


def _is_default(value: Any, schema: Any) -> bool:
    if not isinstance(schema, dict) or "default" not in schema:
        return False
    default: Any = cast("dict[str, Any]", schema)["default"]
    return value == default and isinstance(value, bool) is isinstance(default, bool)

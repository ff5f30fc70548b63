"""Result types: what a function's return annotation says about the values that come back."""

from __future__ import annotations

import collections.abc
import inspect
from collections.abc import Mapping
from types import NoneType
from typing import Any, cast, get_args, get_origin

from pydantic import TypeAdapter

from toolcrib import jsonschema
from toolcrib.errors import SchemaError
from toolcrib.schema._json_schema import SchemaGenerator, tidy
from toolcrib.schema._model import no_read_only_warning, one_sentence
from toolcrib.schema._typed_dicts import modern

_STREAMS = frozenset(
    {
        collections.abc.AsyncGenerator,
        collections.abc.AsyncIterable,
        collections.abc.AsyncIterator,
        collections.abc.Generator,
        collections.abc.Iterable,
        collections.abc.Iterator,
    }
)
_AWAITED = frozenset({collections.abc.Awaitable, collections.abc.Coroutine})
_SILENT: frozenset[Any] = frozenset({None, NoneType, Any, inspect.Signature.empty})


def yielded_type(annotation: Any) -> Any:
    """Return the type of one value of a generator, Any where the annotation does not say."""
    arguments = get_args(annotation)
    return arguments[0] if get_origin(annotation) in _STREAMS and arguments else Any


def awaited_type(annotation: Any) -> Any:
    """Return the result type of an awaitable, for a function that returns one without being `async def`."""
    arguments = get_args(annotation)
    return arguments[-1] if get_origin(annotation) in _AWAITED and arguments else annotation


def return_schema_of(tool: str, annotation: Any, chosen: Any) -> dict[str, Any] | None:
    """Return the JSON schema of a result as it is serialised; None where the type says nothing or has no schema.

    Args:
        chosen: A schema or type that was asked for by name and stands above the annotation; None for nothing.

    Raises:
        SchemaError: `chosen` is a type that has no schema.
    """
    if isinstance(chosen, Mapping):
        return dict(jsonschema.well_formed(tool, cast("Mapping[str, Any]", chosen)).schema)
    wanted = annotation if chosen is None else chosen
    try:
        if wanted in _SILENT:
            return None
        with no_read_only_warning():
            schema = TypeAdapter(modern(wanted)).json_schema(mode="serialization", schema_generator=SchemaGenerator)
    except Exception as error:  # what the author's types raise; a result needs no schema to be a result
        if chosen is None:
            return None
        raise SchemaError(tool, "return", f"has a type without a JSON schema ({one_sentence(error)})") from error
    return tidy(schema) or None


def type_title(annotation: Any, schema: Mapping[str, Any]) -> str:
    """Return the name of a result's type, for a schema that has lost it; empty when it has none."""
    if isinstance(schema.get("title"), str):
        return schema["title"]
    name: object = getattr(annotation, "__name__", "")
    return name if isinstance(name, str) and name not in ("dict", "list") else ""

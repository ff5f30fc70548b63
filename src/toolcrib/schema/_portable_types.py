"""Portable types: the annotations of parameters, as types whose values JSON carries there and back.

Pydantic does not read all that it writes: bytes that are not text, members of an enum whose values JSON does not have,
what can be iterated over once. In the annotation of a parameter, at any depth of its generic types, such a type is
replaced. In a model, a dataclass or a TypedDict of a user's pydantic's own rules hold.
"""

from __future__ import annotations

import base64
import collections.abc
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from math import isfinite
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pydantic
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from toolcrib.schema._json_form import BASE64, Notes, bytes_form, json_form
from toolcrib.schema._parameters import without_none
from toolcrib.schema._table_type import table_type
from toolcrib.schema._typed_dicts import modern, with_arguments

_ITERATED: tuple[Any, ...] = (
    collections.abc.Collection,
    collections.abc.Container,
    collections.abc.Generator,
    collections.abc.Iterable,
    collections.abc.Iterator,
    collections.abc.Reversible,
    collections.abc.Sequence,
)
_MAPPINGS: tuple[Any, ...] = (dict, collections.abc.Mapping, collections.abc.MutableMapping, collections.OrderedDict)


def portable(annotation: Any) -> Any:
    """Return the type that a parameter's values are validated by; the same one where pydantic reads what it writes."""
    annotation = modern(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if (origin or annotation) in _ITERATED:
        return list[portable(arguments[0]) if arguments else Any]
    if origin is Annotated:
        mark = _mark_of(arguments[0])
        inner = portable(arguments[0]) if mark is None else arguments[0]
        return Annotated[inner, *arguments[1:], *([] if mark is None else [mark])]
    if origin is Union or origin is UnionType:
        return Union[tuple(map(portable, arguments))]  # noqa: UP007 -- of a tuple, which `|` does not take
    mark = _mark_of(annotation)
    if mark is not None:
        return Annotated[annotation, mark]
    if isinstance(annotation, types.GenericAlias) or (arguments and getattr(annotation, "__module__", "") == "typing"):
        keys = 1 if origin in _MAPPINGS else 0  # its keys are texts in JSON, and read as such
        inner = (*arguments[:keys], *map(portable, arguments[keys:]))
        return annotation if inner == arguments else with_arguments(annotation, inner)
    return annotation


def converted_default(annotation: Any, default: Any) -> Any:
    """Return a default as a value of its parameter's type, where it can be read as one: of a Path, not its text."""
    plain = without_none(annotation)[0]
    if default is None or type(default) is (get_origin(plain) or plain):
        return default
    try:
        value = pydantic.TypeAdapter(annotation).validate_python(default)
        return default if type(value) is type(default) and value == default else value
    except Exception:  # a default that stands for none, and validators of the type's author
        return default


def allowing_default(annotation: Any, default: Any) -> Any:
    """Return the type of a number whose default is not finite, so that others need not be."""
    is_infinite = isinstance(default, float) and not isfinite(default) and without_none(annotation)[0] is float
    return Annotated[annotation, pydantic.AllowInfNan(True)] if is_infinite else annotation


def _mark_of(annotation: Any) -> Any:
    """Return the note by which pydantic reads and writes a type in our way; None for a type that needs none."""
    if annotation is bytes:
        return _Bytes()
    if get_origin(annotation) is Literal:
        return _Members(get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _Members(list(annotation))
    return table_type(annotation)


class _Bytes:
    """Bytes: as the text that they are in UTF-8, or else as a base64 data URL."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        writing = core_schema.plain_serializer_function_ser_schema(bytes_form)
        return core_schema.no_info_before_validator_function(self._read, handler(source), serialization=writing)

    def _read(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value.startswith(BASE64):
            return base64.b64decode(value.removeprefix(BASE64), validate=True)
        return value.encode()


class _Members:
    """Members of an enum or a Literal: by the JSON form of their values, `true` being another than 1 and "1"."""

    def __init__(self, members: Sequence[Any]) -> None:
        values = [member.value if isinstance(member, Enum) else member for member in members]
        self._has_truths = any(isinstance(value, bool) for value in values)
        self._has_numbers = any(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        self._has_others = any(not isinstance(value, int | float) for value in values)
        is_text = all(isinstance(value, str | None) for value in values)
        self._is_needed = not is_text or values != [*members]
        context: Mapping[str, Any] = {"redact": False, "notes": Notes([], [])}
        self._known = [(json_form(value, context), member) for value, member in zip(values, members, strict=True)]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        return core_schema.with_info_wrap_validator_function(self._read, schema) if self._is_needed else schema

    def _read(self, value: Any, inner: Callable[[Any], Any], info: core_schema.ValidationInfo[Any]) -> Any:
        if info.mode != "json":
            return inner(value)
        for form, member in self._known:
            if form == value and isinstance(form, bool) is isinstance(value, bool):
                return member
        if isinstance(value, bool) and self._has_numbers and not self._has_truths:
            raise PydanticKnownError("int_type")
        if isinstance(value, int | float) and not isinstance(value, bool) and self._has_truths:
            raise PydanticKnownError("bool_type")
        if isinstance(value, str) and self._has_numbers and not self._has_others:
            raise PydanticKnownError("int_type")
        return inner(value)

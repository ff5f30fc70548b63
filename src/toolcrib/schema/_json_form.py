"""JSON form of Python values, by what they are at run time.

It is the same in every process, and holds nothing that JSON does not have. A value that has no such form is written as
the name of its type.
"""

from __future__ import annotations

import base64
import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from math import isfinite
from pathlib import PurePath
from typing import Any, NamedTuple, TypeAlias, cast

import pydantic
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from toolcrib.schema._core_schema import secrets_of
from toolcrib.schema._markers import REDACTED, STARS

Context: TypeAlias = Mapping[str, Any]
"""The context in which values are written: `redact` hides secrets, `notes` are the Notes to add to."""

WITHOUT_FORM = (PydanticSerializationError, ValueError, TypeError, RecursionError)
"""The errors that are raised where a value has no JSON form."""

BASE64 = "data:;base64,"
SCALARS = frozenset({str, int, bool, type(None)})


class Notes(NamedTuple):
    """Findings in values while their JSON form was made.

    Attributes:
        without_form: A text for each value that has no JSON form: its type, its identity and its `repr`.
        secrets: Not empty when there is a secret, or may be one, where the input's types say nothing of it.
    """

    without_form: list[str]
    secrets: list[bool]


def json_forms(values: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Return the JSON form of each of the values."""
    return {name: json_form(value, context) for name, value in values.items()}


def json_form(value: Any, context: Context) -> Any:
    """Return the JSON form of a value by what it is at run time; of what has none, the name of its type."""
    if type(value) in SCALARS:
        return value
    try:
        return _form(value, context)
    except WITHOUT_FORM:
        return _name_of_type(value, context)


def _form(value: Any, context: Context) -> Any:
    match value:
        case Enum():
            return json_form(value.value, context)
        case float():
            return number_form(value)
        case Mapping():
            items = cast("Mapping[Any, Any]", value)
            named = {_key(key): json_form(part, context) for key, part in items.items()}
            return named if len(named) == len(items) else _name_of_type(items, context)  # 1 and "1" are one key in JSON
        case list() | tuple() | deque():
            return [json_form(part, context) for part in cast("Sequence[Any]", value)]
        case Set():
            return in_order([json_form(part, context) for part in cast("Set[Any]", value)])
        case bytes():
            return bytes_form(value)
        case PurePath():
            return str(value)
        case pydantic.SecretStr() | pydantic.SecretBytes() | pydantic.Secret():
            context["notes"].secrets.append(True)
            secret = cast("pydantic.Secret[Any]", value).get_secret_value()
            return json_form(secret, context) if not context["redact"] else STARS if secret else ""
        case BaseModel():
            return _model_form(value, context)
        case Iterator():  # to look at it is to use it up
            return _name_of_type(cast("object", value), context)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {part.name: json_form(getattr(value, part.name, None), context) for part in fields(value)}
        case _:
            return to_jsonable_python(value)


def _model_form(model: BaseModel, context: Context) -> dict[str, Any]:
    secrets = _secrets_of_model(type(model))
    context["notes"].secrets.extend([True] if secrets else [])
    hidden = secrets if context["redact"] else ()
    named = {**model.__dict__, **(model.__pydantic_extra__ or {})}
    return {name: REDACTED if name in hidden else json_form(part, context) for name, part in named.items()}


@lru_cache(maxsize=256)
def _secrets_of_model(model: type[BaseModel]) -> frozenset[str]:
    return secrets_of(model.__pydantic_core_schema__)


def _name_of_type(value: object, context: Context) -> str:
    """Return a text that is the same in every process, which a repr with an address in it is not."""
    try:
        text = repr(value)
    except Exception:  # code of the value's author
        text = ""
    kind = f"<{type(value).__module__}.{type(value).__qualname__}>"
    context["notes"].without_form.append(f"{kind} {id(value):#x} {text}")
    return kind


def _key(key: Any) -> str:
    return key if type(key) is str else next(iter(to_jsonable_python({key: None})))


def number_form(value: float) -> Any:
    if isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def bytes_form(value: bytes) -> str:
    """Return bytes as the text that they are in UTF-8, or else as a base64 data URL."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = BASE64
    return BASE64 + base64.b64encode(value).decode() if text.startswith(BASE64) else text


def in_order(values: Sequence[Any]) -> list[Any]:
    """Return the JSON forms of a set's values in an order that is the same in every process."""
    return sorted(values, key=_rank)


def _rank(value: Any) -> tuple[int, float, str]:
    if isinstance(value, int | float):
        return (0, value, "")
    return (1, 0, value) if isinstance(value, str) else (2, 0, json.dumps(value, sort_keys=True))


def is_finite(value: Any) -> bool:
    match value:
        case float():
            return isfinite(value)
        case Decimal():
            return value.is_finite()
        case complex():
            return isfinite(value.real) and isfinite(value.imag)
        case dict():
            return all(map(is_finite, cast("dict[Any, Any]", value).values()))
        case BaseModel():
            return is_finite(value.__dict__)
        case list() | tuple() | set() | frozenset():
            return all(map(is_finite, cast("Sequence[Any]", value)))
        case _:
            return True

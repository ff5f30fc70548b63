"""JSON form of Python values: pydantic's own, and where it has none or leaves it to chance, by what they are.

It is the same in every process, and holds nothing that JSON does not have. Sets are in one order, and secrets real. A
value that has no such form is written as the name of its type.
"""

from __future__ import annotations

import base64
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from math import isfinite
from pathlib import PurePath
from typing import Any, Final, NamedTuple, TypeAlias, cast

import pydantic
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from toolcrib.schema._core_schema import facts_of, secrets_of
from toolcrib.schema._markers import REDACTED, STARS

Context: TypeAlias = Mapping[str, Any]
"""The context in which values are written: `redact` hides secrets, `notes` are the Notes to add to."""

WITHOUT_FORM = (PydanticSerializationError, ValueError, TypeError, RecursionError)
"""The errors that are raised where a value has no JSON form."""

BASE64 = "data:;base64,"
SCALARS = frozenset({str, int, bool, type(None)})
UNWRITTEN: Final = object()
"""Stands for the form of a value that pydantic has not written."""


class Notes(NamedTuple):
    """Findings in values while their JSON form was made.

    Attributes:
        without_form: A text for each value that has no JSON form: its type, its identity and its `repr`.
        secrets: Not empty when there is a secret, or may be one, where the input's types say nothing of it.
    """

    without_form: list[str]
    secrets: list[bool]


def json_forms(values: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Return the JSON form of each of the values, by what they are."""
    return {name: json_form(value, context) for name, value in values.items()}


def json_form(value: Any, context: Context, written: Any = UNWRITTEN) -> Any:
    """Return the JSON form of a value; of what has none, the name of its type.

    Args:
        written: The value as pydantic writes it by its type, with the fields of models by name. It stands where it is
            of another kind than the value, such as the text of a `Json`, and is completed where it is of the same.
    """
    kind = cast("type[Any]", type(value))
    if kind in SCALARS:
        return value if written is UNWRITTEN else written
    try:
        return _form_of(kind)(value, context, written)
    except WITHOUT_FORM:
        return _name_of_type(value, context)


@lru_cache(maxsize=2_000)
def _form_of(kind: type[Any]) -> Callable[[Any, Context, Any], Any]:
    """Return the function that makes the JSON form of the values of a class."""
    table: tuple[tuple[Any, Callable[[Any, Context, Any], Any]], ...] = (
        ((pydantic.SecretStr, pydantic.SecretBytes, pydantic.Secret), _secret_form),
        (Enum, lambda value, context, written: json_form(value.value, context, written)),
        (float, _float_form),
        (bytes, _bytes_form),
        (Mapping, _mapping_form),
        ((list, tuple, deque, Set), _items_form),
        (BaseModel, _root_form if getattr(kind, "__pydantic_root_model__", False) else _model_form),
        ((timedelta, date, time), _time_form),
        (Iterator, _iterator_form),
    )
    form = next((form for classes, form in table if issubclass(kind, classes)), None)
    return form or (_dataclass_form if is_dataclass(kind) else _other_form)


def _is_of(kind: type, written: Any) -> bool:
    return type(written) is kind


def _secret_form(value: Any, context: Context, written: Any) -> Any:
    context["notes"].secrets.append(True)
    secret = value.get_secret_value()
    if not context["redact"]:
        return json_form(secret, context)
    return (STARS if secret else "") if written is UNWRITTEN else written


def _float_form(value: float, context: Context, written: Any) -> Any:
    form = value if written is UNWRITTEN or written is None else written  # None for one that is not finite
    return number_form(form) if isinstance(form, float) else form


def _bytes_form(value: bytes, context: Context, written: Any) -> Any:
    return bytes_form(value) if written is UNWRITTEN or str(written).startswith(BASE64) else written


def _time_form(value: Any, context: Context, written: Any) -> Any:
    """Return a date, a time or a duration as text, as which it is read, in place of a number."""
    return written if isinstance(written, str) else to_jsonable_python(value)


def _iterator_form(value: object, context: Context, written: Any) -> str:
    return _name_of_type(value, context)  # to look at it is to use it up


def _other_form(value: Any, context: Context, written: Any) -> Any:
    if written is not UNWRITTEN:
        return written
    return str(value) if isinstance(value, PurePath) else to_jsonable_python(value)


def _mapping_form(values: Mapping[Any, Any], context: Context, written: Any) -> Any:
    if written is UNWRITTEN:
        forms = {_key(key): json_form(part, context) for key, part in values.items()}
    elif not _is_of(dict, written):
        return written
    elif written.keys() == values.keys():
        forms = {key: json_form(part, context, written[key]) for key, part in values.items()}
    elif len(written) == len(values):
        pairs = zip(values.values(), written.items(), strict=True)
        forms = {key: json_form(part, context, inner) for part, (key, inner) in pairs}
    elif all(type(key) is str for key in values):  # its author has another object written
        return written
    else:
        forms = {}
    return forms if len(forms) == len(values) else _name_of_type(values, context)  # 1 and "1" are one key in JSON


def _items_form(values: Sequence[Any], context: Context, written: Any) -> Any:
    if written is UNWRITTEN:
        forms = [json_form(part, context) for part in values]
    elif _is_of(list, written) and len(written) == len(values):
        forms = [json_form(part, context, inner) for part, inner in zip(values, written, strict=True)]
    else:
        return written
    return in_order(forms) if isinstance(values, Set) else forms


def _root_form(model: Any, context: Context, written: Any) -> Any:
    return json_form(model.root, context, written)


def _model_form(model: BaseModel, context: Context, written: Any) -> Any:
    kind = type(model)
    if _is_of(dict, written) and _is_plain_model(kind):
        return written
    secrets = _secrets_of_model(kind)
    context["notes"].secrets.extend([True] if secrets else [])
    values = {**model.__dict__, **(model.__pydantic_extra__ or {})}
    if written is UNWRITTEN and context["redact"]:
        values = {name: REDACTED if name in secrets else part for name, part in values.items()}
    return _fields_form(values, {name: _key_of(kind, name) for name in values}, context, written)


def _dataclass_form(value: Any, context: Context, written: Any) -> Any:
    parts = fields(value)
    kind = cast("type[Any]", type(value))
    keys = {part.name: _key_of(kind, part.name) for part in parts if part.init}  # it makes the others itself
    return _fields_form({part.name: getattr(value, part.name, None) for part in parts}, keys, context, written)


def _fields_form(values: Mapping[str, Any], keys: Mapping[str, str], context: Context, written: Any) -> Any:
    """Return the form of an object's fields, as far as they have keys: those from which they are read."""
    if written is UNWRITTEN:
        return {key: json_form(values[name], context) for name, key in keys.items()}
    if not _is_of(dict, written) or not written.keys() <= values.keys():  # its author has something else written
        return written
    if not keys.keys() <= written.keys():  # some are excluded: they are not shown
        context["notes"].secrets.append(True)
    names = [name for name in keys if name in written or not context["redact"]]
    return {keys[name]: json_form(values[name], context, written.get(name, UNWRITTEN)) for name in names}


@lru_cache(maxsize=256)
def _is_plain_model(model: type[BaseModel]) -> bool:
    return facts_of(model.__pydantic_core_schema__).is_plain


@lru_cache(maxsize=2_000)
def _key_of(kind: type[Any], name: str) -> str:
    """Return the key from which pydantic reads a field: its alias, unless that is a path into another value."""
    field: Any = getattr(kind, "__pydantic_fields__", {}).get(name)
    return name if field is None else reading_key(field) or name


def reading_key(field: Any) -> str | None:
    """Return the first key that a field of pydantic's has as an alias; None without one."""
    alias: Any = field.validation_alias or field.alias
    choices: Sequence[Any] = alias.choices if isinstance(alias, pydantic.AliasChoices) else [alias]
    return next((choice for choice in choices if isinstance(choice, str)), None)


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


def infinite_place(value: Any) -> tuple[Any, ...] | None:
    """Return the keys that lead to a number in a value that is not finite; None where there is none."""
    match value:
        case float() | complex():
            return None if value - value == 0 else ()  # of what is not finite it is not a number
        case Decimal():
            return None if value.is_finite() else ()
        case dict():
            parts: Any = cast("dict[Any, Any]", value).items()
        case list() | tuple() | set() | frozenset():
            parts = enumerate(cast("Sequence[Any]", value))
        case BaseModel():
            parts = {**value.__dict__, **(value.__pydantic_extra__ or {})}.items()
        case _:
            return None
    for key, part in parts:
        if type(part) not in SCALARS:
            place = infinite_place(part)
            if place is not None:
                return (key, *place)
    return None

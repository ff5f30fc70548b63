"""Values as JSON shapes, strictly for a model and leniently for a record; long text with its middle cut out.

A table of data is its summary: its shape, head and tail. An array of numpy, Arrow or polars and a column of pandas are
lists of Python's own values.
"""

from __future__ import annotations

import json
import numbers
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from math import isfinite, isnan
from typing import Any, TypeAlias, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from toolcrib._arrow import is_table, table_summary
from toolcrib._cut import cut_shapes
from toolcrib._json_writer import json_writer, valid_text
from toolcrib.calls._media import WITH_MEDIA, Media
from toolcrib.calls._value_class import rendered
from toolcrib.errors import MissingExtraError, ResultNotSerializable

Tables: TypeAlias = Callable[[Any], Any]
"""Returns what stands for a table in a value, of JSON shapes and Python values."""

_REDACT: dict[str, Any] = {"redact": True}  # what `Redacted` looks for when it serialises
_ONLY_FACTS: dict[str, Any] = {**_REDACT, WITH_MEDIA: deque[Media](maxlen=0)}  # of media, which are kept nowhere
_TEXT = frozenset({str})
_ATOMS = frozenset({str, int, float, bool, type(None)})  # types that are JSON as they are
_WITHOUT_KEYS = _ATOMS | {bytes, datetime, date}  # types of most parts of results
_SEQUENCES = (list, tuple)  # quicker than the union, which is made anew for each test
_NO_TEXT = "bytes that are not UTF-8 text; an image or a file is Media('image/png', data)"
_written = json_writer(allow_nan=False)


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def equal_json(one: Any, other: Any) -> bool:
    """Return whether two values are written as the same JSON, but for the order of keys: `1` is not `true` or `1.0`."""
    if type(one) is not type(other):
        return False
    if type(one) is str:
        return one == other
    if isinstance(one, dict):
        values, others = cast("dict[Any, Any]", one), cast("dict[Any, Any]", other)
        return values.keys() == others.keys() and all(map(equal_json, values.values(), map(others.get, values)))
    if isinstance(one, list):
        items = cast("list[Any]", one)
        return len(items) == len(other) and all(map(equal_json, items, other))
    return repr(one) == repr(other) if isinstance(one, float) else one == other  # -0.0 is written as another than 0.0


def jsonable(value: object, tool: str = "", *, media: bool = False) -> Any:
    """Return `value` as JSON shapes: models and dataclasses as objects, dates as ISO text, sets as lists.

    Args:
        value: The return value of a tool.
        tool: Its name, for the error.
        media: Keep the bytes of `Media`, for a process that reads them back with `revived`; else only the facts.

    Raises:
        ResultNotSerializable: Something in it has no JSON form.
    """
    kind = type(value)
    if kind is str:
        return valid_text(cast("str", value))
    if kind is int or kind is bool or value is None:
        return value
    return _repaired(*_shaped(value, tool, _REDACT if media else _ONLY_FACTS))[0]


def json_text(value: object, tool: str = "", media: list[Media] | None = None) -> str:
    """Return `value` as text for a model: a string as it is, anything else as JSON; see `shapes_and_text`."""
    kind = type(value)
    if kind is str:
        return valid_text(cast("str", value))
    if kind is dict or kind is list:
        try:
            return valid_text(_written(_with_keys_apart(value) if _has_other_keys(value) else value))
        except (TypeError, ValueError, RecursionError):  # not JSON shapes alone
            pass
    return shapes_and_text(value, tool, [] if media is None else media)[1]


def shapes_and_text(value: object, tool: str, media: list[Media], tables: Tables | None = None) -> tuple[Any, str]:
    """Return a value as JSON shapes, and these as text; the media in it are collected in `media`.

    Args:
        tables: Returns what stands for a table in it; its summary where this is None.

    Raises:
        ResultNotSerializable: Something in it has no JSON form.
    """
    return _repaired(*_shaped(value, tool, {**_REDACT, WITH_MEDIA: media}, tables))


def _shaped(value: object, tool: str, context: dict[str, Any], tables: Tables | None = None) -> tuple[Any, str]:
    """Return a value as JSON shapes, and these as text: writing them is also what finds what JSON does not have."""
    kind = type(value)
    if _is_spent_by_reading(value):
        raise ResultNotSerializable(tool, kind.__qualname__, "an iterator is spent by reading it; return a list")
    try:
        shape_of = _shape_of if tables is None else partial(_shape_of, tables=tables)
        try:
            return _finite(_as_jsonable(value, shape_of, context))
        except TypeError:  # a missing date, as NaT of pandas
            return _finite(_as_jsonable(_without_nat(value), shape_of, context))
    except (PydanticSerializationError, TypeError, ValueError, RecursionError, MissingExtraError) as error:
        detail = _NO_TEXT if "invalid utf-8" in str(error) else str(error)
        raise ResultNotSerializable(tool, kind.__qualname__, detail) from error


def _as_jsonable(value: object, shape_of: Callable[[Any], Any], context: dict[str, Any]) -> Any:
    """Return a value as pydantic makes JSON shapes of it, which takes half a surrogate pair in a text and in no key.

    Keys that are one key of JSON, as `1` and `"1"`, are kept apart: the one that is not text has its type beside it.
    """
    if type(value) in _ATOMS:
        return value
    if type(value) is dict:
        named: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType] -- `cast` costs as much as the rest
        are_plain = _TEXT.issuperset(map(type, named)) and _ATOMS.issuperset(map(type, named.values()))
        if are_plain and "".join(named).isascii():  # as most results: pydantic takes ten times as long for the copy
            return named.copy()
    if _has_other_keys(value):
        value = _with_keys_apart(value)
    try:
        return to_jsonable_python(value, fallback=shape_of, context=context)
    except UnicodeEncodeError:
        return to_jsonable_python(_with_valid_keys(value), fallback=shape_of, context=context)


def _has_other_keys(value: Any) -> bool:
    """Return whether keys that are not text are in a value, at any depth: another one may be the same in JSON."""
    parts: Iterable[Any]
    if isinstance(value, dict):
        named: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType] -- as above
        if not _TEXT.issuperset(map(type, named)):
            return True
        parts = named.values()
    elif isinstance(value, _SEQUENCES):
        items: list[Any] | tuple[Any, ...] = value  # pyright: ignore[reportUnknownVariableType] -- as above
        parts = items
    else:
        parts = _parts_of(value).values() if _has_parts(value) else ()
    if _WITHOUT_KEYS.issuperset(map(type, parts)):
        return False
    for part in parts:  # noqa: SIM110 -- the generator of `any` costs as much as the rest
        if type(part) not in _WITHOUT_KEYS and _has_other_keys(part):
            return True
    return False


def _with_valid_keys(value: Any) -> Any:
    """Return a value with U+FFFD for each half of a surrogate pair in the keys of its dicts, at any depth."""
    return _with_keys(value, lambda keys: [valid_text(key) if isinstance(key, str) else key for key in keys])


def _with_keys_apart(value: Any) -> Any:
    """Return a value without keys that are the same in JSON, at any depth."""
    return _with_keys(value, _keys_apart)


def _keys_apart(keys: list[Any]) -> list[Any]:
    """Return the keys of a dict, with the type beside one that is not text and written as another one is."""
    used = {key for key in keys if isinstance(key, str)}
    apart: list[Any] = []
    for key in keys:
        name: Any = key
        if not isinstance(key, str):
            name = next(iter(to_jsonable_python({key: None}, fallback=_text, context=_REDACT)))
            while name in used:
                name = f"{name} ({type(key).__name__})"
            used.add(name)
        apart.append(name)
    return apart


def _with_keys(value: Any, change: Callable[[list[Any]], list[Any]]) -> Any:
    """Return a value with other keys in its dicts, at any depth."""
    if isinstance(value, Mapping):
        named = cast("Mapping[Any, Any]", value)
        parts = [_with_keys(part, change) for part in named.values()]
        return dict(zip(change([*named]), parts, strict=True))
    if isinstance(value, list | tuple):
        return [_with_keys(part, change) for part in cast("list[Any]", value)]
    if _has_parts(value):
        repaired = copy(value)  # its own serialisers still write it
        for name, part in _parts_of(repaired).items():
            object.__setattr__(repaired, name, _with_keys(part, change))
        return repaired
    return value


def _has_parts(value: Any) -> bool:
    """Return whether a value is a pydantic model or a dataclass."""
    return isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type))


def _parts_of(value: Any) -> dict[str, Any]:
    """Return the attributes of a pydantic model, those that it does not declare among them, or of a dataclass."""
    if isinstance(value, BaseModel):
        return {**vars(value), "__pydantic_extra__": value.__pydantic_extra__}
    return {part.name: getattr(value, part.name) for part in fields(value)}


def _is_spent_by_reading(value: object) -> bool:
    """Return whether a value is an iterator: pydantic would read it to its end, which empties it, or never comes."""
    kind = type(value)
    return kind is not dict and kind is not list and isinstance(value, Iterator)


def _finite(shape: Any) -> tuple[Any, str]:
    """Return JSON shapes with text in the place of numbers that JSON does not have, and all of it as text."""
    if type(shape) is str:
        return shape, shape
    try:
        return shape, _written(shape)
    except ValueError:
        finite = _without_nan(shape)
        return finite, finite if isinstance(finite, str) else _written(finite)


def _repaired(shape: Any, text: str) -> tuple[Any, str]:
    """Return JSON shapes and their text with U+FFFD in the place of each half of a surrogate pair."""
    repaired = valid_text(text)
    if repaired is text:
        return shape, text
    return (repaired if type(shape) is str else json.loads(repaired)), repaired


def _without_nat(value: Any) -> Any:
    """Return a value with None in the place of dates that are not equal to themselves: they are missing."""
    if isinstance(value, Mapping):
        return {name: _without_nat(part) for name, part in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_without_nat(part) for part in cast("list[Any]", value)]
    return None if isinstance(value, date | time | timedelta) and value != value else value


def _without_nan(shape: Any) -> Any:
    match shape:
        case float() if not isfinite(shape):
            return "NaN" if isnan(shape) else "Infinity" if shape > 0 else "-Infinity"
        case list():
            return [_without_nan(part) for part in cast("list[Any]", shape)]
        case dict():
            return {name: _without_nan(part) for name, part in cast("dict[str, Any]", shape).items()}
        case _:
            return shape


def _shape_of(value: Any, tables: Tables = table_summary) -> Any:
    """Return a number or an array of another library (mpmath, numpy) as builtin ones, and what stands for a table."""
    if is_table(value):
        return tables(value)
    plain = plain_value(value)
    if plain is not value:
        return plain
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    raise ValueError(f"{type(value).__qualname__} has no JSON form")


def plain_value(value: Any) -> Any:
    """Return a list for an array or a column, a Python value for a scalar; any other value as it is.

    A column of pandas whose rows have names is a dict. No package is imported for it.
    """
    home = type(value).__module__.partition(".")[0]
    package: Any = sys.modules.get(home)
    if home == "numpy":
        if not isinstance(value, package.ndarray | package.generic):
            return value
        if value.dtype.kind in "mM":  # whose items would be numbers
            value = value.astype(str)
        return value.tolist()
    if home == "pandas":
        return _of_pandas(value, package)
    is_array = home in ("pyarrow", "polars") and hasattr(value, "__len__") and not hasattr(value, "columns")
    return value.to_list() if is_array and home == "polars" else value.to_pylist() if is_array else value


def _of_pandas(value: Any, pandas: Any) -> Any:
    if value is pandas.NA:
        return None
    if isinstance(value, pandas.Period | pandas.Interval):
        return str(value)
    if isinstance(value, pandas.Index | pandas.api.extensions.ExtensionArray):
        value = pandas.Series(value)
    if not isinstance(value, pandas.Series):
        return value
    listed, index = value.astype(object).where(value.notna(), None).tolist(), value.index
    if isinstance(index, pandas.RangeIndex) or not index.is_unique:
        return listed
    names = (name if isinstance(name, str | int | float | date) else str(name) for name in index.tolist())
    return dict(zip(names, listed, strict=True))


def _described(value: Any) -> Any:
    """Return numbers, arrays, the summary of a table, and anything else that has no JSON form as its text."""
    try:
        return _shape_of(value)
    except ValueError:
        return _text(value)


def _text(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # the class is the user's, and so is its __repr__
        return f"<{type(value).__module__}.{type(value).__qualname__}>"


def lenient(
    value: Any, *, media: bool = False, limit: int | None = None, hide: Callable[[Any, int | None], Any] = cut_shapes
) -> Any:
    """Return `value` as JSON shapes, for a record: what has no JSON form becomes its text. Never raises.

    Args:
        media: Keep the bytes of `Media`, for a process that reads them back with `revived`; else only the facts.
        limit: The most characters of it as JSON; what is longer becomes its text, the middle cut out.
        hide: Hides secrets in shapes, and cuts a text: a secret that is cut first is not found.
    """
    return rendered(lenient_later(value, limit, hide, media))


def lenient_later(
    value: Any, limit: int | None = None, hide: Callable[[Any, int | None], Any] = cut_shapes, media: bool = False
) -> Any:
    """Return the shapes of `lenient`, or a `partial` that returns them; later changes of the value are not in it."""
    if _is_spent_by_reading(value):
        return hide(_text(value), limit)
    try:
        return partial(_within, limit, hide, _as_jsonable(value, _described, _REDACT if media else _ONLY_FACTS))
    except Exception:  # the serialiser is the user's: a record must not change what is recorded
        return hide(_text(value), limit)


def _within(limit: int | None, hide: Callable[[Any, int | None], Any], shape: Any) -> Any:
    """Return JSON shapes with what JSON does not have as text; where they are too long, all of them as text, cut."""
    try:
        finite, text = _finite(shape)
    except (ValueError, RecursionError):  # a number of thousands of digits; or the stack is nearly full
        return hide(_text(shape), limit)
    return hide(finite, None) if limit is None or len(text) <= limit else hide(text, limit)


def parse_time(text: str | None) -> datetime | None:
    """Return the time that ISO text says, None for None."""
    return None if text is None else datetime.fromisoformat(text)

"""JSON form of a turn's values: of those that come back as what they were; an error names the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, Protocol, cast, runtime_checkable

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from toolcrib.errors import NotPortableError, SchemaError
from toolcrib.schema import ToolSpec

__all__ = ["pack", "pack_arguments", "unpack_arguments"]


@runtime_checkable
class _Portable(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


def pack(owner: str, what: str, value: Any) -> Any:
    """Return `value` as JSON shapes.

    Raises:
        NotPortableError: It has none; `owner` and `what` say whose and which.
    """
    if is_plain(value):
        return value
    try:
        _require_kept(value)
        return to_jsonable_python(value, inf_nan_mode="strings", fallback=_own_form)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise NotPortableError(owner, what, type(value).__qualname__) from error


def _require_kept(value: Any) -> None:
    """Raise ValueError for an iterator, an open file too: written down it would be used up, and come back as a list."""
    if isinstance(value, Iterator):
        raise ValueError("an iterator is used up by reading it")
    if isinstance(value, Mapping):
        value = cast("Mapping[Any, Any]", value).values()
    elif not isinstance(value, list | tuple | set | frozenset):
        return
    for item in cast("Iterable[Any]", value):
        _require_kept(item)


def _own_form(value: Any) -> Any:
    if isinstance(value, _Portable):
        return value.to_dict()
    raise ValueError(f"{type(value).__qualname__} has no JSON form")


def is_plain(value: Any) -> bool:
    """Return whether `value` is JSON as it is, and comes back as the same."""
    kind = cast("type[Any]", type(value))
    if kind is str or kind is int or kind is bool or value is None:
        return True
    if kind is float:
        return isfinite(value)
    if kind is list:
        return all(is_plain(item) for item in value)
    return kind is dict and all(type(key) is str and is_plain(item) for key, item in value.items())


def pack_arguments(owner: str, spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return arguments as JSON shapes, and the names of those that the tool's annotations have to restore.

    Raises:
        NotPortableError: One has no JSON form, or would come back as something else.
    """
    packed: dict[str, Any] = {}
    typed: list[str] = []
    for name, value in arguments.items():
        data = packed[name] = pack(owner, f"the argument `{name}`", value)
        if data is value:
            continue
        typed.append(name)
        back = _restored(spec, name, data)
        if type(back) is not type(value) or back != value:
            raise NotPortableError(owner, f"the argument `{name}`", type(value).__qualname__)
    return packed, typed


def unpack_arguments(spec: ToolSpec, data: Mapping[str, Any], typed: list[str]) -> dict[str, Any]:
    """Return the arguments that `pack_arguments` wrote down."""
    return {name: _restored(spec, name, value) if name in typed else value for name, value in data.items()}


def _restored(spec: ToolSpec, name: str, data: Any) -> Any:
    try:
        model = spec.input_model
    except SchemaError:
        return data
    field = next((key for key, info in model.model_fields.items() if name in (key, info.alias)), None)
    if field is None:
        return data
    try:
        made = model.__pydantic_validator__.validate_assignment(model.model_construct(), field, data)
    except ValidationError:
        return data
    return getattr(cast("object", made), field)

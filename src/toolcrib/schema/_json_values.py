"""Python values as JSON ones: the same in every process, and nothing that JSON does not have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any, cast

from pydantic import BaseModel, Secret, SecretBytes, SecretStr
from pydantic_core import PydanticSerializationError, to_jsonable_python

__all__ = ["by_type", "finite", "jsonable", "settle"]


def jsonable(value: Any) -> Any:
    """Return a value as JSON shapes, by what it is at run time; what has none is shown by its type."""
    for bytes_mode in ("utf8", "base64"):
        try:
            return finite(to_jsonable_python(value, bytes_mode=bytes_mode, fallback=by_type))
        except (PydanticSerializationError, ValueError, TypeError, RecursionError):
            continue
    return by_type(value)


def finite(value: Any) -> Any:
    """Return JSON shapes with the numbers that JSON does not have as text."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [finite(part) for part in cast("list[Any]", value)]
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value


def by_type(value: Any) -> str:
    """Return a text that is the same in every process, which a repr with an address in it is not."""
    return f"<{type(value).__module__}.{type(value).__qualname__}>"


def settle(shown: Any, real: Any, unveil: bool) -> Any:
    """Return `shown` with sets in order and, if asked for, with the content of pydantic's secrets.

    Args:
        real: The value that `shown` was dumped from.
    """
    if isinstance(real, SecretStr | SecretBytes | Secret):
        return jsonable(cast("Secret[Any]", real).get_secret_value()) if unveil else shown
    if isinstance(real, BaseModel) and type(real).__pydantic_root_model__:  # importing RootModel loads half of pydantic
        return settle(shown, real.__dict__["root"], unveil)
    if isinstance(shown, dict):
        named = cast("dict[str, Any]", shown)
        parts = _named_parts(named, real)
        return {name: settle(part, parts.get(name), unveil) for name, part in named.items()}
    if isinstance(shown, list) and isinstance(real, list | tuple | set | frozenset):
        pairs = zip(cast("list[Any]", shown), cast("Sequence[Any]", real), strict=False)
        settled = [settle(part, inside, unveil) for part, inside in pairs]
        return _in_order(settled) if isinstance(real, set | frozenset) else settled
    return cast(Any, shown)


def _named_parts(shown: Mapping[str, Any], real: Any) -> dict[str, Any]:
    """Return the values inside a record by the keys under which they are dumped."""
    if isinstance(real, Mapping):
        return dict(zip(shown, cast("Mapping[Any, Any]", real).values(), strict=False))  # a key may be a date, too
    if isinstance(real, BaseModel):
        declared = type(real).model_fields.items()
        named = {info.serialization_alias or info.alias or name: real.__dict__.get(name) for name, info in declared}
        return {**named, **(real.__pydantic_extra__ or {})}
    if is_dataclass(real):
        return {part.name: getattr(real, part.name, None) for part in fields(real)}
    return {}


def _in_order(values: Sequence[Any]) -> list[Any]:
    return sorted(values, key=_rank)


def _rank(value: Any) -> tuple[int, float, str]:
    if isinstance(value, int | float):
        return (0, value, "")
    return (1, 0, value) if isinstance(value, str) else (2, 0, json.dumps(value, sort_keys=True))

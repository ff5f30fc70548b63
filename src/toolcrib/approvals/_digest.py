"""The digest that binds a grant to a tool and its final arguments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, cast

from pydantic import BaseModel, Secret, SecretBytes, SecretStr
from pydantic_core import PydanticSerializationError, to_jsonable_python

__all__ = ["digest"]


def digest(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the SHA-256, in hex, of the tool's name and its arguments in a canonical JSON form.

    Secrets count with their real value. A Python object without a JSON form, which only a host can pass, counts by its
    type and `repr`.
    """
    text = json.dumps([tool, _canonical(dict(arguments))], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _canonical(value: Any) -> Any:
    match value:
        case None | bool() | str():
            return value.value if isinstance(value, Enum) else value
        case Enum():
            return _canonical(value.value)
        case int() | float():
            return value if value == value and abs(value) != float("inf") else repr(value)
        case SecretStr() | SecretBytes() | Secret():
            return _canonical(cast("Secret[Any]", value).get_secret_value())
        case BaseModel():
            extra = value.__pydantic_extra__ or {}
            return {k: _canonical(v) for k, v in {**value.__dict__, **extra}.items()}
        case Mapping():
            items = cast("Mapping[Any, Any]", value)
            return {str(_canonical(k)): _canonical(v) for k, v in items.items()}
        case list() | tuple():
            return [_canonical(v) for v in cast("list[Any]", value)]
        case Set():
            return sorted((_canonical(v) for v in cast("Set[Any]", value)), key=lambda v: json.dumps(v, sort_keys=True))
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {f.name: _canonical(getattr(value, f.name)) for f in fields(value)}
        case _:
            return _other(value)


def _other(value: Any) -> Any:
    try:
        return to_jsonable_python(value)
    except (PydanticSerializationError, ValueError):
        return f"{type(value).__qualname__}:{value!r}"

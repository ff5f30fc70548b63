"""Copies of values for code that is shown them and must not change what runs, or what is answered."""

from __future__ import annotations

from collections import deque
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, cast

from pydantic import BaseModel

T = TypeVar("T")
_ATOMS: frozenset[type] = frozenset({str, int, float, bool, bytes, type(None)})
_SEQUENCES: frozenset[type] = frozenset({tuple, set, frozenset, deque})


def copied(value: T) -> T:
    """Return a value whose containers, models and dataclasses are copies; any other object in it is the same one."""
    try:
        return _copied(value)
    except RecursionError:  # it contains itself
        return value


def _copied(value: Any) -> Any:
    kind: type[Any] = value.__class__
    if kind in _ATOMS:
        return value
    if kind is dict:
        return {key: part if part.__class__ in _ATOMS else _copied(part) for key, part in value.items()}
    if kind is list:
        return [*value] if _ATOMS.issuperset(map(type, value)) else list(map(_copied, value))
    if kind in _SEQUENCES:
        return kind(map(_copied, value)) if kind is not deque else deque(map(_copied, value), value.maxlen)
    if isinstance(value, BaseModel):
        copied = value.model_copy()
        attributes = cast("dict[str, Any]", copied.__dict__)
        attributes.update(_copied(attributes))
        if copied.__pydantic_extra__:
            copied.__pydantic_extra__.update(_copied(copied.__pydantic_extra__))
        return copied
    if is_dataclass(value) and not isinstance(value, type):
        copied = copy(cast("Any", value))
        for part in fields(copied):
            if hasattr(copied, part.name):
                object.__setattr__(copied, part.name, _copied(getattr(copied, part.name)))
        return copied
    return value

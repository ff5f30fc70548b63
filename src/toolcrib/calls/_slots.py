"""A cheaper way to fill a frozen dataclass with slots, for the few values that are made on every call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

__all__ = ["draft_of", "slot_setters"]


def slot_setters(cls: type[Any]) -> tuple[Callable[[Any, Any], None], ...]:
    """Return, field by field, what sets a slot of `cls` past its frozen `__setattr__`; only for its own `__init__`."""
    return tuple(cls.__dict__[field.name].__set__ for field in fields(cls))


def draft_of(cls: type[Any]) -> type[Any]:
    """Return a class with the slots of `cls` and none of its frozenness, for the two values made on every call.

    An instance is filled in and then made one of `cls` by its `__class__`: a third of what the setters above cost.
    """
    return type(f"{cls.__name__}Draft", (), {"__slots__": tuple(field.name for field in fields(cls))})

"""A cheaper way to fill a frozen dataclass with slots, for the few values that are made on every call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

__all__ = ["slot_setters"]


def slot_setters(cls: type[Any]) -> tuple[Callable[[Any, Any], None], ...]:
    """Return, field by field, what sets a slot of `cls` past its frozen `__setattr__`; only for its own `__init__`."""
    return tuple(cls.__dict__[field.name].__set__ for field in fields(cls))

"""Decorators of the frozen values that are made on every call: value_class, and two for fields that are seldom read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar, cast

from typing_extensions import dataclass_transform

from toolcrib._short_repr import ShortRepr

C = TypeVar("C", bound=type[Any])


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(cls: C) -> C:
    """Make a dataclass with slots and a hash that only type checkers hold to be frozen.

    A class that is frozen at runtime as well takes four times as long to make a value: every other one is.
    """
    return dataclass(slots=True, unsafe_hash=True, repr=not issubclass(cls, ShortRepr))(cls)


def rendered(value: Any) -> Any:
    """Return a value, or what it is called for where it is a `partial`: a payload that nobody has read so far."""
    return cast("partial[Any]", value)() if type(value) is partial else value


def late_fields(*names: str) -> Callable[[C], C]:
    """Allow a `partial` in the place of values of fields of a value class: it is called when the field is first read.

    What it is called with must not change until then.
    """
    return _late_decorator(names, partial, rendered)


def late_times(*names: str) -> Callable[[C], C]:
    """Allow seconds since the epoch in the place of times in fields of a value class: to make a time takes longer."""
    return _late_decorator(names, float, lambda seconds: datetime.fromtimestamp(seconds, UTC))


def _late_decorator(names: tuple[str, ...], kind: type[Any], make: Callable[[Any], Any]) -> Callable[[C], C]:
    def decorate(cls: C) -> C:
        for name in names:
            setattr(cls, name, _late(getattr(cls, name), kind, make))
        return cls

    return decorate


def _late(slot: Any, kind: type[Any], make: Callable[[Any], Any]) -> property:
    def read(owner: Any) -> Any:
        value = slot.__get__(owner)
        if type(value) is kind:
            value = make(value)
            slot.__set__(owner, value)
        return value

    return property(read, slot.__set__)

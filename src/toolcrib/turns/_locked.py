"""Attributes that cannot be changed while their owner is at work."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Protocol, TypeVar, overload

from toolcrib.errors import SafeExecutionError

V = TypeVar("V")


class Busy(Protocol):
    """Something that can be at work."""

    def busy(self) -> str:
        """Return the activity that forbids changes, in words; empty when changes are allowed."""
        ...


class Locked(Protocol[V]):
    """A locked method, as a type checker sees it."""

    @overload
    def __get__(self, thing: None, owner: type) -> Any: ...
    @overload
    def __get__(self, thing: object, owner: type) -> V: ...
    def __get__(self, thing: Any, owner: type) -> Any: ...
    def __set__(self, thing: Any, value: V) -> None: ...


def locked(name: str, doc: str) -> Any:
    """Return an attribute kept as `_name`, read at any time and set only while its owner does nothing."""
    slot = f"_{name}"

    def change(thing: Busy, value: Any) -> None:
        doing = thing.busy()
        if doing:
            raise SafeExecutionError(f"`{name}` cannot be changed: {thing!r} {doing}")
        setattr(thing, slot, value)

    return property(attrgetter(slot), change, doc=doc)  # a getter in C: agents read these for every turn

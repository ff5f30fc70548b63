"""Attributes that a class has by another name than other frameworks: the error for theirs says which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Never, TypeVar

C = TypeVar("C", bound=type)


class _Missing:
    """An attribute that is missing: `hasattr` is false, and what was set on an object or in a subclass counts."""

    __slots__ = ("here", "name")

    def __init__(self, name: str, here: str) -> None:
        self.name, self.here = name, here

    def __get__(self, instance: object, owner: type) -> Never:
        obj = owner if instance is None else instance
        text = f"{owner.__qualname__.rpartition('.')[2]!r} has no attribute {self.name!r}. Here it is {self.here}."
        raise AttributeError(text, name=self.name, obj=obj)


def explain_missing(words: Mapping[str, str]) -> Callable[[C], C]:
    """Return a class decorator that says where something is that other frameworks have as an attribute or an operator.

    The attributes that a class has are looked up as before: nothing is asked at each look-up, and an AttributeError of
    a property stays what it is. A type checker knows of none of the names.

    Args:
        words: How it is written here, by the attribute of the others; `__enter__` and `__aenter__` are those of `with`.
    """

    def explain(cls: C) -> C:
        for name, here in words.items():
            setattr(cls, name, _Missing(name, here))
        return cls

    return explain

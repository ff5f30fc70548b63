"""Methods that a toolset class answers as the toolset it would make."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

__all__ = ["either"]

P = ParamSpec("P")
R = TypeVar("R")


class either(Generic[P, R]):
    """Let a method be called on a class too, where it means an object made without arguments."""

    def __init__(self, fn: Callable[Concatenate[Any, P], R]) -> None:
        self._fn = fn
        self.__doc__ = fn.__doc__

    def __get__(self, item: object | None, owner: type) -> Callable[P, R]:
        return partial(self._fn, owner() if item is None else item)

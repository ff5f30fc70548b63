"""What a function's return annotation says about the values that come back."""

from __future__ import annotations

import collections.abc
from types import NoneType
from typing import Any, get_args, get_origin

__all__ = ["is_described", "yielded_type"]

_STREAMS = frozenset(
    {
        collections.abc.AsyncGenerator,
        collections.abc.AsyncIterable,
        collections.abc.AsyncIterator,
        collections.abc.Generator,
        collections.abc.Iterable,
        collections.abc.Iterator,
    }
)


def yielded_type(annotation: Any) -> Any:
    """Return the type of one value of a generator, Any where the annotation does not say."""
    arguments = get_args(annotation)
    return arguments[0] if get_origin(annotation) in _STREAMS and arguments else Any


def is_described(annotation: Any) -> bool:
    """Return whether a return type says anything about the value."""
    return annotation is not None and annotation is not NoneType and annotation is not Any

"""Copies of values for code that is shown them and must not change what runs, or what is answered.

What is shown to a person is a copy that cannot be changed in place.
"""

from __future__ import annotations

from collections import deque
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn, TypeVar, cast

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


def read_only(value: Any) -> Any:
    """Return a dict or a list, with those in it, as one that cannot be changed; any other value as it is."""
    try:
        return _read_only(value)
    except RecursionError:  # it contains itself
        return value


def _read_only(value: Any) -> Any:
    if type(value) is dict:
        return _ReadOnlyDict({key: _read_only(part) for key, part in cast("dict[Any, Any]", value).items()})
    if type(value) is list:
        return _ReadOnlyList(map(_read_only, cast("list[Any]", value)))
    return value


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise TypeError(
        "the arguments of a request are what runs, and cannot be changed in place; give others with the grant: "
        "request.grant('ann', override_args={...}); copy.deepcopy(request.arguments) is a dict that can be changed"
    )


class _ReadOnlyDict(dict[Any, Any]):
    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return dict, (dict(self),)  # a copy is plain


class _ReadOnlyList(list[Any]):
    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = pop = remove = _refuse
    reverse = sort = _refuse

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return list, (list(self),)

"""Dicts and lists that are shown to a person and cannot be changed in place: what is shown is what runs."""

from __future__ import annotations

from typing import Any, NoReturn, cast


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

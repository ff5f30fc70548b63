"""Secrets in objects that a host gives its tools besides the arguments: credentials, and the dependencies of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Final, cast, get_type_hints

import pydantic
from pydantic import BaseModel

from toolcrib.schema._canonical import untyped
from toolcrib.schema._core_schema import secrets_of
from toolcrib.schema._markers import Redacted
from toolcrib.schema._parameters import is_marked

_DEEPEST: Final = 3  # levels of an object that are looked through
_MOST: Final = 500  # objects that are looked at
_ATOMS: Final = (str, bytes, int, float, type(None))  # which have nothing in them


def secret_objects(value: Any) -> frozenset[str]:
    """Return the texts and numbers that are secret in an object: what its secret types hold, and its `Redacted` fields.

    Of an object of any class the attributes are looked through, and of these theirs, three levels deep.
    """
    return frozenset(chain.from_iterable(islice(map(secret_texts, _secrets_in(value)), _MOST)))


def secret_texts(value: Any) -> frozenset[str]:
    """Return the texts and numbers in a value all of which is secret."""
    is_wrapped = isinstance(value, pydantic.SecretStr | pydantic.SecretBytes | pydantic.Secret)
    plain: Any = cast("pydantic.Secret[Any]", value).get_secret_value() if is_wrapped else value
    return untyped({"": pydantic.Secret(plain)}).secrets()


def _secrets_in(value: Any) -> Iterator[Any]:
    """Yield each secret value, in the order of its depth, and None for an object without secrets of its own."""
    level, visited = [value], set[int]()
    for _ in range(_DEEPEST + 1):
        deeper = list[Any]()
        for part in level:
            if id(part) in visited:
                continue
            visited.add(id(part))
            if isinstance(part, pydantic.SecretStr | pydantic.SecretBytes | pydantic.Secret):
                yield cast("Any", part)
                continue
            if isinstance(part, _ATOMS):
                continue
            yield None
            for name in _marked_in(cast("type[Any]", type(part))):
                yield getattr(part, name, None)
            deeper += islice(_parts_of(part), _MOST)
        level = deeper


@lru_cache(maxsize=1_000)
def _marked_in(kind: type[Any]) -> frozenset[str]:
    """Return the fields of a class that are secret as a whole."""
    if issubclass(kind, BaseModel):
        return secrets_of(kind.__pydantic_core_schema__)
    try:
        hints = get_type_hints(kind, include_extras=True)
    except Exception:  # names of the class's author that are not to be found
        return frozenset()
    return frozenset(name for name, hint in hints.items() if is_marked(hint, Redacted))


def _parts_of(value: Any) -> Iterator[Any]:
    if isinstance(value, type | str | bytes):
        return
    if isinstance(value, Mapping):
        yield from cast("Mapping[Any, Any]", value).values()
    elif isinstance(value, list | tuple | Set):
        yield from cast("list[Any]", value)
    else:
        yield from cast("dict[str, Any]", getattr(value, "__dict__", {})).values()
        names = chain.from_iterable(getattr(kind, "__slots__", ()) for kind in type(value).__mro__)
        yield from (getattr(value, name, None) for name in names)

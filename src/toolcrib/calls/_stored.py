"""Fields of a stored value, as its `from_dict` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import Any, NoReturn, cast

__all__ = ["StoredFields"]


class StoredFields(dict[str, Any]):
    """The fields of a stored value; one that is missing is a ValueError, which names it and its class.

    Args:
        owner: The class, or its name; of a dataclass, the fields without a default must be there.
        data: The value, as its `to_dict` described it.

    Raises:
        ValueError: It is no mapping, or a field is missing.
    """

    def __init__(self, owner: type | str, data: object) -> None:
        self._owner = owner if isinstance(owner, str) else owner.__name__
        if not isinstance(data, Mapping):
            raise ValueError(f"a {self._owner} is read from a dict, and this is {type(data).__name__}")
        super().__init__(cast("Mapping[str, Any]", data))
        for name in _required(owner):
            self[name]

    def __missing__(self, name: str) -> NoReturn:
        raise ValueError(f"this is no {self._owner}: the field `{name}` is missing")


@lru_cache(maxsize=256)
def _required(owner: type | str) -> tuple[str, ...]:
    """Return the fields of a dataclass that have no default."""
    if not (isinstance(owner, type) and is_dataclass(owner)):
        return ()
    return tuple(each.name for each in fields(owner) if each.default is each.default_factory is MISSING)

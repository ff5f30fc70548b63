"""Registries: objects by name, and a scope that gives a test registries of its own.

`registry_scope()` sets the contents of all registries aside, and puts them back.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Generic, TypeVar
from weakref import WeakSet, WeakValueDictionary

from toolcrib.errors import DuplicateNameError, UnregisteredError

__all__ = ["Registry", "registry_scope"]

T = TypeVar("T")

_REPLACE = "Choose another name, or pass replace=True where a cell or module is run again."
_registries: WeakSet[Registry[object]] = WeakSet()


class Registry(Generic[T]):
    """Objects by name, in the order they came.

    Args:
        error: The class of the error for an unknown name.
        weak: Keep no object alive: one that nothing else refers to gives its name back.
        mend: The advice for a name that is taken, for the error's message.

    Attributes:
        version: Grows with every change, so that tables built from the registry know when they are old.
    """

    def __init__(
        self, error: type[UnregisteredError] = UnregisteredError, *, weak: bool = False, mend: str = _REPLACE
    ) -> None:
        self._error, self._weak, self._mend = error, weak, mend
        self._entries: MutableMapping[str, T] = self._empty()
        self.version = 0
        _registries.add(self)  # pyright: ignore[reportArgumentType] -- a WeakSet of Registry[object] holds every Registry[T]

    def register(self, name: str, item: T, *, replace: bool = False) -> T:
        """Add `item` under `name` and return it.

        Raises:
            DuplicateNameError: `name` is taken by another object and `replace` is false. A ValueError.
        """
        if not replace and self._is_taken(name, item):
            raise DuplicateNameError(name, origin(self._entries[name]), origin(item), self._mend, self._error.kind)
        self._entries[name] = item
        self.version += 1
        return item

    def _is_taken(self, name: str, item: T) -> bool:
        if name not in self._entries or self.holds(name, item):
            return False
        if self._weak:
            gc.collect()  # what is left of it may be no more than a cycle of references
        return name in self._entries

    def holds(self, name: str, item: object) -> bool:
        """Return whether `name` is registered, and for this object."""
        return self._entries.get(name) is item

    def unregister(self, name: str) -> None:
        """Forget `name`; raises the registry's KeyError when it is unknown."""
        self.get(name)
        del self._entries[name]
        self.version += 1

    def get(self, name: str) -> T:
        """Return the entry `name`, or raise the registry's KeyError."""
        try:
            return self._entries[name]
        except KeyError:
            raise self._error(name, tuple(self._entries)) from None

    def all(self) -> list[T]:
        """Return everything registered, in order."""
        return list(self._entries.values())

    def names(self) -> list[str]:
        """Return the registered names, in order."""
        return list(self._entries)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self.version += 1

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._entries.values()))

    def _empty(self) -> MutableMapping[str, T]:
        return WeakValueDictionary() if self._weak else {}

    def _swap(self, entries: MutableMapping[str, T]) -> MutableMapping[str, T]:
        before, self._entries = self._entries, entries
        self.version += 1
        return before


def origin(item: object) -> str:
    """Return where `item` was defined, as `module.qualname`, for messages about clashes."""
    named: object = getattr(item, "origin", None)  # tools say where they come from
    if isinstance(named, str):
        return named
    target = item if hasattr(item, "__qualname__") else type(item)
    return f"{getattr(target, '__module__', '?')}.{getattr(target, '__qualname__', repr(item))}"


@contextmanager
def registry_scope(*, inherit: bool = False) -> Generator[None]:
    """Replace the registries by empty ones (or copies, with `inherit`) for the body, and restore them at the end.

    Meant for tests and notebooks: the swap is process-wide and not for concurrent use.
    """
    saved = [(registry, registry._swap(registry._empty())) for registry in list(_registries)]  # pyright: ignore[reportPrivateUsage] -- same module
    if inherit:
        for registry, entries in saved:
            registry._entries.update(entries)  # pyright: ignore[reportPrivateUsage] -- same module
    try:
        yield
    finally:
        for registry, entries in saved:
            registry._swap(entries)  # pyright: ignore[reportPrivateUsage] -- same module

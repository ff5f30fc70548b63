"""One registry class for everything that is found by name, and a scope that gives a test its own.

A registry is an object that somebody made; `registry_scope()` sets the contents of all of them aside, and puts them
back.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar
from weakref import WeakSet

from toolcrib.errors import DuplicateNameError, UnregisteredError

__all__ = ["Registry", "registry_scope"]

T = TypeVar("T")

_registries: WeakSet[Registry[object]] = WeakSet()


class Registry(Generic[T]):
    """Objects by name, in the order they came.

    Attributes:
        version: Grows with every change, so that tables built from the registry know when they are old.
    """

    def __init__(self, error: type[UnregisteredError] = UnregisteredError) -> None:
        self._entries: dict[str, T] = {}
        self._error = error
        self.version = 0
        _registries.add(self)  # pyright: ignore[reportArgumentType] -- a WeakSet of Registry[object] holds every Registry[T]

    def register(self, name: str, item: T, *, replace: bool = False) -> T:
        """Add `item` under `name` and return it.

        Raises:
            DuplicateNameError: `name` is taken by another object and `replace` is false. A ValueError.
        """
        taken = self._entries.get(name)
        if taken is not None and taken is not item and not replace:
            mend = "Choose another name, or pass replace=True where a cell or module is run again."
            raise DuplicateNameError(name, origin(taken), origin(item), mend, self._error.kind)
        self._entries[name] = item
        self.version += 1
        return item

    def unregister(self, name: str) -> None:
        """Forget `name`; raises the registry's KeyError when it is unknown."""
        self.get(name)
        del self._entries[name]
        self.version += 1

    def get(self, name: str) -> T:
        """Return what is registered as `name`, or raise the registry's KeyError."""
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

    def _swap(self, entries: dict[str, T]) -> dict[str, T]:
        before, self._entries = self._entries, entries
        self.version += 1
        return before


def origin(item: object) -> str:
    """Return where `item` was defined, as `module.qualname`, for messages about clashes."""
    own: object = getattr(item, "origin", None)  # tools say where they come from
    if isinstance(own, str):
        return own
    target = item if hasattr(item, "__qualname__") else type(item)
    return f"{getattr(target, '__module__', '?')}.{getattr(target, '__qualname__', repr(item))}"


@contextmanager
def registry_scope(*, inherit: bool = False) -> Generator[None]:
    """Give the body empty registries (or copies, with `inherit`), and put the old contents back at the end.

    Meant for tests and notebooks: the swap is process-wide and not for concurrent use.
    """
    saved = [(r, r._swap(dict(r._entries) if inherit else {})) for r in list(_registries)]  # pyright: ignore[reportPrivateUsage] -- same module
    try:
        yield
    finally:
        for registry, entries in saved:
            registry._swap(entries)  # pyright: ignore[reportPrivateUsage] -- same module

"""Names of a package that are loaded when they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package.

    What needs an optional dependency that is not installed is neither in its `__dir__` nor in its `__all__`; its name
    raises the ImportError that says so.

    Args:
        package: The package's name.
        modules: The public names of each module, separated by spaces. A module of the package begins with a dot.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}
    sys.modules[package].__class__ = _LazyPackage

    def load(name: str) -> Any:
        """Return the object of a name in the package: of one of its modules, or a public module itself."""
        home = homes.get(name)
        if home is not None:
            value = getattr(import_module(home, package), name)
            setattr(sys.modules[package], name, value)
            return value
        if not name.startswith("_"):
            try:
                return import_module(f"{package}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{package}.{name}":
                    raise
        if name.startswith("__"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        asking: Any = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] -- as `inspect.currentframe`, at once
        while asking.f_code.co_name == "__getattr__":
            asking = asking.f_back
        raise import_module("toolcrib.errors").missing_name(package, name, asking)

    def names() -> list[str]:
        """Return the public names and modules of the package."""
        module = sys.modules[package]
        found = [part.name for part in import_module("pkgutil").iter_modules(module.__path__)]
        parts = [name for name in found if not name.startswith("_") and _can_be_loaded(module, name)]
        return sorted({*module.__all__, *parts})

    return load, names


class _LazyPackage(ModuleType):
    """A package with `lazy_names`: `from package import *` leaves out what cannot be loaded here."""

    @property
    def __all__(self) -> list[str]:
        return [name for name in vars(self)["__all__"] if _can_be_loaded(self, name)]


def _can_be_loaded(package: ModuleType, name: str) -> bool:
    """Return whether a name's module can be imported: it cannot where an optional dependency is missing."""
    try:
        getattr(package, name, None)
    except ImportError:
        return False
    return True

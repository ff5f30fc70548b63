"""Names of a package that are loaded when they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package.

    Args:
        package: The package's name.
        modules: The public names of each module, separated by spaces. A module of the package begins with a dot.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

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
        found = import_module("pkgutil").iter_modules(module.__path__)
        return sorted({*module.__all__, *(module.name for module in found if not module.name.startswith("_"))})

    return load, names

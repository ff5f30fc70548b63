"""Paths of the host in the modules of a worker: each is replaced, so that none says where files lie."""

from __future__ import annotations

import _imp
import gc
import os
import sys
import types
from typing import Any, Final, cast

__all__ = ["forget_paths"]

_PYTHON: Final = "/python"
"""Stands for every folder of the host in which there is a module."""


def forget_paths() -> None:
    """Replace the paths of the host in all modules and functions; no file can be read any more."""
    folders = [*sys.path, sys.prefix, sys.base_prefix, os.path.dirname(sys.executable), os.path.dirname(__file__)]
    roots = sorted({folder for folder in folders if len(folder) > 1}, key=len, reverse=True)
    for module in list(sys.modules.values()):
        _forget(module.__dict__, roots)
    rename: Any = vars(_imp)["_fix_co_filename"]  # with which the import system itself renames cached code
    for each in gc.get_objects():
        if isinstance(each, types.FunctionType):
            code = each.__code__
            rename(code, _neutral(code.co_filename, roots))
    sys.path[:] = []
    sys.path_importer_cache.clear()


def _forget(names: dict[str, Any], roots: list[str]) -> None:
    if "__path__" in names:
        names["__path__"] = []  # it stays a package
    spec: Any = names.get("__spec__")
    parts: list[Any] = [getattr(each, "__dict__", None) for each in (spec, getattr(spec, "loader", None))]
    for owner in (names, *parts, *names.values()):  # a table may say how Python was built
        if type(owner) is dict:
            table = cast("dict[Any, Any]", owner)
            paths = {name: _neutral(text, roots) for name, text in table.items() if type(text) is str}
            table.update(paths)
    if getattr(spec, "submodule_search_locations", None) is not None:
        spec.submodule_search_locations = []


def _neutral(text: str, roots: list[str]) -> str:
    """Return a text with each folder of the host replaced."""
    for root in roots:
        text = text.replace(root, _PYTHON)
    return text

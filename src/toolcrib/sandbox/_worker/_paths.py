"""Paths of the host in the modules of a worker: each is replaced, so that none says where files lie."""

from __future__ import annotations

import _imp
import contextlib
import gc
import os
import pathlib
import sys
import types
from typing import Any, Final, cast

from ._files import FILES, PACKAGE_DATA
from .imports import PACKAGES

_PYTHON: Final = "/python"
"""Stands for every folder of the host in which there is a module."""


def forget_paths() -> None:
    """Replace the paths of the host in all modules and functions; no file can be read any more."""
    folders = [*sys.path, sys.prefix, sys.base_prefix, os.path.dirname(sys.executable), os.path.dirname(__file__)]
    folders.append(os.path.expanduser("~"))
    roots = sorted({folder for folder in folders if len(folder) > 1}, key=len, reverse=True)
    for module in list(sys.modules.values()):
        _forget(module.__dict__, roots)
    rename: Any = vars(_imp)["_fix_co_filename"]  # with which the import system itself renames cached code
    for item in gc.get_objects():
        if isinstance(item, types.FunctionType):
            code = item.__code__
            rename(code, _neutral(code.co_filename, roots))
            for cell in item.__closure__ or ():
                with contextlib.suppress(ValueError):  # it is empty
                    cell.cell_contents = _neutral_in(cell.cell_contents, roots)
        elif f"{type(item).__module__}".partition(".")[0] in PACKAGES and type(getattr(item, "__dict__", None)) is dict:
            _replace_in(item.__dict__, roots)
    for path in list(PACKAGE_DATA):
        PACKAGE_DATA[_neutral(path, roots)] = PACKAGE_DATA.pop(path)
    FILES.are_all = True
    sys.path[:] = []
    sys.path_importer_cache.clear()


def _forget(names: dict[str, Any], roots: list[str]) -> None:
    if "__path__" in names:
        names["__path__"] = []  # it stays a package
    spec: Any = names.get("__spec__")
    parts: list[Any] = [getattr(holder, "__dict__", None) for holder in (spec, getattr(spec, "loader", None))]
    for owner in (names, *parts, *names.values()):  # a table may say how Python was built
        if type(owner) is dict:
            _replace_in(cast("dict[Any, Any]", owner), roots)
        elif type(owner) is list:
            texts = cast("list[Any]", owner)
            texts[:] = [_neutral_in(text, roots) for text in texts]
    if getattr(spec, "submodule_search_locations", None) is not None:
        spec.submodule_search_locations = []


def _replace_in(table: dict[Any, Any], roots: list[str]) -> None:
    table.update({name: _neutral_in(value, roots) for name, value in table.items()})


def _neutral_in(value: Any, roots: list[str]) -> Any:
    """Return a text, a path or a tuple of such with each folder of the host replaced; anything else as it is."""
    if type(value) is str:
        return _neutral(value, roots)
    if isinstance(value, pathlib.PurePath):
        return type(value)(_neutral(str(value), roots))
    if type(value) is tuple:
        parts = cast("tuple[Any, ...]", value)
        if any(type(part) is str for part in parts):
            return tuple(_neutral_in(part, roots) for part in parts)
    return cast("Any", value)


def _neutral(text: str, roots: list[str]) -> str:
    """Return a text with each folder of the host replaced."""
    for root in roots:
        text = text.replace(root, _PYTHON)
    return text

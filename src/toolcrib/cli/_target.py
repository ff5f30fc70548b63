"""Target of a command: the Python object of `package.module:attribute` or `path/to/file.py:attribute`."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import toolcrib.errors
from toolcrib.errors import TargetError, closest, nearest

_FILE = re.compile(r"(?P<path>.+\.pyw?)(?::(?P<attribute>.*))?")
_OWN = Path(toolcrib.errors.__file__).parents[1]


def load(target: str) -> object:
    """Import what `target` names and return it; what it prints goes to stderr.

    Raises:
        TargetError: It cannot be imported, or has no such attribute; the user's own line is named.
    """
    file = _FILE.fullmatch(target)
    with redirect_stdout(sys.stderr):
        if file is not None:
            module = _import_file(target, Path(file["path"]))
            attribute = file["attribute"]
        else:
            name, colon, rest = target.partition(":")
            module = _import_module(target, name)
            attribute = rest if colon else None
        return module if attribute is None else _attribute(target, module, attribute)


# --- importing


def _import_module(target: str, name: str) -> ModuleType:
    if Path(target).is_file():
        hint = "give Python (tools.py), an OpenAPI document (.json, .yaml), or a file of MCP servers (.json, .toml)"
        raise TargetError(target, f"it is a file of another kind; {hint}")
    if nearest(Path(target).suffix, (".json", ".jsonc", ".toml", ".yaml"), cutoff=0.8):
        raise TargetError(target, "there is no such file; a file of MCP servers ends with .json or .toml")
    if not all(part.isidentifier() for part in name.split(".")):
        hint = "give a Python file (tools.py) or a module (package.module), with `:attribute` for one thing in it"
        raise TargetError(target, f"{f'`{name}`' if name else 'it'} is neither a module nor a Python file; {hint}")
    _add_to_path(Path.cwd())
    with _import_errors(target, Path.cwd(), name):
        return importlib.import_module(name)


def _import_file(target: str, path: Path) -> ModuleType:
    if not path.is_file():
        raise TargetError(target, f"there is no file {path}")
    path = path.resolve()
    root = path.parent
    while (root / "__init__.py").is_file() and root.name.isidentifier():
        root = root.parent
    _add_to_path(root)
    with _import_errors(target, root):
        if root != path.parent and path.stem.isidentifier():  # inside a package: relative imports have to work
            parts = path.relative_to(root).with_suffix("").parts
            return importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
        name, number = path.stem, 1
        while name in sys.modules:
            if getattr(sys.modules[name], "__file__", None) == str(path):
                return sys.modules[name]
            number += 1
            name = f"{path.stem}_{number}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"Python cannot load {path.name}")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module


def _add_to_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _attribute(target: str, module: ModuleType, path: str) -> object:
    value: Any = module
    for part in path.split("."):
        owner = value
        try:
            value = getattr(owner, part)
        except AttributeError:
            where = f"`{module.__name__}`" if owner is module else f"`{path.partition('.' + part)[0]}`"
            names = [name for name in dir(owner) if not name.startswith("_") and not _is_ours(owner, name)]
            wanted = f"has nothing named `{part}`" if part else "is followed by a colon and no name"
            raise TargetError(target, f"{where} {wanted}. {closest(part, names)}") from None
        except Exception as error:  # a property or a module's __getattr__ is the user's code
            raise TargetError(target, f"`{part}` raises {_error_text(error)}") from error
    return value


def _is_ours(owner: object, name: str) -> bool:
    """Return whether a name in the user's module is only an import of this package."""
    value = vars(owner).get(name) if isinstance(owner, ModuleType) else None
    return str(getattr(value, "__module__", "")).startswith("toolcrib.")


# --- errors of imports


@contextmanager
def _import_errors(target: str, root: Path, module: str = "") -> Generator[None]:
    """Turn what an import raises into a TargetError that names the user's own line."""
    try:
        yield
    except (Exception, SystemExit) as error:  # importing runs the user's code
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and (module == missing or module.startswith(f"{missing}.")):
            problem = f"there is no module `{missing}` in {root} or among the installed packages"
        else:
            problem = f"{_place(error, root)}{_error_text(error)}"
        raise TargetError(target, problem) from error


def _place(error: BaseException, root: Path) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"line {error.lineno} of {_short(error.filename)}: "
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _OWN not in Path(f.filename).parents]
    in_root = [f for f in frames if root in Path(f.filename).parents and "site-packages" not in f.filename]
    if not in_root:
        return ""
    return f"line {in_root[-1].lineno} of {_short(in_root[-1].filename)} raises "


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename


def _error_text(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    first = text.strip().splitlines()[0] if text.strip() else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__

"""Functions of `sqlite3`, `tempfile` and pyarrow that take a file by its name, as a program finds them.

What they are made of goes past Python's `open`; here it is given the program's own files.
"""

from __future__ import annotations

import errno
import functools
import itertools
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, Final, NoReturn
from urllib.parse import unquote, urlsplit

from ._files import FILES, TEMPORARY

# --- sqlite3

_connect = sqlite3.connect
_MODES: Final = slice(18, 20)  # of a database: whether it has a log beside it, which one in memory cannot have


class _Database(sqlite3.Connection):
    """A database in memory, which is saved as an artifact when it is closed, and at the end of the program."""

    path: str | None = None
    closed = False

    def flush(self) -> None:
        """Save what was committed."""
        if self.path is not None and not self.closed:
            self.rollback()
            data = self.serialize()
            FILES.save(self.path, data)

    def close(self) -> None:
        self.flush()
        self.closed = True
        super().close()

    def __del__(self) -> None:
        with suppress(sqlite3.Error):  # of another thread
            self.close()


def _connected(database: Any, *args: Any, **options: Any) -> Any:
    """Open a database of the program; like `sqlite3.connect`."""
    name = os.fsdecode(database)
    if options.get("uri") and name.startswith("file:"):
        parts = urlsplit(name)
        name = ":memory:" if "mode=memory" in parts.query else unquote(parts.path)
    if name in ("", ":memory:"):
        return _connect(database, *args, **options)
    path = FILES.path(name)
    data, is_artifact = FILES.data(path), FILES.is_writable(path)
    if data is None and not is_artifact:  # one that is wanted under another name, or one that is new
        why = f"there is no such database; one is made in artifacts/ alone: 'artifacts/{os.path.basename(path)}'"
        raise OSError(errno.ENOENT, why, name)
    if data is None:
        with FILES.writer(path, "wb"):
            data = b""
    connection = _connect(":memory:", *args, **{"factory": _Database, **options, "uri": False})
    if data:
        content = bytearray(data)
        content[_MODES] = b"\1\1"
        connection.deserialize(bytes(content))
    if not is_artifact:
        connection.execute("PRAGMA query_only = ON")
    elif isinstance(connection, _Database):
        connection.path = path
        FILES.watch(connection)
    return connection


# --- tempfile

_numbers = itertools.count(1)


def _free_name(suffix: Any, prefix: Any, folder: Any) -> str:
    number = next(_numbers)  # and none by chance: a program that runs again has the same names
    return os.path.join(folder or TEMPORARY, f"{prefix or 'tmp'}{number}{suffix or ''}")


def _temporary_file(
    mode: str = "w+b",
    buffering: int = -1,
    encoding: str | None = None,
    newline: str | None = None,
    suffix: Any = None,
    prefix: Any = None,
    dir: Any = None,
    delete: bool = True,
    *,
    errors: str | None = None,
    delete_on_close: bool = True,
) -> IO[Any]:
    """Open a temporary file, which is there until the program ends; like `tempfile.NamedTemporaryFile`."""
    return open(_free_name(suffix, prefix, dir), mode, encoding=encoding, errors=errors, newline=newline)


def _temporary_folder(suffix: Any = None, prefix: Any = None, dir: Any = None) -> str:
    """Make a temporary folder; like `tempfile.mkdtemp`."""
    path = _free_name(suffix, prefix, dir)
    os.mkdir(path)
    return path


def _no_descriptor(*args: Any, **options: Any) -> NoReturn:
    """Refuse; like `tempfile.mkstemp` where there is no room."""
    raise OSError(errno.EPERM, "files of a program have no descriptors; take tempfile.NamedTemporaryFile()")


def install_named() -> None:
    """Replace the functions of Python's modules."""
    setattr(sqlite3, "connect", _connected)  # noqa: B010 -- typed as another function
    replacements = {
        "TemporaryFile": _temporary_file,
        "NamedTemporaryFile": _temporary_file,
        "mkdtemp": _temporary_folder,
    }
    for name, function in {**replacements, "mkstemp": _no_descriptor, "tempdir": TEMPORARY}.items():
        setattr(tempfile, name, function)


# --- pyarrow

_OF_PYARROW: Final = {
    "csv": {"read_csv": (0, "input_file"), "open_csv": (0, "input_file"), "write_csv": (1, "output_file")},
    "json": {"read_json": (0, "input_file")},
    "feather": {"read_table": (0, "source"), "read_feather": (0, "source"), "write_feather": (1, "dest")},
    "ipc": {"open_file": (0, "source"), "open_stream": (0, "source")},
    "parquet": {
        **dict.fromkeys(("read_table", "read_pandas", "ParquetFile"), (0, "source")),
        **{"read_schema": (0, "where"), "read_metadata": (0, "where")},
        **{"write_table": (1, "where"), "ParquetWriter": (0, "where")},
    },
    "dataset": {"dataset": (0, "source")},
}
"""The functions of pyarrow that take a file: where it is among the arguments, and its name there."""


_Name: Any = (str, os.PathLike)


def install_named_in_packages() -> None:
    """Replace the functions of pyarrow, as far as it is loaded."""
    for part, functions in _OF_PYARROW.items():
        module = sys.modules.get(f"pyarrow.{part}")
        for name, (at, argument) in functions.items():
            if module is not None and hasattr(module, name):
                setattr(module, name, _opening(getattr(module, name), at, argument))
    arrow: Any = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.OSFile = arrow.memory_map = _native_file


def _native_file(path: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
    """Open a file of the program; like `pyarrow.OSFile` and `pyarrow.memory_map`."""
    letter = mode.strip("b")
    return sys.modules["pyarrow"].PythonFile(open(path, f"{letter}b"), mode=letter[0])


def _opening(real: Callable[..., Any], at: int, argument: str) -> Callable[..., Any]:
    """Return a function that opens the file of a name, and gives it to the real one."""

    @functools.wraps(real)
    def call(*args: Any, **options: Any) -> Any:
        name: Any = args[at] if len(args) > at else options.get(argument)
        if not isinstance(name, _Name) or options.get("filesystem") is not None:
            return real(*args, **options)
        if argument == "source" and real.__name__ == "dataset":
            why = "pyarrow.dataset opens no file of a program; take pyarrow.parquet.read_table(name)"
            raise OSError(errno.EPERM, why, os.fsdecode(name))
        writes = real.__name__.startswith("write") or real.__name__ == "ParquetWriter"
        file = open(name, "wb" if writes else "rb")  # noqa: SIM115 -- what is read lazily reads it later
        args = (*args[:at], file, *args[at + 1 :]) if len(args) > at else args
        options = options if len(args) > at else {**options, argument: file}
        done = real(*args, **options)
        if real.__name__.startswith("write"):
            file.close()
        return done

    return call

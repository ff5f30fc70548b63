"""Python's functions for files, `open` and those of `os`, as a program finds them: they see its own files alone."""

from __future__ import annotations

import builtins
import errno
import gc
import glob
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import IO, Any, Final, cast

from ._files import FILES, FileReader
from ._named_files import install_named, install_named_in_packages

_open = io.open


def _opened(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Callable[[str, int], int] | None = None,
) -> IO[Any]:
    """Open a file of the program; like Python's `open`."""
    if isinstance(file, int):
        return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    letters = set(mode)
    if letters - set("rwxabt+U") or len(letters & set("rwxa")) != 1 or letters >= set("bt"):
        raise ValueError(f"invalid mode: {mode!r}")
    path = FILES.path(file)
    binary: io.BytesIO
    if letters & set("wxa+"):
        binary = FILES.writer(path, mode)
    else:
        data = FILES.data(path)
        if data is None:
            FILES.refuse(path, errno.EISDIR if FILES.is_folder(path) else errno.ENOENT)
        binary = FileReader(path, data)
    stream: IO[Any] = binary
    if "b" not in mode:
        stream = io.TextIOWrapper(binary, encoding, errors, newline, line_buffering=False)
    if letters & set("wxa+"):
        FILES.watch(stream)
    return stream


class _Entry:
    """An entry of `os.scandir`."""

    def __init__(self, folder: str, name: str) -> None:
        self.name, self.path = name, os.path.join(folder, name)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return FILES.is_folder(FILES.path(self.path))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return not self.is_dir()

    def is_symlink(self) -> bool:
        return False

    def is_junction(self) -> bool:
        return False

    def inode(self) -> int:
        return self.stat().st_ino

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return FILES.status(FILES.path(self.path))


class _Scan:
    """The iterator that `os.scandir` returns."""

    def __init__(self, folder: str) -> None:
        self._entries = iter([_Entry(folder, name) for name in FILES.names(FILES.path(folder))])

    def __iter__(self) -> Iterator[_Entry]:
        return self._entries

    def __next__(self) -> _Entry:
        return next(self._entries)

    def __enter__(self) -> _Scan:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._entries = iter(())


def _stat(path: Any, **options: Any) -> os.stat_result:
    return os.fstat(path) if isinstance(path, int) else FILES.status(FILES.path(path))


def _access(path: Any, mode: int, **options: Any) -> bool:
    try:
        status = FILES.status(FILES.path(path))
    except OSError:
        return False
    return not mode & os.W_OK or bool(status.st_mode & 0o200)


def _listdir(path: Any = ".") -> list[str]:
    return FILES.names(FILES.path(path))


def _scandir(path: Any = ".") -> _Scan:
    return _Scan(os.fsdecode(path))


def _mkdir(path: Any, mode: int = 0o777, **options: Any) -> None:
    FILES.make_folder(FILES.path(path))


def _remove(path: Any, **options: Any) -> None:
    FILES.remove(FILES.path(path))


def _replace(source: Any, target: Any, **options: Any) -> None:
    path, data = FILES.path(target), FILES.data(FILES.path(source))
    if data is not None and not FILES.is_writable(path):
        FILES.refuse(path, errno.EACCES)
    with FILES.writer(path, "wb") if data is not None else io.BytesIO() as copy:
        copy.write(FILES.remove(FILES.path(source)))


def _rmdir(path: Any, **options: Any) -> None:
    FILES.remove_folder(FILES.path(path))


def _chdir(path: Any) -> None:
    found = FILES.path(path)
    FILES.names(found)
    FILES.folder = found


def _change(path: Any, *args: Any, **options: Any) -> None:
    FILES.status(FILES.path(path))  # it has one owner and one time, which nothing changes


def _or_else(emulated: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does for the kernel's files what cannot be done for the program's, where it has some."""

    def either(*args: Any, **options: Any) -> Any:
        try:
            return emulated(*args, **options)
        except OSError:
            if not FILES.are_all:
                with suppress(OSError):
                    return real(*args, **options)
            raise

    return either


_OWN: Final[Mapping[str, Callable[..., Any]]] = {
    **{"stat": _stat, "lstat": _stat, "access": _access, "listdir": _listdir, "scandir": _scandir, "mkdir": _mkdir},
    **{"remove": _remove, "unlink": _remove, "rename": _replace, "replace": _replace},
    **{"chmod": _change, "utime": _change},
    **{"rmdir": _rmdir, "chdir": _chdir, "getcwd": lambda: FILES.folder, "getcwdb": lambda: FILES.folder.encode()},
}
_REAL: Final = {name: getattr(os, name) for name in _OWN}
_FUNCTIONS: Final = {name: _or_else(emulated, _REAL[name]) for name, emulated in _OWN.items()}
_OPEN: Final = _or_else(_opened, _open)


def install() -> None:
    """Replace Python's functions for files by those of the program's files."""
    builtins.open = io.open = _OPEN
    for name, function in _FUNCTIONS.items():
        setattr(os, name, function)
    setattr(shutil, "_use_fd_functions", False)  # noqa: B010 -- it has no type; there are no descriptors of folders
    install_named()


def install_in_packages() -> None:
    """Replace them where a package has taken one for itself; those of Python's modules are left to `install`."""
    found = {id(_open): _OPEN} | {id(real): _FUNCTIONS[name] for name, real in _REAL.items()}
    own_tables = [id(vars(sys.modules[name])) for name in ("_io", "builtins", "io", "os", os.name, __name__)]
    for owner in gc.get_referrers(_open, *_REAL.values()):
        table = cast("dict[Any, Any]", owner)
        if type(owner) is dict and id(table) not in own_tables and table is not _REAL:
            table.update({name: found[id(value)] for name, value in table.items() if id(value) in found})
    for kind in list(
        vars(glob).values()
    ):  # in newer versions of Python, `pathlib` looks for files through a class there
        for name, value in list(vars(kind).items()) if isinstance(kind, type) else ():
            if isinstance(value, staticmethod) and id(cast("Any", value).__func__) in found:
                setattr(kind, name, staticmethod(found[id(cast("Any", value).__func__)]))
    install_named_in_packages()

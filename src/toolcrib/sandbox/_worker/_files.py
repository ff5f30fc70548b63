"""Files of a program, all in memory: those that the host gave it, what it writes to `artifacts/`, and data of packages.

`open` and the functions of `os` for names of files work on them in place of the kernel's, which has none for a program.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import stat
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, Final, NoReturn

__all__ = ["FILES", "PACKAGE_DATA", "Files", "install"]

_FOLDER: Final = "/program"
_ARTIFACTS: Final = f"{_FOLDER}/artifacts"
_LISTED: Final = 20  # names in a message
_NAME: Final = 200  # characters of the name of an artifact
_TIME: Final = 0  # of each file

PACKAGE_DATA: dict[str, bytes] = {}
"""The data of the packages that are loaded, such as fonts, by path."""

_open = io.open


class Files:
    """The files of one program.

    Attributes:
        are_all: Whether there are no others, since the kernel has none for this process.
    """

    def __init__(self) -> None:
        self.are_all = False
        self._given: Mapping[str, bytes] = {}
        self._written: dict[str, bytes] = {}
        self._folders: set[str] = set()
        self._writers: weakref.WeakSet[IO[Any]] = weakref.WeakSet()
        self._most, self._room = 0, 0

    def start(self, given: Mapping[str, bytes], most: int, size: int) -> None:
        """Begin another program, with the files it is given by name.

        Args:
            given: Files that can be read, by names without a folder above.
            most: Files that may be written.
            size: Bytes that these may take together.
        """
        self._given = {f"{_FOLDER}/{name}": data for name, data in given.items()}
        self._written, self._most, self._room = {}, most, size
        self._folders = {_FOLDER, _ARTIFACTS}
        for path in self._given:
            self._add_folders(path)
        self._writers = weakref.WeakSet()

    def take(self) -> dict[str, bytes]:
        """Return what was written to `artifacts/`, by name; a file that is open is saved as it is."""
        for writer in list(self._writers):
            if not writer.closed:
                writer.flush()
        return {path.removeprefix(f"{_ARTIFACTS}/"): data for path, data in self._written.items()}

    def _add_folders(self, path: str) -> None:
        while (path := os.path.dirname(path)) not in self._folders:
            self._folders.add(path)

    # --- reading

    def data(self, path: str) -> bytes | None:
        """Return the bytes of a file; None where there is none."""
        for files in (self._written, self._given, PACKAGE_DATA):
            if (found := files.get(path)) is not None:
                return found
        return None

    def is_folder(self, path: str) -> bool:
        """Return whether it is a folder."""
        return path in self._folders or path == "/" or any(name.startswith(f"{path}/") for name in PACKAGE_DATA)

    def names(self, path: str) -> list[str]:
        """Return the names in a folder.

        Raises:
            OSError: It is none.
        """
        if not self.is_folder(path):
            self.refuse(path, errno.ENOENT if self.data(path) is None else errno.ENOTDIR)
        start = "/" if path == "/" else f"{path}/"
        inside = (name for files in (self._given, self._written, self._folders, PACKAGE_DATA) for name in files)
        return sorted({name[len(start) :].partition("/")[0] for name in inside if name.startswith(start)} - {""})

    def status(self, path: str) -> os.stat_result:
        """Return the status of a file or folder.

        Raises:
            FileNotFoundError: There is none of that name.
        """
        data = self.data(path)
        if data is None and not self.is_folder(path):
            self.refuse(path, errno.ENOENT)
        mode = stat.S_IFDIR | 0o555 if data is None else stat.S_IFREG | 0o444
        mode |= 0o200 if self.is_artifact(path) or path == _ARTIFACTS else 0
        number = hash(path) & 0x7FFF_FFFF
        return os.stat_result((mode, number, 1, 1, 0, 0, len(data or b""), _TIME, _TIME, _TIME))

    def refuse(self, path: str, number: int) -> NoReturn:
        """Raise the error of that number, which says what there is."""
        why = os.strerror(number)
        if number == errno.ENOENT:
            there = [_shown(name) for name in [*self._given, *self._written]]
            listed = f"there are: {', '.join(there[:_LISTED])}" if there else "the program was given no files"
            why = f"{why}; {listed}. For anything else call a tool"
        elif number == errno.EACCES:
            artifact = f"artifacts/{os.path.basename(path) or 'name'}"
            why = f"a program writes files into artifacts/ alone: write {artifact!r}"
        raise OSError(number, why, _shown(path))

    # --- writing

    def is_artifact(self, path: str) -> bool:
        """Return whether a file of this name may be written."""
        return path.startswith(f"{_ARTIFACTS}/")

    def writer(self, path: str, mode: str) -> _Writer:
        """Return a file to write.

        Raises:
            OSError: It cannot be written, or there are too many.
        """
        if not self.is_artifact(path):
            self.refuse(path, errno.EACCES)
        if self.is_folder(path):
            self.refuse(path, errno.EISDIR)
        there = self._written.get(path)
        if there is None:
            if "r" in mode:
                self.refuse(path, errno.ENOENT)
            if len(self._written) >= self._most:
                why = f"a program may write {self._most} artifacts, and this is one more (SandboxLimits.artifacts)"
                raise OSError(errno.ENOSPC, why, _shown(path))
            if len(path) - len(_ARTIFACTS) > _NAME:
                self.refuse(path, errno.ENAMETOOLONG)
            self._add_folders(path)
        elif "x" in mode:
            self.refuse(path, errno.EEXIST)
        kept = there or b""
        if "w" in mode or there is None:
            kept = b""
            self.save(path, kept)
        return _Writer(self, path, mode, kept)

    def save(self, path: str, data: bytes) -> None:
        """Keep the bytes of an artifact."""
        self._written[path] = data

    def check_room(self, path: str, size: int) -> None:
        """Raise OSError where an artifact of that size leaves no room for itself."""
        others = sum(len(data) for name, data in self._written.items() if name != path)
        if others + size > self._room:
            why = f"artifacts may take {self._room} bytes together, and this is more (SandboxLimits.bytes_out)"
            raise OSError(errno.ENOSPC, why, _shown(path))

    def watch(self, writer: IO[Any]) -> None:
        """Save a file at the end also where the program leaves it open."""
        self._writers.add(writer)

    def free_name(self, form: str) -> str:
        """Return the first name of an artifact that is free, of a form such as `figure-{}.png`."""
        number = 1
        while (path := f"{_ARTIFACTS}/{form.format(number)}") in self._written:
            number += 1
        return path

    def make_folder(self, path: str) -> None:
        """Make a folder for artifacts."""
        if self.data(path) is not None or self.is_folder(path):
            self.refuse(path, errno.EEXIST)
        if not self.is_artifact(path):
            self.refuse(path, errno.EACCES)
        if len(self._folders) > self._most + len(self._given) + _LISTED:
            self.refuse(path, errno.ENOSPC)
        self._add_folders(f"{path}/")

    def remove(self, path: str) -> bytes:
        """Remove an artifact, and return its bytes."""
        if self.data(path) is None:
            self.refuse(path, errno.EISDIR if self.is_folder(path) else errno.ENOENT)
        if path not in self._written:
            self.refuse(path, errno.EACCES)
        return self._written.pop(path)


def _shown(path: str) -> str:
    """Return a path as a program writes it."""
    return path.removeprefix(f"{_FOLDER}/")


FILES = Files()
"""The files that the functions of this process see."""


class _Reader(io.BytesIO):
    """A file that is read."""

    def __init__(self, path: str, data: bytes) -> None:
        super().__init__(data)
        self.name = path

    @property
    def mode(self) -> str:
        return "rb"

    def writable(self) -> bool:
        return False

    def write(self, data: Any, /) -> int:
        raise io.UnsupportedOperation("not writable")


class _Writer(io.BytesIO):
    """A file that is written, and saved when it is flushed or closed."""

    def __init__(self, files: Files, path: str, mode: str, data: bytes) -> None:
        super().__init__(data)
        self._files, self._is_appended, self._can_read = files, "a" in mode, "+" in mode
        self.name, self._mode = path, mode
        if self._is_appended:
            self.seek(0, os.SEEK_END)

    @property
    def mode(self) -> str:
        return self._mode

    def readable(self) -> bool:
        return self._can_read

    def read(self, size: int | None = -1, /) -> bytes:
        if not self._can_read:
            raise io.UnsupportedOperation("not readable")
        return super().read(size)

    def write(self, data: Any, /) -> int:
        if self._is_appended:
            self.seek(0, os.SEEK_END)
        self._files.check_room(self.name, max(self.tell() + memoryview(data).nbytes, self.getbuffer().nbytes))
        return super().write(data)

    def flush(self) -> None:
        if not self.closed:
            self._files.save(self.name, self.getvalue())

    def close(self) -> None:
        self.flush()
        super().close()


# --- in place of Python's functions


def _path(name: Any) -> str:
    """Return the whole path of a name, without `..`."""
    text = os.fsdecode(name)
    if "\0" in text:
        raise ValueError("embedded null byte")
    if not text:
        FILES.refuse(text, errno.ENOENT)
    path = os.path.normpath(os.path.join(_FOLDER, text))
    return path[1:] if path.startswith("//") else path


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
    path = _path(file)
    binary: io.BytesIO
    if letters & set("wxa+"):
        binary = FILES.writer(path, mode)
    else:
        data = FILES.data(path)
        if data is None:
            FILES.refuse(path, errno.EISDIR if FILES.is_folder(path) else errno.ENOENT)
        binary = _Reader(path, data)
    made: IO[Any] = binary
    if "b" not in mode:
        made = io.TextIOWrapper(binary, encoding, errors, newline, line_buffering=False)
    if letters & set("wxa+"):
        FILES.watch(made)
    return made


class _Entry:
    """An entry of `os.scandir`."""

    def __init__(self, folder: str, name: str) -> None:
        self.name, self.path = name, os.path.join(folder, name)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return FILES.is_folder(_path(self.path))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return not self.is_dir()

    def is_symlink(self) -> bool:
        return False

    def inode(self) -> int:
        return self.stat().st_ino

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return FILES.status(_path(self.path))


class _Scan:
    """What `os.scandir` returns."""

    def __init__(self, folder: str) -> None:
        self._entries = iter([_Entry(folder, name) for name in FILES.names(_path(folder))])

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
    return os.fstat(path) if isinstance(path, int) else FILES.status(_path(path))


def _access(path: Any, mode: int, **options: Any) -> bool:
    try:
        status = FILES.status(_path(path))
    except OSError:
        return False
    return not mode & os.W_OK or bool(status.st_mode & 0o200)


def _listdir(path: Any = ".") -> list[str]:
    return FILES.names(_path(path))


def _scandir(path: Any = ".") -> _Scan:
    return _Scan(os.fsdecode(path))


def _mkdir(path: Any, mode: int = 0o777, **options: Any) -> None:
    FILES.make_folder(_path(path))


def _remove(path: Any, **options: Any) -> None:
    FILES.remove(_path(path))


def _replace(source: Any, target: Any, **options: Any) -> None:
    path, data = _path(target), FILES.data(_path(source))
    if data is not None and not FILES.is_artifact(path):
        FILES.refuse(path, errno.EACCES)
    with FILES.writer(path, "wb") if data is not None else io.BytesIO() as made:
        made.write(FILES.remove(_path(source)))


_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{"stat": _stat, "lstat": _stat, "access": _access, "listdir": _listdir, "scandir": _scandir, "mkdir": _mkdir},
    **{"remove": _remove, "unlink": _remove, "rename": _replace, "replace": _replace},
    **{"getcwd": lambda: _FOLDER, "getcwdb": lambda: _FOLDER.encode()},
}


def install() -> None:
    """Replace Python's functions for files by those of the program's files; the kernel's are seen where it has some."""
    builtins.open = io.open = _opened if FILES.are_all else _or_else(_opened, _open)
    for name, function in _FUNCTIONS.items():
        setattr(os, name, function if FILES.are_all else _or_else(function, getattr(os, name)))


def _or_else(own: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does for the kernel's files what cannot be done for the program's."""

    def either(*args: Any, **options: Any) -> Any:
        try:
            return own(*args, **options)
        except OSError:
            return real(*args, **options)

    return either

"""Files of a program, all in memory: those that the host gave it, what it writes, and data of packages.

The kernel has none for a program; Python's functions for files see these, by `_file_functions`. A file system of the
kernel in their place (a tmpfs that Landlock allows) held every hostile program, too. It needs some 25 more system
calls, `openat` among them, and user namespaces, which many containers forbid. Programs side by side would share it, and
times and the order of files differ from run to run, so that a paused program could not be run again to its place.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn, Protocol

TEMPORARY: Final = "/tmp"
"""The folder of files that are gone with the program."""

_FOLDER: Final = "/program"
_ARTIFACTS: Final = f"{_FOLDER}/artifacts"
_LISTED: Final = 20  # names in a message
_NAME: Final = 200  # characters of the name of an artifact
_TIME: Final = 946_684_800  # of each file: the year 2000, which a ZIP file can hold too

PACKAGE_DATA: dict[str, bytes] = {}
"""The data of the packages that are loaded, such as fonts, by path."""


class Saved(Protocol):
    """An object that is saved as it is when the program ends: a file, a database."""

    @property
    def closed(self) -> bool: ...

    def flush(self) -> None: ...


class Files:
    """The files of one program.

    Attributes:
        folder: The one that names begin in, which a program may change.
        are_all: Whether there are no others, since the kernel has none for this process.
        cut: Which artifact is not whole; the error is lost where it was written as Python closed a file by itself.
    """

    def __init__(self) -> None:
        self.folder, self.are_all, self.cut = _FOLDER, False, ""
        self._inputs: dict[str, bytes] = {}
        self._earlier: dict[str, bytes] = {}  # artifacts of a session's programs
        self._written: dict[str, bytes] = {}
        self._temporary: dict[str, bytes] = {}
        self._folders: set[str] = set()
        self._writers: weakref.WeakSet[Saved] = weakref.WeakSet()
        self._most, self._room = 0, 0

    def start(self, inputs: Mapping[str, bytes], most: int, size: int) -> None:
        """Begin another program, which can also read what an earlier one of its session wrote.

        Args:
            inputs: Files that can be read, by names without a folder above.
            most: Files that may be written.
            size: Bytes that these may take together.
        """
        self._earlier |= self._written
        self._inputs = self._earlier | {f"{_FOLDER}/{name}": data for name, data in inputs.items()}
        self._written, self._most, self._room, self.cut = {}, most, size, ""
        self._folders = {_FOLDER, _ARTIFACTS, TEMPORARY}
        for path in (*self._inputs, *self._temporary):
            self._add_folders(path)
        self._writers = weakref.WeakSet()

    def take(self) -> dict[str, bytes]:
        """Return the files of `artifacts/`, by name; a file that is open is saved as it is."""
        self.flush()
        return {path.removeprefix(f"{_ARTIFACTS}/"): data for path, data in self._written.items()}

    def flush(self) -> None:
        """Save the files that are open as they are."""
        for writer in list(self._writers):
            if not writer.closed:
                writer.flush()

    @property
    def size(self) -> int:
        """Bytes of all artifacts together."""
        return sum(map(len, self._written.values()))

    def _add_folders(self, path: str) -> None:
        while (path := os.path.dirname(path)) not in self._folders:
            self._folders.add(path)

    # --- reading

    def path(self, name: Any) -> str:
        """Return the whole path of a name, without `..`."""
        text = os.fsdecode(name)
        if "\0" in text:
            raise ValueError("embedded null byte")
        if not text:
            self.refuse(text, errno.ENOENT)
        path = os.path.normpath(os.path.join(self.folder, text))
        return path[1:] if path.startswith("//") else path

    def data(self, path: str) -> bytes | None:
        """Return the bytes of a file; None where no file has this path."""
        for files in (self._written, self._temporary, self._inputs, PACKAGE_DATA):
            if (found := files.get(path)) is not None:
                return found
        return None

    def is_folder(self, path: str) -> bool:
        """Return whether it is a folder."""
        return path in self._folders or path == "/" or any(name.startswith(f"{path}/") for name in PACKAGE_DATA)

    def names(self, path: str) -> list[str]:
        """Return the names in a folder.

        Raises:
            OSError: It is not a folder.
        """
        if not self.is_folder(path):
            self.refuse(path, errno.ENOENT if self.data(path) is None else errno.ENOTDIR)
        start = "/" if path == "/" else f"{path}/"
        all_files = (self._inputs, self._written, self._temporary, self._folders, PACKAGE_DATA)
        inside = (name for files in all_files for name in files)
        return sorted({name[len(start) :].partition("/")[0] for name in inside if name.startswith(start)} - {""})

    def status(self, path: str) -> os.stat_result:
        """Return the status of a file or folder.

        Raises:
            FileNotFoundError: No file has that name.
        """
        data = self.data(path)
        if data is None and not self.is_folder(path):
            self.refuse(path, errno.ENOENT)
        mode = stat.S_IFDIR | 0o555 if data is None else stat.S_IFREG | 0o444
        mode |= 0o200 if self.is_writable(path) or path in (_ARTIFACTS, TEMPORARY) else 0
        number = hash(path) & 0x7FFF_FFFF
        return os.stat_result((mode, number, 1, 1, 0, 0, len(data or b""), _TIME, _TIME, _TIME))

    def refuse(self, path: str, number: int) -> NoReturn:
        """Raise the error of that number, which says what there is."""
        why = os.strerror(number)
        if number == errno.ENOENT:
            there = [_shown(name) for name in [*self._inputs, *self._written]]
            listed = f"there are: {', '.join(there[:_LISTED])}" if there else "the program was given no files"
            why = f"{why}; {listed}. For anything else call a tool"
        elif number == errno.EACCES:
            artifact = f"artifacts/{os.path.basename(path) or 'name'}"
            why = f"a program writes files into artifacts/ alone: write {artifact!r}"
        raise OSError(number, why, _shown(path))

    # --- writing

    def is_writable(self, path: str) -> bool:
        """Return whether a file of this name may be written."""
        return path.startswith((f"{_ARTIFACTS}/", f"{TEMPORARY}/"))

    def _place(self, path: str) -> dict[str, bytes]:
        return self._temporary if path.startswith(f"{TEMPORARY}/") else self._written

    def writer(self, path: str, mode: str) -> _Writer:
        """Return a file to write.

        Raises:
            OSError: It cannot be written, or there are too many.
        """
        if not self.is_writable(path):
            self.refuse(path, errno.EACCES)
        if self.is_folder(path):
            self.refuse(path, errno.EISDIR)
        place = self._place(path)
        there = place.get(path, self._inputs.get(path))
        if there is None and "r" in mode:
            self.refuse(path, errno.ENOENT)
        if path not in place:
            if place is self._written:
                self._check_name(path)
            self._add_folders(path)
        if there is not None and "x" in mode:
            self.refuse(path, errno.EEXIST)
        content = b"" if "w" in mode else there or b""
        self.save(path, content)
        return _Writer(self, path, mode, content)

    def _check_name(self, path: str) -> None:
        """Raise OSError where there can be no further artifact of that name."""
        if len(self._written) >= self._most:
            written = f"{self._most} artifact{'' if self._most == 1 else 's'}"
            why = f"a program may write {written}, and this is one more (SandboxLimits.artifacts)"
            raise OSError(errno.ENOSPC, why, _shown(path))
        if len(path) - len(_ARTIFACTS) > _NAME:
            self.refuse(path, errno.ENAMETOOLONG)
        if not path.isprintable() or "\\" in path:
            why = "the name of an artifact is text that can be shown, without line breaks, tabs and backslashes"
            raise OSError(errno.EINVAL, why, _shown(path))

    def save(self, path: str, data: bytes) -> None:
        """Keep the bytes of a file that may be written; raises OSError where there is no room for them."""
        self.check_room(path, len(data))
        self._place(path)[path] = data

    def check_room(self, path: str, size: int) -> None:
        """Raise OSError where an artifact of that size leaves no room for itself."""
        if self._place(path) is self._temporary:  # which is bounded by the memory of the program
            return
        others = sum(len(data) for name, data in self._written.items() if name != path)
        if others + size > self._room:
            why = f"artifacts may take {self._room} bytes together, and this is more (SandboxLimits.bytes_out)"
            self.cut = f"{_shown(path)} is not whole: {why}"
            raise OSError(errno.ENOSPC, why, _shown(path))

    def watch(self, writer: Saved) -> None:
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
        if not self.is_writable(path):
            self.refuse(path, errno.EACCES)
        if len(self._folders) > self._most + len(self._inputs) + _LISTED:
            self.refuse(path, errno.ENOSPC)
        self._add_folders(f"{path}/")

    def remove(self, path: str) -> bytes:
        """Remove a file that may be written, and return its bytes."""
        if self.data(path) is None:
            self.refuse(path, errno.EISDIR if self.is_folder(path) else errno.ENOENT)
        if path not in self._place(path):
            self.refuse(path, errno.EACCES)
        return self._place(path).pop(path)

    def remove_folder(self, path: str) -> None:
        """Remove a folder without files."""
        if self.names(path):
            self.refuse(path, errno.ENOTEMPTY)
        if not self.is_writable(path):
            self.refuse(path, errno.EACCES)
        self._folders.discard(path)


def _shown(path: str) -> str:
    """Return a path as a program writes it."""
    return path.removeprefix(f"{_FOLDER}/")


FILES = Files()
"""The files that the functions of this process see."""


class _InMemory(io.BytesIO):
    def fileno(self) -> NoReturn:
        raise io.UnsupportedOperation("a file of a program lies in memory, without a descriptor: read its bytes")


class FileReader(_InMemory):
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


class _Writer(_InMemory):
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

    def writelines(self, lines: Iterable[Any], /) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if not self.closed:
            self._files.save(self.name, self.getvalue())

    def close(self) -> None:
        try:
            self.flush()
        finally:
            super().close()

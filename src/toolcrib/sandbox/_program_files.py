"""Files of programs at the host: those that a program is given, and the artifacts that it leaves."""

from __future__ import annotations

import mimetypes
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final, TypeAlias, cast

from toolcrib._numbers import count_text
from toolcrib._short_repr import kind_of
from toolcrib.calls import Media

ProgramFiles: TypeAlias = Mapping[str, bytes | os.PathLike[str]]
"""Files for a program: by the name that it opens, the bytes, or the path of a file of the host's."""

_NAME: Final = 200  # characters
_FILES: Final = 1_000
_TYPES: Final = mimetypes.MimeTypes()  # the same on every machine
_ANY: Final = "application/octet-stream"
_MORE: Final = {  # which some versions of Python do not know
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".webp": "image/webp",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


def read_files(files: ProgramFiles, most: int) -> dict[str, bytes]:
    """Return the bytes of the files that a program is given.

    Args:
        files: The files by name.
        most: Bytes that they may have together.

    Raises:
        OSError: One of them cannot be read.
        TypeError: They are not a dict, or a value is neither bytes nor a path.
        ValueError: A name is invalid, a path does not lead to a file, or they are too many or too large.
    """
    require_files(files)
    found: dict[str, bytes] = {}
    room = most
    for name, file in files.items():
        size = _size(name, file)
        if size <= room:  # as far as the system knows: a file may grow, and those of /proc have no size
            found[name] = file if isinstance(file, bytes) else _read(file, room + 1)
            size = len(found[name])
        room -= size
        if room < 0:
            raise ValueError(
                f"files: with {name!r} of {size} bytes, they have more than the {most} bytes that a program takes. "
                "Give it less, or raise SandboxLimits.bytes_in"
            )
    return found


def require_files(files: ProgramFiles, others: Iterable[str] = ()) -> None:
    """Refuse files that no program can be given, before any of them is read.

    Args:
        files: The files by name.
        others: Names of files that the program has already.

    Raises:
        TypeError: They are not a dict.
        ValueError: A name is invalid, or also that of a folder, or there are too many.
    """
    if not isinstance(cast("object", files), Mapping):
        raise TypeError(
            f"files: they are {kind_of(files)}. Give a dict, by the names that the program opens: "
            "files={'sales.csv': Path('sales.csv')}"
        )
    if len(files) > _FILES:
        raise ValueError(f"files: a program is given {_FILES} files at most, and these are {len(files)}")
    for name in files:
        why = _problem(name)
        if why is not None:
            raise ValueError(f"files: {name!r:.{_NAME}} is not a name for a file of a program: {why}")
    names = {*files, *others}
    for name in sorted(names):
        folder = next((folder for folder in map(str, PurePosixPath(name).parents) if folder in names), None)
        if folder is not None:
            raise ValueError(f"files: {folder!r} is a file, and the folder of {name!r}. Give one of them another name")


def artifacts_of(names: Sequence[Any], blobs: Sequence[memoryview], most: int) -> tuple[Media, ...]:
    """Return the files of `artifacts/` by the list of the program's worker, which is not trusted.

    Raises:
        ValueError: It is not what a worker sends.
    """
    if len(names) > min(most, len(blobs)):
        raise ValueError(
            f"{count_text(len(names), 'artifact')}, where {most} is the most, with {count_text(len(blobs), 'blob')}"
        )
    if len({*map(str, names)}) < len(names) or any(_problem(name) for name in names):
        raise ValueError("invalid name of an artifact")
    data = blobs[len(blobs) - len(names) :]
    return tuple(Media(_type(name), bytes(blob), name=name) for name, blob in zip(names, data, strict=True))


def _size(name: str, file: bytes | os.PathLike[str]) -> int:
    if isinstance(file, bytes):
        return len(file)
    if not isinstance(cast("object", file), os.PathLike):
        raise TypeError(
            f"files: {name!r} is {kind_of(file)}. Give the path of a file, as Path('sales.csv'), or its "
            "bytes, as text.encode()"
        )
    facts = Path(file).stat()
    if not stat.S_ISREG(facts.st_mode):
        kind = "a folder" if stat.S_ISDIR(facts.st_mode) else "a device, a pipe or a socket"
        raise ValueError(f"files: the path of {name!r}, {file}, leads to {kind}. Give the path of a file, or bytes")
    return facts.st_size


def _read(path: os.PathLike[str], most: int) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(most)


def _problem(name: object) -> str | None:
    """Return why a text is not a file's name in a folder; None when it is valid."""
    if not isinstance(name, str) or not name:
        return "it is not a text"
    if len(name) > _NAME:
        return f"it has more than {_NAME} characters"
    if not name.isprintable() or "\\" in name:
        return "it has a character that is not for names"
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "it leads out of the folder. Write it like 'sales.csv' or 'data/sales.csv'"
    return "that folder is for what the program writes" if parts[0] == "artifacts" else None


def _type(name: str) -> str:
    return _MORE.get(PurePath(name).suffix) or _TYPES.guess_type(name, strict=False)[0] or _ANY

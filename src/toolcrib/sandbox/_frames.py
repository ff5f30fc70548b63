"""Frames of a worker, each a length and JSON; every field is checked.

A frame may be followed by blobs: bytes as they are, such as tables and files, whose sizes its field `blobs` announces.
Nothing that comes from a worker is unpickled, evaluated or trusted: its author is the program's.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, TypeAlias, cast

from pydantic_core import from_json

from toolcrib._numbers import count_text
from toolcrib.calls import cut
from toolcrib.sandbox._protocol import ErrorKind, ProgramError
from toolcrib.sandbox._values import memory_size_of_json

HEAD = 4  # bytes with the length of a frame
_BLOBS = 1_000  # with one frame
_PRINT_BYTES = 448 * 1024  # the most that a piece of printed text can take
_MARGIN = 256 * 1024  # bytes of names and readings of the clock beside a value
_READINGS = 10_000
_INT64 = 1 << 63
_MESSAGE = 4_000  # characters of a program's error
_TRACEBACK = 20_000
_NAME = 200
_NO_ROOM = memoryview(b"")
_LAST = b'{"t":"done",'
_KINDS: dict[str, ErrorKind] = {"syntax": "syntax", "exception": "exception", "memory": "memory"}


class ProtocolError(Exception):
    """A worker sent something that is not a frame, or a frame that may not come now; the message says what."""


# --- from the worker


@dataclass(frozen=True, slots=True)
class CallFrame:
    """The program calls a tool.

    Attributes:
        waits: Whether the program does nothing until the reply.
        clock: Readings of the clock since the last frame.
        memory: Bytes, about, that the arguments take.
    """

    id: int
    name: str
    args: list[Any]
    kwargs: dict[str, Any]
    waits: bool
    line: int
    clock: Sequence[int]
    memory: int = 0


@dataclass(frozen=True, slots=True)
class NextFrame:
    """The program wants the next value of a streaming call."""

    id: int
    waits: bool
    clock: Sequence[int]


@dataclass(frozen=True, slots=True)
class DropFrame:
    """The program wants nothing more of a call."""

    id: int


@dataclass(frozen=True, slots=True)
class WaitFrame:
    """The program does nothing until a frame of the host's, or until that many seconds are over.

    Attributes:
        after: The batches of the host's that it had read, where it has threads: another may be on its way.
    """

    seconds: float | None
    line: int
    clock: Sequence[int]
    after: int | None = None


@dataclass(frozen=True, slots=True)
class PrintFrame:
    """The program printed."""

    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class DoneFrame:
    """The program ended.

    Attributes:
        names: The data that it left, where the host wants it.
        left_out: The kinds of the other values that it left, by name, where the host wants them.
        blobs: The bytes that came with the frame.
        artifacts: The names of its artifacts, which are the last of the blobs.
        tables: The facts about the tables among them as its worker states them, unchecked.
    """

    value: Any = None
    error: ProgramError | None = None
    clock: Sequence[int] = field(default=())
    names: Mapping[str, Any] = field(default_factory=dict[str, Any])
    blobs: Sequence[memoryview] = ()
    artifacts: Sequence[Any] = ()
    tables: Sequence[Any] = ()
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])


Frame: TypeAlias = CallFrame | NextFrame | DropFrame | WaitFrame | PrintFrame | DoneFrame


def frame_limit(value_size: int) -> int:
    """Return the most bytes that a frame of the worker may have."""
    return max(value_size, _PRINT_BYTES) + _MARGIN


class FrameReader:
    """Reads frames from a worker's bytes, which come in pieces of any size.

    Args:
        most: The bytes that one frame may have; a longer one is refused before there is room made for it.
        most_blobs: The bytes that the blobs of one frame may have, refused in the same way.
    """

    __slots__ = ("_buffer", "_frame", "_most", "_most_blobs", "_room")

    def __init__(self, most: int, most_blobs: int) -> None:
        self._most, self._most_blobs = most, most_blobs
        self._buffer = bytearray()
        self._frame: Frame | None = None  # whose blobs are on their way
        self._room = _NO_ROOM  # for what is missing of them

    @property
    def is_between(self) -> bool:
        """True when the last frame came whole."""
        return not self._buffer and self._frame is None

    @property
    def room(self) -> memoryview | None:
        """The place of the next bytes, for `fill`; None when they are to be fed."""
        return None if self._frame is None else self._room

    def fill(self, count: int) -> list[Frame]:
        """Return the frame that is whole with so many bytes in `room`, if it is."""
        self._room = self._room[count:]
        frame = self._frame
        if self._room or frame is None:
            return []
        self._frame = None
        return [frame]

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that are whole with the next piece.

        Raises:
            ProtocolError: One of them is not a frame.
        """
        if not self._buffer and len(data) >= HEAD and int.from_bytes(data[:HEAD], "big") == len(data) - HEAD:
            self._checked(len(data) - HEAD)
            return self._begun(data[HEAD:])  # the usual case: just one
        self._buffer += data
        found: list[Frame] = []
        at, have = 0, len(self._buffer)
        while have > at:
            if self._frame is not None:
                count = min(have - at, len(self._room))
                self._room[:count] = self._buffer[at : at + count]
                at += count
                found += self.fill(count)
                continue
            if have - at < HEAD:
                break
            end = at + HEAD + self._checked(int.from_bytes(self._buffer[at : at + HEAD], "big"))
            if end > have:
                break
            found += self._begun(bytes(self._buffer[at + HEAD : end]))
            at = end
        del self._buffer[:at]
        return found

    def _checked(self, size: int) -> int:
        if size > self._most:
            raise ProtocolError(f"a frame of {size} bytes, where {self._most} is the most")
        return size

    def _begun(self, body: bytes) -> list[Frame]:
        """Return the frame of a body, unless its blobs have yet to come: only the last frame of a program has some."""
        frame, self._room = _read(body, self._most_blobs)
        if not self._room:
            return [frame]
        self._frame = frame
        return []


def _read(body: bytes, most_blobs: int) -> tuple[Frame, memoryview]:
    """Return the frame of a body, and the room for its blobs."""
    found = _parsed(body)
    if type(found) is not dict:
        raise ProtocolError("a frame that is not an object")
    fields = cast("dict[str, Any]", found)
    read = _READERS.get(_typed(fields, "t", str))
    if read is None:
        raise ProtocolError(f"a frame of an unknown kind: {fields['t']!r:.100}")
    if read is _call:
        return _call(fields, memory_size_of_json(body)), _NO_ROOM
    if read is _done and fields.get("blobs") is not None:
        room, blobs = _room(fields, most_blobs)
        return _done(fields, blobs), room
    return read(fields), _NO_ROOM


def _parsed(body: bytes) -> Any:
    """Parse the body of a frame; only the last frame of a program may have numbers that JSON does not have."""
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        if body.startswith(_LAST):
            with suppress(ValueError):
                return from_json(body)
        raise ProtocolError(f"a frame that is not JSON ({cut(str(error), _NAME)})") from None


def _room(fields: dict[str, Any], most: int) -> tuple[memoryview, Sequence[memoryview]]:
    """Return the room for the blobs that a frame announces, which takes no memory before they come, and their parts."""
    sizes = cast("list[Any]", _typed(fields, "blobs", list))
    if len(sizes) > _BLOBS:
        raise ProtocolError(f"{count_text(len(sizes), 'blob')}, where {_BLOBS} is the most")
    if not all(type(size) is int and size >= 0 for size in sizes):
        raise ProtocolError("invalid size of a blob")
    size = sum(sizes)
    if size > most:
        raise ProtocolError(f"blobs of {size} bytes, where {most} is the most")
    room = memoryview(mmap.mmap(-1, size)) if size else _NO_ROOM
    return room, [room[end - size : end] for end, size in zip(accumulate(sizes), sizes, strict=True)]


def _typed(fields: dict[str, Any], name: str, kind: type[Any]) -> Any:
    value = fields.get(name)
    if type(value) is not kind:  # a bool is no int here
        raise ProtocolError(f"`{name}` is not of type {kind.__name__}")
    return value


def _call(fields: dict[str, Any], memory: int = 0) -> CallFrame:
    return CallFrame(
        _typed(fields, "id", int),
        _typed(fields, "name", str),
        _typed(fields, "args", list),
        _typed(fields, "kwargs", dict),
        _typed(fields, "wait", bool),
        _line(fields),
        _clock(fields),
        memory,
    )


def _next(fields: dict[str, Any]) -> NextFrame:
    return NextFrame(_typed(fields, "id", int), _typed(fields, "wait", bool), _clock(fields))


def _drop(fields: dict[str, Any]) -> DropFrame:
    return DropFrame(_typed(fields, "id", int))


def _wait(fields: dict[str, Any]) -> WaitFrame:
    seconds = fields.get("for")
    if seconds is not None and (type(seconds) not in (int, float) or not 0 <= seconds < 1e9):
        raise ProtocolError("`for` is not a number of seconds")
    after = None if fields.get("after") is None else _typed(fields, "after", int)
    return WaitFrame(None if seconds is None else float(seconds), _line(fields), _clock(fields), after)


def _out(fields: dict[str, Any]) -> PrintFrame:
    return PrintFrame(_typed(fields, "s", str), _typed(fields, "err", bool))


def _done(fields: dict[str, Any], blobs: Sequence[memoryview] = ()) -> DoneFrame:
    clock = _clock(fields)
    names: dict[str, Any] = {} if fields.get("names") is None else _typed(fields, "names", dict)
    left_out: dict[str, Any] = {} if fields.get("left_out") is None else _typed(fields, "left_out", dict)
    left_out = {cut(name, _NAME): cut(str(kind), _NAME) for name, kind in left_out.items()}
    artifacts: list[Any] = [] if fields.get("artifacts") is None else _typed(fields, "artifacts", list)
    if fields.get("error") is None:
        tables: list[Any] = [] if fields.get("tables") is None else _typed(fields, "tables", list)
        return DoneFrame(fields.get("v"), None, clock, names, blobs, artifacts, tables, left_out)
    found = cast("dict[str, Any]", _typed(fields, "error", dict))
    kind = _KINDS.get(_typed(found, "kind", str))
    if kind is None:
        raise ProtocolError("an error of an unknown kind")
    error = ProgramError(
        kind,
        cut(_typed(found, "type", str), _NAME),
        cut(_typed(found, "message", str), _MESSAGE),
        _line(found),
        cut(_typed(found, "traceback", str), _TRACEBACK),
    )
    return DoneFrame(None, error, clock, names, blobs, artifacts, left_out=left_out)


def _line(fields: dict[str, Any]) -> int:
    line = fields.get("line", 0)
    if type(line) is not int or not 0 <= line < 1 << 31:
        raise ProtocolError("`line` is not a line number")
    return line


def _clock(fields: dict[str, Any]) -> Sequence[int]:
    found = fields.get("clock")
    if found is None:
        return ()
    readings = cast("list[Any]", _typed(fields, "clock", list))
    if len(readings) > _READINGS:
        raise ProtocolError("too many readings of the clock")
    if not all(type(reading) is int and -_INT64 <= reading < _INT64 for reading in readings):
        raise ProtocolError("invalid clock reading")
    return readings


_READERS: dict[str, Callable[[dict[str, Any]], Frame]] = {
    "call": _call,
    "next": _next,
    "drop": _drop,
    "wait": _wait,
    "out": _out,
    "done": _done,
}


def do_nothing() -> None:
    """Replace a callback, so that a program that is over is not kept alive by it."""

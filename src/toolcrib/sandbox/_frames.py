"""Frames between a worker and its host, each a length and JSON; every field of a worker's frame is checked.

Nothing that comes from a worker is unpickled, evaluated or trusted: its author is the program's.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias, cast

from pydantic_core import from_json

from toolcrib.calls import cut
from toolcrib.sandbox._protocol import ErrorKind, ProgramError, Raised
from toolcrib.sandbox._values import json_bytes, memory_size_of_json

__all__ = [
    "WAKE",
    "CallFrame",
    "DoneFrame",
    "DropFrame",
    "Frame",
    "FrameReader",
    "NextFrame",
    "PrintFrame",
    "ProtocolError",
    "WaitFrame",
    "batch",
    "builtin_exception",
    "do_nothing",
    "error_frame",
    "frame_limit",
    "item_frame",
    "run_frame",
    "value_frame",
]

_HEAD = 4  # bytes with the length of a frame
_PRINT_BYTES = 448 * 1024  # the most that a piece of printed text can take
_MARGIN = 256 * 1024  # bytes of names and readings of the clock beside a value
_READINGS = 10_000
_INT64 = 1 << 63
_MESSAGE = 4_000  # characters of a program's error
_TRACEBACK = 20_000
_NAME = 200
_KINDS: dict[str, ErrorKind] = {"syntax": "syntax", "exception": "exception", "memory": "memory"}


class ProtocolError(Exception):
    """A worker sent something that is no frame, or no frame that may come now; the message says what."""


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
    """The program does nothing until a frame of the host's, or until that many seconds are over."""

    seconds: float | None
    line: int
    clock: Sequence[int]


@dataclass(frozen=True, slots=True)
class PrintFrame:
    """The program printed."""

    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class DoneFrame:
    """The program ended.

    Attributes:
        names: The plain values that it left, where the host wants them.
    """

    value: Any = None
    error: ProgramError | None = None
    clock: Sequence[int] = field(default=())
    names: Mapping[str, Any] = field(default_factory=dict[str, Any])


Frame: TypeAlias = CallFrame | NextFrame | DropFrame | WaitFrame | PrintFrame | DoneFrame


def frame_limit(value_size: int) -> int:
    """Return the most bytes that a frame of the worker may have."""
    return max(value_size, _PRINT_BYTES) + _MARGIN


class FrameReader:
    """Reads frames from a worker's bytes, which come in pieces of any size.

    Args:
        most: The bytes that one frame may have; a longer one is refused before there is room made for it.
    """

    __slots__ = ("_buffer", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._buffer = bytearray()

    @property
    def is_between(self) -> bool:
        """True when the last frame came whole."""
        return not self._buffer

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that are whole with the next piece.

        Raises:
            ProtocolError: One of them is no frame.
        """
        if not self._buffer and len(data) >= _HEAD and int.from_bytes(data[:_HEAD], "big") == len(data) - _HEAD:
            self._checked(len(data) - _HEAD)
            return [_read(data[_HEAD:])]  # the usual case: just one
        self._buffer += data
        found: list[Frame] = []
        at, have = 0, len(self._buffer)
        while have - at >= _HEAD:
            end = at + _HEAD + self._checked(int.from_bytes(self._buffer[at : at + _HEAD], "big"))
            if end > have:
                break
            found.append(_read(bytes(self._buffer[at + _HEAD : end])))
            at = end
        del self._buffer[:at]
        return found

    def _checked(self, size: int) -> int:
        if size > self._most:
            raise ProtocolError(f"a frame of {size} bytes, where {self._most} is the most")
        return size


def _read(body: bytes) -> Frame:
    try:
        found: Any = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise ProtocolError(f"a frame that is no JSON ({cut(str(error), _NAME)})") from None
    if type(found) is not dict:
        raise ProtocolError("a frame that is no object")
    fields = cast("dict[str, Any]", found)
    read = _READERS.get(_typed(fields, "t", str))
    if read is None:
        raise ProtocolError(f"a frame of an unknown kind: {fields['t']!r:.100}")
    if read is _call:
        return _call(fields, memory_size_of_json(body))
    return read(fields)


def _typed(fields: dict[str, Any], name: str, kind: type[Any]) -> Any:
    value = fields.get(name)
    if type(value) is not kind:  # a bool is no int here
        raise ProtocolError(f"`{name}` is no {kind.__name__}")
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
        raise ProtocolError("`for` is no number of seconds")
    return WaitFrame(None if seconds is None else float(seconds), _line(fields), _clock(fields))


def _out(fields: dict[str, Any]) -> PrintFrame:
    return PrintFrame(_typed(fields, "s", str), _typed(fields, "err", bool))


def _done(fields: dict[str, Any]) -> DoneFrame:
    clock = _clock(fields)
    names: dict[str, Any] = {} if fields.get("names") is None else _typed(fields, "names", dict)
    if fields.get("error") is None:
        return DoneFrame(fields.get("v"), clock=clock, names=names)
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
    return DoneFrame(error=error, clock=clock, names=names)


def _line(fields: dict[str, Any]) -> int:
    line = fields.get("line", 0)
    if type(line) is not int or not 0 <= line < 1 << 31:
        raise ProtocolError("`line` is no line")
    return line


def _clock(fields: dict[str, Any]) -> Sequence[int]:
    found = fields.get("clock")
    if found is None:
        return ()
    readings = cast("list[Any]", _typed(fields, "clock", list))
    if len(readings) > _READINGS:
        raise ProtocolError("too many readings of the clock")
    if not all(type(reading) is int and -_INT64 <= reading < _INT64 for reading in readings):
        raise ProtocolError("a reading of the clock that is none")
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
    """Take the place of a callback, so that a program that is over is not kept alive by it."""


# --- to the worker: the JSON of an object without its last brace, which `batch` adds

WAKE = b'{"t":"wake"'


def run_frame(fields: dict[str, Any]) -> bytes:
    """Return the frame that begins a program."""
    return b'{"t":"run",' + json_bytes(fields)[1:-1]


def value_frame(call: int, value: Any) -> tuple[bytes, int]:
    """Return the frame that ends a call with its result, and about how many characters the result takes."""
    body = json_bytes(value)
    return b'{"t":"ret","id":%d,"v":%b' % (call, body), _size(value, body)


def item_frame(call: int, value: Any) -> tuple[bytes, int]:
    """Return the frame of one value of a stream, and about how many characters the value takes."""
    body = json_bytes(value)
    return b'{"t":"item","id":%d,"v":%b' % (call, body), _size(value, body)


def error_frame(call: int, raised: Raised) -> bytes:
    """Return the frame that ends a call with an exception."""
    error = {"type": builtin_exception(raised.type), "message": raised.message}
    return b'{"t":"ret","id":%d,"err":%b' % (call, json_bytes(error))


def batch(frames: Sequence[bytes]) -> bytes:
    """Return frames as one piece: each has a field for whether more follow, since the worker reads no further."""
    *some, last = frames
    return b"".join([*(_framed(frame + b',"more":true}') for frame in some), _framed(last + b"}")])


def _framed(body: bytes) -> bytes:
    return len(body).to_bytes(_HEAD, "big") + body


def _size(value: Any, body: bytes) -> int:
    if isinstance(value, str):
        return len(value)
    return len(body) if isinstance(value, list | dict) else 2


@lru_cache(maxsize=256)
def builtin_exception(name: str) -> str:
    """Return the builtin exception nearest above the one called `name` that is made from one text."""
    kind: object = getattr(builtins, name, None)
    for parent in kind.__mro__ if isinstance(kind, type) and issubclass(kind, Exception) else ():
        try:
            parent("text")
        except TypeError:
            continue
        return parent.__name__
    return "RuntimeError"

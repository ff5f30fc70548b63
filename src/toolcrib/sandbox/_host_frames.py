"""Frames of the host, for a worker: the JSON of an object, and the blobs that follow it."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from typing_extensions import Buffer

from toolcrib.sandbox._frames import HEAD
from toolcrib.sandbox._protocol import Raised
from toolcrib.sandbox._values import json_bytes


class HostFrame(NamedTuple):
    """A frame for the worker.

    Attributes:
        body: The JSON of an object without its last brace, which `batch` adds.
        blobs: The bytes that follow it.
    """

    body: bytes
    blobs: Sequence[Buffer] = ()

    @property
    def size(self) -> int:
        """Bytes, about, that it takes."""
        return len(self.body) + (sum(memoryview(blob).nbytes for blob in self.blobs) if self.blobs else 0)


WAKE = HostFrame(b'{"t":"wake"')


def run_frame(fields: dict[str, Any], blobs: Sequence[Buffer] = ()) -> HostFrame:
    """Return the frame that begins a program."""
    return HostFrame(b'{"t":"run",' + json_bytes(fields)[1:-1], blobs)


def value_frame(call: int, value: Any, tables: Sequence[bytes] = ()) -> tuple[HostFrame, int]:
    """Return the frame that ends a call with its result, and about how many characters the result takes."""
    body = json_bytes(value)
    return HostFrame(b'{"t":"ret","id":%d,"v":%b' % (call, body), tables), _size(value, body)


def item_frame(call: int, value: Any) -> tuple[HostFrame, int]:
    """Return the frame of one value of a stream, and about how many characters the value takes."""
    body = json_bytes(value)
    return HostFrame(b'{"t":"item","id":%d,"v":%b' % (call, body)), _size(value, body)


def error_frame(call: int, raised: Raised) -> HostFrame:
    """Return the frame that ends a call with an exception."""
    error = {"type": builtin_exception(raised.type), "message": raised.message}
    return HostFrame(b'{"t":"ret","id":%d,"err":%b' % (call, json_bytes(error)))


def batch(frames: Sequence[HostFrame]) -> list[Buffer]:
    """Return frames as pieces to send: each has a field for whether more follow, since the worker reads no further."""
    pieces: list[Buffer] = []
    last = len(frames) - 1
    for number, (body, blobs) in enumerate(frames):
        if blobs:
            body = b'%b,"blobs":%b' % (body, json_bytes([memoryview(blob).nbytes for blob in blobs]))
        body += b',"more":true}' if number < last else b"}"
        pieces += (len(body).to_bytes(HEAD, "big") + body, *blobs)
    return pieces


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

"""Frames between a worker and its host: four bytes of length, most significant first, and a JSON object in UTF-8.

The bytes that follow a frame as they are, its blobs, have their sizes in its field `blobs`.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from time import perf_counter
from typing import Any, Protocol, TypeAlias

Frame: TypeAlias = dict[str, Any]
Blob: TypeAlias = bytes | bytearray | memoryview

_HEAD = 4  # bytes with the length of the rest
_PIECE = 1 << 16
_LARGE = 1 << 22
_QUICK = 150e-6  # seconds
_of_json = json.JSONDecoder().decode
_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encoded(frame: Frame) -> bytes:
    """Return the JSON of a frame; characters that UTF-8 does not have become question marks.

    Raises:
        ValueError: Something in it has no JSON form.
    """
    return _to_json(frame).encode("utf-8", "replace")


class Wire(Protocol):
    """The protocol of channels: reads and writes frames."""

    fd: int

    def read(self) -> Frame:
        """Wait for the next frame, in which `blobs` are the blobs themselves; None when they do not fit in memory.

        Raises:
            EOFError: There will be none.
        """
        ...

    def write(self, body: bytes, blobs: Sequence[Blob] = (), *, more: bool = False) -> None:
        """Send the JSON of a frame, and its blobs; with `more`, together with the next one, which comes soon."""
        ...


class Channel:
    """Frames over a stream socket."""

    __slots__ = ("_buffer", "_is_quick", "_socket", "_unsent", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fd)
        self._is_quick = True  # whether the host answers so soon that polling is worth it
        self._buffer, self._unsent = bytearray(), bytearray()

    def __del__(self) -> None:
        self._socket.detach()  # the descriptor is the caller's

    def write(self, body: bytes, blobs: Sequence[Blob] = (), *, more: bool = False) -> None:
        """Send the JSON of a frame, and its blobs; in one system call, when the socket takes it."""
        self._unsent += len(body).to_bytes(_HEAD, "big")
        self._unsent += body
        if more and not blobs and len(self._unsent) < _PIECE:
            return
        unsent, self._unsent = self._unsent, bytearray()
        for piece in (unsent, *blobs):
            rest = memoryview(piece).cast("B")
            while rest:
                rest = rest[os.write(self.fd, rest) :]

    def read(self) -> Frame:
        self._fill(_HEAD)
        end = _HEAD + int.from_bytes(self._buffer[:_HEAD], "big")
        self._fill(end)
        frame: Frame = _of_json(self._buffer[_HEAD:end].decode())
        del self._buffer[:end]
        if "blobs" in frame:
            frame["blobs"] = self._blobs(frame["blobs"])
        return frame

    def _blobs(self, sizes: list[int]) -> list[bytearray] | None:
        try:
            blobs = [bytearray(size) for size in sizes]
        except MemoryError:
            self._skip(sum(sizes))
            return None
        for blob in blobs:
            self._receive(memoryview(blob))
        return blobs

    def _skip(self, size: int) -> None:
        piece = memoryview(bytearray(_PIECE))
        for at in range(0, size, _PIECE):
            self._receive(piece[: size - at])

    def _receive(self, room: memoryview) -> None:
        at = min(len(room), len(self._buffer))
        room[:at] = self._buffer[:at]
        del self._buffer[:at]
        while at < len(room):
            count = self._socket.recv_into(room[at:])
            if not count:
                raise EOFError("the host is gone")
            at += count

    def _fill(self, wanted: int) -> None:
        if wanted > len(self._buffer) and self._is_quick:
            self._poll()
        while (missing := wanted - len(self._buffer)) > 0:
            began = perf_counter()
            piece = os.read(self.fd, min(max(missing, _PIECE), _LARGE))
            if not piece:
                raise EOFError("the host is gone")
            self._is_quick = perf_counter() - began < _QUICK
            self._buffer += piece

    def _poll(self) -> None:
        """Poll for an answer before sleeping: to be woken takes longer than most answers."""
        until = perf_counter() + _QUICK
        while perf_counter() < until:
            try:
                piece = self._socket.recv(_PIECE, socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue
            if not piece:
                raise EOFError("the host is gone")
            self._buffer += piece
            return

"""The wire to a worker: the host's end of its socket, on the event loop that runs the program."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable

from typing_extensions import Buffer

from toolcrib.sandbox._frames import Frame, FrameReader, ProtocolError, do_nothing

_PIECE = 1 << 16
_BLOB_PIECE = 1 << 20
_POLLS = 40
_READ_AHEAD = 1 << 20  # bytes that are read before the frames in them are taken
_BLOCK_TIME = struct.pack("ll", 0, 4_000)  # seconds and microseconds that `block` lasts at most


class Wire:
    """Frames of one worker while one program runs.

    After `watch`, the event loop reads what comes, so that a worker's death is noticed at any time.

    Args:
        channel: A stream socket, which is left open.
        most: The bytes that one frame may have.
        most_blobs: The bytes that the blobs of one frame may have.
        on_news: Called when there is a frame, an error, or the end.
        charge: Takes the seconds that it takes to read what comes.

    Attributes:
        is_over: Whether nothing more is read: the worker is dead, or broke the protocol.
        broken: How the worker broke it.
    """

    def __init__(
        self,
        channel: socket.socket,
        most: int,
        most_blobs: int,
        on_news: Callable[[], None],
        charge: Callable[[float], None],
    ) -> None:
        self._charge = charge
        self._socket, self._on_news, self._descriptor = channel, on_news, channel.fileno()
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader(most, most_blobs)
        self._frames: deque[Frame] = deque()
        self._ahead = 0
        self._reads = self._blocks = False
        self._unsent: deque[memoryview] = deque()
        self.is_over = False
        self.broken: ProtocolError | None = None

    # --- reading

    def next(self) -> Frame | None:
        """Return the next frame; None when no frame has come."""
        if self._frames:
            return self._frames.popleft()
        if self._ahead > _READ_AHEAD:
            self._read(True)
        self._ahead = 0
        return None

    def watch(self) -> None:
        """Start to read the socket on the event loop."""
        if not self._reads:
            self._read(True)

    def block(self) -> bool:
        """Block the event loop a few milliseconds for the worker; return whether something came."""
        if self._unsent:
            return False
        if not self._blocks:
            self._blocks = True
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _BLOCK_TIME)
        for _ in range(_POLLS):  # to be woken takes longer than most programs need from one call to the next
            self._pull()
            if self._frames or self.is_over:
                return True
        self._pull(0)
        return bool(self._frames) or self.is_over

    def _pull(self, flags: int = socket.MSG_DONTWAIT) -> None:
        if self.is_over:
            return
        room = self._reader.room
        try:
            if room is None:
                self._take(self._socket.recv(_PIECE, flags))
            else:
                began = time.thread_time()
                self._fill(self._socket.recv_into(room[:_BLOB_PIECE], 0, flags), began)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # the other end is gone
            self._end()
        except ProtocolError as error:
            self.broken = error
            self._end()
        self._on_news()

    def _take(self, data: bytes) -> None:
        if not data:
            self._end()
            return
        began = time.thread_time()
        self._frames.extend(self._reader.feed(data))
        self._charge(time.thread_time() - began)
        self._count(len(data))

    def _fill(self, count: int, began: float) -> None:
        if not count:
            self._end()
            return
        frames = self._reader.fill(count)
        self._charge(time.thread_time() - began)
        if frames:
            self._frames.extend(frames)
            self._count(_READ_AHEAD)

    def _count(self, size: int) -> None:
        self._ahead += size
        if self._ahead > _READ_AHEAD:
            self._read(False)

    def _end(self) -> None:
        self.is_over = True
        self._read(False)

    def _read(self, wanted: bool) -> None:
        wanted = wanted and not self.is_over
        if wanted and not self._reads:
            self._loop.add_reader(self._descriptor, self._pull)
        elif self._reads and not wanted:
            self._loop.remove_reader(self._descriptor)
        self._reads = wanted

    # --- writing

    @property
    def is_sending(self) -> bool:
        """True if the worker has not read all data that was sent."""
        return bool(self._unsent)

    def send(self, pieces: Iterable[Buffer]) -> None:
        """Send, at once as far as the socket takes it, and the rest as the loop turns; a dead worker raises nothing."""
        for piece in pieces:
            data = memoryview(piece).cast("B")
            if not self._unsent:
                sent = self._send(data)
                if sent == len(data):
                    continue
                data = data[sent:]
                self._loop.add_writer(self._descriptor, self._send_more)
            self._unsent.append(data)

    def _send(self, data: memoryview) -> int:
        try:
            return self._socket.send(data, socket.MSG_DONTWAIT)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:  # reading notices the end
            return len(data)

    def _send_more(self) -> None:
        while self._unsent:
            data = self._unsent[0]
            sent = self._send(data)
            if sent < len(data):
                self._unsent[0] = data[sent:]
                return
            self._unsent.popleft()
        self._loop.remove_writer(self._descriptor)

    # --- ending

    def detach(self) -> bool:
        """Watch the socket no longer; return whether the worker is between two frames, and still there."""
        self._read(False)
        if self._unsent:
            self._loop.remove_writer(self._descriptor)
        quiet = not self._frames and self._reader.is_between and not self._unsent
        self._frames.clear()
        self._unsent.clear()
        self._on_news = do_nothing
        return quiet and not self.is_over

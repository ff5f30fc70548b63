"""Connections that take their time: those on which no request arrives, or no answer is read, are closed.

All that serves HTTP here has it from this module, which needs uvicorn.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["punctual_protocol"]


_SLOWEST = 1024  # bytes a second


def punctual_protocol(seconds: float, read_seconds: float) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol, which waits for a request and for a reader for ever, with an end to that.

    Whoever comes without a token could otherwise take all connections by saying little, or nothing; who has one, by
    not reading what they asked for.

    Args:
        seconds: Until the head of a request is there, from the connection or from the end of the idle time before it;
            and until the rest of a request is, that was answered before it came.
        read_seconds: How often it is looked whether the client reads on, once there is more than the system takes.
    """

    class Punctual(H11Protocol):
        _late: asyncio.TimerHandle | None = None
        _slow: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._expect(seconds)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._see()

        def on_response_complete(self) -> None:
            rest = self.conn.their_state is h11.SEND_BODY
            self._expect(seconds if rest else self.timeout_keep_alive + seconds)
            super().on_response_complete()
            self._see()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._watch()

        def resume_writing(self) -> None:
            self._unwatch()
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            self._unwatch()
            super().connection_lost(exc)

        def _see(self) -> None:
            """Stop waiting where a request is being answered, which has limits of its own."""
            answering: Any = self.cycle
            if answering is not None and not answering.response_complete:
                self._forget()

        def _expect(self, within: float) -> None:
            self._forget()
            self._late = self.loop.call_later(within, self.transport.abort)

        def _forget(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

        def _watch(self) -> None:
            """Hang up later, unless what waits to be read has become less by then."""
            enough = self.transport.get_write_buffer_size() - _SLOWEST * read_seconds
            self._slow = self.loop.call_later(read_seconds, self._look, enough)

        def _look(self, enough: float) -> None:
            if self.transport.get_write_buffer_size() > enough:
                self.transport.abort()
            else:
                self._watch()

        def _unwatch(self) -> None:
            if self._slow is not None:
                self._slow.cancel()
                self._slow = None

    return Punctual

"""Connections that take their time: those on which no request arrives are closed."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["punctual_protocol"]


def punctual_protocol(seconds: float) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol, which waits for a request for ever, with an end to that.

    Whoever comes without a token could otherwise take all connections by saying little, or nothing.

    Args:
        seconds: Until the head of a request is there, from the connection or from the end of the idle time before it;
            and until the rest of a request is, that was answered before it came.
    """

    class Punctual(H11Protocol):
        _late: asyncio.TimerHandle | None = None

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

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
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

    return Punctual

"""Connections on which no request arrives in time: they are closed."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["timely_protocol"]


def timely_protocol(seconds: float) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol for connections that have to send a request within some seconds.

    By itself it waits for ever, so that a few hundred connections that say nothing would keep everybody else out.
    """

    class Timely(H11Protocol):
        _end: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait(seconds)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._look()

        def on_response_complete(self) -> None:
            self._wait(self.timeout_keep_alive + seconds)
            super().on_response_complete()  # which begins with a request that came meanwhile
            self._look()

        def connection_lost(self, exc: Exception | None) -> None:
            self._wait(None)
            super().connection_lost(exc)

        def _look(self) -> None:
            cycle: Any = self.cycle
            if cycle is not None and not cycle.response_complete:
                self._wait(None)

        def _wait(self, within: float | None) -> None:
            if self._end is not None:
                self._end.cancel()
            self._end = None if within is None else self.loop.call_later(within, self.transport.abort)

    return Timely

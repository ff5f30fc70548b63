"""The two entries of a worker: what to load before it is sealed, and the conversation after."""

from __future__ import annotations

from ._exchange import Exchange
from ._frames import Channel
from ._imports import load_all
from ._program import Interpreter

__all__ = ["serve", "warm_up"]


def warm_up() -> None:
    """Load all that programs may need; no file can be read later."""
    load_all()


def serve(fd: int) -> None:
    """Run the programs that the host sends; return when it wants no more, or is gone."""
    channel = Channel(fd)
    exchange = Exchange(channel)
    interpreter = Interpreter(exchange)
    keep = True
    while keep:
        try:
            frame = channel.read()
        except (EOFError, OSError):
            return
        keep = bool(frame["keep"])
        exchange.end(interpreter.run(frame))

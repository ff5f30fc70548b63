"""The two entries of a worker: `warm_up` before it is sealed, `serve` after."""

from __future__ import annotations

import asyncio
import threading
import warnings

from . import _file_functions, _optional_await, _seeded_random, _time_modules
from ._exchange import Exchange
from ._frames import Channel
from ._limits import limit_recursion, limit_threads
from ._loop import LoopPolicy
from ._packages import samples, settle
from ._program import Interpreter
from ._warm_up import SAMPLES, SMALL, run_samples
from .imports import load_all

_STACK = 1 << 20  # bytes of each thread's stack, which counts as memory of the program


def warm_up() -> None:
    """Load all that programs may need; no file can be read later."""
    load_all()
    _time_modules.load_zones()
    run_samples(_install, [*SAMPLES, *samples()])
    settle()


def serve(fd: int) -> None:
    """Run the programs that the host sends; return when there are no more, or the host is gone."""
    _file_functions.install()
    run_samples(_install, SMALL)  # so that the worker has its own copy of the memory it needs
    channel = Channel(fd)
    exchange = Exchange(channel)
    _install(exchange)
    exchange.printed.keep_time()
    limit_threads()
    limit_recursion()
    interpreter = Interpreter(exchange)
    keep = True
    while keep:
        try:
            frame = channel.read()
        except (EOFError, OSError):
            return
        keep = bool(frame["keep"])
        exchange.end(interpreter.run(frame))


def _install(exchange: Exchange) -> None:
    """Replace Python's clock, random numbers and asyncio by those of the program."""
    _time_modules.install()
    _time_modules.on_sleep(exchange.sleep)
    _seeded_random.install()
    _optional_await.install()
    asyncio.set_event_loop_policy(LoopPolicy(exchange))  # pyright: ignore[reportDeprecated] -- until Python 3.16
    threading.stack_size(_STACK)
    warnings.simplefilter("ignore", DeprecationWarning)

"""Makes samples: the same few lines time every contender.

A sample is the fastest of a few repetitions, as another program that runs in between can only add to one; the rounds
then give their median.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter
from typing import Any

from benchmarks._measure import Sample

MICROSECONDS = 1e6
MILLISECONDS = 1e3
_SPENT, _LEAST = 0.05, 3

_runner = asyncio.Runner()  # one loop per process: a contender's setup and its samples share it


def on_loop(work: Awaitable[Any]) -> Any:
    """Return what `work` comes to, on the loop that the samples use."""

    async def wait() -> Any:
        return await work

    return _runner.run(wait())


def check(answer: Any, expected: Any) -> None:
    """Raise unless the contender did the work; a benchmark of an error path looks fast."""
    if answer != expected:
        raise RuntimeError(f"gave {answer!r:.200} where {expected!r:.200} was expected")


def async_sample(
    metric: str, batch: Callable[[], Awaitable[Any]], count: int, expected: Any, *, once: bool = False
) -> Sample:
    """Return a sample of microseconds per piece of work, for a coroutine that does `count` and returns the last.

    Args:
        once: Do not repeat it within a sample; for batches that take seconds.
    """

    async def timed() -> float:
        started = perf_counter()
        await batch()
        return perf_counter() - started

    check(on_loop(batch()), expected)

    def sample() -> dict[str, float]:
        times = [_runner.run(timed()) for _ in _repetitions(once=once)]
        return {metric: min(times) / count * MICROSECONDS}

    return sample


def timed_apart(metric: str, begin: Callable[[], Any], go_on: Callable[[Any], Awaitable[Any]], count: int) -> Sample:
    """Return a sample of microseconds per piece of work, for work that goes on from a state made anew each time.

    Args:
        begin: Makes the state; untimed.
        go_on: Does `count` pieces of work with the state.
    """

    async def timed(state: Any) -> float:
        started = perf_counter()
        await go_on(state)
        return perf_counter() - started

    def sample() -> dict[str, float]:
        times = [_runner.run(timed(begin())) for _ in _repetitions(once=False)]
        return {metric: min(times) / count * MICROSECONDS}

    return sample


def seconds(work: Callable[[], object], *, once: bool = False) -> float:
    """Return how long a call of `work` takes."""

    def timed() -> float:
        started = perf_counter()
        work()
        return perf_counter() - started

    return min(timed() for _ in _repetitions(once=once))


def _repetitions(*, once: bool) -> Iterator[None]:
    gc.collect()
    started, done = perf_counter(), 0
    while done < 1 or (not once and (done < _LEAST or perf_counter() - started < _SPENT)):
        yield
        done += 1

"""Outages of the database of durable work: DBOS and the work itself wait for it, and nothing is given up."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TypeVar

import dbos._sys_db as dbos_database

from toolcrib.database import OUTAGE, is_outage

__all__ = ["WaitedTime", "outlast"]

T = TypeVar("T")

_FIRST, _LONGEST = 0.1, 5.0  # seconds between two tries


def _pause(seconds: float) -> None:
    time.sleep(min(seconds, _LONGEST))


def _is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Database connection")  # DBOS says so at each try, and guesses why


# DBOS would wait up to 90 seconds between two tries, in its own threads, and has no option for it
dbos_database.time = SimpleNamespace(**{**vars(time), "sleep": _pause})  # pyright: ignore[reportPrivateImportUsage]
logging.getLogger("dbos").addFilter(_is_news)


async def outlast(work: Callable[[], Awaitable[T]]) -> T:
    """Return what `work` returns, tried again for as long as the database is away; `work` may be done twice."""
    pause = _FIRST
    while True:
        try:
            return await work()
        except Exception as error:
            if not is_outage(error):
                raise
            OUTAGE.away(error)
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, _LONGEST)


class WaitedTime:
    """Counts the seconds in which a piece of work waits for its database, however many of its parts wait at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting, self._since, self._before = 0, 0.0, 0.0

    @property
    def seconds(self) -> float:
        """The seconds so far."""
        return self._before + (self._clock() - self._since if self._waiting else 0.0)

    @contextmanager
    def counted(self) -> Generator[None]:
        """Count the time of the body."""
        if not self._waiting:
            self._since = self._clock()
        self._waiting += 1
        try:
            yield
        finally:
            self._before = self.seconds if self._waiting == 1 else self._before
            self._waiting -= 1

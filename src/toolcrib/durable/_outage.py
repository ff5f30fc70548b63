"""Outages of a database, and stored forms of a newer version: work waits for the one, and is left at the other."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from toolcrib.database import OUTAGE, is_outage
from toolcrib.errors import NewerForm, register_signal

T = TypeVar("T")

_FIRST, _LONGEST = 0.1, 5.0  # seconds between two tries


class UnknownHereError(BaseException):
    """Work needs an agent, a tool, a toolkit or a version of Toolcrib that this worker does not have; it names it.

    It is not an outcome of a call: it passes through the pipeline as it is.
    """


register_signal(UnknownHereError)


async def outlast(work: Callable[[], Awaitable[T]]) -> T:
    """Run `work`, again for as long as the database is away, and return its result; `work` may be done twice."""
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


async def readable(ask: Callable[[], Awaitable[T]]) -> T:
    """Wait for what a store or the database says; a newer form in it ends no call, and the work is left.

    Raises:
        UnknownHereError: It holds a newer form.
    """
    try:
        return await outlast(ask)
    except NewerForm as error:
        raise UnknownHereError(newer_version(error)) from error


def newer_version(error: NewerForm) -> str:
    """Return the error about a stored form of a newer version."""
    return f"a newer version of toolcrib, since the stored {error.form} has version {error.version}"

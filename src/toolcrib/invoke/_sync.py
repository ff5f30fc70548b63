"""The edge between plain code and async code."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["run_sync"]

T = TypeVar("T")


def run_sync(work: Coroutine[Any, Any, T], instead: str = "await it") -> T:
    """Run `work` to its end from plain code, and return what it returns.

    Raises:
        RuntimeError: An event loop is running already; `instead` says what to write there.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise RuntimeError(f"an event loop is running here, so this cannot block it: {instead}")

"""A grant that expires before a call uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from toolcrib.errors import ApprovalError

__all__ = ["has_expired"]


async def has_expired(answer: Callable[[datetime], Awaitable[object]]) -> None:
    """Answer a request by a grant that has expired when this returns; a busy machine takes longer to answer.

    Args:
        answer: Answers it by a grant that expires at a time.
    """
    for seconds in (0.05, 0.5, 5.0, 50.0):
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        try:
            await answer(until)
        except ApprovalError:  # it has expired before it was kept
            continue
        await asyncio.sleep((until - datetime.now(UTC)).total_seconds() + 0.001)
        return

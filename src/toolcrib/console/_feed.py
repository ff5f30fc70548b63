"""Feed: what is new, told to every browser that listens, as server-sent events."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any

from toolcrib.approvals import ApprovalEntry, ReviewableApprovalStore
from toolcrib.console._views import brief_event
from toolcrib.record import EventLog

__all__ = ["Feed"]

_LOOK_SECONDS = 0.2
_BEAT_SECONDS = 15.0  # something is sent at least that often, so that a connection that died is noticed
_BATCH = 200
_FAR_BEHIND = 2_000  # events; whoever missed more begins anew
_log = logging.getLogger("toolcrib.console")


class Feed:
    """Looks at the database a few times a second, as long as somebody listens; one look serves all.

    Attributes:
        waiting: The requests that wait for an answer, by id, as of the last look.
    """

    def __init__(self, log: EventLog, approvals: ReviewableApprovalStore) -> None:
        self._events, self._approvals = log, approvals
        self.waiting: Mapping[str, ApprovalEntry] = {}
        self._last = -1
        self._trouble = ""
        self._changed = asyncio.Condition()
        self._listeners = 0
        self._looking: asyncio.Task[None] | None = None

    async def look(self) -> None:
        """Look at the database now."""
        entries = await self._approvals.list(pending=True)
        self.waiting = {entry.request.id: entry for entry in entries}
        self._last = await asyncio.to_thread(self._events.last)

    async def stream(self, position: int | None) -> AsyncGenerator[str]:
        """Yield what happens after a position, as text of server-sent events; from now on for None."""
        self._listeners += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._keep_looking(), name="toolcrib: console")
        try:
            with suppress(Exception):  # the database is away: told below
                await self.look()
            at = self._last if position is None else position
            asked: list[str] | None = None
            yield "retry: 1000\n\n"
            while True:
                if self._last - at > _FAR_BEHIND or at > self._last >= 0:  # or it is another database
                    at = max(0, self._last - _BATCH)
                    yield _message("reset", {"last": at}, at)
                if self._last > at:
                    events = await asyncio.to_thread(self._events.since, at, _BATCH)
                    at = events[-1].position if events else self._last
                    yield _message("events", {"events": [brief_event(event) for event in events], "last": at}, at)
                if (now_asked := list(self.waiting)) != asked:
                    asked = now_asked
                    yield _message("inbox", {"waiting": asked}, at)
                if self._trouble:
                    yield _message("trouble", {"error": self._trouble}, at)
                if self._last <= at and list(self.waiting) == asked and not await self._news():
                    yield ": still here\n\n"
        finally:
            self._listeners -= 1

    # --- inside

    async def _news(self) -> bool:
        """Wait until a look finds something; False when nothing was found for a while."""
        try:
            async with asyncio.timeout(_BEAT_SECONDS), self._changed:
                await self._changed.wait()
                return True
        except TimeoutError:
            return False

    async def _keep_looking(self) -> None:
        try:
            while self._listeners:
                before = self._last, list(self.waiting), self._trouble
                try:
                    await self.look()
                    self._trouble = ""
                except Exception as error:  # the database may be away for a while
                    if not self._trouble:
                        _log.warning("the console cannot read its database: %s", error)
                    self._trouble = "The database cannot be read at the moment."
                if before != (self._last, list(self.waiting), self._trouble):
                    await self._tell()
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            self._looking = None
        await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _message(kind: str, data: Mapping[str, Any], position: int) -> str:
    return f"id: {position}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"

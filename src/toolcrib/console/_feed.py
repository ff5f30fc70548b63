"""Feed of new events and requests to the browsers that listen, as server-sent events."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from typing import Any

from toolcrib.approvals import ApprovalEntry, ReviewableApprovalStore
from toolcrib.calls import now
from toolcrib.record import EventLog, brief_event

_POLL_SECONDS = 0.2
_REST = 2  # times as long as a poll took is the least pause after it: many pending requests take a while to read
_BEAT_SECONDS = 15.0  # between two messages at most, so that a dead connection is noticed
_BATCH = 200
_FAR_BEHIND = 2_000  # events; a browser that missed more starts anew
_log = logging.getLogger("toolcrib.console")


class Feed:
    """Polls the database while a browser listens; one poll serves all.

    Attributes:
        pending: The requests without an answer, by id, as of the last poll.
    """

    def __init__(self, log: EventLog, approvals: ReviewableApprovalStore) -> None:
        self._events, self._approvals = log, approvals
        self.pending: Mapping[str, ApprovalEntry] = {}
        self._last = -1
        self._trouble = ""
        self._changed = asyncio.Condition()
        self._listeners = 0
        self._polling: asyncio.Task[None] | None = None

    async def refresh(self) -> None:
        entries = await self._approvals.list(pending=True)
        self.pending = {entry.request.id: entry for entry in entries}
        self._last = await asyncio.to_thread(self._events.last)

    async def stream(self, position: int | None, is_valid: Callable[[], bool] = lambda: True) -> AsyncGenerator[str]:
        """Yield the events after a position, as text of server-sent events; from now on for None.

        Args:
            position: The last event that the browser has.
            is_valid: Whether the browser is still logged in; the stream ends when it is not.
        """
        self._listeners += 1
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll(), name="toolcrib: console")
        try:
            with suppress(Exception):  # the database is away, which is sent below
                await self.refresh()
            at = self._last if position is None else position
            pending: dict[str, int] | None = None
            yield "retry: 1000\n\n"
            while is_valid():
                if self._last - at > _FAR_BEHIND or at > self._last >= 0:  # or it is another database
                    at = max(0, self._last - _BATCH)
                    yield _message("reset", {"last": at}, at)
                if self._last > at:
                    events = await asyncio.to_thread(self._events.since, at, _BATCH)
                    at = events[-1].position if events else self._last
                    yield _message("events", {"events": [brief_event(event) for event in events], "last": at}, at)
                if (now_pending := self._approvals_so_far()) != pending:
                    pending = now_pending
                    yield _message("inbox", {"pending": list(pending)}, at)
                if self._trouble:
                    yield _message("trouble", {"error": self._trouble}, at)
                if self._last <= at and self._approvals_so_far() == pending and not await self._changes():
                    yield ": still here\n\n"
        finally:
            self._listeners -= 1

    async def look_again(self) -> None:
        """Wake every stream, so that it checks whether it is still valid."""
        async with self._changed:
            self._changed.notify_all()

    # --- inside

    def _state(self) -> tuple[object, ...]:
        return self._last, self._approvals_so_far(), self._trouble

    def _approvals_so_far(self) -> dict[str, int]:
        """Return by how many people each request is approved, and how often it is escalated, in one number."""
        at = now()
        requests = [(id, entry.request) for id, entry in self.pending.items()]
        return {
            id: len(request.approved_by) + sum(since <= at for since, _ in request.escalations)
            for id, request in requests
        }

    async def _changes(self) -> bool:
        """Wait until a poll finds a change; False when none was found for a while."""
        try:
            async with asyncio.timeout(_BEAT_SECONDS), self._changed:
                await self._changed.wait()
                return True
        except TimeoutError:
            return False

    async def _poll(self) -> None:
        state: tuple[object, ...] | None = None
        try:
            while self._listeners:
                began = time.monotonic()
                try:
                    await self.refresh()
                    self._trouble = ""
                except Exception as error:  # the database may be away for a while
                    if not self._trouble:
                        _log.warning("the console cannot read its database: %s", error)
                    self._trouble = "The database cannot be read now."
                if state != self._state():  # also what a request found between two polls
                    state = self._state()
                    await self.look_again()
                await asyncio.sleep(max(_POLL_SECONDS, _REST * (time.monotonic() - began)))
        finally:
            self._polling = None
        await self.look_again()


def _message(kind: str, data: Mapping[str, Any], position: int) -> str:
    return f"id: {position}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"

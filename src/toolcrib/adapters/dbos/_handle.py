"""Handle of a durable turn, by which any process follows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from toolcrib._numbers import require_seconds
from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._continuation import cancel_turn, continuation_id
from toolcrib.calls import Outcome, outcome_from_dict, revived
from toolcrib.durable import WAITS_FOR

VALUES = "values"  # the stream that a turn's values are written to


class TurnHandle:
    """A durable turn, by its id; any process may have one, at any time.

    Attributes:
        id: Names the turn, and the workflow that runs it.
    """

    def __init__(self, client: Client, turn_id: str, *, polling: float = 0.25) -> None:
        require_seconds("TurnHandle", "polling", polling)
        self.id, self._client, self._polling = turn_id, client, polling

    async def outcome(self, *, through: bool = False) -> Outcome:
        """Return the outcome of the turn, as soon as it has ended.

        Args:
            through: Wait for people too; without it, a turn that waits for a person is `Suspended`.

        Raises:
            DurableFailure: The turn's workflow ended with an exception, or was cancelled.
        """
        return outcome_from_dict((await self.result(through=through))["outcome"])

    async def result(self, *, through: bool = False) -> Mapping[str, Any]:
        """Return the whole record of the turn: its outcome, approval, and the turns that came of it; see `outcome`."""
        work_id = self.id
        while True:
            result = await self._client.result(work_id, polling=self._polling)
            after = result.get(WAITS_FOR) and continuation_id(work_id, result[WAITS_FOR])
            if not after or not (through or await self._client.status(after) is not None):
                return result
            while await self._client.status(after) is None:  # noqa: ASYNC110 -- some other process makes it
                await asyncio.sleep(self._polling)
            work_id = after

    async def values(self) -> AsyncGenerator[Any, None]:
        """Yield the values for the caller: those of a stream as they come, and what a turn returned at its end.

        They are JSON shapes, and `Media`. One that was asked for approval, and has no answer yet, gives none.
        """
        work_id, next_number = self.id, 0
        while work_id:
            async for item in self._client.stream(work_id, VALUES, polling=self._polling):
                if item["n"] >= next_number:  # a stream that was begun again gives what it gave before
                    next_number = item["n"] + 1
                    yield revived(item["value"])
            result = await self._client.result(work_id, polling=self._polling)
            for value in result.get("values", ()):
                yield revived(value)
            asked = result.get(WAITS_FOR)
            following = continuation_id(work_id, asked) if asked else ""
            work_id = following if following and await self._client.status(following) is not None else ""

    async def cancel(self) -> None:
        """Stop the turn, or keep it from starting or going on; the tool is stopped within a second or so."""
        await cancel_turn(self._client, self.id)

    async def status(self) -> str:
        """Return how far the turn's workflow is, in DBOS's words: `ENQUEUED`, `PENDING` (it runs), `SUCCESS` ..."""
        found = await self._client.status(self.id)
        return "UNKNOWN" if found is None else str(found.status)

    def __repr__(self) -> str:
        return f"<TurnHandle {self.id}>"

"""Handle of a turn on Restate, by which any process follows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from toolcrib._numbers import require_seconds
from toolcrib.adapters.restate._client import RestateClient
from toolcrib.calls import Outcome, outcome_from_dict, revived
from toolcrib.durable import WAITS_FOR


class RestateHandle:
    """A turn on Restate, by its id; any process may have one, at any time.

    Attributes:
        id: Names the turn.
    """

    def __init__(self, client: RestateClient, agent: str, turn_id: str, *, polling: float = 0.25) -> None:
        require_seconds("RestateHandle", "polling", polling)
        self.id, self._client, self._agent, self._polling = turn_id, client, agent, polling

    async def outcome(self, *, through: bool = False) -> Outcome:
        """Return the outcome of the turn, as soon as it has ended.

        Args:
            through: Wait for people too; without it, a turn that waits for a person is `Suspended`.

        Raises:
            DurableFailure: The turn was cancelled, or failed outside of its tool.
            EngineError: The server knows no turn of this id.
        """
        return outcome_from_dict((await self.result(through=through))["outcome"])

    async def result(self, *, through: bool = False) -> Mapping[str, Any]:
        """Return the whole record of the turn: its outcome, approval, and the turns that came of it; see `outcome`."""
        while True:
            record = await self._client.record(self._agent, self.id)
            if record is None and not through:
                record = await self._client.ask(self._agent, self.id, "suspended")
            if record is not None:
                return record
            await asyncio.sleep(self._polling)

    async def values(self) -> AsyncGenerator[Any, None]:
        """Yield the values for the caller: those of a stream as they come, and what a turn returned at its end.

        They are JSON shapes, and `Media`. One that was asked for approval, and has no answer yet, gives none.
        """
        count, record = 0, None
        while True:
            record = record or await self._client.record(self._agent, self.id)
            record = record or await self._client.ask(self._agent, self.id, "suspended")
            values = await self._client.ask(self._agent, self.id, "values", count)
            for value in values:
                yield revived(value)
            count += len(values)
            if values:
                continue
            if record is not None:
                break
            await asyncio.sleep(self._polling)
        if not record.get(WAITS_FOR):
            for value in record.get("values", ()):
                yield revived(value)

    async def cancel(self) -> None:
        """Stop the turn, or keep it from starting or going on; its tool is stopped, and its request is denied."""
        await self._client.cancel(self._agent, self.id)

    async def pause(self) -> None:
        """Keep the turn from being tried again until it is resumed; see `RestateClient.pause`."""
        await self._client.pause(self._agent, self.id)

    async def resume(self) -> None:
        """Resume the turn, or try it again at once."""
        await self._client.resume(self._agent, self.id)

    async def status(self) -> str:
        """Return how far the turn is, in Restate's words: `running`, `suspended`, `completed`; `UNKNOWN` without it."""
        found = await self._client.turns(agent=self._agent, turn_id=self.id, limit=1)
        return found[0].status if found else "UNKNOWN"

    def __repr__(self) -> str:
        return f"<RestateHandle {self.id}>"

"""TurnBackend: what runs an agent's turns in the agent's place."""

from __future__ import annotations

from typing import Any, Protocol

from toolcrib.turns._turn import Turn

__all__ = ["TurnBackend"]


class TurnBackend(Protocol):
    """Runs an agent's turns in its place: what is put on the agent goes there, and so does its pausing."""

    async def add(self, turn: Turn[Any]) -> None:
        """Take a turn that was put on the agent."""
        ...

    async def stop(self) -> None:
        """Start no further turn."""
        ...

    async def go(self) -> None:
        """Start turns again."""
        ...

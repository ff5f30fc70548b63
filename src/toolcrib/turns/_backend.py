"""TurnBackend: runs the turns of an agent that does not run them itself."""

from __future__ import annotations

from typing import Any, Protocol

from toolcrib.turns._turn import Turn

__all__ = ["TurnBackend"]


class TurnBackend(Protocol):
    """Takes what is put on an agent, and what the agent sends to others, and acts when it is paused or resumed."""

    async def add(self, turn: Turn[Any]) -> None:
        """Take a turn that was put on the agent."""
        ...

    async def send(self, agent_name: str, turn: Turn[Any]) -> None:
        """Put a turn on another agent."""
        ...

    async def stop(self) -> None:
        """Start no further turn."""
        ...

    async def go(self) -> None:
        """Start turns again."""
        ...

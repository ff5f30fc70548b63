"""Protocol of an engine of durable work: what the execution of one piece of work asks of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from toolcrib.calls import Failed

if TYPE_CHECKING:
    from toolcrib.durable._turn_execution import TurnExecution

R = TypeVar("R")

WAITS_FOR = "waits_for"
"""The key, in the record of suspended work, of the request's id."""

WAITING = "waiting"
"""The key, in such a record, of the state to continue from."""


class DurableFailure(RuntimeError):
    """Work ended with an exception, of which the type's name and the text are kept.

    Attributes:
        error_type: The name of the exception's class.
    """

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(error_type, message)
        self.error_type, self.message = error_type, message

    def __str__(self) -> str:
        return f"{self.error_type}: {self.message}"


class WorkHost(Protocol):
    """The services of an engine for one execution of a piece of work, which may be cut off at any place.

    The next execution gets the results of the steps that were recorded, and begins where they end.
    """

    async def step(self, name: str, run: Callable[[], Awaitable[R]]) -> R:
        """Run a step and record its result, JSON shapes, before it returns it; one that is recorded is not run."""
        ...

    async def end(self, name: str, run: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Run what a turn ends with, and return its record: a step, or recorded with the work where nothing follows."""
        ...

    async def hold(self) -> None:
        """Return if this execution still holds its work, and no other runs here; else it does not return."""
        ...

    async def may_begin(self) -> None:
        """Return if a tool may begin here: the last that is asked before its first line. Else it does not return."""
        ...

    async def begun_before(self, known: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
        """Return, of calls that were begun before, where that was, and how it ended, as text for a person."""
        ...

    async def failed_before(self) -> bool:
        """Return whether the call of this work failed before, and `requeue` put it back to be tried again."""
        ...

    async def stream(self, number: int, value: Any) -> None:
        """Record a value of a stream, where those who follow the work read it."""
        ...

    async def watch_cancel(self, task: asyncio.Task[Any]) -> None:
        """Wait for a task, and stop it when the work is cancelled or another execution has it; raise what it raised.

        It is stopped also where the work was cancelled and has gone on since, however short that took.
        """
        ...

    async def requeue(self, outcome: Failed) -> None:
        """Put work whose call failed back into its queue if it is tried again; it does not return then."""
        ...


class TurnContext(Protocol):
    """The memory of an agent, as one turn sees it."""

    async def enter(self, execution: TurnExecution) -> None:
        """Refresh it for a turn that begins; its changes are gathered in the execution."""
        ...

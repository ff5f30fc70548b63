"""Looks of a worker at its queues: when each was last asked for work, and which are not asked any more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from toolcrib.adapters.dbos._placement import Queue
from toolcrib.clock import SYSTEM_CLOCK, Clock

_LATE_SECONDS: Final = 15.0  # after its polling; the lease of a worker that says nothing has run out by then


class QueueLooks:
    """The times at which a worker last looked at its queues.

    Args:
        queues: The queues; each counts as looked at now.
    """

    def __init__(self, queues: Iterable[Queue], clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._polling = {queue.name: queue.polling for queue in queues}
        self._at = dict.fromkeys(self._polling, clock.monotonic())

    def follow(self, database: Any) -> None:
        """Record when DBOS looks at a queue, which it does by reading its limits before it takes work from it.

        Args:
            database: The system database of DBOS.
        """
        read = database.get_queue

        def noted(name: str) -> Any:
            found = read(name)
            self.note(name)
            return found

        database.get_queue = noted

    def note(self, name: str) -> None:
        """Record that a queue was looked at."""
        if name in self._at:
            self._at[name] = self._clock.monotonic()

    @property
    def overdue(self) -> tuple[str, ...]:
        """The names of the queues that were due to be looked at 15 seconds ago, and were not."""
        due = self._clock.monotonic() - _LATE_SECONDS
        return tuple(name for name, at in self._at.items() if at + self._polling[name] < due)

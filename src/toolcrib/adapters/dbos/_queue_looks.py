"""Looks of a worker at its queues: when each was last asked for work, and which are not asked any more."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any, Final

import sqlalchemy as sa

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

        On a server a look at an empty queue is two statements, each in no transaction.

        Args:
            database: The system database of DBOS.
        """
        reader, take, table = copy(database), database.start_queued_workflows, database.tables.workflow_status.c
        is_server = database.engine.dialect.name == "postgresql"
        if is_server:  # SQLite would leave its connections in another mode
            reader.engine = database.engine.execution_options(isolation_level="AUTOCOMMIT")

        def noted(name: str) -> Any:
            found = reader.get_queue(name)
            self.note(name)
            return found

        def take_waiting(queue: Any, *options: Any, **named: Any) -> Any:
            waits = sa.select(table.status).where(table.queue_name == queue.name, table.status == "ENQUEUED").limit(1)
            with reader.engine.connect() as connection:
                if connection.execute(waits).first() is None:
                    return [], None
            return take(queue, *options, **named)

        database.get_queue = noted
        if is_server:
            database.start_queued_workflows = take_waiting

    def note(self, name: str) -> None:
        """Record that a queue was looked at."""
        if name in self._at:
            self._at[name] = self._clock.monotonic()

    @property
    def overdue(self) -> tuple[str, ...]:
        """The names of the queues that were due to be looked at 15 seconds ago, and were not."""
        due = self._clock.monotonic() - _LATE_SECONDS
        return tuple(name for name, at in self._at.items() if at + self._polling[name] < due)

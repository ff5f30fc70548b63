"""Calls and runs whose process is gone, closed as lost: nothing else will say how they ended."""

from __future__ import annotations

import time

from toolcrib._processes import is_running
from toolcrib.database import Tables

_LOOK_SECONDS = 5.0
_RUNNING = "SELECT DISTINCT process FROM toolcrib_activities WHERE status = 'running' AND process <> ''"
_CLOSE = """UPDATE toolcrib_activities SET status = 'lost', ended_at =
    (SELECT at FROM toolcrib_events WHERE position = toolcrib_activities.last_position)
    WHERE status = 'running' AND process = ? RETURNING id"""


class LostWork:
    """Closes the calls and runs of processes that are gone, every few seconds at most.

    A process of another machine may still be at work, and durable work is taken up by another worker: neither is lost.
    """

    def __init__(self) -> None:
        self._looked_at = float("-inf")

    def close(self, tables: Tables) -> None:
        """Close what is lost in the tables of events, unless that was looked for a moment ago."""
        if time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        with tables.transaction(write=False) as execute:
            ended = [process for (process,) in execute(_RUNNING, ()).fetchall() if is_running(process) is False]
        if ended:
            with tables.transaction(write=True) as execute:
                for process in ended:
                    execute(_CLOSE, (process,)).fetchall()

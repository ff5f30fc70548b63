"""WorkerSink: what a worker keeps of its work for the console, in the words of work that outlives a worker."""

from __future__ import annotations

from dataclasses import replace

from toolcrib.adapters.dbos._sink import PostgresSink
from toolcrib.calls import ActivityEvent, CallEvent
from toolcrib.record import SqliteSink

__all__ = ["INTERRUPTED", "WorkerSink"]

INTERRUPTED = "interrupted"
"""The state of a turn or program whose worker was stopped: it goes on elsewhere, or when the worker starts again."""


class WorkerSink:
    """A sink that does not say of what a stopped worker leaves that it was cancelled: it is interrupted.

    Attributes:
        kept: Where the events go.
        leaving: Whether the worker stops, and cuts off what does not end in time.
        lost: Whether its work was handed over to others, who tell of it now.
    """

    def __init__(self, kept: SqliteSink | PostgresSink) -> None:
        self.kept = kept
        self.leaving = self.lost = False

    def emit(self, event: CallEvent) -> None:
        """Take what is told of a call."""
        cut_off = self.leaving and event.kind == "ended" and event.data["outcome"]["kind"] == "cancelled"
        if not (self.lost or cut_off):
            self.kept.emit(event)

    def emit_activity(self, event: ActivityEvent) -> None:
        """Take what is told of a run."""
        if self.lost:
            return
        if self.leaving and event.kind == "closed" and event.data["outcome"] == "cancelled":
            event = replace(event, kind="changed", data={"state": INTERRUPTED})
        self.kept.emit_activity(event)

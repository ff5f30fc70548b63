"""SelectingSink: the events of some tools' calls, for another sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

from toolcrib.calls import ActivityEvent, CallEvent
from toolcrib.record._sinks import ActivitySink, Followed, Sink, TracingSink


class SelectingSink:
    """Gives another sink the events of those calls whose tool is wanted, and of all activities.

    Args:
        sink: The other sink.
        wants: Returns whether the calls of a tool are wanted, given its name.
    """

    def __init__(self, sink: Sink, wants: Callable[[str], bool]) -> None:
        self.sink, self._wants = sink, wants

    def emit(self, event: CallEvent) -> None:
        """Write an event of a call."""
        if self._wants(event.tool):
            self.sink.emit(event)

    def emit_activity(self, event: ActivityEvent) -> None:
        """Write an event of an activity."""
        if isinstance(self.sink, ActivitySink):
            self.sink.emit_activity(event)

    def around(self, kind: Followed, activity_id: str, run_id: str) -> AbstractContextManager[object]:
        """Return the other sink's context manager for a tool's body, or a run's code."""
        return self.sink.around(kind, activity_id, run_id) if isinstance(self.sink, TracingSink) else nullcontext()

    def carry(self, kind: Followed, activity_id: str, run_id: str) -> Mapping[str, str]:
        """Return the other sink's data for the process where a call or program goes on."""
        return self.sink.carry(kind, activity_id, run_id) if isinstance(self.sink, TracingSink) else {}

"""BatchSink: events are taken at once, and written some milliseconds later by a thread that does nothing else."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any, Self, TypeAlias

from toolcrib.calls import ActivityEvent, CallEvent

__all__ = ["BatchSink", "RecordedEvent"]

RecordedEvent: TypeAlias = CallEvent | ActivityEvent

_GATHER_SECONDS = 0.02  # what comes within this is one batch
_IDLE_SECONDS = 5.0  # then the thread ends, and the next event begins another
_MOST = 100_000  # events that may wait; then the caller that emits one waits, too
_LARGEST = 2_000  # events in one batch
_log = logging.getLogger("toolcrib.calls")


class BatchSink:
    """Gathers events and has a thread write them, a batch at a time, in the order they came.

    Emitting an event costs next to nothing. It is written some 20 ms later, and at the latest by
    `flush`, `close` or the end of the process; a process that is killed loses the last batch.

    Args:
        write: Writes a batch in one transaction, in a thread of the sink's. What it raises is logged, and the batch is
            lost.
        opened: A context that is entered before the first batch, and left when nothing came for some seconds, or
            before a fork, in any thread: a connection.
    """

    def __init__(
        self,
        write: Callable[[Sequence[RecordedEvent]], None],
        opened: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self._write, self._opened = write, opened
        self._begin()
        _open_sinks.add(self)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[RecordedEvent] = []
        self._hurry = threading.Event()
        self._writing = threading.Lock()
        self._place: ExitStack | None = None
        self._thread: threading.Thread | None = None
        self._busy = self._closed = False

    def emit(self, event: CallEvent) -> None:
        """Take an event of a call."""
        self._take(event)

    def emit_activity(self, event: ActivityEvent) -> None:
        """Take an event of an activity."""
        self._take(event)

    def flush(self) -> None:
        """Wait until everything that was taken is written."""
        with self._changed:
            while self._waiting or self._busy:
                self._hurry.set()
                self._changed.wait()

    def close(self) -> None:
        """Write what is left, and end; closing twice does nothing."""
        with self._changed:
            self._closed = True
            self._hurry.set()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        _open_sinks.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- inside

    def _take(self, event: RecordedEvent) -> None:
        with self._changed:
            if self._closed:
                raise ValueError(f"this {type(self).__name__} is closed")
            while len(self._waiting) >= _MOST:
                self._hurry.set()
                self._changed.wait()
            self._waiting.append(event)
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_batches, name="toolcrib: events", daemon=True)
                self._thread.start()
            elif len(self._waiting) == 1:
                self._changed.notify_all()

    def _write_batches(self) -> None:
        while self._await_events():
            self._hurry.wait(_GATHER_SECONDS)
            self._hurry.clear()
            while batch := self._taken():
                self._write_out(batch)

    def _await_events(self) -> bool:
        """Wait for events; False, and no thread of the sink's any more, when none came or it is closed."""
        with self._changed:
            if not self._waiting and not self._closed:
                self._changed.wait(_IDLE_SECONDS)
            if self._waiting:
                return True
            with self._writing:
                self._leave()
            self._thread = None
            return False

    def _taken(self) -> list[RecordedEvent]:
        """Return the next batch; when there is none, those who wait for the last one are woken."""
        with self._changed:
            batch = self._waiting[:_LARGEST]
            del self._waiting[: len(batch)]
            self._busy = bool(batch)
            self._changed.notify_all()
            return batch

    def _write_out(self, batch: list[RecordedEvent]) -> None:
        with self._writing:
            try:
                if self._place is None:
                    place = ExitStack()
                    place.enter_context(self._opened())
                    self._place = place
                self._write(batch)
            except Exception:  # of the place that is written to: watching must not change what is watched
                _log.exception("%s lost %d events", type(self).__name__, len(batch))

    def _leave(self) -> None:
        if self._place is not None:
            place, self._place = self._place, None
            place.close()

    # --- forks, which a connection does not outlive

    def before_fork(self) -> None:
        """Let the batch that is being written end, and write no other until `after_fork`."""
        self._writing.acquire()
        self._leave()

    def after_fork(self) -> None:
        """Go on in the parent of a fork."""
        self._writing.release()

    def in_child(self) -> None:
        """Begin anew in the child of a fork: the thread, and what waited for it, are the parent's."""
        closed = self._closed
        self._begin()
        self._closed = closed


_open_sinks: weakref.WeakSet[BatchSink] = weakref.WeakSet()
_forking: list[BatchSink] = []


@atexit.register
def _close_all() -> None:
    for sink in list(_open_sinks):
        sink.close()


def _before_fork() -> None:
    _forking[:] = list(_open_sinks)
    for sink in _forking:
        sink.before_fork()


def _after_fork() -> None:
    while _forking:
        _forking.pop().after_fork()


def _in_child() -> None:
    while _forking:
        _forking.pop().in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)

"""BatchSink: events are taken at once, and written some milliseconds later by a thread that does nothing else."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from typing import Any, Self, TypeAlias

from toolcrib._numbers import count_text
from toolcrib.calls import ActivityEvent, CallEvent, now
from toolcrib.database import is_unavailable
from toolcrib.errors import explain_options

RecordedEvent: TypeAlias = CallEvent | ActivityEvent
"""An event that is kept: of a call, or of what calls are made in."""

_GATHER_SECONDS = 0.02  # what comes within this is one batch
_IDLE_SECONDS = 5.0  # then the thread ends, and the next event begins another
_MOST = 100_000  # events that may wait; then the caller that emits one waits, too
_LARGEST = 2_000  # events in one batch
_FIRST, _LONGEST = 0.1, 5.0  # seconds between two tries while the place is away
_log = logging.getLogger("toolcrib.calls")


@explain_options()
class BatchSink:
    """Gathers events and has a thread write them, a batch at a time, in the order they came.

    Emitting an event costs next to nothing. It is written some 20 ms later, and at the latest by
    `flush`, `close` or the end of the process; a process that is killed loses the last batch. While the place is away,
    locked or full, which is logged once, events wait and are written when it is back: a hundred thousand of them, and
    those after them are counted as lost. A batch whose connection broke at its very end may be there twice.

    Args:
        write: Writes a batch in one transaction, in a thread of the sink's. A ConnectionError, or an error of a file
            that cannot be used now, has it tried again; for any other it is logged that the batch is lost.
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
        self._batch: list[RecordedEvent] = []  # that is being written
        self._hurry = threading.Event()
        self._writing = threading.Lock()
        self._place: ExitStack | None = None
        self._thread: threading.Thread | None = None
        self._closed = self._away = False
        self._taken_events = self._lost = 0
        self._listeners: list[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = []

    def emit(self, event: CallEvent) -> None:
        """Write an event of a call."""
        self._take(event)

    def emit_activity(self, event: ActivityEvent) -> None:
        """Write an event of an activity."""
        self._take(event)

    def flush(self) -> None:
        """Wait until everything that was taken is written."""
        with self._changed:
            while self._waiting or self._batch:
                self._hurry.set()
                self._changed.wait()

    async def written(self) -> None:
        """Wait on an event loop until everything that was taken so far is written."""
        done = asyncio.Event()
        with self._changed:
            if not (self._waiting or self._batch):
                return
            self._listeners.append((self._taken_events, asyncio.get_running_loop(), done))
            self._hurry.set()
        await done.wait()

    @property
    def lag(self) -> float:
        """The seconds that the oldest event that is not written has waited; 0 without one."""
        with self._changed:
            oldest = next(iter(self._batch or self._waiting), None)
        return 0.0 if oldest is None else max(0.0, (now() - oldest.at).total_seconds())

    def close(self) -> None:
        """Write the remaining events, in one attempt, and stop; closing twice does nothing."""
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
            while len(self._waiting) >= _MOST and not self._away:
                self._hurry.set()
                self._changed.wait()
            if len(self._waiting) >= _MOST:
                self._lost += 1
                return
            self._waiting.append(event)
            self._taken_events += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_batches, name="toolcrib: events", daemon=True)
                self._thread.start()
            elif len(self._waiting) == 1:
                self._changed.notify_all()

    def _write_batches(self) -> None:
        while self._await_events():
            self._hurry.wait(_GATHER_SECONDS)
            self._hurry.clear()
            while batch := self._next_batch():
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

    def _next_batch(self) -> list[RecordedEvent]:
        """Return the next batch; without one, those who wait for the last one are woken."""
        with self._changed:
            self._call_listeners(self._taken_events - len(self._waiting))
            batch = self._waiting[:_LARGEST]
            del self._waiting[: len(batch)]
            self._batch = batch
            self._changed.notify_all()
            return batch

    def _call_listeners(self, done: int) -> None:
        for listener in [listener for listener in self._listeners if listener[0] <= done]:
            self._listeners.remove(listener)
            _, loop, event = listener
            with suppress(RuntimeError):  # the loop was closed
                loop.call_soon_threadsafe(event.set)

    def _write_out(self, batch: list[RecordedEvent]) -> None:
        pause = _FIRST
        while (error := self._try(batch)) is not None:
            with self._changed:
                lost = len(batch)
                if _is_away(error) and not self._closed:
                    self._go_away(error)
                    self._changed.wait_for(lambda: self._closed, pause)
                    pause = min(2 * pause, _LONGEST)
                    continue
                if _is_away(error):  # what is left would wait for it as long, each batch
                    lost += len(self._waiting) + self._lost
                    self._waiting.clear()
            _log.error("%s lost %s", type(self).__name__, count_text(lost, "event"), exc_info=error)
            return
        self._come_back()

    def _try(self, batch: list[RecordedEvent]) -> Exception | None:
        """Write a batch, and return what keeps it from being written."""
        with self._writing:
            try:
                if self._place is None:
                    place = ExitStack()
                    place.enter_context(self._opened())
                    self._place = place
                self._write(batch)
            except Exception as error:  # of the place that is written to: watching must not change what is watched
                if _is_away(error):
                    with suppress(Exception):  # its own: it is opened anew
                        self._leave()
                return error
            return None

    def _go_away(self, error: Exception) -> None:
        if not self._away:
            self._away = True
            _log.error("events cannot be written now (%s): they wait", " ".join(str(error).split()))
            self._changed.notify_all()

    def _come_back(self) -> None:
        with self._changed:
            was_away, lost, self._away, self._lost = self._away, self._lost, False, 0
        if was_away:
            _log.error("events are written again; %d came meanwhile that there was no room for", lost)

    def _leave(self) -> None:
        if self._place is not None:
            place, self._place = self._place, None
            place.close()

    # --- forks, which a connection does not outlive

    def before_fork(self) -> None:
        """Wait for the batch that is being written, and write no other until `after_fork`."""
        self._writing.acquire()
        self._leave()

    def after_fork(self) -> None:
        """Resume in the parent of a fork."""
        self._writing.release()

    def in_child(self) -> None:
        """Begin anew in the child of a fork: the thread, and what waited for it, are the parent's."""
        closed = self._closed
        self._begin()
        self._closed = closed


def _is_away(error: Exception) -> bool:
    return isinstance(error, ConnectionError) or is_unavailable(error)


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

"""Execution of a call as its approval store knows it: begun in a process, and ended or not."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any, Literal, TypeAlias

from toolcrib._processes import is_running, this_process
from toolcrib.calls import StoredFields, now, versioned

ExecutionState: TypeAlias = Literal["running", "ended", "in doubt"]
"""The state of an execution: its process is at it, it has ended, or neither is known."""

_log = logging.getLogger("toolcrib.approvals")

_BEAT_SECONDS = 10.0  # how often a process notes of the calls that it executes that they go on
_SILENT = timedelta(seconds=4.5 * _BEAT_SECONDS)


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution of a call, by the answer to an approval request.

    Attributes:
        id: Names the execution, in all processes.
        begun_at: When its tool was about to run.
        process: The identity of the process that executes it; empty where the execution was broken off.
        seen_at: When that process said last that the execution goes on.
        ended_at: When it ended, or when an approver stated its outcome; None while neither is known.
        result: The result of the call, as JSON shapes: `value`, or `error` with `type` and `message`. None where
            nothing of it could be stored.
    """

    id: str = field(default_factory=lambda: token_hex(8))
    begun_at: datetime = field(default_factory=now)
    process: str = field(default_factory=this_process)
    seen_at: datetime = field(default_factory=now)
    ended_at: datetime | None = None
    result: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def state(self) -> ExecutionState:
        """The state now: in doubt if its process has ended, or has sent nothing for 45 seconds."""
        if self.ended_at is not None:
            return "ended"
        if not self.process:
            return "in doubt"
        if self.process == this_process():
            return "running" if self.id in active_executions else "in doubt"
        runs = is_running(self.process)
        if runs is None:  # on another machine
            runs = now() - self.seen_at < _SILENT
        return "running" if runs else "in doubt"

    def to_dict(self) -> dict[str, Any]:
        """Return the execution as JSON shapes."""
        data: dict[str, Any] = {
            "id": self.id,
            "begun_at": self.begun_at.isoformat(),
            "process": self.process,
            "seen_at": self.seen_at.isoformat(),
            "ended_at": None if self.ended_at is None else self.ended_at.isoformat(),
            "result": self.result,
        }
        return versioned("Execution", data)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Execution:
        """Return the execution that `to_dict` described."""
        data = StoredFields(cls, data)
        ended_at = data["ended_at"]
        return cls(
            data["id"],
            datetime.fromisoformat(data["begun_at"]),
            data["process"],
            datetime.fromisoformat(data["seen_at"]),
            None if ended_at is None else datetime.fromisoformat(ended_at),
            data["result"],
        )


active_executions: set[str] = set()
"""The ids of the executions that this process is at."""


class Heartbeat:
    """A thread that notes, every ten seconds, that executions of this process go on. It ends with the last of them.

    Args:
        renew: Notes it of the requests with these ids.
    """

    def __init__(self, renew: Callable[[Iterable[str]], None]) -> None:
        self._renew = renew
        self._ids: set[str] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, request_id: str) -> None:
        """Begin with an execution."""
        with self._changed:
            self._ids.add(request_id)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._beat, name="toolcrib-heartbeat", daemon=True)
                self._thread.start()

    def discard(self, request_id: str) -> None:
        """End with an execution."""
        with self._changed:
            self._ids.discard(request_id)
            self._changed.notify()

    def _beat(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._ids, _BEAT_SECONDS)
                if not self._ids:
                    self._thread = None
                    return
                ids = tuple(self._ids)
            try:
                self._renew(ids)
            except Exception:  # the database is away; the next beat may reach it
                _log.warning("it could not be noted that calls go on", exc_info=True)

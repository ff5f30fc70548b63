"""Events of a program, in order, while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from toolcrib.calls import CallEvent
from toolcrib.code._paused import SuspendedProgramCall
from toolcrib.code._result import ExecutionResult
from toolcrib.code._runner import OnOutput
from toolcrib.record import Sink


@dataclass(frozen=True, slots=True)
class Printed:
    """The program printed something."""

    text: str
    stream: Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The program called a tool, which has not run yet; `arguments` are those of the program, secrets hidden."""

    id: str
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class CallValue:
    """A streaming tool yielded one value, which is cut when it is long."""

    id: str
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class CallSuspended:
    """A call is suspended: it waits for a person; `request` is the `ApprovalRequest` as a dict."""

    id: str
    name: str
    request: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call ended; `outcome` is a dict as in the call's record."""

    id: str
    name: str
    outcome: Mapping[str, Any]
    duration_ms: float


@dataclass(frozen=True, slots=True)
class ProgramFailed:
    """The program failed, or did not run; `text` is shown to the model."""

    error: str
    text: str


@dataclass(frozen=True, slots=True)
class ProgramPaused:
    """The program is paused: it ended at calls that wait for a person."""

    suspended_calls: tuple[SuspendedProgramCall, ...]


@dataclass(frozen=True, slots=True)
class ProgramDone:
    """The last event: the program's result."""

    result: ExecutionResult


ProgramEvent: TypeAlias = (
    Printed | CallStarted | CallValue | CallSuspended | CallEnded | ProgramFailed | ProgramPaused | ProgramDone
)
"""An event of a running program, as `Toolkit.stream` yields it."""
Start: TypeAlias = Callable[[OnOutput, Sink], Coroutine[Any, Any, ExecutionResult]]


async def events_of(start: Start) -> AsyncGenerator[ProgramEvent, None]:
    """Yield the events of a program, which does not wait for the reader.

    Events that are not read yet are kept; they cannot be more than the program's limits allow. Closing the generator
    stops the program and its calls.

    Args:
        start: Runs the program, given a listener for its output and a sink for its calls.
    """
    queue = _EventQueue()
    task = asyncio.create_task(start(queue.printed, queue))
    task.add_done_callback(lambda _: queue.close())
    try:
        while (event := await queue.next()) is not None:
            yield event
        result = await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # raised above, unless the reader left before
    if result.is_paused:
        yield ProgramPaused(result.suspended_calls)
    elif not result.success:
        yield ProgramFailed(result.error or "", result.text())
    yield ProgramDone(result)


class _EventQueue:
    """A sink that puts the events of calls and the printed text into one queue."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[ProgramEvent | None] = asyncio.Queue()

    async def next(self) -> ProgramEvent | None:
        return await self._queue.get()

    def close(self) -> None:
        self._queue.put_nowait(None)

    def printed(self, text: str, stream: str) -> None:
        self._queue.put_nowait(Printed(text, "stderr" if stream == "stderr" else "stdout"))

    def emit(self, event: CallEvent) -> None:
        """Queue the event of a call; see `Sink`."""
        found = _program_event(event)
        if found is not None:
            self._queue.put_nowait(found)


def _program_event(event: CallEvent) -> ProgramEvent | None:
    match event.kind:
        case "received":
            return CallStarted(event.call_id, event.tool, event.data["arguments"])
        case "yielded":
            return CallValue(event.call_id, event.tool, event.data["value"])
        case "suspended":
            return CallSuspended(event.call_id, event.tool, event.data["request"])
        case "ended" if event.data["outcome"]["kind"] != "suspended":  # it has an event already, and has not ended
            took = 0.0 if event.record is None else event.record.duration_ms
            return CallEnded(event.call_id, event.tool, event.data["outcome"], took)
        case _:
            return None

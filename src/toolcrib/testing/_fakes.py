"""Fakes for tests: a sink that remembers, a sandbox that runs no code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib._numbers import count_text
from toolcrib.calls import ActivityEvent, CallEvent, CallRecord
from toolcrib.record import ListSink
from toolcrib.sandbox import Host, Program, ProgramError, Raised, Reply, SandboxResult, SuspendedReply, Value


class RecordingSink(ListSink):
    """A sink that stores every event, for a test to look at.

    Attributes:
        runs: The events of agents, turns, programs, sessions and requests, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[ActivityEvent] = []

    def emit_activity(self, event: ActivityEvent) -> None:
        """Store one event of a run."""
        self.runs.append(event)

    def kinds(self, call_id: str | None = None) -> list[str]:
        """Return the kinds of the events, in order: of one call, or of all."""
        return [event.kind for event in self.events if call_id in (None, event.call_id)]

    def of_kind(self, kind: str) -> list[CallEvent]:
        """Return the events of one kind, in order."""
        return [event for event in self.events if event.kind == kind]

    @property
    def record(self) -> CallRecord:
        """The record of the one call that ended; raises ValueError unless it is exactly one."""
        if len(self.records) != 1:
            raise ValueError(f"{count_text(len(self.records), 'call')} ended, not one")
        return self.records[0]


class FakeSandbox:
    """A sandbox that runs no code: it makes the same calls for each program that it is given.

    A paused program is resumed as in a real one: by making all its calls again.

    Args:
        calls: The program's calls, one after the other: a tool's name and its arguments.
        value: The value of the program's last expression; what the last call gave, when None.
        output: The text that the program prints before it calls anything.

    Attributes:
        programs: The programs that it was given to run.
        replies: The replies to its calls.
    """

    def __init__(self, *calls: tuple[str, Mapping[str, Any]], value: Any = None, output: str = "") -> None:
        self._calls, self._value, self._output = calls, value, output
        self.programs: list[Program] = []
        self.replies: list[Reply] = []

    @property
    def engine(self) -> str:
        """The engine that its paused programs are bound to."""
        return "fake-1"

    @property
    def replays(self) -> bool:
        """It makes every call again."""
        return True

    async def resume(self, program: Program, state: Mapping[str, Any], host: Host) -> SandboxResult:
        """Make the calls from the first one on."""
        return await self.run(program, host)

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Make the calls; a call that raises or stops the program ends it, as it would in a real one."""
        self.programs.append(program)
        if self._output:
            host.output(self._output, "stdout")
        value, error, calls_made = self._value, None, 0
        for name, arguments in self._calls:
            reply = await host.call(name, [], dict(arguments))
            self.replies.append(reply)
            calls_made += 1
            if not isinstance(reply, Value):
                error = _ended_by(reply)
                break
            value = reply.value if self._value is None else self._value
        value = None if error is not None else value
        state: dict[str, Any] | None = {} if error is not None and error.kind == "paused" else None
        return SandboxResult(value, self._output, "", error, ("none: it runs no code",), calls_made, state)


def _ended_by(reply: Raised | SuspendedReply) -> ProgramError:
    if isinstance(reply, SuspendedReply):
        return ProgramError("paused", "Paused", reply.reason)
    return ProgramError("exception", reply.type, reply.message)

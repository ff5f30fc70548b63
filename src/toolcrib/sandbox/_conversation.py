"""One program's conversation with its host: what it asks for is begun at once, and answered when it waits.

A program is given something only when it waits, and then all there is, so that it can be run again in the same way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

from toolcrib.calls import calling_line
from toolcrib.sandbox._frames import (
    WAKE,
    Breach,
    CallAsked,
    Done,
    Dropped,
    NextAsked,
    Printed,
    Waits,
    batch,
    run_frame,
)
from toolcrib.sandbox._host_calls import Ended
from toolcrib.sandbox._limit_messages import (
    CANCELLED,
    breached,
    computed_too_long,
    died,
    diverged,
    late,
    needs_memory,
    slept_too_long,
    too_many_calls,
)
from toolcrib.sandbox._open_calls import OpenCall, OpenCalls
from toolcrib.sandbox._program_time import OutputMeter, Stopwatch
from toolcrib.sandbox._protocol import Host, Program, ProgramError, SandboxResult, SuspendedReply
from toolcrib.sandbox._replay import Diverged, ReplayLog
from toolcrib.sandbox._socket import Wire

__all__ = ["Conversation"]

_TURN = 0.05  # seconds after which the loop is let turn, even when it has nothing else to do
_STUCK = ProgramError(
    "exception", "RuntimeError", "the program waits for something that never comes: no tool runs, and no timer"
)

_Waiting: TypeAlias = Waits | CallAsked | NextAsked


class Conversation:
    """Runs one program in a worker.

    Args:
        wire: Makes the way to the worker, given what to call when something comes.
        kill: Ends the worker, whatever it does.

    Attributes:
        is_whole: The worker told how the program ended, and can run another.
    """

    def __init__(
        self,
        program: Program,
        host: Host,
        course: ReplayLog,
        wire: Callable[[Callable[[], None]], Wire],
        kill: Callable[[], None],
    ) -> None:
        self._program, self._limits, self._host, self._course = program, program.limits, host, course
        if program.save_state is not None:
            course.told_to(program.save_state)
        self._kill = kill
        self._loop = asyncio.get_running_loop()
        self._signal: asyncio.Future[None] | None = None
        self._wire = wire(self._wake)
        self._calls = OpenCalls(program, host, self._wake)
        self._held: list[OpenCall] = []  # to begin where the program had paused
        self._tools = frozenset(program.tools)
        self._heard = OutputMeter(host, program.limits, course.told)
        self._watch = Stopwatch(program.limits.program_time, self._late)
        self._deadline = asyncio.timeout(program.limits.wall_time)
        self._turned = time.monotonic()
        self._waits: _Waiting | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._is_woken = False  # the time that the program asked for is over
        self._sleep_left = program.limits.sleep_time
        self._is_answering = False
        self._ended: ProgramError | None = None
        self._state: dict[str, Any] | None = None
        self.is_whole = False

    # --- from start to end

    async def run(self, isolation: tuple[str, ...], *, keep: bool = False) -> SandboxResult:
        """Run the program, and return how it went; unless `keep`, the worker runs no other."""
        value: Any = None
        error: ProgramError | None = None
        try:
            async with self._deadline:
                value, error = await self._talk(keep)
            self.is_whole = True
        except Ended as ended:
            error = ended.error
        except Breach as breach:
            error = breached(breach)
        except Diverged as other:
            error = diverged(other)
        except TimeoutError:
            if not self._deadline.expired():
                raise
            error = self._gone() or late(self._limits)
        finally:
            await self._close()
        state = None if keep else self._state
        out, err = self._heard.out.text(), self._heard.err.text()
        return SandboxResult(value, out, err, error, isolation, self._calls.made, state)

    async def _close(self) -> None:
        self.is_whole = self._wire.leave() and self.is_whole
        if not self.is_whole:
            self._kill()
        self._watch.stop()
        self._silence()
        await self._calls.close()

    def abort(self, error: ProgramError) -> None:
        """End the program, whose worker is about to be killed; from any thread."""
        if self._ended is None:
            self._ended = error
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._interrupt)

    def _late(self) -> None:
        if self._ended is None:
            self._ended = computed_too_long(self._limits)
        self._interrupt()

    def _interrupt(self) -> None:
        with suppress(RuntimeError):  # it is done meanwhile, or has not begun
            self._deadline.reschedule(self._loop.time())

    async def _talk(self, keep: bool) -> tuple[Any, ProgramError | None]:
        self._go([self._beginning(keep)])
        while True:
            frame = self._wire.next()
            if isinstance(frame, CallAsked):
                if self._takes_inline(frame):
                    await self._answer(frame)
            elif isinstance(frame, Done):
                return self._done(frame)
            elif frame is not None:
                self._take(frame)
            elif not self._goes_on():
                await self._something()

    def _beginning(self, keep: bool) -> bytes:
        program = self._program
        return run_frame(
            {
                "code": program.code,
                "name": program.name,
                "tools": {
                    name: {"stream": name in program.streams, "signature": program.signatures.get(name, "")}
                    for name in program.tools
                },
                "seed": self._course.seed,
                "clock": self._course.recorded,
                "keep": keep,
                "value_size": self._limits.value_size,
            }
        )

    def _goes_on(self) -> bool:
        """Give the waiting program what there is; return whether it was anything."""
        if self._calls.failed is not None:
            raise self._calls.failed
        if self._ended is not None or self._wire.is_over:
            raise Ended(self._gone())
        return self._waits is not None and self._gives(self._waits)

    def _gone(self) -> ProgramError | None:
        """Return why the program cannot go on, if it is so."""
        if self._ended is not None:
            return self._ended
        if self._wire.breach is not None:
            return breached(self._wire.breach)
        if not self._wire.is_over:
            return None
        limits = self._limits
        may = f"{limits.program_time:g} s, {limits.memory // 1024 // 1024} MB"
        return died(f"it crashed, or took more time or memory than it may ({may})")

    def _done(self, done: Done) -> tuple[Any, ProgramError | None]:
        self._watch.rest()
        if not self._course.is_live:
            raise Diverged("it comes to its end")
        error = done.error
        if error is not None and error.kind == "memory":
            error = needs_memory(self._limits, error.line, error.traceback)
        return done.value, error

    # --- waiting

    def _wake(self) -> None:
        if self._signal is not None:
            if not self._signal.done():
                self._signal.set_result(None)
        elif self._is_answering and self._wire.is_over:
            self._interrupt()

    async def _something(self) -> None:
        """Return when there may be something new."""
        may_block = self._program.may_block and self._waits is None and not self._calls.running
        if may_block and time.monotonic() - self._turned < _TURN and self._wire.block():
            return
        self._wire.watch()
        self._signal = self._loop.create_future()
        try:
            await self._signal
        finally:
            self._signal = None
            self._turned = time.monotonic()

    # --- what the program asks for

    def _takes_inline(self, asked: CallAsked) -> bool:
        """Take a call; return whether it is to be answered right away, since nothing else is going on."""
        self._course.read(asked.clock)
        calls = self._calls
        if asked.id != calls.made + 1:
            raise Breach(f"call {asked.id} after call {calls.made}")
        if asked.name not in self._tools:
            raise Breach(f"`{asked.name:.100}` is called, which was not offered")
        if calls.made == self._limits.calls:
            raise Ended(too_many_calls(asked.name, self._limits, asked.line))
        calls.made += 1
        if asked.waits:
            self._rest(asked)
        held, is_stream = self._course.holds(asked.id), asked.name in self._program.streams
        if asked.waits and not (held or is_stream or calls.running):
            return True
        call = calls.add(asked)
        if held:
            self._held.append(call)
        elif not is_stream:
            calls.begin(call)
        return False

    async def _answer(self, asked: CallAsked) -> None:
        self._is_answering = True
        self._wire.watch()
        calling_line.set(asked.line)
        try:
            reply = await self._host.call(asked.name, asked.args, asked.kwargs)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise Ended(CANCELLED) from None
        finally:
            self._is_answering = False
        if isinstance(reply, SuspendedReply):
            self._calls.settle(self._calls.add(asked), reply)
        else:
            self._go([self._calls.frame(asked, reply)])

    def _take(self, frame: Waits | NextAsked | Dropped | Printed) -> None:
        match frame:
            case Waits():
                self._course.read(frame.clock)
                self._rest(frame)
            case NextAsked():
                self._course.read(frame.clock)
                call = self._calls.want(frame.id)
                if call.task is None and call not in self._held:
                    self._calls.begin(call)
                if frame.waits:
                    self._rest(frame)
            case Dropped():
                self._calls.drop(frame.id)
                self._held = [call for call in self._held if call.id != frame.id]
            case Printed():
                self._heard.hear(frame.text, "stderr" if frame.is_error else "stdout")

    def _rest(self, waits: _Waiting) -> None:
        self._watch.rest()
        self._silence()
        self._waits = waits

    # --- what it is given

    def _go(self, frames: list[bytes]) -> None:
        """Send what lets the program go on."""
        self._waits = None
        if self._alarm is not None or self._is_woken:
            self._silence()
        self._watch.go()
        self._wire.send(batch(frames))

    def _gives(self, waits: _Waiting) -> bool:
        if isinstance(waits, Waits):
            if self._course.is_live:
                return self._gives_ready(waits)
            expected = self._course.expected()
            return self._arrives() if expected is None else self._gives_again(expected)
        if self._calls.is_ready(waits.id):
            self._go([self._calls.take(waits.id)])
            return True
        if any(call.id == waits.id for call in self._held):
            return self._arrives()
        return self._is_stuck()

    def _gives_ready(self, waits: Waits) -> bool:
        ready = self._calls.ready
        if ready:
            self._course.given(ready)
            self._go([self._calls.take(number) for number in ready])
            return True
        if self._is_woken:
            self._course.given([0])
            self._go([WAKE])
            return True
        if waits.seconds is None:
            return self._is_stuck()
        if self._alarm is None:
            self._sleep(waits.seconds, waits.line)
        return False

    def _gives_again(self, expected: list[int]) -> bool:
        """Give what the program was given after this wait when it ran before."""
        if expected == [0]:
            self._course.given(expected)
            self._go([WAKE])
            return True
        for number in expected:
            if not self._calls.is_open(number):
                raise Diverged(f"it has not called {number}, whose result it had got here")
        if all(map(self._calls.is_ready, expected)):
            self._course.given(expected)
            self._go([self._calls.take(number) for number in expected])
            return True
        return self._is_stuck()

    def _arrives(self) -> bool:
        """Begin what the program had paused for."""
        self._course.arrive(self._calls.made)
        for call in self._held:
            if call.is_wanted:
                self._calls.begin(call)
        self._held = []
        return True

    def _is_stuck(self) -> bool:
        """Return False while something runs that can go on.

        Raises:
            Ended: The program pauses, or nothing can ever come.
        """
        if self._calls.running:
            return False
        if not self._course.is_live:
            raise Diverged("it waits for a call that had a result")
        pending = self._calls.pending
        if not pending:
            raise Ended(_STUCK)
        told = self._heard.told
        self._state = self._course.state([call.id for call in pending], self._calls.made, told)
        first = pending[0]
        reason = "" if first.pending is None else first.pending.reason
        raise Ended(ProgramError("paused", "Paused", reason, first.line))

    # --- sleeping

    def _sleep(self, seconds: float, line: int) -> None:
        if not self._calls.running:
            self._sleep_left -= seconds
            if self._sleep_left < 0:
                raise Ended(slept_too_long(seconds, self._limits, line))
        self._alarm = self._loop.call_later(seconds, self._ring)

    def _ring(self) -> None:
        self._alarm, self._is_woken = None, True
        self._wake()

    def _silence(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._is_woken = None, False

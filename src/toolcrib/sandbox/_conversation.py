"""The conversation of one program with its host: calls are begun at once, and answered when the program waits.

A program is given frames only when it waits, and then all there are, so that it can be run again in the same way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from toolcrib.calls import Media, calling_line, charge_time
from toolcrib.errors import MissingExtraError
from toolcrib.sandbox._endings import (
    CALL_CANCELLED,
    ProgramEnded,
    computed_too_long,
    out_of_memory,
    protocol_broken,
    replay_diverged,
    slept_too_long,
    too_many_calls,
    too_many_threads,
    took_too_long,
    worker_died,
)
from toolcrib.sandbox._frames import (
    CallFrame,
    DoneFrame,
    DropFrame,
    NextFrame,
    PrintFrame,
    ProtocolError,
    WaitFrame,
)
from toolcrib.sandbox._host_frames import WAKE, HostFrame, batch, run_frame
from toolcrib.sandbox._open_calls import OpenCall, OpenCalls
from toolcrib.sandbox._output import OutputMeter
from toolcrib.sandbox._program_files import artifacts_of
from toolcrib.sandbox._protocol import Host, OutputStream, Program, ProgramError, SandboxResult, SuspendedReply
from toolcrib.sandbox._replay_inputs import Diverged, ReplayInputs
from toolcrib.sandbox._result_tables import with_tables
from toolcrib.sandbox._socket import Wire
from toolcrib.sandbox._stopwatch import Stopwatch, WallClock
from toolcrib.sandbox._worker.messages import THREADS_IN_KERNEL
from toolcrib.sandbox._worker_end import NOTHING, Usage, WorkerEnd
from toolcrib.sandbox._workers import MeasuredWorker, ReportingWorker, Worker

_TURN = 0.05  # seconds after which other tasks of the loop get a turn, even when there are none
_FRAMES_A_TURN = 50
_END_SECONDS = 2.0  # in which the kernel ends a process whose socket it has closed
_END_LOOK = 0.005
_DEADLOCK = ProgramError(
    "exception", "RuntimeError", "the program waits for something that never comes: no tool runs, and no timer"
)

_NO_WORKER = ProgramError("sandbox", "SandboxLost", "the worker process is gone")  # why is asked for at the end

_Waiting: TypeAlias = WaitFrame | CallFrame | NextFrame


class Conversation:
    """Runs one program in a worker.

    Args:
        wire: Returns the wire to the worker, given a callback for what comes on it, and one for the time that it takes.
        worker: The worker, which is killed unless it can run another program.
        names: Data that the program finds by these names; None where what it leaves is not wanted.

    Attributes:
        is_reusable: Whether the worker has sent how the program ended, and can run another.
        names: The data that it left, where it is wanted and the program came to its end.
        left_out: The kinds of the other values that it left, by name, where the data is wanted.
    """

    def __init__(
        self,
        program: Program,
        host: Host,
        inputs: ReplayInputs,
        wire: Callable[[Callable[[], None], Callable[[float], None]], Wire],
        worker: Worker,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        self.names = names
        self.left_out: Mapping[str, str] = {}
        self._program, self._limits, self._host, self._inputs = program, program.limits, host, inputs
        if program.save_state is not None:
            inputs.save_to(program.save_state)
        self._worker, self._computed_before = worker, 0.0
        self._loop = asyncio.get_running_loop()
        self._news: asyncio.Future[None] | None = None
        self._stopwatch = Stopwatch(program.limits.program_time, self._out_of_time, on_look=self._look, used=self._used)
        self._wire = wire(self._wake, self._stopwatch.charge)
        self._calls = OpenCalls(program, host, self._wake, self._stopwatch.charge)
        self._held_back: list[OpenCall] = []  # to begin where the program had paused
        self._tools = frozenset(program.tools)
        self._output = OutputMeter(program.limits, inputs.printed)
        self._deadline = WallClock(program)
        self._turned_at = time.monotonic()
        self._waiting: _Waiting | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_rang = False
        self._sleep_left = program.limits.sleep_time
        self._is_answering = False
        self._batches = -1  # the first one is the program
        self._ended: ProgramError | None = None
        self._state: dict[str, Any] | None = None
        self._artifacts: tuple[Media, ...] = ()
        self.is_reusable = False

    # --- from start to end

    async def run(self, isolation: tuple[str, ...], *, keep: bool = False) -> SandboxResult:
        """Run the program, and return its result; unless `keep`, the worker runs no other."""
        value: Any = None
        error: ProgramError | None = None
        if keep:
            self._computed_before = self._usage().seconds
        try:
            async with self._deadline:
                value, error = await self._converse(keep)
            self.is_reusable = True
        except ProgramEnded as ended:
            error = await self._with_cause(ended.error)
        except ProtocolError as broken:
            error = protocol_broken(broken)
        except Diverged as difference:
            error = replay_diverged(difference)
        except MissingExtraError as missing:
            error = ProgramError("sandbox", type(missing).__name__, str(missing))
        except TimeoutError:
            if not self._deadline.is_over:
                raise
            is_late = self._keeps_calls and self._ended is None  # else it was left because the worker is gone
            error = None if is_late else await self._with_cause(self._reason_to_end())
            error = error or took_too_long(self._limits)
        finally:
            await self._close()
        state = None if keep else self._state
        out, err = self._output.out.text(), self._output.err.text()
        return SandboxResult(value, out, err, error, isolation, self._calls.count, state, self._artifacts)

    async def _close(self) -> None:
        self.is_reusable = self._wire.detach() and self.is_reusable
        if not self.is_reusable:
            self._worker.kill()
        self._stopwatch.stop()
        self._clear_alarm()
        await self._calls.close()

    def abort(self, error: ProgramError) -> None:
        """End the program, whose worker is about to be killed; from any thread."""
        if self._ended is None:
            self._ended = error
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._wake if self._keeps_calls else self._deadline.end)

    def _out_of_time(self) -> None:
        if self._ended is None:
            self._ended = computed_too_long(self._limits)
        self._deadline.end()

    def _usage(self) -> Usage:
        return self._worker.usage() if isinstance(self._worker, MeasuredWorker) else NOTHING

    def _look(self) -> None:
        """End a program that has too many threads, or whose threads compute too long, also while it waits."""
        usage = self._usage()
        if usage.threads > THREADS_IN_KERNEL:
            self._ended = self._ended or too_many_threads(usage.threads)
            self._deadline.end()
        elif usage.seconds - self._computed_before > self._limits.program_time:
            self._out_of_time()

    def _used(self) -> float | None:
        usage = self._usage()
        return None if usage is NOTHING else usage.seconds - self._computed_before

    async def _converse(self, keep: bool) -> tuple[Any, ProgramError | None]:
        self._send([self._run_frame(keep)])
        frames = 0
        while True:
            frames += 1
            if frames % _FRAMES_A_TURN == 0:  # what one program sends at once keeps no other waiting
                await asyncio.sleep(0)
            frame = self._wire.next()
            if isinstance(frame, CallFrame):
                if self._is_answered_inline(frame):
                    await self._answer_inline(frame)
            elif isinstance(frame, DoneFrame):
                return await self._result(frame)
            elif frame is not None:
                self._receive(frame)
            elif not self._advance():
                await self._wait_for_news()

    def _run_frame(self, keep: bool) -> HostFrame:
        program = self._program
        return run_frame(
            {
                "code": program.code,
                "name": program.name,
                "tools": {
                    name: {"stream": name in program.streams, "signature": program.signatures.get(name, "")}
                    for name in program.tools
                },
                "seed": self._inputs.seed,
                "clock": self._inputs.recorded,
                "keep": keep,
                "value_size": self._limits.value_size,
                "names": self.names,
                "files": list(program.files),
                "artifacts": [self._limits.artifacts, self._limits.bytes_out],
            },
            list(program.files.values()),
        )

    def _advance(self) -> bool:
        """Send the waiting program the frames there are; return whether there were any."""
        if self._calls.failed is not None:
            raise self._calls.failed
        if self._ended is not None or self._wire.is_over:
            # calls of a worker that is gone come to their end, for the journal of the program
            self._stopwatch.pause()
            if self._keeps_calls and self._calls.finish():
                return False
            raise ProgramEnded(self._reason_to_end())
        return self._waiting is not None and self._give(self._waiting)

    def _reason_to_end(self) -> ProgramError | None:
        """Return why the program cannot go on; None when it can."""
        if self._ended is not None:
            return self._ended
        if self._wire.broken is not None:
            return protocol_broken(self._wire.broken)
        return _NO_WORKER if self._wire.is_over else None

    async def _with_cause(self, error: ProgramError | None) -> ProgramError | None:
        """Return an error, and in place of `_NO_WORKER` the one that says how the worker ended."""
        if error is not _NO_WORKER:
            return error
        worker = self._worker
        end: WorkerEnd | None = None
        if isinstance(worker, ReportingWorker):
            until = time.monotonic() + _END_SECONDS
            while (end := worker.ending()) is None and time.monotonic() < until:  # noqa: ASYNC110 -- the zygote is asked
                await asyncio.sleep(_END_LOOK)  # its socket is closed some time before it has ended
        return self._ended or worker_died(end, self._limits)

    @property
    def _keeps_calls(self) -> bool:
        return self._program.save_state is not None

    async def _result(self, done: DoneFrame) -> tuple[Any, ProgramError | None]:
        self._stopwatch.pause()
        if not self._inputs.is_live:
            raise Diverged("it comes to its end")
        if self.names is not None:
            self.names, self.left_out = done.names, done.left_out
        try:
            self._artifacts = artifacts_of(done.artifacts, done.blobs, self._limits.artifacts)
        except ValueError as problem:
            raise ProtocolError(str(problem)) from None
        error = done.error
        if error is not None and error.kind == "memory":
            error = out_of_memory(self._limits, error.line, error.traceback)
        if not done.tables:
            return done.value, error
        return await asyncio.to_thread(with_tables, done, self._limits.bytes_out), error

    # --- waiting for the worker and for calls

    def _wake(self) -> None:
        if self._news is not None:
            if not self._news.done():
                self._news.set_result(None)
        elif self._is_answering and self._wire.is_over and not self._keeps_calls:
            self._deadline.end()

    async def _wait_for_news(self) -> None:
        """Return when a frame may have come, or a call may have a reply."""
        may_block = self._program.may_block and self._waiting is None and not self._calls.running
        if may_block and time.monotonic() - self._turned_at < _TURN and self._wire.block():
            return
        self._wire.watch()
        self._news = self._loop.create_future()
        try:
            await self._news
        finally:
            self._news = None
            self._turned_at = time.monotonic()

    # --- frames from the program

    def _is_answered_inline(self, asked: CallFrame) -> bool:
        """Add a call; return whether it is answered right away, since nothing else is going on."""
        self._inputs.add_readings(asked.clock)
        calls = self._calls
        if asked.id != calls.count + 1:
            raise ProtocolError(f"call {asked.id} after call {calls.count}")
        if asked.name not in self._tools:
            raise ProtocolError(f"`{asked.name:.100}` is called, which was not offered")
        if calls.count == self._limits.calls:
            raise ProgramEnded(too_many_calls(asked.name, self._limits, asked.line))
        calls.count += 1
        if asked.waits:
            self._pause(asked)
        held_back, is_stream = self._inputs.holds_back(asked.id), asked.name in self._program.streams
        if asked.waits and not (held_back or is_stream or calls.running):
            return True
        call = calls.add(asked)
        if held_back:
            self._held_back.append(call)
        elif not is_stream:
            calls.begin(call, urgent=asked.waits or not self._inputs.is_live)
        return False

    async def _answer_inline(self, asked: CallFrame) -> None:
        self._is_answering = True
        self._wire.watch()
        calling_line.set(asked.line)
        charged = charge_time.set(self._stopwatch.charge)
        try:
            reply = await self._host.call(asked.name, asked.args, asked.kwargs)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise ProgramEnded(CALL_CANCELLED) from None
        finally:
            self._is_answering = False
            charge_time.reset(charged)
        if isinstance(reply, SuspendedReply):
            self._calls.set_reply(self._calls.add(asked), reply)
        else:
            self._send([self._calls.frame(asked, reply)])

    def _receive(self, frame: WaitFrame | NextFrame | DropFrame | PrintFrame) -> None:
        match frame:
            case WaitFrame():
                self._inputs.add_readings(frame.clock)
                if frame.after is None or frame.after >= self._batches:  # else it has something to read, and goes on
                    self._pause(frame)
            case NextFrame():
                self._inputs.add_readings(frame.clock)
                call = self._calls.want(frame.id)
                if call.task is None and call not in self._held_back:
                    self._calls.begin(call, urgent=frame.waits or not self._inputs.is_live)
                if frame.waits:
                    self._pause(frame)
            case DropFrame():
                self._calls.drop(frame.id)
                self._held_back = [call for call in self._held_back if call.id != frame.id]
            case PrintFrame():
                stream: OutputStream = "stderr" if frame.is_error else "stdout"
                if new := self._output.add(frame.text, stream):
                    self._host.output(new, stream)

    def _pause(self, waiting: _Waiting) -> None:
        self._stopwatch.pause()
        self._clear_alarm()
        self._waiting = waiting

    # --- frames for the program

    def _send(self, frames: list[HostFrame]) -> None:
        """Send the frames with which the program goes on.

        Raises:
            ProgramEnded: It has no time left.
        """
        self._waiting = None
        if self._stopwatch.is_over:
            raise ProgramEnded(computed_too_long(self._limits))
        if self._alarm is not None or self._alarm_rang:
            self._clear_alarm()
        self._stopwatch.start()
        if self._wire.is_sending:
            raise ProtocolError("it waits again before it has read what it waited for")
        self._batches += 1
        self._wire.send(batch(frames))

    def _give(self, waiting: _Waiting) -> bool:
        if isinstance(waiting, WaitFrame):
            if self._inputs.is_live:
                ready = self._calls.ready
                if ready:
                    self._inputs.add_batch(ready)
                    self._send([self._calls.take(number) for number in ready])
                    return True
                if self._alarm_rang:
                    self._inputs.add_batch([0])
                    self._send([WAKE])
                    return True
                if waiting.seconds is None:
                    return self._check_deadlock()
                if self._alarm is None:
                    self._sleep(waiting.seconds, waiting.line)
                return False
            expected = self._inputs.expected()
            return self._go_live() if expected is None else self._give_expected(expected)
        if self._calls.is_ready(waiting.id):
            self._send([self._calls.take(waiting.id)])
            return True
        if any(call.id == waiting.id for call in self._held_back):
            return self._go_live()
        return self._check_deadlock()

    def _give_expected(self, expected: list[int]) -> bool:
        """Send the program what the earlier run sent it after this wait."""
        if expected == [0]:
            self._inputs.add_batch(expected)
            self._send([WAKE])
            return True
        for number in expected:
            if not self._calls.is_open(number):
                raise Diverged(f"it has not called {number}, whose result it had got here")
        if all(map(self._calls.is_ready, expected)):
            self._inputs.add_batch(expected)
            self._send([self._calls.take(number) for number in expected])
            return True
        return self._check_deadlock()

    def _go_live(self) -> bool:
        """Begin the calls at which the program had paused."""
        self._inputs.go_live(self._calls.count)
        for call in self._held_back:
            if call.is_wanted:
                self._calls.begin(call, urgent=True)
        self._held_back = []
        return True

    def _check_deadlock(self) -> bool:
        """Return False while a call runs that can go on.

        Raises:
            ProgramEnded: The program pauses, or waits for nothing.
        """
        if self._calls.running:
            return False
        if not self._inputs.is_live:
            raise Diverged("it waits for a call that had a result")
        suspended = self._calls.suspended
        if not suspended:
            raise ProgramEnded(_DEADLOCK)
        self._state = self._inputs.state([call.id for call in suspended], self._calls.count, self._output.sizes)
        first = suspended[0]
        reason = "" if first.suspended is None else first.suspended.reason
        raise ProgramEnded(ProgramError("paused", "Paused", reason, first.line))

    # --- sleeping

    def _sleep(self, seconds: float, line: int) -> None:
        if not self._calls.running:
            self._sleep_left -= seconds
            if self._sleep_left < 0:
                raise ProgramEnded(slept_too_long(seconds, self._limits, line))
        self._alarm = self._loop.call_later(seconds, self._ring)

    def _ring(self) -> None:
        self._alarm, self._alarm_rang = None, True
        self._wake()

    def _clear_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._alarm_rang = None, False

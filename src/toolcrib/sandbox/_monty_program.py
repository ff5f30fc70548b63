"""One program in a Monty session, as a generator that yields the program's requests and is sent replies.

The caller chooses the thread; nothing here waits for the host.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, TypeVar

from pydantic_monty import (
    ExternalSettledResult,
    FunctionSnapshot,
    FutureSnapshot,
    Monty,
    MontyClassProxy,
    MontyComplete,
    MontyCrashedError,
    MontyError,
    MontySession,
    NameLookupSnapshot,
    SyncSnapshot,
)

from toolcrib.errors import SandboxError
from toolcrib.sandbox._endings import (
    ProgramEnded,
    result_too_large,
    slept_too_long,
    too_many_calls,
    worker_died,
)
from toolcrib.sandbox._monty_calls import MontyCall, MontyReplies, MontyRequest, MontySleep
from toolcrib.sandbox._monty_errors import known_exception, program_error
from toolcrib.sandbox._monty_state import MontyState
from toolcrib.sandbox._monty_subset import MontySource
from toolcrib.sandbox._output import OutputMeter
from toolcrib.sandbox._protocol import (
    OutputStream,
    Program,
    ProgramError,
    Reply,
    SandboxResult,
    SuspendedReply,
    Value,
)
from toolcrib.sandbox._values import json_size
from toolcrib.sandbox._worker.export import ValueRefused, exported, exported_arguments
from toolcrib.sandbox._worker_end import WorkerEnd, worker_end

T = TypeVar("T")

_SUSPENSIONS_PER_CALL = 4  # a call may cost a name look-up, a future and a resolution besides
_SUSPENSIONS = 20_000  # for sleeps and names
_SIGNAL = re.compile(r"\(signal: (\d+)")  # how Monty says that its worker was ended by one
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows SIGTERM ends a process, too


Steps: TypeAlias = Generator[list[MontyRequest], MontyReplies, T]
"""Yields requests to begin, and is sent at least one reply to those that are open."""


class MontyProgram:
    """One program, from its start or a saved state to its end.

    Args:
        on_output: A listener for what is printed, on the thread where the program's steps run.
        saved: The state in which the program paused, for one that is resumed.

    Attributes:
        computing: Whether the program computes now, in Monty.
        ended: Why the program was ended from outside, once it was.
    """

    def __init__(
        self,
        program: Program,
        source: MontySource,
        on_output: Callable[[str, OutputStream], None],
        saved: MontyState | None = None,
    ) -> None:
        self._program, self._source, self._limits, self._on_output = program, source, program.limits, on_output
        self._offered = frozenset(program.tools)
        self._encoded = source.code.encode()
        self._output = OutputMeter(program.limits)
        self._sleep_left = program.limits.sleep_time
        self._calls = 0
        self._unawaited: dict[int, MontyRequest] = {}  # answered with a future, begun when awaited
        self._open: dict[int, MontyRequest] = {}  # begun, without a reply
        self._suspended: dict[int, tuple[MontyRequest, str]] = {}  # begun, and waiting for a person, and why
        self._replies: dict[int, Reply] = {}  # replies that the program has not asked for yet
        self._lines: dict[int, tuple[str, int]] = {}
        self._lock = threading.Lock()
        self._pid: int | None = None
        self.computing = False
        self.ended: ProgramEnded | None = None
        self._saved, self._state = saved, None
        self._state: MontyState | None
        if saved is not None:
            self._unawaited = {request.id: request for request in saved.unawaited}
            self._replies, self._lines = dict(saved.replies), dict(saved.lines)
            self._calls, self._sleep_left = saved.calls, saved.sleep_left
            streams = (self._output.out, self._output.err)
            for stream, text, size in zip(streams, saved.output, saved.printed, strict=True):
                stream.add(text)
                stream.size = size

    # --- from any thread

    def end(self, error: ProgramError | None) -> None:
        """End the program, at once if it computes, at its next step if it waits; the first reason counts."""
        with self._lock:
            if self.ended is not None:
                return
            self.ended = ProgramEnded(error)
            if self.computing and self._pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(self._pid, _KILL)

    def result(self, value: Any = None, error: ProgramError | None = None) -> SandboxResult:
        """Return the program's result, with what was printed so far."""
        state = None if self._state is None else self._state.to_dict()
        out, err = self._output.out.text(), self._output.err.text()
        return SandboxResult(value, out, err, error, calls=self._calls, state=state)

    # --- step by step

    def steps(self, pool: Callable[[], Monty]) -> Steps[SandboxResult]:
        """Run the program in a session of its own.

        Raises:
            SandboxError: There is no worker for it.
        """
        value: Any = None
        error: ProgramError | None = None
        try:
            with self._session(pool()) as session:
                last = exported((yield from self._play(session)), self._limits.value_size, _fields, floats=True)
            if self.ended is not None:  # in its very last step
                raise self.ended
            value = last
        except ProgramEnded as ended:
            error = ended.error
        except ValueRefused as refused:
            error = ProgramError("exception", "ValueError", f"the program's last value cannot leave it: {refused}")
        except MontyCrashedError as crash:
            error = self._crashed(crash)
        except MontyError as failed:
            error = program_error(failed, self._program)
        if error is None:
            for call, request in self._unawaited.items():
                name, line = self._lines[call]
                if isinstance(request, MontyCall):
                    self._output.err.add(f"`{name}` (line {line}): never awaited, so it did not run\n")
        return self.result(value, error)

    @contextmanager
    def _session(self, pool: Monty) -> Generator[MontySession, None, None]:
        limits = self._limits
        checkout = pool.checkout(
            script_name=self._program.name,
            limits={
                "max_feed_duration_secs": limits.program_time,
                "max_memory": limits.memory,
                "max_suspensions": _SUSPENSIONS_PER_CALL * limits.calls + _SUSPENSIONS,
                "max_total_sleep_secs": limits.sleep_time,
            },
            os_policy={"sleep": "call_host"},  # sleeps end with the run, and are charged here
        )
        try:
            session = checkout.__enter__()
        except TimeoutError:
            raise SandboxError(
                "every worker was busy, for as long as this program was to wait for one. Allow more, with "
                "MontySandbox(workers=...), or run fewer programs at a time"
            ) from None
        self._pid = session.worker_pid
        try:
            yield session
        finally:
            with self._lock:
                self._pid = None  # from here on the worker may be another program's
            checkout.__exit__(None, None, None)

    def _play(self, session: MontySession) -> Steps[Any]:
        if self._saved is None:
            snapshot = self._compute(session.feed_start, self._source.code, print_callback=self._print)
        else:
            snapshot = yield from self._resume(self._load(session, self._saved.snapshot), self._saved.suspended)
        while not isinstance(snapshot, MontyComplete):
            if isinstance(snapshot, FunctionSnapshot):
                step = self._system if snapshot.is_os_function else self._function
                snapshot = yield from step(snapshot)
            elif isinstance(snapshot, FutureSnapshot):
                snapshot = yield from self._futures(snapshot)
            else:
                snapshot = self._name(snapshot)
        return snapshot.output

    def _load(self, session: MontySession, snapshot: bytes) -> SyncSnapshot:
        try:
            return self._compute(session.load_snapshot, snapshot, print_callback=self._print)
        except MontyCrashedError:
            raise
        except MontyError as error:
            raise SandboxError(f"Monty cannot read this snapshot: {error}") from error

    def _compute(self, step: Callable[..., SyncSnapshot], *args: Any, **kwargs: Any) -> SyncSnapshot:
        """Run the program until its next request; only meanwhile is its worker killed to end it."""
        self.computing = True
        try:
            if self.ended is not None:  # read after `computing` is set: `end` sees one or the other
                raise self.ended
            return step(*args, **kwargs)
        finally:
            self.computing = False

    def _print(self, stream: OutputStream, text: str) -> None:
        try:
            self._output.add(text, stream)
        except ProgramEnded as ended:
            self.end(ended.error)
        else:
            self._on_output(text, stream)

    # --- the program's requests

    def _name(self, snapshot: NameLookupSnapshot) -> SyncSnapshot:
        name = snapshot.variable_name
        if name in self._offered:

            def tool() -> None: ...

            tool.__name__ = name
            return self._compute(snapshot.resume, value=tool)
        return self._compute(snapshot.resume)

    def _function(self, snapshot: FunctionSnapshot) -> Steps[SyncSnapshot]:
        name = snapshot.function_name
        if name not in self._offered or snapshot.object_id is not None:
            return self._compute(snapshot.resume, {"exc_type": "NameError", "message": f"name '{name}' is not defined"})
        self._calls += 1
        if self._calls > self._limits.calls:
            raise ProgramEnded(too_many_calls(name, self._limits, self._line(snapshot)))
        try:
            arguments = snapshot.args, snapshot.kwargs
            args, kwargs = exported_arguments(name, *arguments, self._limits.value_size, _fields)
        except ValueError as error:
            return self._compute(snapshot.resume, {"exc_type": "ValueError", "message": str(error)})
        call = MontyCall(snapshot.call_id, name, args, kwargs, self._line(snapshot))
        return (yield from self._ask(snapshot, call, name, awaited=self._is_awaited(snapshot)))

    def _system(self, snapshot: FunctionSnapshot) -> Steps[SyncSnapshot]:
        if snapshot.function_name not in ("time.sleep", "asyncio.sleep"):
            return self._compute(snapshot.resume_not_handled)
        seconds = float(snapshot.args[0])
        self._sleep_left -= seconds
        if not self._sleep_left >= 0:  # also for nan
            raise ProgramEnded(slept_too_long(seconds, self._limits, self._line(snapshot)))
        name = str(snapshot.function_name)
        return (
            yield from self._ask(snapshot, MontySleep(snapshot.call_id, seconds), name, awaited=name == "asyncio.sleep")
        )

    def _ask(
        self, snapshot: FunctionSnapshot, request: MontyRequest, name: str, *, awaited: bool
    ) -> Steps[SyncSnapshot]:
        if awaited:
            self._unawaited[request.id] = request
            self._lines[request.id] = (name, self._line(snapshot))
            return self._compute(snapshot.resume, {"future": ...})
        if self._open:
            return (yield from self._sync(snapshot, [request], request.id, name))
        [(_, reply)] = yield [request]  # nothing else runs: the one reply is this one's
        if isinstance(reply, Value) and json_size(reply.value) <= self._limits.reply_size:
            return self._compute(snapshot.resume, {"return_value": reply.value})
        if isinstance(reply, SuspendedReply):
            self._suspended[request.id] = (request, reply.reason)
            raise self._paused(snapshot, self._line(snapshot))
        return self._compute(snapshot.resume, self._answer(reply, name))

    def _sync(
        self, snapshot: FunctionSnapshot, requests: list[MontyRequest], wanted: int, name: str
    ) -> Steps[SyncSnapshot]:
        """Begin requests, and go on with the reply to the one for which the whole program waits."""
        yield from self._wait(requests, {wanted})
        if wanted not in self._replies:
            raise self._paused(snapshot, self._line(snapshot))
        return self._compute(snapshot.resume, self._answer(self._replies.pop(wanted), name))

    def _futures(self, snapshot: FutureSnapshot, resumed: Sequence[MontyRequest] = ()) -> Steps[SyncSnapshot]:
        pending = sorted(snapshot.pending_call_ids)  # in the order they were called
        begun = [self._unawaited.pop(call) for call in pending if call in self._unawaited]
        yield from self._wait([*resumed, *begun], set(pending))
        answers: dict[int, ExternalSettledResult] = {}
        for call in pending:
            if call in self._replies:
                answers[call] = self._answer(self._replies.pop(call), self._lines.pop(call)[0])
        if not answers:
            raise self._paused(snapshot, self._lines[next(iter(self._suspended))][1])
        return self._compute(snapshot.resume, answers)

    def _resume(self, snapshot: SyncSnapshot, suspended: list[MontyRequest]) -> Steps[SyncSnapshot]:
        """Resume the program where it paused, and start all suspended calls again."""
        if isinstance(snapshot, FunctionSnapshot):
            return (yield from self._sync(snapshot, suspended, snapshot.call_id, str(snapshot.function_name)))
        if isinstance(snapshot, FutureSnapshot):
            return (yield from self._futures(snapshot, suspended))
        raise SandboxError("this is not the state of a paused program")

    def _wait(self, requests: list[MontyRequest], wanted: set[int]) -> Steps[None]:
        """Begin requests, and wait until one of those wanted has its reply, or nothing runs any more."""
        self._open.update((request.id, request) for request in requests)
        while requests or (self._open and not self._replies.keys() & wanted):
            for call, reply in (yield requests):
                request = self._open.pop(call)
                if isinstance(reply, SuspendedReply):
                    self._suspended[call] = (request, reply.reason)
                else:
                    self._replies[call] = reply
            requests = []

    def _answer(self, reply: Reply, name: str) -> ExternalSettledResult:
        if isinstance(reply, Value):
            size = json_size(reply.value)
            if size <= self._limits.reply_size:
                return {"return_value": reply.value}
            reply = result_too_large(name, size, self._limits)
        if isinstance(reply, SuspendedReply):
            raise SandboxError(f"the host gave no reply to `{name}`")
        return {"exc_type": known_exception(reply.type), "message": reply.message}  # pyright: ignore[reportReturnType] -- one of Monty's own names

    def _paused(self, snapshot: FunctionSnapshot | FutureSnapshot, line: int) -> ProgramEnded:
        """Save the program's state, and return its end: it waits for a person."""
        suspended = [self._suspended[call] for call in sorted(self._suspended)]
        self._state = MontyState(
            snapshot.dump(),
            self._source,
            [request for request, _ in suspended],
            list(self._unawaited.values()),
            dict(self._replies),
            dict(self._lines),
            self._calls,
            self._sleep_left,
            (self._output.out.text(), self._output.err.text()),
            self._output.sizes,
        )
        return ProgramEnded(ProgramError("paused", "Paused", suspended[0][1], line))

    # --- values, lines and errors

    def _is_awaited(self, snapshot: FunctionSnapshot) -> bool:
        if not self._source.awaited:
            return False
        position = snapshot.position
        return position.filename != "<string>" and (position.start, position.end) in self._source.awaited

    def _line(self, snapshot: FunctionSnapshot) -> int:
        position = snapshot.position
        return 0 if position.filename == "<string>" else self._encoded.count(b"\n", 0, position.start) + 1

    def _crashed(self, crash: MontyCrashedError) -> ProgramError | None:
        if self.ended is not None:
            return self.ended.error
        return worker_died(_end_of(crash), self._limits)


def _end_of(crash: MontyCrashedError) -> WorkerEnd:
    """Return how a worker ended, which a program of Monty's cannot send a signal."""
    signalled = _SIGNAL.search(str(crash))
    if signalled is not None:
        return worker_end(-int(signalled[1]))
    if crash.timed_out:  # Monty's watchdog, soon after `program_time`: the machine was too busy for Monty's own clock
        return WorkerEnd("time", str(crash))
    return WorkerEnd("outside" if crash.exit_status is None else "program", str(crash))


def _fields(value: Any) -> Mapping[Any, Any] | None:
    return value.attributes if isinstance(value, MontyClassProxy) else None

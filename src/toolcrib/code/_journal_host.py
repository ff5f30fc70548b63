"""The host of a program that may pause: keeps a journal, and answers the calls of an earlier run from it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from toolcrib.calls import Denial, Failed, Grant, Outcome, Suspended, ToolCall, charged, new_call_id
from toolcrib.code._activity import NO_ACTIVITY, ProgramActivity
from toolcrib.code._host import ProgramHost
from toolcrib.code._journal import Journal, JournalEntry
from toolcrib.code._paused import PausedProgram
from toolcrib.code._program_calls import ProgramCall, ProgramCalls, call_digest
from toolcrib.code._program_tools import ProgramTool
from toolcrib.errors import ApprovalError, ReplayDiverged, SandboxLost
from toolcrib.hooks import ModelInput
from toolcrib.pipeline import Call, Pipeline, Run, is_call
from toolcrib.sandbox import (
    Emit,
    Program,
    ProgramError,
    Raised,
    Reply,
    Resumable,
    Stopwatch,
    Value,
    json_size,
)

_JOURNAL_CHARS = 64_000_000  # about, of replies and values; a program with more of them cannot be run again
_RUN_AGAIN = (("sandbox", "SandboxLost"), ("sandbox", "MissingExtraError"), ("stopped", "SandboxError"))
_OWN_ENDS = ("exception", "paused")  # a limit may end a program sooner on a slower machine


@dataclass(frozen=True, slots=True)
class JournalOptions:
    """The journal that a program begins or resumes with.

    Attributes:
        calls: The program's calls, those of the earlier run among them.
        answers: The grants and denials of its suspended calls, by call id.
        replay_seconds: The time in which a program that runs again has to ask for all the calls that it made.
        journal: Where entries about the calls are kept while the program runs.
    """

    calls: ProgramCalls
    answers: Mapping[str, Grant | Denial] = field(default_factory=dict[str, Grant | Denial])
    replay_seconds: float = 0.0
    journal: Journal | None = None


class JournalHost(ProgramHost):
    """The host of a program that may pause, or was paused.

    A call that was made is answered from the journal. A call that was suspended is executed only when the program has
    asked for every call of the earlier run again: until then it may still turn out to be another program.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        run: Run,
        tools: Mapping[str, ProgramTool],
        on_output: Callable[[str, str], None] | None,
        options: JournalOptions,
        activity: ProgramActivity = NO_ACTIVITY,
    ) -> None:
        super().__init__(pipeline, run, tools, on_output, activity)
        self.program_calls, self._answer_by_call, self._journal = options.calls, options.answers, options.journal
        self._replay_seconds = options.replay_seconds
        self.calls = [call.summary for call in options.calls.calls]
        self._earlier_open = options.calls.open
        self._asked: dict[str, tuple[ToolCall, Emit | None]] = {}
        self._caught_up = asyncio.Event()
        self._recovering: asyncio.Task[dict[str, Call | Outcome]] | None = None
        self._broken: ReplayDiverged | None = None
        self._size = sum(_kept_size(call.reply) for call in self.program_calls.calls if isinstance(call.reply, Value))
        self._program_task = asyncio.current_task()
        if run.features and not self.program_calls.replays:  # the engine has their values in a state of its own
            for id in [call.id for call in self.program_calls.calls if call.reply is not None]:
                run.read_input(ModelInput("restored", key=id, is_lost=True))

    # --- what the sandbox asks for

    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any], emit: Emit | None = None) -> Reply:
        """Answer one call of the program: as before, or by making it."""
        if self._broken is not None:
            raise self._broken
        args, kwargs = self._tools[name].clipped(args, kwargs)
        digest = charged(call_digest, args, kwargs)
        try:
            known = self.program_calls.match(name, digest)
        except ReplayDiverged as error:
            self._diverge(error)
            raise
        if known is None:
            call_id = new_call_id()
            call = ProgramCall(call_id, name, digest, self._summary(name, call_id))
            self.program_calls.calls.append(call)
            return await self._make(call, args, kwargs, emit, partial(self._execute_new, call, emit))
        if emit is not None:
            for value in tuple(known.values):
                await emit(value)
        if known.reply is not None:
            self._recall(known)
            self._check_caught_up()
            return known.reply
        if known.cancelled and emit is None:
            self._check_caught_up()
            await asyncio.Event().wait()  # the program cancels it once more
        return await self._make(known, args, kwargs, emit, partial(self._execute_again, known, emit))

    def with_journal(self, program: Program) -> Program:
        """Return the program with its journal, where its engine saves a state, and the time that it takes."""
        journal = self._journal
        if journal is None:
            return program
        return replace(program, save_state=self._save_state, waited=lambda: journal.waited)

    def _save_state(self, state: Mapping[str, Any]) -> None:
        self._append(JournalEntry("state", fields={"state": dict(state)}))

    def check_end(self, error: ProgramError | None, *, reruns: bool) -> None:
        """Return unless a program has to run again, or came to an end sooner than it did before.

        Args:
            error: With what it ended.
            reruns: Whether its host runs it again by its log.

        Raises:
            SandboxLost: Its process was lost, its sandbox closed, or its result cannot be read here; if `reruns`.
            ReplayDiverged: It does something else than before.
        """
        if reruns and error is not None and (error.kind, error.type) in _RUN_AGAIN:
            raise SandboxLost(error.message)
        if error is not None and (error.kind, error.type) == ("sandbox", "ReplayDiverged"):
            raise self.program_calls.diverged("another one") or ReplayDiverged("the same way as before", error.message)
        if error is None or error.kind in _OWN_ENDS:
            end = "its end" if error is None else "a pause" if error.kind == "paused" else f"{error}"
            diverged = self.program_calls.diverged(end)
            if diverged is not None:
                raise diverged

    @property
    def counters(self) -> dict[str, Any]:
        """The id and the counters of the program's run, as JSON shapes."""
        return {**self.run.counted(), **self._activity.saved}

    async def close(self) -> None:
        """Stop waiting for approvers."""
        if self._recovering is not None and not self._recovering.done():
            self._recovering.cancel()
            await asyncio.wait([self._recovering])

    # --- one call

    async def _make(
        self,
        call: ProgramCall,
        args: list[Any],
        kwargs: dict[str, Any],
        emit: Emit | None,
        execute: Callable[[ToolCall], Awaitable[Outcome]],
    ) -> Reply:
        tool = self._tools[call.name]
        try:
            outcome, reply = await self._answer(call.summary, tool, args, kwargs, execute)
            await self._record_outcome(call, outcome, reply, streamed=emit is not None)
        except asyncio.CancelledError:
            if self._program_task is None or not self._program_task.cancelling():  # by the program, not with it
                self._record(call, JournalEntry("cancelled", call.id))
            raise
        return reply

    async def _record_outcome(self, call: ProgramCall, outcome: Outcome, reply: Reply, *, streamed: bool) -> None:
        """Write the outcome of a call; the program has it after that."""
        if isinstance(outcome, Suspended):
            self._record(call, call.waits(outcome))
            await self._flush()
            return
        written = Value(None) if streamed and isinstance(reply, Value) else reply  # it has the values
        in_state = not self.program_calls.replays and isinstance(reply, Value)  # the engine has it in its own state
        remembered = Value(None) if in_state else self._within_size(written)
        entry = call.ended(remembered)
        self._append(entry if remembered is written else call.ended(written))
        await self._flush()
        self.program_calls.add(call, entry)

    def _within_size(self, reply: Reply) -> Reply:
        """Return a reply to keep, without its value once all of them are too much."""
        if isinstance(reply, Value):
            self._size += _kept_size(reply)
        return Value(None) if self.is_full and isinstance(reply, Value) else reply

    @property
    def is_full(self) -> bool:
        """True when the calls returned more than is kept, so that the program cannot be run again."""
        return self._size > _JOURNAL_CHARS

    async def _execute_new(self, call: ProgramCall, emit: Emit | None, request: ToolCall) -> Outcome:
        await self._record_start(call, None)
        return await self._execute(request, self._recording(call, emit))

    async def _execute_again(self, call: ProgramCall, emit: Emit | None, request: ToolCall) -> Outcome:
        """Return the outcome of a call that had none in the earlier run."""
        self._asked[call.id] = (request, emit)
        self._check_caught_up()
        call.cancelled = False  # a stream that was cut when its program paused, and of which it wants more now
        watch = Stopwatch(self._replay_seconds, self._come_late)
        watch.start()
        try:
            await self._caught_up.wait()
        finally:
            watch.stop()
        if self._broken is not None:
            raise self._broken
        if self._recovering is None:
            self._recovering = asyncio.create_task(self._recover_suspended())
        recovered = (await asyncio.shield(self._recovering)).get(call.id)
        if recovered is None:
            call.in_doubt = call.in_doubt or call.suspended is None
            recovered = await self._recover(call, call.suspended or request)
        if not is_call(recovered):
            return recovered
        await self._record_start(call, recovered.grant)
        return await self._execute(recovered, self._recording(call, emit, skipped=len(call.values)))

    # --- suspended calls

    async def _recover_suspended(self) -> dict[str, Call | Outcome]:
        """Ask the gates again for every suspended call, before any of them is executed."""
        recovered: dict[str, Call | Outcome] = {}
        # calls with an answer come first: it may be a standing grant, which holds for others, too
        for call in sorted(self._earlier_open, key=lambda call: call.answer_id not in self._answer_by_call):
            _, emit = self._asked.get(call.id, (None, None))
            if call.suspended is not None and emit is None and not call.values:
                recovered[call.id] = await self._recover(call, call.suspended)
        return recovered

    async def _recover(self, call: ProgramCall, state: ToolCall | Suspended) -> Call | Outcome:
        """Recover a call that was suspended, or one of which it is only known that it was begun.

        Raises:
            ApprovalError: Its answer cannot be used.
        """
        answer = self._answer_by_call.get(call.answer_id)
        recovered = await self._pipeline.recover(state, self.run, grant=answer, begun=call.begun, used=call.grant)
        if isinstance(recovered, Failed) and recovered.code == ApprovalError.code:
            raise recovered.exception or ApprovalError(recovered.tool, recovered.message)
        return recovered

    def _recording(self, call: ProgramCall, emit: Emit | None, skipped: int = 0) -> Emit | None:
        if emit is None:
            return None
        to_skip = skipped

        async def record(value: Any) -> None:
            nonlocal to_skip
            if to_skip:  # the program has it from before
                to_skip -= 1
                return
            entry = JournalEntry("value", call.id, {"value": value})
            if self.program_calls.replays:
                self._size += json_size(value)
                if not self.is_full:
                    self.program_calls.add(call, entry)
            self._append(entry)
            await self._flush()
            await emit(value)

        return record

    # --- replay

    def _recall(self, call: ProgramCall) -> None:
        """Read the result of a call that was made in another process into the run."""
        run, reply = self.run, call.reply
        if not run.features:
            return
        name = self._tools[call.name].name
        tool = self._pipeline.toolset.entries.get(name)
        request = ToolCall(name, call.summary["arguments"] or {}, call.id)
        result = ModelInput("restored", request=request, entry=tool, key=call.id, is_lost=True)
        if isinstance(reply, Raised):
            result = replace(result, value=reply.message, is_error=True, is_lost=False)
        elif isinstance(reply, Value) and not reply.tables:
            result = replace(result, value=call.values or reply.value, is_lost=False)
        run.read_input(result)

    def _check_caught_up(self) -> None:
        if self.program_calls.expected is None:
            self._caught_up.set()

    def _come_late(self) -> None:
        self._diverge(self.program_calls.diverged("no further call") or ReplayDiverged("a call", "none"))

    def _diverge(self, error: ReplayDiverged) -> None:
        self._broken = error
        self._caught_up.set()  # the calls that are held back raise, and are not executed

    # --- the journal

    async def _record_start(self, call: ProgramCall, grant: Grant | None) -> None:
        """Write that a call may have been executed, before it is."""
        self._record(call, call.started(grant))
        await self._flush()

    def _record(self, call: ProgramCall, entry: JournalEntry) -> None:
        self.program_calls.add(call, entry)
        self._append(entry)

    def _append(self, entry: JournalEntry) -> None:
        if self._journal is not None:
            self._journal.append(entry)

    async def _flush(self) -> None:
        if self._journal is not None:
            await self._journal.flush()


def _kept_size(reply: Value) -> int:
    """Return about how many characters a journal needs for a reply."""
    return json_size(reply.value) + sum(len(table) * 4 // 3 for table in reply.tables)


def paused_program(program: Program, sandbox: Resumable, host: JournalHost, state: Mapping[str, Any]) -> PausedProgram:
    """Return a program as it is now, for another run to resume."""
    return PausedProgram(
        program.code,
        sandbox.engine,
        program.tools,
        program.streams,
        program.signatures,
        sandbox.replays,
        state,
        tuple(host.program_calls.entries),
        host.counters,
        files=program.files,
    )

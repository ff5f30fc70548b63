"""The host of a program that may pause: keeps a journal, and answers the calls of an earlier run from it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from toolcrib.calls import Denial, Failed, Grant, Outcome, Suspended, ToolCall, charged, new_call_id, versioned
from toolcrib.code._activity import NO_ACTIVITY, ProgramActivity
from toolcrib.code._host import ProgramHost
from toolcrib.code._journal import Journal, JournalEntry, JournalLog, call_digest, reply_to_dict
from toolcrib.code._paused import PausedProgram
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
    SuspendedReply,
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
        journal: The program's calls, those of the earlier run among them.
        answers: The grants and denials of its suspended calls, by call id.
        replay_seconds: The time in which a program that runs again has to ask for all the calls that it made.
        log: Where the journal is kept while the program runs.
    """

    journal: Journal
    answers: Mapping[str, Grant | Denial] = field(default_factory=dict[str, Grant | Denial])
    replay_seconds: float = 0.0
    log: JournalLog | None = None


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
        self.journal, self._answer_by_call, self._log = options.journal, options.answers, options.log
        self._replay_seconds = options.replay_seconds
        self.calls = [entry.summary for entry in options.journal.entries]
        self._earlier_open = options.journal.open
        self._asked: dict[str, tuple[ToolCall, Emit | None]] = {}
        self._caught_up = asyncio.Event()
        self._recovering: asyncio.Task[dict[str, Call | Outcome]] | None = None
        self._broken: ReplayDiverged | None = None
        self._size = sum(_kept_size(entry.reply) for entry in self.journal.entries if isinstance(entry.reply, Value))
        self._program_task = asyncio.current_task()
        if run.features and not self.journal.replays:  # the engine has their values in a state of its own
            for id in [entry.id for entry in self.journal.entries if entry.reply is not None]:
                run.read(ModelInput("restored", key=id, is_lost=True))

    # --- what the sandbox asks for

    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any], emit: Emit | None = None) -> Reply:
        """Answer one call of the program: as before, or by making it."""
        if self._broken is not None:
            raise self._broken
        args, kwargs = self._tools[name].clipped(args, kwargs)
        digest = charged(call_digest, args, kwargs)
        try:
            entry = self.journal.match(name, digest)
        except ReplayDiverged as error:
            self._diverge(error)
            raise
        if entry is None:
            call_id = new_call_id()
            entry = JournalEntry(call_id, name, digest, self._summary(name, call_id))
            self.journal.entries.append(entry)
            return await self._make(entry, args, kwargs, emit, partial(self._execute_new, entry, emit))
        if emit is not None:
            for value in tuple(entry.values):
                await emit(value)
        if entry.reply is not None:
            self._recall(entry)
            self._check_caught_up()
            return entry.reply
        if entry.cancelled and emit is None:
            self._check_caught_up()
            await asyncio.Event().wait()  # the program cancels it once more
        return await self._make(entry, args, kwargs, emit, partial(self._execute_again, entry, emit))

    def with_log(self, program: Program) -> Program:
        """Return the program with its log, where the engine saves its state, and the time that the log takes."""
        log = self._log
        return program if log is None else replace(program, save_state=self._save_state, waited=lambda: log.waited)

    def _save_state(self, state: Mapping[str, Any]) -> None:
        self._write("state", state=dict(state))

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
            raise self.journal.diverged("another one") or ReplayDiverged("the same way as before", error.message)
        if error is None or error.kind in _OWN_ENDS:
            end = "its end" if error is None else "a pause" if error.kind == "paused" else f"{error}"
            diverged = self.journal.diverged(end)
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
        entry: JournalEntry,
        args: list[Any],
        kwargs: dict[str, Any],
        emit: Emit | None,
        execute: Callable[[ToolCall], Awaitable[Outcome]],
    ) -> Reply:
        tool = self._tools[entry.name]
        try:
            outcome, reply = await self._answer(entry.summary, tool, args, kwargs, execute)
            await self._close_entry(entry, outcome, reply, streamed=emit is not None)
        except asyncio.CancelledError:
            if self._program_task is None or not self._program_task.cancelling():  # by the program, not with it
                entry.cancelled, entry.suspended = True, None
                self._write("cancelled", id=entry.id)
            raise
        return reply

    async def _close_entry(self, entry: JournalEntry, outcome: Outcome, reply: Reply, *, streamed: bool) -> None:
        """Write the outcome of a call."""
        if isinstance(reply, SuspendedReply):
            entry.suspended = outcome if isinstance(outcome, Suspended) else None
            entry.in_doubt = entry.in_doubt or (entry.suspended is not None and entry.suspended.request.in_doubt)
            self._write("suspended", id=entry.id, outcome=outcome.to_dict(), in_doubt=entry.in_doubt)
            await self._flush()
            return
        entry.in_doubt = False
        written = Value(None) if streamed and isinstance(reply, Value) else reply  # it has the values
        if self._log is not None:
            self._write("ended", id=entry.id, reply=reply_to_dict(written), summary=entry.summary)
            await self._flush()
        in_state = not self.journal.replays and isinstance(reply, Value)  # the engine has it in its own state
        entry.reply = Value(None) if in_state else self._within_size(written)

    def _within_size(self, reply: Reply) -> Reply:
        """Return a reply to keep, without its value once all of them are too much."""
        if isinstance(reply, Value):
            self._size += _kept_size(reply)
        return Value(None) if self.is_full and isinstance(reply, Value) else reply

    @property
    def is_full(self) -> bool:
        """True when the calls returned more than is kept, so that the program cannot be run again."""
        return self._size > _JOURNAL_CHARS

    async def _execute_new(self, entry: JournalEntry, emit: Emit | None, call: ToolCall) -> Outcome:
        await self._write_start(entry, None)
        return await self._execute(call, self._recording(entry, emit))

    async def _execute_again(self, entry: JournalEntry, emit: Emit | None, call: ToolCall) -> Outcome:
        """Return the outcome of a call that had none in the earlier run."""
        self._asked[entry.id] = (call, emit)
        self._check_caught_up()
        entry.cancelled = False  # a stream that was cut when its program paused, and of which it wants more now
        await self._until_caught_up()
        if self._recovering is None:
            self._recovering = asyncio.create_task(self._recover_suspended())
        recovered = (await asyncio.shield(self._recovering)).get(entry.id)
        if recovered is None:
            entry.in_doubt = entry.in_doubt or entry.suspended is None
            recovered = await self._recover(entry, entry.suspended or call)
        if not is_call(recovered):
            return recovered
        await self._write_start(entry, recovered.grant)
        return await self._execute(recovered, self._recording(entry, emit, skipped=len(entry.values)))

    # --- suspended calls

    async def _recover_suspended(self) -> dict[str, Call | Outcome]:
        """Ask the gates again for every suspended call, before any of them is executed."""
        recovered: dict[str, Call | Outcome] = {}
        # calls with an answer come first: it may be a standing grant, which holds for others, too
        for entry in sorted(self._earlier_open, key=lambda entry: entry.answer_id not in self._answer_by_call):
            _, emit = self._asked.get(entry.id, (None, None))
            if entry.suspended is not None and emit is None and not entry.values:
                recovered[entry.id] = await self._recover(entry, entry.suspended)
        return recovered

    async def _recover(self, entry: JournalEntry, state: ToolCall | Suspended) -> Call | Outcome:
        """Recover a call that was suspended, or one of which it is only known that it was begun.

        Raises:
            ApprovalError: Its answer cannot be used.
        """
        answer = self._answer_by_call.get(entry.answer_id)
        recovered = await self._pipeline.recover(state, self.run, grant=answer, begun=entry.begun, used=entry.grant)
        if isinstance(recovered, Failed) and recovered.code == ApprovalError.code:
            raise recovered.exception or ApprovalError(recovered.tool, recovered.message)
        return recovered

    def _recording(self, entry: JournalEntry, emit: Emit | None, skipped: int = 0) -> Emit | None:
        if emit is None:
            return None
        to_skip = skipped

        async def record(value: Any) -> None:
            nonlocal to_skip
            if to_skip:  # the program has it from before
                to_skip -= 1
                return
            if self.journal.replays:
                self._size += json_size(value)
                if not self.is_full:
                    entry.values.append(value)
            self._write("value", id=entry.id, value=value)
            await self._flush()
            await emit(value)

        return record

    # --- replay

    def _recall(self, entry: JournalEntry) -> None:
        """Read the result of a call that was made in another process into the run."""
        run, reply = self.run, entry.reply
        if not run.features:
            return
        name = self._tools[entry.name].name
        tool = self._pipeline.toolset.entries.get(name)
        call = ToolCall(name, entry.summary["arguments"] or {}, entry.id)
        result = ModelInput("restored", request=call, entry=tool, key=entry.id, is_lost=True)
        if isinstance(reply, Raised):
            result = replace(result, value=reply.message, is_error=True, is_lost=False)
        elif isinstance(reply, Value) and not reply.tables:
            result = replace(result, value=entry.values or reply.value, is_lost=False)
        run.read(result)

    def _check_caught_up(self) -> None:
        if self.journal.expected is None:
            self._caught_up.set()

    async def _until_caught_up(self) -> None:
        watch = Stopwatch(self._replay_seconds, self._come_late)
        watch.start()
        try:
            await self._caught_up.wait()
        finally:
            watch.stop()
        if self._broken is not None:
            raise self._broken

    def _come_late(self) -> None:
        self._diverge(self.journal.diverged("no further call") or ReplayDiverged("a call", "none"))

    def _diverge(self, error: ReplayDiverged) -> None:
        self._broken = error
        self._caught_up.set()  # the calls that are held back raise, and are not executed

    # --- the log

    async def _write_start(self, entry: JournalEntry, grant: Grant | None) -> None:
        """Write that a call may have been executed, before it is."""
        line = entry.start(grant)
        if self._log is not None:
            self._log.write(line)
            await self._flush()

    def _write(self, kind: str, **line: Any) -> None:
        if self._log is not None:
            self._log.write(versioned("JournalLine", {"t": kind, **line}))

    async def _flush(self) -> None:
        if self._log is not None:
            await self._log.flush()


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
        tuple(entry.copy() for entry in host.journal.entries),
        host.counters,
        files=program.files,
    )

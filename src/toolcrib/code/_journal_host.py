"""JournalHost: a program's host that notes every call, and answers those of an earlier run as they were answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from toolcrib.calls import Ask, Denial, Failed, Grant, Outcome, Suspended, ToolCall, new_call_id
from toolcrib.code._host import ProgramHost, ProgramTool
from toolcrib.code._journal import Journal, JournalEntry, JournalLog, call_digest, reply_to_dict
from toolcrib.code._paused import PausedProgram
from toolcrib.code._program_trace import UNFOLLOWED, FollowedProgram
from toolcrib.errors import ApprovalError, ReplayDiverged
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Performed, Pipeline, Prepared, Run
from toolcrib.sandbox import Emit, Program, ProgramError, Reply, Resumable, SuspendedReply, Value, json_size

__all__ = ["Continuation", "JournalHost", "paused_from"]

_DOUBT = "it was begun before and may have done its work: nobody noted how it ended. Approve to make it once more"
_MOST = 64_000_000  # characters, about, of replies and values that are kept; what has more cannot be run again
_ENDS = ("exception", "paused")  # of the program's own; a limit may only come sooner on a slower machine


@dataclass(frozen=True, slots=True)
class Continuation:
    """What a program is taken up with.

    Attributes:
        journal: Its calls, those of the earlier run among them.
        answers: What people said to the calls that wait, by call id.
        patience: Seconds after which a program that runs again has asked for everything, or never will.
        log: Where the journal is kept meanwhile.
    """

    journal: Journal
    answers: Mapping[str, Grant | Denial] = field(default_factory=dict[str, Grant | Denial])
    patience: float = 0.0
    log: JournalLog | None = None


class JournalHost(ProgramHost):
    """The host of a program that may pause, or did.

    A call that was made is answered from the journal. One that waits is taken up only when the program has asked for
    every call of the earlier run again: until then it might still turn out to be another program than it was.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        run: Run,
        tools: Mapping[str, ProgramTool],
        on_output: Callable[[str, str], None] | None,
        given: Continuation,
        followed: FollowedProgram = UNFOLLOWED,
    ) -> None:
        super().__init__(pipeline, run, tools, on_output, followed)
        self.journal, self._answers, self._log, self._patience = given.journal, given.answers, given.log, given.patience
        self.calls = [entry.told for entry in given.journal.entries]
        self._waiting = given.journal.open
        self._asked: dict[str, tuple[ToolCall, Emit | None]] = {}
        self._caught_up = asyncio.Event()
        self._taking_up: asyncio.Task[dict[str, Prepared | Outcome]] | None = None
        self._broken: ReplayDiverged | None = None
        self._size = sum(
            json_size(entry.reply.value) for entry in self.journal.entries if isinstance(entry.reply, Value)
        )
        self._run_task = asyncio.current_task()

    # --- what the sandbox asks for

    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any], emit: Emit | None = None) -> Reply:
        """Answer one call of the program: as before, or by making it."""
        if self._broken is not None:
            raise self._broken
        digest = call_digest(args, kwargs)
        try:
            entry = self.journal.asked(name, digest)
        except ReplayDiverged as error:
            self._break(error)
            raise
        if entry is None:
            call_id = new_call_id()
            entry = JournalEntry(call_id, name, digest, self._told(name, call_id))
            self.journal.begin(entry)
            return await self._live(entry, args, kwargs, emit, partial(self._begun, entry, emit))
        if emit is not None:
            for value in tuple(entry.values):
                await emit(value)
        if entry.reply is not None:
            self._look()
            return entry.reply
        if entry.cancelled and emit is None:
            self._look()
            await asyncio.Event().wait()  # the program gives it up once more
        return await self._live(entry, args, kwargs, emit, partial(self._again, entry, emit))

    def save_state(self, state: Mapping[str, Any]) -> None:
        """Keep what the engine needs to run the program again."""
        self._write("state", state=dict(state))

    def ended(self, error: ProgramError | None) -> None:
        """Take note of a program's end; raises ReplayDiverged when it came sooner than it should."""
        if error is not None and (error.kind, error.type) == ("sandbox", "ReplayDiverged"):
            raise self.journal.diverged("another one") or ReplayDiverged("the same way as before", error.message)
        if error is None or error.kind in _ENDS:
            came = "its end" if error is None else "a pause" if error.kind == "paused" else f"{error}"
            diverged = self.journal.diverged(came)
            if diverged is not None:
                raise diverged

    @property
    def counted(self) -> dict[str, Any]:
        """What its run has counted, as JSON shapes."""
        run = self._scope
        return {
            "id": run.id,
            "calls": dict(run.calls),
            "retries": dict(run.retries),
            "completed": sorted(run.completed),
            "revealed": list(run.revealed),
            **self._followed.counted,
        }

    async def close(self) -> None:
        """Stop asking people."""
        if self._taking_up is not None and not self._taking_up.done():
            self._taking_up.cancel()
            await asyncio.wait([self._taking_up])

    # --- one call

    async def _live(
        self,
        entry: JournalEntry,
        args: list[Any],
        kwargs: dict[str, Any],
        emit: Emit | None,
        run: Callable[[ToolCall], Awaitable[Outcome]],
    ) -> Reply:
        tool = self._tools[entry.name]
        try:
            outcome, reply = await self._carry(entry.told, tool, args, kwargs, run)
            await self._came_to(entry, outcome, reply, told_otherwise=emit is not None or not self.journal.replays)
        except asyncio.CancelledError:
            if self._run_task is None or not self._run_task.cancelling():  # by the program, not with it
                entry.cancelled, entry.suspended = True, None
                self._write("cancelled", id=entry.id)
            raise
        return reply

    async def _came_to(self, entry: JournalEntry, outcome: Outcome, reply: Reply, *, told_otherwise: bool) -> None:
        """Keep what a call came to.

        Args:
            told_otherwise: The program gets its value again by its values, or has it in the engine's own state.
        """
        if isinstance(reply, SuspendedReply):
            entry.suspended = outcome if isinstance(outcome, Suspended) else None
            self._write("suspended", id=entry.id, outcome=outcome.to_dict(), in_doubt=entry.in_doubt)
            await self._flush()
            return
        entry.in_doubt = False
        noted = Value(None) if told_otherwise and isinstance(reply, Value) else reply
        if self._log is not None:
            self._write("ended", id=entry.id, reply=reply_to_dict(noted), told=entry.told)
            await self._flush()
        entry.reply = self._kept(noted)

    def _kept(self, reply: Reply) -> Reply:
        """Return a reply to keep: nothing of its value, once there is too much in all."""
        if isinstance(reply, Value):
            self._size += json_size(reply.value)
        return Value(None) if self.is_full and isinstance(reply, Value) else reply

    @property
    def is_full(self) -> bool:
        """Whether its calls gave more than is kept, so that the program cannot be run again."""
        return self._size > _MOST

    async def _begun(self, entry: JournalEntry, emit: Emit | None, call: ToolCall) -> Outcome:
        """Make a new call."""
        await self._started(entry)
        return await self._run(call, self._noting(entry, emit))

    async def _again(self, entry: JournalEntry, emit: Emit | None, call: ToolCall) -> Outcome:
        """Take up a call of the earlier run that came to nothing there."""
        self._asked[entry.id] = (call, emit)
        self._look()
        entry.cancelled = False  # a stream that was cut when its program paused, and of which it wants more now
        await self._until_caught_up()
        if self._taking_up is None:
            self._taking_up = asyncio.create_task(self._take_up())
        prepared = (await asyncio.shield(self._taking_up)).get(entry.id)
        if prepared is None:
            return await self._doubtful(entry, call, emit)
        if not isinstance(prepared, Prepared):
            return prepared
        await self._started(entry)
        performed = await self._pipeline.perform(prepared, self._scope)
        if not isinstance(performed, Performed):
            return performed
        return await self._pipeline.finish(performed, self._scope)

    # --- what waits

    async def _take_up(self) -> dict[str, Prepared | Outcome]:
        """Have the gates asked again for every call that waits, before any of them is made."""
        prepared: dict[str, Prepared | Outcome] = {}
        for entry in sorted(self._waiting, key=lambda entry: entry.id not in self._answers):  # they may hold for more
            _, emit = self._asked.get(entry.id, (None, None))
            if entry.suspended is not None and emit is None and not entry.values:
                answer = self._answers.get(entry.id)
                run = self._alone if entry.in_doubt and answer is None else self._scope
                made = await self._pipeline.prepare(entry.suspended, run, answer)
                prepared[entry.id] = _fitting(made)
        return prepared

    async def _doubtful(self, entry: JournalEntry, call: ToolCall, emit: Emit | None) -> Outcome:
        """Take up a stream that waits, or a call of which nobody knows how it ended."""
        answer = self._answers.get(entry.id)
        noting = self._noting(entry, emit, skipped=len(entry.values))
        if entry.suspended is None:
            entry.in_doubt = True
            if self._pipeline.toolset[call.name].tool.options.idempotent:
                await self._started(entry)
                return await self._run(call, noting)
            made = await self._pipeline.prepare(call, self._alone, hooks=_asking(call.name))
            if not isinstance(made, Suspended):  # a gate ended it
                return made if not isinstance(made, Prepared) else _unasked(call)
            return made
        if entry.in_doubt and answer is None:
            return entry.suspended
        await self._started(entry)
        return _fitting(await self._run(entry.suspended, noting, answer))

    @property
    def _alone(self) -> Run:
        """The run, with nobody in it who could answer a request that nobody has seen yet."""
        return replace(self._scope, approvals=None, approver=None)

    def _noting(self, entry: JournalEntry, emit: Emit | None, skipped: int = 0) -> Emit | None:
        if emit is None:
            return None
        left = skipped

        async def note(value: Any) -> None:
            nonlocal left
            if left:  # the program has it from before
                left -= 1
                return
            if self.journal.replays:
                self._size += json_size(value)
                if not self.is_full:
                    entry.values.append(value)
            self._write("value", id=entry.id, value=value)
            await self._flush()
            await emit(value)

        return note

    # --- the way back to where it was

    def _look(self) -> None:
        if self.journal.expected is None:
            self._caught_up.set()

    async def _until_caught_up(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self._caught_up.wait()
        except TimeoutError:
            self._break(self.journal.diverged("no further call") or ReplayDiverged("a call", "none"))
        if self._broken is not None:
            raise self._broken

    def _break(self, error: ReplayDiverged) -> None:
        self._broken = error
        self._caught_up.set()  # what is held back is told, and not made

    # --- keeping it

    async def _started(self, entry: JournalEntry) -> None:
        """Have it known that a call may have been made, before it is."""
        if self._log is not None:
            self._write("started", id=entry.id, name=entry.name, digest=entry.digest, told=entry.told)
            await self._flush()

    def _write(self, kind: str, **line: Any) -> None:
        if self._log is not None:
            self._log.write({"t": kind, **line})

    async def _flush(self) -> None:
        if self._log is not None:
            await self._log.flush()


def _fitting(made: Any) -> Any:
    """Return what came of a call that was taken up; an answer that cannot be used is told to the host."""
    if isinstance(made, Failed) and made.code == ApprovalError.code:
        raise made.exception or ApprovalError(made.tool, made.message)
    return made


def _asking(tool: str) -> HookSet:
    hooks = HookSet()

    async def ask(call: Any, given: Any) -> Ask:
        return Ask(_DOUBT)

    hooks.on(tool)(ask)
    return hooks


def _unasked(call: ToolCall) -> Failed:
    return Failed(call.name, call.id, ApprovalError.code, "nobody could be asked whether it is to be made once more")


def paused_from(program: Program, place: Resumable, host: JournalHost, state: Mapping[str, Any]) -> PausedProgram:
    """Return the paused program that a run left."""
    return PausedProgram(
        program.code,
        place.engine,
        program.tools,
        program.streams,
        program.signatures,
        place.replays,
        state,
        tuple(JournalEntry.from_dict(entry.to_dict()) for entry in host.journal.entries),
        host.counted,
    )

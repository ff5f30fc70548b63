"""The runner of a toolkit's programs: one path for every way to start a program, or to resume one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from typing_extensions import TypeIs

from toolcrib.approvals import Approver
from toolcrib.calls import Denial, Grant, ResultReader, Suspended, ToolCall
from toolcrib.code._activity import ProgramActivity, open_activity, record_refusal
from toolcrib.code._check import Finding
from toolcrib.code._claim import ProgramClaim, claimed
from toolcrib.code._host import ProgramHost
from toolcrib.code._journal import Journal, JournalEntry
from toolcrib.code._journal_host import JournalHost, JournalOptions, paused_program
from toolcrib.code._late_programs import ProgramOrigin, Refusal, not_begun, program_call, refusal
from toolcrib.code._listing import Listing
from toolcrib.code._paused import PausedProgram, SuspendedProgramCall, answers_by_call
from toolcrib.code._program_calls import ProgramCalls
from toolcrib.code._program_tools import ProgramTool, mentioned_in, program_names, tools_in
from toolcrib.code._result import ExecutionResult
from toolcrib.code._search_tools import Lookup, LookupHost, lookup_names
from toolcrib.errors import PausedProgramError, SandboxError
from toolcrib.hooks import ModelInput
from toolcrib.pipeline import Pipeline, Run, require_run, run_for, visible_names
from toolcrib.record import ListSink, Sink
from toolcrib.sandbox import (
    Dialect,
    HasDialect,
    HasSessionValues,
    Host,
    Program,
    ProgramFiles,
    Resumable,
    Sandbox,
    SandboxLimits,
    SandboxResult,
    SessionValues,
    default_sandbox,
    read_files,
)
from toolcrib.toolsets import Toolset

OnOutput = Callable[[str, str], None]
NO_FILES: ProgramFiles = MappingProxyType({})

_BYTES_FOR_CHAR = 32  # of a program's memory, for each character of a result that it is given as values
_NO_COUNTERS: Mapping[str, Any] = MappingProxyType({})

_resumable: dict[type[Any], bool] = {}


def _is_resumable(sandbox: object) -> TypeIs[Resumable]:
    """Return whether a sandbox can resume programs; looked at once for each class, since `isinstance` takes long."""
    kind = type(sandbox)
    if kind not in _resumable:
        _resumable[kind] = isinstance(sandbox, Resumable)
    return _resumable[kind]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of one program's run.

    Attributes:
        run: The run that its calls belong to; one of its own when None.
        on_output: A listener for what the program prints, and to which stream, while it runs.
        may_block: Nothing else happens on the event loop; see `Program.may_block`.
        sandbox: The sandbox, or the session of one, in which it runs; the toolkit's sandbox when None.
        journal: Where its calls are kept while it runs.
        files: The files that it is given.
        origin: Who wrote it: a `model`, or the `host`, or a model whose program the pipeline has asked about already.
    """

    run: Run | None = None
    on_output: OnOutput | None = None
    may_block: bool = False
    sandbox: Sandbox | None = None
    journal: Journal | None = None
    files: ProgramFiles = field(default_factory=lambda: NO_FILES)
    origin: ProgramOrigin = "model"


class ProgramRunner:
    """Runs the programs of one toolkit.

    Args:
        toolset: The tools, open.
        sandbox: Where programs run; the process's own when None.
        limits: The limits of one program.
        approver: The approver of runs that have none.
        deps: The `deps` of runs that have none.
        sinks: Where the events of calls go.

    Attributes:
        toolset: The tools.
        pipeline: The pipeline of the programs' calls.
        sinks: As given.
        names: The tools' own names, by the names that programs use.
        tools: The tools, by the names that programs use.
        lookup_names: The names by which programs call `search_tools` and `describe`.
    """

    def __init__(
        self,
        toolset: Toolset,
        sandbox: Sandbox | None,
        limits: SandboxLimits,
        approver: Approver | None,
        deps: Any,
        sinks: Iterable[Sink],
    ) -> None:
        self.toolset, self.limits = toolset, limits
        self._sandbox, self._approver, self._deps, self.sinks = sandbox, approver, deps, tuple(sinks)
        self.pipeline = Pipeline(toolset, sinks=self.sinks)
        self._programs = Pipeline([program_call], sinks=self.sinks)
        self.names = program_names(toolset.names())
        self.tools = {name: ProgramTool(name, toolset[tool].tool, tool) for name, tool in self.names.items()}
        self.lookup_names = lookup_names(self.names)

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox in which programs run; raises SandboxUnavailable when no sandbox is installed."""
        if self._sandbox is None:
            self._sandbox = default_sandbox()
        return self._sandbox

    @cached_property
    def dialect(self) -> Dialect | None:
        """The dialect of the sandbox's Python; None when the sandbox has none to give."""
        return self.sandbox.dialect if isinstance(self.sandbox, HasDialect) else None

    @cached_property
    def _table_bytes(self) -> int:
        """The bytes of tables that a program can take: none without a module that reads one."""
        return 0 if (self.dialect or Dialect()).table == Dialect().table else self.limits.bytes_in

    @cached_property
    def _reader(self) -> ResultReader:
        return ResultReader(value_chars=min(self.limits.reply_size, self.limits.memory // _BYTES_FOR_CHAR))

    @cached_property
    def _lookup(self) -> Lookup:
        dialect = self.dialect or Dialect()
        listing = Listing(
            {}, returns=True, streams=dialect.streams, lookup_names=self.lookup_names, table=dialect.table
        )
        return Lookup(self.toolset, self.names, listing)

    def offered(self, run: Run | None = None) -> dict[str, str]:
        """Return the tools that programs are offered, by the name they use."""
        allowed = None if run is None else run.available
        if allowed is None:
            allowed = self.toolset.offered()
        return {name: tool for name, tool in self.names.items() if tool in allowed}

    def callable_names(self, code: str, run: Run | None = None) -> dict[str, str]:
        """Return the tools that a program can name: those on offer, and those it might find and then call.

        A tool that has to be found first, or that is withheld from the run now, is only there for a program that
        mentions it, and no hint of an error names it; its call is refused until then.
        """
        offered = self.offered(run)
        known = frozenset(visible_names(self.toolset, run_for(run, "code")))
        withheld = [name for name, tool in offered.items() if tool not in known]
        hidden = [name for name, tool in self.names.items() if name not in offered and self.toolset[tool].off]
        if not (hidden or withheld):
            return offered
        named = {*tools_in(code, hidden), *mentioned_in(code, withheld)}
        return {name: tool for name, tool in self.names.items() if tool in known or name in named}

    @property
    def function_names(self) -> tuple[str, ...]:
        """The names that programs call: those of the tools, of `search_tools` and of `describe`."""
        return (*self.tools, *self.lookup_names)

    # --- running

    async def run(self, code: str, options: RunOptions) -> ExecutionResult:
        """Run a program, and return its result.

        Raises:
            SandboxError: No worker could be had; nothing ran.
            Exception: An exception of an observer.
        """
        sandbox = options.sandbox or self.sandbox
        run, records = self.open_run(options.run)
        program = self._program(code, run, options, await self.read(options.files))
        activity, run = self._open_activity(program, sandbox, run)
        with activity.within():
            refused = await refusal(self._programs, code, run) if options.origin == "model" else None
            if refused is not None:
                paused = None
                if _is_resumable(sandbox):
                    unmade = JournalOptions(ProgramCalls(replays=sandbox.replays))
                    host = JournalHost(self.pipeline, run, self.tools, None, unmade, activity)
                    paused = paused_program(program, sandbox, host, {})
                return await self._not_begun(refused, paused, activity, records, options)
            _intend(code, program, run)
            if not _is_resumable(sandbox):
                host = ProgramHost(self.pipeline, run, self.tools, options.on_output, activity)
                ended = await sandbox.run(program, self._with_lookup(host, run))
                return activity.close(_result(ended, host, records))
            opened = JournalOptions(ProgramCalls(replays=sandbox.replays), journal=options.journal)
            host = JournalHost(self.pipeline, run, self.tools, options.on_output, opened, activity)
            if options.journal is not None:
                options.journal.append(paused_program(program, sandbox, host, {}).entry())
            program = host.with_journal(program)
            running = sandbox.run(program, self._with_lookup(host, run))
            return activity.close(await self._journalled(program, host, sandbox, running, records, options))

    async def resume(
        self, paused: PausedProgram, answers: Iterable[Grant | Denial], options: RunOptions
    ) -> ExecutionResult:
        """Resume a paused program, and return its result; see `Toolkit.resume_async`."""
        if not isinstance(paused, PausedProgram):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(f"`paused` is {paused!r:.80}; give `result.paused`, or PausedProgram.from_bytes(...)")
        if options.run is not None:
            require_run(options.run)
        async with claimed(None if options.run is None else options.run.approvals, paused) as claim:
            if claim.result is not None:
                return claim.result
            result = await self._resume(paused, answers, options, claim)
            claim.close(paused, result)
            return result

    async def _resume(
        self, paused: PausedProgram, answers: Iterable[Grant | Denial], options: RunOptions, claim: ProgramClaim
    ) -> ExecutionResult:
        sandbox = options.sandbox or self.sandbox
        if not isinstance(sandbox, Resumable):
            kind = type(sandbox).__name__
            raise PausedProgramError(f"{kind} cannot take up any program; it is one of {paused.engine}")
        if sandbox.engine != paused.engine:
            raise PausedProgramError(f"it was run by {paused.engine}, and this is {sandbox.engine}")
        if missing := [name for name in paused.functions if name not in self.function_names]:
            raise PausedProgramError(f"it calls `{missing[0]}`, and this toolkit has no such tool")
        found = answers_by_call(paused, answers)
        asked = [paused.question, *(call.suspended for call in paused.calls)]
        suspended = {call.request.call_id: call for call in asked if call is not None}
        for call_id, answer in found.items():
            self.pipeline.check_answer(answer.tool, answer, suspended.get(call_id), options.run)
        begins = not paused.state and (paused.replays or paused.question is not None)
        repeated: frozenset[str] = frozenset()
        if claim.entries:
            asked = {call.request_id for call in paused.suspended_calls}
            paused = replace(paused.with_entries(claim.entries), question=None)
            repeated = frozenset(entry.call_id for entry in claim.entries)
            waiting = {call.call_id for call in paused.suspended_calls if call.request_id in asked}
            found = {call_id: answer for call_id, answer in found.items() if call_id in waiting}
        run, records = self.open_run(options.run, paused.run)
        program = self._resumed(paused, options)
        held_back = bool(paused.state.get("suspended")) and not paused.state.get("cut")  # see `Resumable.resume`
        calls = ProgramCalls(paused.journal, replays=paused.replays, open_last=held_back, repeated=repeated)
        replay_seconds = self.limits.program_time + self.limits.sleep_time  # later the limits would have ended it
        opened = JournalOptions(calls, found, replay_seconds, options.journal or claim.journal)
        activity, run = self._open_activity(program, sandbox, run, paused.run)
        is_new = begins and not paused.state  # its process ended before the sandbox had begun it, or saved a state
        with activity.within():
            if paused.question is not None:
                answer = found.pop(paused.question.call_id, None)
                refused = await refusal(self._programs, paused.code, run, paused.question, answer)
                if refused is not None:
                    return await self._not_begun(refused, paused, activity, records, options)
                paused = replace(paused, question=None)
            _intend(paused.code, program, run)  # its counters say whether the run had read text of others by then
            host = JournalHost(self.pipeline, run, self.tools, options.on_output, opened, activity)
            if options.journal is not None:
                options.journal.append(paused.entry())
            program, served = host.with_journal(program), self._with_lookup(host, run)
            running = sandbox.run(program, served) if is_new else sandbox.resume(program, paused.state, served)
            return activity.close(await self._journalled(program, host, sandbox, running, records, options))

    async def _not_begun(
        self,
        refused: Refusal,
        paused: PausedProgram | None,
        activity: ProgramActivity,
        records: ListSink | None,
        options: RunOptions,
    ) -> ExecutionResult:
        """Return the result of a program that a person is asked about, or that may not begin."""
        stored = None
        if isinstance(refused, Suspended):
            activity.suspended(refused.request)
            stored = None if paused is None else replace(paused, question=refused)
        if options.journal is not None:
            options.journal.append(JournalEntry("done") if stored is None else stored.entry())
            await options.journal.flush()
        result = not_begun(refused, stored)
        return activity.close(replace(result, records=() if records is None else tuple(records.records)))

    async def _journalled(
        self,
        program: Program,
        host: JournalHost,
        sandbox: Resumable,
        running: Coroutine[Any, Any, SandboxResult],
        records: ListSink | None,
        options: RunOptions,
    ) -> ExecutionResult:
        """Return the result of a program that runs with a journal, paused where it waits for a person."""
        try:
            ended = await running
        finally:
            await host.close()
        host.check_end(ended.error, reruns=options.journal is not None)
        paused = None
        is_paused = ended.error is not None and ended.error.kind == "paused"
        if is_paused and ended.state is not None and not host.is_full:
            paused = paused_program(program, sandbox, host, ended.state)
        if options.journal is not None:
            options.journal.append(JournalEntry("done") if paused is None else paused.entry())
            await options.journal.flush()
        return _result(ended, host, records, paused)

    async def session_values(self, session: HasSessionValues, run: Run) -> SessionValues:
        """Return the data that the programs of a session left; raises SandboxError where it cannot be had."""
        run, _ = self.open_run(run)
        return await session.values(
            self._program("", run, RunOptions(), {}), ProgramHost(self.pipeline, run, self.tools)
        )

    def refuse(self, code: str, options: RunOptions, findings: list[Finding]) -> None:
        """Record a program that does not run, because it cannot work."""
        run, _ = self.open_run(options.run)
        record_refusal(code, run, self.sinks, {"tools": list(self.names)}, findings)

    def _open_activity(
        self, program: Program, sandbox: object, run: Run, before: Mapping[str, Any] = _NO_COUNTERS
    ) -> tuple[ProgramActivity, Run]:
        """Return the activity of a program that begins, and the run that the program's calls belong to."""
        about = {"sandbox": type(sandbox).__name__, "tools": list(program.tools)}
        activity = open_activity(program.code, run, self.sinks, about, before)
        return activity, activity.run or run

    def open_run(self, host_run: Run | None, before: Mapping[str, Any] = _NO_COUNTERS) -> tuple[Run, ListSink | None]:
        """Return the run of a program, and the sink of its records; the toolkit supplies what the host's run lacks.

        Args:
            host_run: The run of the host; None for another one.
            before: The counters of a program that was paused; a run that has counted no calls goes on from there.
        """
        run = run_for(host_run, "code", run_id=before.get("id", ""))
        self.pipeline.check_run(run)
        options = {"deps": self._deps, "approver": self._approver}
        options = {name: options[name] for name in options if options[name] is not None and getattr(run, name) is None}
        run = run.view(**options, reader=self._reader)
        run.read_input(ModelInput("tools", self.toolset))
        if before and not run.calls:
            run.restore(before)
        if not (self.sinks or run.sinks):
            return run, None
        records = ListSink()
        return run.with_sinks(records), records

    async def read(self, files: ProgramFiles) -> Mapping[str, bytes]:
        """Return the files that a program is given.

        Raises:
            OSError: One of them cannot be read.
            SandboxError: The sandbox shows programs no files.
            TypeError: A file is neither bytes nor a path.
            ValueError: A name is invalid, or they are too many or too large.
        """
        if not files:
            return {}
        if self.dialect is None or not self.dialect.files:
            raise SandboxError(
                f"{type(self.sandbox).__name__} shows programs no files. ProcessSandbox does, on Linux: "
                'Toolkit(tools, sandbox="process")'
            )
        return await asyncio.to_thread(read_files, files, self.limits.bytes_in)

    # --- what the sandbox is given

    def _with_lookup(self, host: ProgramHost, run: Run) -> Host:
        """Return the host of a program, which answers `search_tools` and `describe`, too."""
        host.table_bytes = self._table_bytes
        return LookupHost(host, self._lookup, run)

    def _program(self, code: str, run: Run, options: RunOptions, files: Mapping[str, bytes]) -> Program:
        named = self.callable_names(code, run)
        return Program(
            code,
            (*named, *self.lookup_names),
            streams=frozenset(name for name, tool in named.items() if self.toolset[tool].tool.is_streaming),
            signatures={name: self.tools[name].signature for name in named} | self._lookup.signatures,
            limits=self.limits,
            may_block=options.may_block,
            files=files,
        )

    def _resumed(self, paused: PausedProgram, options: RunOptions) -> Program:
        """Return the program with room for all suspended calls, which are held back until each has been asked for."""
        suspended = sum(call.is_open for call in paused.calls)
        limits = replace(self.limits, calls_in_flight=max(self.limits.calls_in_flight, suspended + 1))
        return Program(
            paused.code,
            tuple(name for name in paused.tools if name in self.function_names),
            streams=paused.streams,
            signatures=paused.signatures,
            limits=limits,
            may_block=options.may_block,
            files=paused.files,
        )


def _result(
    ended: SandboxResult, host: ProgramHost, records: ListSink | None, paused: PausedProgram | None = None
) -> ExecutionResult:
    error = ended.error
    if ended.artifacts:
        host.run.read_input(ModelInput("artifacts", ended.artifacts))
    if paused is not None:
        calls = paused.suspended_calls
    else:
        is_paused = error is not None and error.kind == "paused"
        calls = tuple(SuspendedProgramCall(request) for request in host.suspended) if is_paused else ()
    errors = [ended.error_output, "" if error is None else error.traceback]
    return ExecutionResult(
        output=ended.output,
        error_output="\n".join(text.rstrip("\n") for text in errors if text),
        return_value=ended.value,
        tool_calls=host.calls,
        success=error is None,
        error=None if error is None else str(error),
        isolation=ended.isolation,
        suspended=tuple(call.request for call in calls),
        records=() if records is None else tuple(records.records),
        suspended_calls=calls,
        paused=paused,
        artifacts=ended.artifacts,
    )


def _intend(code: str, program: Program, run: Run) -> None:
    """Read a program, which may count as the user's text, and its files into the features of a run."""
    run.read_input(ModelInput("program", code))
    for path, data in program.files.items() if run.features else ():
        text = data.decode("utf-8", errors="replace")
        run.read_input(
            ModelInput("restored", text, request=ToolCall("file", {"path": path}, ""), key=f"file {path} {text}")
        )

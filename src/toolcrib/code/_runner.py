"""Runs programs for a toolkit: one path for all the ways that a program is started."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol

from typing_extensions import TypeIs

from toolcrib.approvals import Approver
from toolcrib.calls import Denial, Grant
from toolcrib.code._check import Finding
from toolcrib.code._host import ProgramHost, ProgramTool
from toolcrib.code._journal import Journal, JournalLog
from toolcrib.code._journal_host import Continuation, JournalHost, paused_from
from toolcrib.code._listing import Listing
from toolcrib.code._match_answers import answers_for
from toolcrib.code._names import program_names
from toolcrib.code._paused import PausedProgram, SuspendedProgramCall
from toolcrib.code._program_trace import FollowedProgram, follow_program, tell_refused
from toolcrib.code._result import ExecutionResult
from toolcrib.code._search_tools import Lookup, LookupHost, finder_names
from toolcrib.errors import PausedProgramError, SchemaError
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import ListSink, Sink
from toolcrib.sandbox import (
    Dialect,
    HasDialect,
    Host,
    Program,
    Resumable,
    Sandbox,
    SandboxLimits,
    SandboxResult,
    default_sandbox,
)
from toolcrib.toolsets import ToolEntry, Toolset

__all__ = ["OnOutput", "Place", "RunOptions", "Runs"]

OnOutput = Callable[[str, str], None]

_BY_TEXT = re.compile(r"\b(?:globals|eval|exec|locals|vars)\b")
"""A program with one of these may name a function without writing it down."""


class Place(Protocol):
    """Where one program runs: a sandbox, or a session of one."""

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run a program to its end; see `Sandbox.run`."""
        ...


_resumable: dict[type[Any], bool] = {}


def _is_resumable(place: object) -> TypeIs[Resumable]:
    """Return whether programs can be taken up there; looked at once for each class, as looking takes its time."""
    kind = type(place)
    if kind not in _resumable:
        _resumable[kind] = isinstance(place, Resumable)
    return _resumable[kind]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How one program is run.

    Attributes:
        run: The run that its calls belong to; one of its own when None.
        on_output: Told what is printed, and to which stream, while the program runs.
        may_block: Nothing else happens on the event loop; see `Program.may_block`.
        place: Where it runs; the toolkit's sandbox when None.
        journal: Where its calls are kept while it runs.
    """

    run: Run | None = None
    on_output: OnOutput | None = None
    may_block: bool = False
    place: Place | None = None
    journal: JournalLog | None = None


class Runs:
    """What the programs of one toolkit have in common.

    Args:
        toolset: The tools, open.
        sandbox: Where programs run; the process's own when None.
        limits: What one program may use.
        approver: The approver of runs that have none.
        deps: The `deps` of runs that have none.
        sinks: Where the events of calls go.

    Attributes:
        toolset: The tools.
        names: The tools' own names, by the names that programs use.
        finders: What programs call `search_tools` and `describe`.
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
        self._sandbox, self._approver, self._deps, self._sinks = sandbox, approver, deps, tuple(sinks)
        self._pipeline = Pipeline(toolset, sinks=self._sinks)
        self.names = program_names(toolset.names())
        self.finders = finder_names(self.names)
        self._signed: dict[str, str] = {}
        self._lookup: Lookup | None = None
        self._dialect: tuple[Dialect | None] | None = None
        self._tools = {name: ProgramTool(tool, toolset[tool].tool.spec) for name, tool in self.names.items()}

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """Where the events of calls go."""
        return self._sinks

    @property
    def sandbox(self) -> Sandbox:
        """Where programs run; raises SandboxUnavailable when there is no such place."""
        if self._sandbox is None:
            self._sandbox = default_sandbox()
        return self._sandbox

    def offered(self, run: Run | None = None) -> dict[str, str]:
        """Return the tools that programs are offered, by the name they use."""
        allowed = None if run is None else run.available
        if allowed is None:
            allowed = self.toolset.offered()
        return {name: tool for name, tool in self.names.items() if tool in allowed}

    def callable_names(self, code: str, run: Run | None = None) -> dict[str, str]:
        """Return the tools that a program can name: those on offer, and those it might find and then call.

        A tool that has to be found first is only there for a program that mentions it; its call is refused until then.
        """
        offered = self.offered(run)
        hidden = {name: tool for name, tool in self.names.items() if name not in offered and self.toolset[tool].off}
        if hidden and not _BY_TEXT.search(code):
            words = set(re.findall(r"\w+", code.replace(".", "__"))) | set(re.findall(r"\w+", code))
            hidden = {name: tool for name, tool in hidden.items() if name in words}
        return offered | hidden if hidden else offered

    @property
    def dialect(self) -> Dialect | None:
        """What the sandbox's Python has; None when it does not say."""
        if self._dialect is None:
            sandbox = self.sandbox
            self._dialect = (sandbox.dialect if isinstance(sandbox, HasDialect) else None,)
        return self._dialect[0]

    def signature(self, name: str) -> str:
        """Return how programs call a tool, by the name they use."""
        if name not in self._signed:
            self._signed[name] = _signature(name, self.toolset[self.names[name]])
        return self._signed[name]

    async def run(self, code: str, options: RunOptions) -> ExecutionResult:
        """Run a program, and return how it went.

        Raises:
            SandboxError: No worker could be had; nothing ran.
            Exception: What an observer raised.
        """
        place = options.place or self.sandbox
        run, watch = self._opened(options.run)
        program = self._program(code, run, options)
        followed, run = self._follow(program, place, run)
        with followed.running():
            if not _is_resumable(place):
                host = ProgramHost(self._pipeline, run, self._tools, options.on_output, followed)
                return followed.ended(_result(await place.run(program, self._answering(host, run)), host, watch))
            given = Continuation(Journal(replays=place.replays), log=options.journal)
            host = JournalHost(self._pipeline, run, self._tools, options.on_output, given, followed)
            if options.journal is not None:
                options.journal.write({"t": "program", **paused_from(program, place, host, {}).to_dict()})
                program = replace(program, save_state=host.save_state)
            run = place.run(program, self._answering(host, run))
            return followed.ended(await self._driven(program, host, place, run, watch, options))

    async def resume(
        self, paused: PausedProgram, answers: Iterable[Grant | Denial], options: RunOptions
    ) -> ExecutionResult:
        """Take up a program that paused, and return how it went on; see `Toolkit.resume_async`."""
        place = options.place or self.sandbox
        if not isinstance(place, Resumable):
            raise PausedProgramError(f"{type(place).__name__} cannot take up any program; it is one of {paused.engine}")
        if place.engine != paused.engine:
            raise PausedProgramError(f"it was run by {paused.engine}, and this is {place.engine}")
        missing = [name for name in paused.tools if name not in self._tools and name not in self.finders]
        if missing:
            raise PausedProgramError(f"it was offered `{missing[0]}`, and this toolkit has no such tool")
        found = answers_for(paused, answers)
        run, watch = self._opened(options.run, paused.run)
        program = self._resumed(paused, options)
        held_back = bool(paused.state.get("pending")) and not paused.state.get("cut")  # see `Resumable.resume`
        journal = Journal(paused.copied(), replays=paused.replays, open_last=held_back)
        given = Continuation(journal, found, _patience(self.limits), options.journal)
        followed, run = self._follow(program, place, run, paused.run)
        with followed.running():
            host = JournalHost(self._pipeline, run, self._tools, options.on_output, given, followed)
            if options.journal is not None:
                options.journal.write({"t": "program", **paused.to_dict()})
                program = replace(program, save_state=host.save_state)
            run = place.resume(program, paused.state, self._answering(host, run))
            return followed.ended(await self._driven(program, host, place, run, watch, options))

    def refused(self, code: str, options: RunOptions, findings: list[Finding]) -> None:
        """Tell whoever wants to know of a program that does not run, because it cannot work."""
        run, _ = self._opened(options.run)
        tell_refused(code, run, self._sinks, {"tools": list(self.names)}, findings)

    def _follow(
        self, program: Program, place: object, run: Run, before: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[FollowedProgram, Run]:
        """Tell whoever wants to know that a program begins; return it with the run that its calls belong to."""
        about = {"sandbox": type(place).__name__, "tools": list(program.tools)}
        followed = follow_program(program.code, run, self._sinks, about, before)
        return followed, followed.run or run

    async def _driven(
        self,
        program: Program,
        host: JournalHost,
        place: Resumable,
        run: Coroutine[Any, Any, SandboxResult],
        watch: ListSink | None,
        options: RunOptions,
    ) -> ExecutionResult:
        try:
            ended = await run
        finally:
            await host.close()
        host.ended(ended.error)
        paused = None
        waits = ended.error is not None and ended.error.kind == "paused"
        if waits and ended.state is not None and not host.is_full:
            paused = paused_from(program, place, host, ended.state)
        if options.journal is not None:
            options.journal.write({"t": "done"} if paused is None else {"t": "program", **paused.to_dict()})
            await options.journal.flush()
        return _result(ended, host, watch, paused)

    def _answering(self, host: ProgramHost, run: Run) -> Host:
        """Return the host of a program with what it can look up besides."""
        return LookupHost(host, self._look_up(), run)

    def _look_up(self) -> Lookup:
        if self._lookup is None:
            dialect = self.dialect
            streams = dialect is not None and dialect.streams
            listing = Listing({}, returns=True, streams=streams, finders=self.finders)
            self._lookup = Lookup(self.toolset, self.names, listing)
        return self._lookup

    def _program(self, code: str, run: Run, options: RunOptions) -> Program:
        named = self.callable_names(code, run)
        return Program(
            code,
            (*named, *self.finders),
            streams=frozenset(name for name, tool in named.items() if self.toolset[tool].tool.is_streaming),
            signatures={name: self.signature(name) for name in named} | self._look_up().signatures,
            limits=self.limits,
            may_block=options.may_block,
        )

    def _resumed(self, paused: PausedProgram, options: RunOptions) -> Program:
        """Return the program with room for all the calls that wait, which are held back until each has come."""
        waiting = sum(entry.is_open for entry in paused.journal)
        limits = replace(self.limits, calls_in_flight=max(self.limits.calls_in_flight, waiting + 1))
        return Program(
            paused.code,
            paused.tools,
            streams=paused.streams,
            signatures=paused.signatures,
            limits=limits,
            may_block=options.may_block,
        )

    def _opened(
        self, given: Run | None, before: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Run, ListSink | None]:
        """Return the run of a program, and who keeps its records; what the host's own leaves open is the toolkit's.

        Args:
            before: What was counted before it paused; a run of the host's that counted nothing yet goes on from there.
        """
        if given is None:
            run = Run(deps=self._deps, approver=self._approver, entry="code")
            run.id = before.get("id", run.id)
        else:
            run = replace(
                given,
                deps=self._deps if given.deps is None else given.deps,
                approver=given.approver or self._approver,
                entry="code" if given.entry == "pipeline" else given.entry,
            )
        if before and not run.calls:
            run.calls.update(before["calls"])
            run.retries.update(before["retries"])
            run.completed.update(before["completed"])
            run.revealed.update(dict.fromkeys(before["revealed"]))
        if not (self._sinks or run.sinks):
            return run, None
        watch = ListSink()
        return replace(run, sinks=(*run.sinks, watch)), watch


def _result(
    ended: SandboxResult, host: ProgramHost, watch: ListSink | None, paused: PausedProgram | None = None
) -> ExecutionResult:
    error = ended.error
    said = [ended.error_output, "" if error is None else error.traceback]
    waits = error is not None and error.kind == "paused"
    if paused is not None:
        pending = paused.suspended_calls
    else:
        pending = tuple(SuspendedProgramCall(request) for request in host.suspended) if waits else ()
    return ExecutionResult(
        output=ended.output,
        error_output="\n".join(text.rstrip("\n") for text in said if text),
        return_value=ended.value,
        tool_calls=host.calls,
        success=error is None,
        error=None if error is None else str(error),
        isolation=ended.isolation,
        suspended=tuple(call.request for call in pending),
        records=() if watch is None else tuple(watch.records),
        suspended_calls=pending,
        paused=paused,
    )


def _patience(limits: SandboxLimits) -> float:
    """Return after how many seconds a program that runs again would have been ended, if it still computed or slept."""
    return limits.program_time + limits.sleep_time


def _signature(name: str, entry: ToolEntry) -> str:
    try:
        signature = entry.tool.signature
    except SchemaError:  # the pipeline says so when it is called
        return f"{name}(...)"
    return signature.replace(entry.tool.name, name, 1)

"""Toolkits whose programs begin early: calls without effect start while the program's text still comes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Literal, Never, Protocol, TypeAlias

from toolcrib._numbers import require_number
from toolcrib.calls import Denial, Grant, Outcome, Suspended, ToolCall, new_call_id
from toolcrib.code._as_tool import TOOL_NAME
from toolcrib.code._early_scan import EarlyScan, LiteralCall, newlines
from toolcrib.code._result import ExecutionResult
from toolcrib.code._toolkit import Toolkit
from toolcrib.errors import explain_options
from toolcrib.pipeline import Pipeline, Run, current_run, is_call
from toolcrib.record import ActivityTrace, trace_activity

EarlyState: TypeAlias = Literal["running", "taken", "unused", "cancelled"]


class ArrivingCall(Protocol):
    """The part of a call in a streamed reply that has come so far: a `CallProgress` of rounds."""

    @property
    def place(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> Mapping[str, Any]: ...


@dataclass(slots=True)
class EarlyCall:
    """A call that started before its program had come whole.

    Attributes:
        id: The call's id, under which it is recorded.
        tool: The tool.
        arguments: The arguments, secrets hidden; None when they might hold one.
        state: Whether the program took its outcome, or did not ask for it (`unused`; `cancelled` where it still ran).
    """

    id: str
    tool: str
    arguments: Mapping[str, Any] | None
    state: EarlyState = "running"


@dataclass(slots=True)
class _Started:
    call: EarlyCall
    digest: str | None
    task: asyncio.Task[Outcome]


@dataclass(slots=True)
class _EarlyProgram:
    """A program that comes, and what was started of it."""

    scan: EarlyScan
    pipeline: _EarlyPipeline
    trace: ActivityTrace | None = None
    started: list[_Started] = field(default_factory=list[_Started])
    calls: list[EarlyCall] = field(default_factory=list[EarlyCall])

    def take(self, call: ToolCall) -> _Started | None:
        """Return the first started call with this tool and these arguments, once."""
        digest = _digest(call) if self.started else None
        found = next((started for started in self.started if digest is not None and started.digest == digest), None)
        if found is not None:
            self.started.remove(found)
        return found

    async def close(self) -> None:
        """Cancel what still runs and was not asked for, and record which calls were taken."""
        unused, self.started = self.started, []
        for started in unused:
            started.call.state = "unused" if started.task.done() else "cancelled"
            started.task.cancel()
        await asyncio.gather(*(started.task for started in unused), return_exceptions=True)
        if self.trace is not None:
            ids: dict[str, Any] = {}
            for call in self.calls:
                ids.setdefault(call.state, []).append(call.id)
            self.trace.closed("completed", **ids)


_running: ContextVar[_EarlyProgram | None] = ContextVar("toolcrib_early_program", default=None)


class _EarlyPipeline(Pipeline):
    """A pipeline in which a program's call takes the outcome of one that started early, in place of a second call."""

    async def run(
        self, call: Any, run: Run | None = None, *, grant: Grant | Denial | None = None, **unknown: Never
    ) -> Outcome:
        program = _running.get()
        request: Any = call.received if is_call(call) and call.state == "received" else call  # which its host has read
        if program is None or program.pipeline is not self or type(request) is not ToolCall or grant is not None:
            return await super().run(call, run, grant=grant)
        found = program.take(request)
        if found is None:
            return await super().run(call, run)
        outcome = await found.task
        found.call.state = "taken"
        return await super().run(outcome, run) if isinstance(outcome, Suspended) else outcome  # a person is asked now

    async def run_early(self, call: ToolCall, run: Run) -> Outcome:
        """Run a call before its program has come."""
        return await super().run(call, run)


@explain_options()
class EarlyToolkit(Toolkit):
    """A toolkit whose programs have calls without effect started while they still come; use it in `async with`.

    A call starts early when the program makes it in any case (at the top level, before anything that may branch or
    raise, and before a call of any other tool), with arguments that are written out, of a tool that is declared to have
    no effect (`effect="none"`), gives one result, and needs no approval. It passes the pipeline as any call, once: when
    the program then calls the same tool with the same arguments for the first time, it gets this outcome. The record
    has it with the entry `early`. What no program asks for is cancelled where it still runs, and has counted.

    A hook or an approval for the tool that takes programs is not asked before: only the gates of the tool that is
    called are. In a run with features, such as a `Provenance`, nothing starts early, since they read a program before
    its calls; nor does it in one with a recorder, where calls are made in an order that can be repeated.

    Args:
        toolkit: The tools and all options.
        run: The run that the programs belong to; only they take what started.
        name: The name of the tool that takes programs, as `as_tool` and the model have it.
        most: Calls of one program that may start early.

    Attributes:
        calls: All calls that started early.
    """

    def __init__(self, toolkit: Toolkit, run: Run, *, name: str = TOOL_NAME, most: int = 10) -> None:
        require_number("EarlyToolkit", "most", most, least=1)
        super().__init__(toolkit._toolset, **toolkit._options)
        self._run, self._name, self._most = run, name, most
        self._early = self._runner.pipeline = _EarlyPipeline(self._toolset, sinks=self._runner.sinks)
        self._programs: dict[int, _EarlyProgram] = {}
        self._dropped: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self.calls: list[EarlyCall] = []

    async def __aenter__(self) -> EarlyToolkit:
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop = None
        for place in list(self._programs):
            await self._programs.pop(place).close()
        await asyncio.gather(*self._dropped)

    def on_call(self, call: ArrivingCall) -> None:
        """Receive the part of a call that was streamed so far: a listener for `on_call` of a session or a round."""
        text = call.arguments.get("code")
        if call.name == self._name and isinstance(text, str):
            self.feed(text, call.place)

    def feed(self, text: str, place: int = 0) -> None:
        """Read the part of a program that was received so far.

        Args:
            text: All text of it so far.
            place: Which of several programs it is.

        Raises:
            RuntimeError: The toolkit is not in use: write `async with EarlyToolkit(...) as early`.
        """
        if self._loop is None:
            raise RuntimeError("this toolkit is not in use: write `async with EarlyToolkit(toolkit, run) as early`")
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(partial(self._feed, text, place))
        else:
            self._feed(text, place)

    def _feed(self, text: str, place: int) -> None:
        if self._loop is None or self._run.features or self._run.durability.recorder is not None:
            return
        text = newlines(text)
        program = self._programs.get(place)
        if program is None or not text.startswith(program.scan.consumed):
            if program is not None:
                self._drop(program)
            program = self._programs[place] = _EarlyProgram(self._scan(), self._early)
        for call in program.scan.read(text):
            if len(program.calls) < self._most:
                self._start(program, call)

    def _drop(self, program: _EarlyProgram) -> None:
        """Close a program in whose place another one comes."""
        task = asyncio.get_running_loop().create_task(program.close())
        self._dropped.add(task)
        task.add_done_callback(self._dropped.discard)

    def _scan(self) -> EarlyScan:
        runner = self._runner
        offered = runner.callable_names("", self._run)
        eligible = {name for name, tool in offered.items() if self._starts_early(tool)}
        dialect = runner.dialect
        return EarlyScan(eligible, runner.function_names, None if dialect is None else dialect.modules)

    def _starts_early(self, name: str) -> bool:
        entry = self._toolset[name]
        return entry.tool.options.effect == "none" and not entry.approvals and not entry.tool.is_streaming

    def _start(self, program: _EarlyProgram, call: LiteralCall) -> None:
        tool = self._runner.tools[call.name]
        arguments, fault = tool.bind(*tool.clipped(call.args, call.kwargs))
        request = ToolCall(tool.name, arguments, new_call_id(), fault=fault)
        run, _ = self._runner.open_run(self._run)
        if not program.calls:
            about = {"source": program.scan.consumed, "tools": sorted(program.scan.tools)}
            program.trace = trace_activity("program", "early calls", run, self.sinks, about=lambda: about)
        parent = {} if program.trace is None else {"parent_id": program.trace.id}
        run = run.view(entry="early", approver=None, approvals=None, **parent)
        started = EarlyCall(request.id, tool.name, tool.redacted(arguments))
        task = asyncio.get_running_loop().create_task(self._early.run_early(request, run))
        task.add_done_callback(_observed)
        program.started.append(_Started(started, _digest(request), task))
        program.calls.append(started)
        self.calls.append(started)

    async def execute_async(self, code: str, run: Run | None = None, **options: Any) -> ExecutionResult:
        """Run a program, which takes what started of it; see `Toolkit.execute_async`."""
        program = self._arrived(code, run)
        if program is None:
            return await super().execute_async(code, run, **options)
        token = _running.set(program)
        try:
            return await super().execute_async(code, run, **options)
        finally:
            _running.reset(token)
            await program.close()

    def _arrived(self, code: str, run: Run | None) -> _EarlyProgram | None:
        """Return the program that was streamed before, where it belongs to the run of this toolkit."""
        text = newlines(f"{code}\n")
        places = [place for place, program in self._programs.items() if text.startswith(program.scan.consumed)]
        active = current_run() if run is None else run
        if not places or active is None or active.run is not self._run.run or active.principal != self._run.principal:
            return None
        return self._programs.pop(max(places, key=lambda place: len(self._programs[place].scan.consumed)))


def _digest(call: ToolCall) -> str | None:
    """Return a text that only calls with the same tool and arguments have; None of arguments that are not JSON."""
    try:
        return json.dumps([call.name, call.arguments, call.fault], sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None


def _observed(task: asyncio.Task[Outcome]) -> None:
    """Retrieve the exception of a call whose result may never be used: an observer's, logged where it is raised."""
    if not task.cancelled():
        task.exception()

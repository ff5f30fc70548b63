"""Runs programs for a toolkit: one path for all the ways that a program is started."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from toolcrib.approvals import Approver
from toolcrib.code._host import ProgramHost, ProgramTool
from toolcrib.code._names import program_names
from toolcrib.code._result import ExecutionResult
from toolcrib.code.sandboxes import Host, Program, Sandbox, SandboxLimits, SandboxResult, default_sandbox
from toolcrib.invoke import ListSink, Pipeline, RunScope, Sink
from toolcrib.toolsets import Toolset

__all__ = ["OnOutput", "Place", "RunOptions", "Runs"]

OnOutput = Callable[[str, str], None]


class Place(Protocol):
    """Where one program runs: a sandbox, or a session of one."""

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run a program to its end; see `Sandbox.run`."""
        ...


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How one program is run.

    Attributes:
        scope: The run that its calls belong to; one of its own when None.
        on_output: Told what is printed, and to which stream, while the program runs.
        may_block: Nothing else happens on the event loop; see `Program.may_block`.
        place: Where it runs; the toolkit's sandbox when None.
    """

    scope: RunScope | None = None
    on_output: OnOutput | None = None
    may_block: bool = False
    place: Place | None = None


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
        self._tools = {name: ProgramTool(tool, toolset[tool].tool.spec) for name, tool in self.names.items()}

    @property
    def sandbox(self) -> Sandbox:
        """Where programs run; raises SandboxUnavailable when there is no such place."""
        if self._sandbox is None:
            self._sandbox = default_sandbox()
        return self._sandbox

    def offered(self, scope: RunScope | None = None) -> dict[str, str]:
        """Return the tools that programs are offered, by the name they use."""
        allowed = None if scope is None else scope.available
        if allowed is None:
            allowed = self.toolset.offered()
        return {name: tool for name, tool in self.names.items() if tool in allowed}

    async def run(self, code: str, options: RunOptions) -> ExecutionResult:
        """Run a program, and return how it went.

        Raises:
            SandboxError: No worker could be had; nothing ran.
            Exception: What an observer raised.
        """
        scope, watch = self._opened(options.scope)
        program = Program(code, tuple(self.offered(scope)), limits=self.limits, may_block=options.may_block)
        host = ProgramHost(self._pipeline, scope, self._tools, options.on_output)
        ended = await (options.place or self.sandbox).run(program, host)
        return _result(ended, host, watch)

    def _opened(self, given: RunScope | None) -> tuple[RunScope, ListSink | None]:
        """Return the run of a program, and who keeps its records; what the host's own leaves open is the toolkit's."""
        if given is None:
            scope = RunScope(deps=self._deps, approver=self._approver, door="code")
        else:
            scope = replace(
                given,
                deps=self._deps if given.deps is None else given.deps,
                approver=given.approver or self._approver,
                door="code" if given.door == "pipeline" else given.door,
            )
        if not (self._sinks or scope.sinks):
            return scope, None
        watch = ListSink()
        return replace(scope, sinks=(*scope.sinks, watch)), watch


def _result(ended: SandboxResult, host: ProgramHost, watch: ListSink | None) -> ExecutionResult:
    error = ended.error
    said = [ended.error_output, "" if error is None else error.traceback]
    return ExecutionResult(
        output=ended.output,
        error_output="\n".join(text.rstrip("\n") for text in said if text),
        return_value=ended.value,
        tool_calls=host.calls,
        success=error is None,
        error=None if error is None else str(error),
        isolation=ended.isolation,
        suspended=tuple(host.suspended),
        records=() if watch is None else tuple(watch.records),
    )

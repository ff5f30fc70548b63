"""A place where one program after another runs, each with the names that the last one left."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from types import TracebackType

from toolcrib._run_sync import run_sync
from toolcrib.code._attempts import Left, Programs, Retries, RetryHandler
from toolcrib.code._events import ProgramEvent, events_of
from toolcrib.code._result import ExecutionResult
from toolcrib.code._runner import OnOutput, RunOptions
from toolcrib.errors import SandboxError
from toolcrib.pipeline import Run
from toolcrib.record import ActivityTrace, Sink, trace_activity
from toolcrib.sandbox import HasSessions, SandboxSession

__all__ = ["ProgramSession", "opened_session"]


class ProgramSession:
    """Runs the programs of one conversation, one at a time; made by `Toolkit.session`.

    Variables, functions and imports stay from one program to the next, also from one that failed. All of them belong to
    one run: its limits count their calls together, and a tool that one of them found may be called by the next.

    A program that is ended from outside ends the session with it: at a limit, or at a call that waits for approval,
    which cannot be taken up here. With an approver the program waits. Close it, or use it in `with` or `async with`.
    """

    def __init__(
        self, programs: Programs, place: SandboxSession, run: Run, followed: ActivityTrace | None = None
    ) -> None:
        self._programs, self._place, self._followed = programs, place, followed
        self._scope = run if followed is None else replace(run, parent_id=followed.id)
        self._left = Left()
        self._runs = self._closed = False

    def execute(
        self, code: str, *, max_retries: int | None = None, retry_handler: RetryHandler | None = None
    ) -> ExecutionResult:
        """Run the next program from plain code; see `Toolkit.execute`."""
        run = self._run(code, RunOptions(may_block=True), Retries.of(max_retries, retry_handler))
        return run_sync(run, "write `await session.execute_async(code)`")

    async def execute_async(
        self,
        code: str,
        *,
        on_output: OnOutput | None = None,
        max_retries: int | None = None,
        retry_handler: RetryHandler | None = None,
    ) -> ExecutionResult:
        """Run the next program; see `Toolkit.execute_async`.

        Raises:
            SandboxError: The session is closed, or runs a program already.
        """
        return await self._run(code, RunOptions(on_output=on_output), Retries.of(max_retries, retry_handler))

    def stream(self, code: str) -> AsyncGenerator[ProgramEvent, None]:
        """Yield what happens in the next program; see `Toolkit.stream`."""

        async def start(on_output: OnOutput, sink: Sink) -> ExecutionResult:
            return await self._run(code, RunOptions(on_output=on_output), Retries(), sink)

        return events_of(start)

    async def _run(self, code: str, options: RunOptions, retries: Retries, sink: Sink | None = None) -> ExecutionResult:
        if self._closed:
            raise SandboxError("this session is closed; open another with toolkit.session()")
        if self._runs:
            raise SandboxError("this session runs a program already; wait for its end, or open a session for each user")
        run = self._scope if sink is None else replace(self._scope, sinks=(*self._scope.sinks, sink))
        self._runs = True
        try:
            return await self._programs.run(code, replace(options, run=run, place=self._place), retries, self._left)
        finally:
            self._runs = False

    def close(self) -> None:
        """End it; what its programs left is gone."""
        if not self._closed:
            self._closed = True
            self._place.close()
            if self._followed is not None:
                self._followed.closed("completed")

    def __enter__(self) -> ProgramSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> ProgramSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def opened_session(programs: Programs, run: Run | None) -> ProgramSession:
    """Return a session in the toolkit's sandbox.

    Raises:
        SandboxError: It keeps nothing between programs.
    """
    sandbox = programs.runs.sandbox
    if not isinstance(sandbox, HasSessions):
        raise SandboxError(
            f"{type(sandbox).__name__} keeps nothing from one program to the next. ProcessSandbox does, on Linux: "
            'Toolkit(tools, sandbox="process")'
        )
    run = run or Run()
    about = {"sandbox": type(sandbox).__name__, "tools": list(programs.runs.names)}
    followed = trace_activity("session", "session", run, programs.runs.sinks, about=lambda: about)
    return ProgramSession(programs, sandbox.session(), run, followed)

"""Sessions: programs that run one after another, each with the names that the last one left."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from types import TracebackType

from toolcrib._run_sync import run_sync
from toolcrib.calls import ToolCall
from toolcrib.code._attempts import Attempts, Retries, RetryHandler, SessionNames
from toolcrib.code._events import ProgramEvent, events_of
from toolcrib.code._program_session_state import ProgramSessionState
from toolcrib.code._result import ExecutionResult
from toolcrib.code._runner import NO_FILES, OnOutput, RunOptions
from toolcrib.errors import SandboxError, SessionStateError, explain_options
from toolcrib.hooks import ModelInput
from toolcrib.pipeline import Run, run_for
from toolcrib.record import ActivityTrace, Sink, trace_activity
from toolcrib.sandbox import (
    HasSessions,
    HasSessionValues,
    ProgramFiles,
    RestoresSessions,
    SandboxSession,
    require_files,
)


@explain_options()
class ProgramSession:
    """Runs the programs of one conversation, one at a time; made by `Toolkit.session`.

    Variables, functions and imports stay from one program to the next, also from one that failed. All programs belong
    to one run: its limits count their calls together, and a tool that one program found may be called by the next.

    A program that is ended from outside ends the session, too: at a limit, or at a call that is suspended, since
    a session cannot be resumed. With an approver the program waits. Close the session, or use it in `with` or
    `async with`.
    """

    def __init__(
        self,
        attempts: Attempts,
        session: SandboxSession,
        run: Run,
        trace: ActivityTrace | None = None,
        names: SessionNames | None = None,
    ) -> None:
        self._attempts, self._session, self._trace = attempts, session, trace
        self._run = run if trace is None else run.view(parent_id=trace.id)
        self._names, self._files = names or SessionNames(), dict[str, bytes]()
        self._is_running = self._is_closed = False

    def execute(
        self,
        code: str,
        *,
        files: ProgramFiles = NO_FILES,
        max_retries: int | None = None,
        retry_handler: RetryHandler | None = None,
    ) -> ExecutionResult:
        """Run the next program from plain code; see `Toolkit.execute`."""
        run = self._execute(code, RunOptions(may_block=True, files=files), Retries.of(max_retries, retry_handler))
        return run_sync(run, "write `await session.execute_async(code)`")

    async def execute_async(
        self,
        code: str,
        *,
        files: ProgramFiles = NO_FILES,
        on_output: OnOutput | None = None,
        max_retries: int | None = None,
        retry_handler: RetryHandler | None = None,
    ) -> ExecutionResult:
        """Run the next program; see `Toolkit.execute_async`.

        Args:
            files: The files that it is given, as are the programs after it.

        Raises:
            SandboxError: The session is closed, or runs a program already.
        """
        options = RunOptions(on_output=on_output, files=files)
        return await self._execute(code, options, Retries.of(max_retries, retry_handler))

    def stream(self, code: str, *, files: ProgramFiles = NO_FILES) -> AsyncGenerator[ProgramEvent, None]:
        """Yield the events of the next program; see `Toolkit.stream`."""

        async def start(on_output: OnOutput, sink: Sink) -> ExecutionResult:
            return await self._execute(code, RunOptions(on_output=on_output, files=files), Retries(), sink)

        return events_of(start)

    def state(self) -> ProgramSessionState:
        """Return the state of the session, from plain code; see `state_async`."""
        return run_sync(self.state_async(), "write `await session.state_async()`")

    async def state_async(self) -> ProgramSessionState:
        """Return the state of the session, with which `Toolkit.session` goes on from there, in any process.

        The session goes on as well. `left_out` of the state names what it does not carry. Files that the session was
        given are to be given again.

        Raises:
            SandboxError: The session is closed, runs a program, or is of a sandbox that gives no data away.
        """
        self._require_free()
        if not isinstance(self._session, HasSessionValues):
            raise SandboxError(f"a {type(self._session).__name__} does not give the data of its programs to anybody")
        self._is_running = True
        try:
            found = await self._attempts.runner.session_values(self._session, self._run)
        finally:
            self._is_running = False
        left_out = {**self._names.left_out, **found.left_out}
        left_out = {name: kind for name, kind in left_out.items() if name not in found.data}
        return ProgramSessionState(found.data, left_out, self._run.counted(), self._names.complete)

    def _require_free(self) -> None:
        if self._is_closed:
            raise SandboxError("this session is closed; open another with toolkit.session()")
        if self._is_running:
            raise SandboxError("this session runs a program already; wait for its end, or open a session for each user")

    async def _execute(
        self, code: str, options: RunOptions, retries: Retries, sink: Sink | None = None
    ) -> ExecutionResult:
        self._require_free()
        run = self._run if sink is None else self._run.with_sinks(sink)
        self._is_running = True
        try:
            require_files(options.files, self._files)
            self._files |= await self._attempts.runner.read(options.files)
            options = replace(options, run=run, sandbox=self._session, files=self._files)
            return await self._attempts.run(code, options, retries, self._names)
        finally:
            self._is_running = False

    def close(self) -> None:
        """End the session; the names that its programs left are gone."""
        if not self._is_closed:
            self._is_closed = True
            self._session.close()
            if self._trace is not None:
                self._trace.closed("completed")

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


def open_session(attempts: Attempts, run: Run | None, state: ProgramSessionState | None = None) -> ProgramSession:
    """Return a session in the toolkit's sandbox, which goes on from a state where one is given.

    Raises:
        SandboxError: The sandbox keeps nothing between programs.
        SessionStateError: The state is too large, or the sandbox takes none.
    """
    sandbox = attempts.runner.sandbox
    if not isinstance(sandbox, HasSessions):
        raise SandboxError(
            f"{type(sandbox).__name__} keeps nothing from one program to the next. ProcessSandbox does, on Linux: "
            'Toolkit(tools, sandbox="process")'
        )
    run = run_for(run, "code", run_id="" if state is None else state.run.get("id", ""))
    about = {"sandbox": type(sandbox).__name__, "tools": list(attempts.runner.names)}
    trace = trace_activity("session", "session", run, attempts.runner.sinks, about=lambda: about)
    if state is None:
        return ProgramSession(attempts, sandbox.session(), run, trace)
    most = attempts.runner.limits.value_size
    if state.size > most:
        raise SessionStateError(f"its data takes {state.size} characters, and {most} is the most (value_size)")
    if not isinstance(sandbox, RestoresSessions):
        raise SessionStateError(f"{type(sandbox).__name__} takes the data of no other session")
    # count on from the run of a state, and have its features read the data, whose origin is not known
    if state.run and not run.calls:
        run.restore(state.run)
    if run.features:
        text = json.dumps(dict(state.data), ensure_ascii=False)
        run.read_input(ModelInput("restored", text, request=ToolCall("session", {}, ""), key=f"session {text}"))
    names = SessionNames({*state.data}, state.complete, state.left_out)
    return ProgramSession(attempts, sandbox.restored_session(state.data), run, trace, names)

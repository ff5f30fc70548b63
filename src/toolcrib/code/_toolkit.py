"""The toolkit of code mode: tools as functions of model-written programs, their prompts, and the way to run them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Literal, overload

from toolcrib._numbers import count_text
from toolcrib._run_sync import run_sync
from toolcrib.approvals import Approver, joined_answers, require_approver
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.code._as_tool import (
    CODE_PARAMETERS,
    TOOL_NAME,
    AsyncProgramTool,
    OnResult,
    SyncProgramTool,
    program_tool,
)
from toolcrib.code._attempts import Attempts, ErrorHint, Retries, RetryHandler, TypeCheck, default_hint
from toolcrib.code._check import Finding
from toolcrib.code._events import ProgramEvent, events_of
from toolcrib.code._extract import Extract, extract_code, require_extract
from toolcrib.code._journal import Journal
from toolcrib.code._late_programs import ProgramOrigin
from toolcrib.code._listing import Listing
from toolcrib.code._paused import PausedProgram
from toolcrib.code._program_session_state import ProgramSessionState
from toolcrib.code._prompts import render_description, render_prompt, render_tool_prompt
from toolcrib.code._result import RESULT_CHARS, ExecutionResult
from toolcrib.code._runner import NO_FILES, OnOutput, ProgramRunner, RunOptions
from toolcrib.code._session import ProgramSession, open_session
from toolcrib.errors import SandboxUnavailable, UnknownTool, explain_missing, explain_options
from toolcrib.formats import FormatName, definition
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Run, run_for
from toolcrib.record import Sink, require_sinks
from toolcrib.sandbox import (
    Dialect,
    ProgramFiles,
    Sandbox,
    SandboxLimits,
    SandboxName,
    require_files,
    sandbox_named,
)
from toolcrib.tools import Tool
from toolcrib.toolsets import ToolEntry, Toolset, ToolsetLike

_OF_TOOLKIT: Mapping[str, str] = dict.fromkeys(
    ("timeout", "timeout_seconds", "wall_time"), "Toolkit(..., limits=SandboxLimits(wall_time=...)), in seconds"
)


@explain_missing(
    {
        **dict.fromkeys(("ainvoke", "arun", "invoke", "run", "run_code"), "`await toolkit.execute_async(code)`"),
        **dict.fromkeys(
            ("__enter__", "__aenter__"), "`with toolkit.session() as session:`, for programs that share names"
        ),
    }
)
@explain_options(_OF_TOOLKIT)
class Toolkit:
    """Runs Python that a model wrote, with tools as its functions; each call passes the pipeline like any other.

    Args:
        tools: A toolset, or a sequence of what one is made of.
        sandbox: The sandbox in which programs run, or its name: `process`, `monty`, or one that isolates nothing,
            `subprocess` and `unsafe_inline`. When None, this process's own, which keeps its workers warm.
        preamble: The first paragraph of `prompt()`, in place of the default.
        postamble: The last paragraph of `prompt()`, in place of the default.
        assist_tool_chaining: Show the model the shape of each tool's result.
        limits: The limits of one program.
        hooks: Decision hooks that are asked before the toolset's own.
        approver: The approver, who is asked while the program waits; without one the program ends at a call that needs
            approval.
        deps: The tools' `ctx.deps`.
        sinks: Where the events of calls go.
        typecheck: Have programs checked against the tools' types before the first call, by the checker that comes with
            the extra `monty`: `warn` puts its findings into `result.warnings` and runs the program, `error` does not
            run the program then.
        error_hint: The hint for a model after a failure, a text or `hint(result)`; by default it names the calls that
            were made already.
        extract: Which Python blocks of a model's reply are its program: `all` of them, one after the other, or the
            `first` alone.

    Raises:
        DuplicateNameError: Two tools would have one name in a program.
        MissingExtraError: `typecheck` needs the extra `monty`.
        ValueError: The toolset has to be opened first.
    """

    def __init__(
        self,
        tools: ToolsetLike,
        *,
        sandbox: Sandbox | SandboxName | None = None,
        preamble: str | None = None,
        postamble: str | None = None,
        assist_tool_chaining: bool = False,
        limits: SandboxLimits | None = None,
        hooks: HookSet | None = None,
        approver: Approver | None = None,
        deps: Any = None,
        sinks: Iterable[Sink] = (),
        typecheck: TypeCheck = "off",
        error_hint: ErrorHint | None = None,
        extract: Extract = "all",
    ) -> None:
        self._toolset = Toolset.of(tools)
        if not self._toolset.is_open:
            raise ValueError("open the toolset first: `async with tools.open() as bound: Toolkit(bound)`")
        if hooks is not None:
            self._toolset = self._toolset.with_hooks(hooks)
        if not isinstance(limits, SandboxLimits | None):  # pyright: ignore[reportUnnecessaryIsInstance] -- what a user gives
            mend = "limits of calls are given with a program: toolkit.execute(code, run=Run(limits=CallLimits(...)))"
            raise TypeError(
                f"`limits` of a toolkit must be SandboxLimits(memory=1 << 30), and not {limits!r:.80}; {mend}"
            )
        require_approver("a toolkit", approver)
        require_extract(extract)
        limits, sinks = limits or SandboxLimits(), require_sinks("Toolkit", sinks)
        sandbox = sandbox_named(sandbox) if isinstance(sandbox, str) else sandbox
        if sandbox is not None and (isinstance(sandbox, type) or not isinstance(sandbox, Sandbox)):  # pyright: ignore[reportUnnecessaryIsInstance] -- what a user gives
            raise TypeError(f"Toolkit: sandbox is {sandbox!r:.80}; give a sandbox, as in ProcessSandbox(), or its name")
        self._options: dict[str, Any] = {
            **{"sandbox": sandbox, "limits": limits, "approver": approver, "deps": deps, "sinks": sinks},
            **{"preamble": preamble, "postamble": postamble, "assist_tool_chaining": assist_tool_chaining},
            **{"typecheck": typecheck, "error_hint": error_hint, "extract": extract},
        }
        self._runner = ProgramRunner(self._toolset, sandbox, limits, approver, deps, sinks)
        hint = default_hint if error_hint is None else error_hint
        self._attempts = Attempts(self._runner, typecheck, hint, extract)

    # --- running

    @explain_options(_OF_TOOLKIT)
    def execute(
        self,
        code: str,
        run: Run | None = None,
        *,
        files: ProgramFiles = NO_FILES,
        journal: Journal | None = None,
        max_retries: int | None = None,
        retry_handler: RetryHandler | None = None,
        origin: ProgramOrigin = "model",
    ) -> ExecutionResult:
        """Run a program from plain code, and return its result; see `execute_async`.

        Raises:
            RuntimeError: An event loop is running here: use `await toolkit.execute_async(code)`.
            SandboxError: There is no sandbox for it; see `execute_async`.
        """
        options = RunOptions(run, may_block=True, journal=journal, files=files, origin=origin)
        program = self._attempts.run(code, options, Retries.of(max_retries, retry_handler))
        return run_sync(program, "write `await toolkit.execute_async(code)`")

    @explain_options(_OF_TOOLKIT)
    async def execute_async(
        self,
        code: str,
        run: Run | None = None,
        *,
        files: ProgramFiles = NO_FILES,
        on_output: OnOutput | None = None,
        journal: Journal | None = None,
        max_retries: int | None = None,
        retry_handler: RetryHandler | None = None,
        origin: ProgramOrigin = "model",
    ) -> ExecutionResult:
        """Run a program, and return its result; a program that fails has one, too.

        Cancelling stops the program and the calls that are running for it.

        Args:
            run: The run that its calls belong to; one of its own when None. The toolkit's `deps` and `approver` are
                its, where it has none.
            files: Files that the program can open by these names, read-only: each a path, or bytes. What it writes to
                `artifacts/` is in `result.artifacts`.
            on_output: A listener for what is printed, and to which stream, while the program runs.
            journal: Where its calls are kept while it runs, so that it can be resumed after a crash: a `FileJournal`.
            max_retries: How often a failed program may be mended; three times when only a handler is given.
            retry_handler: `handler(text, code, result)`, sync or async: given the text that a model is to be shown of a
                failed program, it returns the mended one, or a model's reply with it; None to leave it. Calls of the
                failed programs are not undone: they are in `result.tool_calls`, before those of the last. A paused
                program is never mended.
            origin: Who wrote it: the `host`'s own programs are not asked about where a policy is frozen. See
                `Provenance`.

        Raises:
            SandboxError: No worker could be had; nothing ran.
            SandboxUnavailable: There is no sandbox here; the message says what to install.
            ValueError: A file's name is invalid, or the files are too large.
            Exception: An exception of an observer.
        """
        options = RunOptions(run, on_output, journal=journal, files=files, origin=origin)
        return await self._attempts.run(code, options, Retries.of(max_retries, retry_handler))

    def stream(
        self, code: str, run: Run | None = None, *, files: ProgramFiles = NO_FILES
    ) -> AsyncGenerator[ProgramEvent, None]:
        """Yield the events of a program while it runs: what it prints, its calls, and last its result.

        The program does not wait for the reader; events that are not read yet are kept. Leaving early stops the program
        and its calls: put the generator into `contextlib.aclosing`, so that they stop at once.
        """

        async def start(on_output: OnOutput, sink: Sink) -> ExecutionResult:
            opened = run_for(run, "code")
            return await self._attempts.run(code, RunOptions(opened.with_sinks(sink), on_output, files=files))

        return events_of(start)

    def session(self, run: Run | None = None, *, state: ProgramSessionState | None = None) -> ProgramSession:
        """Return a session: programs that run in it find the names that earlier ones left.

        Open one for each user, and close it, or use it in `with` or `async with`.

        Args:
            run: The run that all its calls belong to; one of its own when None, which goes by the id that the state's
                had. A run that has counted no calls goes on from what the state's had.
            state: The state of another session, from which it goes on: `await session.state_async()`.

        Raises:
            SandboxError: The sandbox keeps nothing between programs; the message names one that does.
            SessionStateError: The state has more data than the limits allow.
        """
        return open_session(self._attempts, run, state)

    @explain_options(_OF_TOOLKIT)
    def resume(
        self,
        paused: PausedProgram,
        run: Run | None = None,
        *,
        grants: Iterable[Grant] = (),
        denials: Iterable[Denial] = (),
        journal: Journal | None = None,
    ) -> ExecutionResult:
        """Resume a paused program from plain code, and return its result; see `resume_async`.

        Raises:
            RuntimeError: An event loop is running here: use `await toolkit.resume_async(paused)`.
        """
        options = RunOptions(run, may_block=True, journal=journal)
        program = self._runner.resume(paused, joined_answers("toolkit.resume()", grants, denials), options)
        return self._attempts.with_hint(run_sync(program, "write `await toolkit.resume_async(paused)`"))

    @explain_options(_OF_TOOLKIT)
    async def resume_async(
        self,
        paused: PausedProgram,
        run: Run | None = None,
        *,
        grants: Iterable[Grant] = (),
        denials: Iterable[Denial] = (),
        on_output: OnOutput | None = None,
        journal: Journal | None = None,
    ) -> ExecutionResult:
        """Resume a paused program, and return its result.

        The calls it made are not made again. Each suspended call passes two gates once more: whether the tool is still
        available, and approval, with the answer given here, or one that the run's store has meanwhile. A denial is a
        PermissionError in the program. If calls are left without an answer, the result is paused again.

        Args:
            paused: `ExecutionResult.paused`, or `PausedProgram.from_bytes(...)`.
            run: The run that its calls belong to; one of its own when None, which goes by the id it had.
            grants: Grants for suspended calls, each as `result.suspended_calls[0].grant("ada")` makes it.
            denials: Denials of suspended calls.
            on_output: A listener for what is printed from here on.
            journal: Where its calls are kept while it runs.

        Raises:
            PausedProgramError: Another engine ran it, or this toolkit lacks one of its tools; nothing ran.
            ApprovalError: An answer fits no suspended call, or was used before; no suspended call was made.
            ReplayDiverged: The program did not do again what it did before; no suspended call was made.
            TypeError: The program, the run or an answer is something else.
        """
        options = RunOptions(run, on_output, journal=journal)
        answers = joined_answers("toolkit.resume_async()", grants, denials)
        return self._attempts.with_hint(await self._runner.resume(paused, answers, options))

    # --- before it runs

    def check(self, code: str) -> list[Finding]:
        """Return the mistakes that make a program fail, by line, without running it; `execute` looks first, too.

        These are wrong syntax, modules that the sandbox lacks, names that nothing defines, and tools with arguments
        that they do not take.
        """
        return self._attempts.check(code)

    # --- prompts

    def prompt(self, budget: int | None = None) -> str:
        """Return a system prompt for a model that answers with a program; see `extract_code` for its answer.

        Args:
            budget: Tokens that it may take, about: they are estimated by its words. What does not fit is left out step
                by step, of as few tools as can be: the arguments, the shapes of results, descriptions but for their
                first sentence, all descriptions, signatures, and names. A program can look up what is missing, with
                `describe(name)` and `search_tools(query)`, and the prompt says so. A budget that is too small even for
                that gets the shortest prompt there is.
        """
        preamble, postamble = self._options["preamble"], self._options["postamble"]
        return render_prompt(self._listing(), preamble, postamble, self._dialect(), budget)

    def tool_prompt(self) -> str:
        """Return a short text for a system prompt where programs go through one tool: one call for the whole job."""
        return render_tool_prompt(list(self._runner.offered()))

    def tool_schema(
        self, format: FormatName = "openai", *, name: str = TOOL_NAME, strict: bool = False, budget: int | None = None
    ) -> dict[str, Any]:
        """Return the definition of the one tool that takes programs, as a provider's `tools` parameter has it.

        Args:
            format: The provider, or `raw` for name, description and schema as they are.
            name: The tool's name for the model.
            strict: Have the provider hold the model to the schema.
            budget: Tokens that its description may take; see `prompt`.

        Raises:
            FormatError: The provider refuses the name, or has no strict mode.
        """
        return definition(name, self._description(budget), CODE_PARAMETERS, format, strict)

    @overload
    def as_tool(
        self,
        *,
        name: str = TOOL_NAME,
        sync: Literal[False] = False,
        budget: int | None = None,
        files: ProgramFiles = NO_FILES,
        on_result: OnResult | None = None,
        max_result_chars: int | None = RESULT_CHARS,
    ) -> AsyncProgramTool: ...

    @overload
    def as_tool(
        self,
        *,
        name: str = TOOL_NAME,
        sync: Literal[True],
        budget: int | None = None,
        files: ProgramFiles = NO_FILES,
        on_result: OnResult | None = None,
        max_result_chars: int | None = RESULT_CHARS,
    ) -> SyncProgramTool: ...

    @explain_options()
    def as_tool(
        self,
        *,
        name: str = TOOL_NAME,
        sync: bool = False,
        budget: int | None = None,
        files: ProgramFiles = NO_FILES,
        on_result: OnResult | None = None,
        max_result_chars: int | None = RESULT_CHARS,
    ) -> AsyncProgramTool | SyncProgramTool:
        """Return a function that runs a program and returns the text for the model, for any framework to register.

        Where the program left artifacts, it returns a list: the text, and each of them as `Media`. Its docstring lists
        the tools as they are now. A program that fails gives a text like any other. A call in it that needs approval,
        and has no approver, is denied: nobody would resume the program. With `on_result` the program is paused
        instead, for a host that takes it from there and resumes it.

        Args:
            name: The tool's name for the model.
            sync: A plain function instead of an async one, for a framework that wants it; not for use in an event loop.
            budget: Tokens that its description may take; see `prompt`.
            files: Files that each program can open by these names; see `execute_async`.
            on_result: A listener for the result of each program, which resumes those that are paused.
            max_result_chars: The most characters of a result that the model is shown, head and tail; None for all.
        """
        require_files(files)

        def run(code: str, *, origin: ProgramOrigin) -> Any:
            own_run = run_for(None, "code")
            if on_result is None and own_run.approver is None and self._options["approver"] is None:
                own_run = own_run.view(approver=_deny_in_program)
            return (self.execute if sync else self.execute_async)(code, own_run, files=files, origin=origin)

        return program_tool(
            run,
            name,
            self._description(budget, files),
            is_async=not sync,
            on_result=on_result,
            max_result_chars=max_result_chars,
            extract=self._options["extract"],
            has_artifacts=self._dialect().files,
            has_files=bool(files),
        )

    def _description(self, budget: int | None, files: Iterable[str] = ()) -> str:
        return render_description(self._listing(), self._dialect(), budget, files)

    def _listing(self) -> Listing:
        tools = {name: self._toolset[tool] for name, tool in self._runner.offered().items()}
        chaining = bool(self._options["assist_tool_chaining"])
        dialect = self._dialect()
        names = self._runner.lookup_names
        return Listing(tools, chaining, streams=dialect.streams, lookup_names=names, table=dialect.table)

    def _dialect(self) -> Dialect:
        """Return the dialect of the sandbox's Python, an empty one where it is not known."""
        with suppress(SandboxUnavailable):
            return self._runner.dialect or Dialect()
        return Dialect()

    def extract_code(self, text: str) -> str | None:
        """Return the Python in a model's reply, None when it has no Python; see `extract` of the toolkit."""
        return extract_code(text, self._options["extract"])

    # --- the tools

    @property
    def tools(self) -> list[Tool[..., Any]]:
        """The tools, in order."""
        return self._toolset.tools()

    @property
    def function_names(self) -> tuple[str, ...]:
        """The names that programs call: those of the tools, of `search_tools` and of `describe`."""
        return self._runner.function_names

    def get_tool(self, name: str) -> Tool[..., Any]:
        """Return a tool by its own name or the one that programs use; raises UnknownTool."""
        try:
            return self._toolset[self._runner.names.get(name, name)].tool
        except UnknownTool:
            raise UnknownTool(name, tuple(self._runner.names)) from None

    def filter(
        self,
        names: Iterable[str] | None = None,
        *,
        tags: Iterable[str] | None = None,
        where: Callable[[ToolEntry], bool] | None = None,
    ) -> Toolkit:
        """Return a toolkit with some of the tools, and everything else as it is here.

        Args:
            names: The tools' own names; UnknownTool for one that is not here.
            tags: Tools that have one of these.
            where: Tools for which this is true.
        """
        chosen = set(self._toolset.names() if names is None else (self._toolset[name].name for name in names))
        wanted = None if tags is None else frozenset(tags)
        selected = [
            entry.name
            for entry in self._toolset
            if entry.name in chosen and (wanted is None or entry.tool.tags & wanted) and (where is None or where(entry))
        ]
        return Toolkit(self._toolset.subset(selected), **self._options)

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """The sinks of the events of calls and programs."""
        return self._runner.sinks

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox in which programs run; raises SandboxUnavailable when no sandbox is installed."""
        return self._runner.sandbox

    def with_sandbox(self, sandbox: Sandbox) -> Toolkit:
        """Return a toolkit whose programs run in another sandbox, and everything else as it is here."""
        options: dict[str, Any] = {**self._options, "sandbox": sandbox}
        return Toolkit(self._toolset, **options)

    def with_hooks(self, hooks: HookSet) -> Toolkit:
        """Return a toolkit that asks these decision hooks first; raises ValueError where one is for an unknown tool."""
        return Toolkit(self._toolset.with_hooks(hooks), **self._options)

    def __repr__(self) -> str:
        return f"<Toolkit of {count_text(len(self._runner.names), 'tool')}>"


async def _deny_in_program(request: ApprovalRequest) -> Denial:
    name, reason = f"`{request.tool}`", f" ({request.reason})" if request.reason else ""
    reason_text = f"{name} needs a person's approval{reason}, which a program cannot wait for here"
    return request.deny(message=f"{reason_text}: call the tool {name} itself, where you have it, or go on without it")

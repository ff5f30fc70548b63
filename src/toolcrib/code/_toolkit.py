"""Toolkit: tools as functions of model-written programs, the prompt that asks for them, the sandbox that runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from toolcrib.approvals import Approver
from toolcrib.calls import Denial, Grant
from toolcrib.code._extract import extract_code
from toolcrib.code._journal import JournalLog
from toolcrib.code._paused import PausedProgram
from toolcrib.code._prompts import Listing, render_prompt, render_tool_prompt
from toolcrib.code._result import ExecutionResult
from toolcrib.code._runs import OnOutput, RunOptions, Runs
from toolcrib.code.sandboxes import Described, Sandbox, SandboxLimits
from toolcrib.errors import SandboxUnavailable, UnknownTool
from toolcrib.hooks import HookSet
from toolcrib.invoke import RunScope, Sink, run_sync
from toolcrib.tools import Tool
from toolcrib.toolsets import ToolEntry, Toolset, ToolsetLike

__all__ = ["Toolkit"]


class Toolkit:
    """Runs Python that a model wrote, with tools as its functions; each call goes over the counter like any other.

    Args:
        tools: A toolset, or a sequence of what one is made of.
        sandbox: Where programs run; the process's own when None, which keeps its workers warm.
        preamble: The first words of `prompt()`, in place of the usual ones.
        postamble: The last words of `prompt()`, in place of the usual ones.
        assist_tool_chaining: Tell the model the shape of each tool's result.
        limits: What one program may use.
        hooks: Decision hooks that are asked before the toolset's own.
        approver: Somebody who is asked while the program waits; without one it ends at a call that needs approval.
        deps: What the tools get as `ctx.deps`.
        sinks: Where the events of calls go.

    Raises:
        DuplicateNameError: Two tools would have one name in a program.
        ValueError: The toolset has to be opened first.
    """

    def __init__(
        self,
        tools: ToolsetLike,
        *,
        sandbox: Sandbox | None = None,
        preamble: str | None = None,
        postamble: str | None = None,
        assist_tool_chaining: bool = False,
        limits: SandboxLimits | None = None,
        hooks: HookSet | None = None,
        approver: Approver | None = None,
        deps: Any = None,
        sinks: Iterable[Sink] = (),
    ) -> None:
        self._toolset = Toolset.of(tools)
        if not self._toolset.is_open:
            raise ValueError("open the toolset first: `async with tools.open() as bound: Toolkit(bound)`")
        if hooks is not None:
            self._toolset = self._toolset.with_hooks(hooks)
        self._sandbox, self._limits = sandbox, limits or SandboxLimits()
        self._preamble, self._postamble, self._chaining = preamble, postamble, assist_tool_chaining
        self._approver, self._deps, self._sinks = approver, deps, tuple(sinks)
        self._runs = Runs(self._toolset, sandbox, self._limits, approver, deps, self._sinks)

    # --- running

    def execute(self, code: str, *, journal: JournalLog | None = None) -> ExecutionResult:
        """Run a program from plain code, and return how it went; see `execute_async`.

        Raises:
            RuntimeError: An event loop is running here: use `await toolkit.execute_async(code)`.
            SandboxError: There is no sandbox for it; see `execute_async`.
        """
        options = RunOptions(may_block=True, journal=journal)
        return run_sync(self._runs.run(code, options), "write `await toolkit.execute_async(code)`")

    async def execute_async(
        self,
        code: str,
        scope: RunScope | None = None,
        *,
        on_output: OnOutput | None = None,
        journal: JournalLog | None = None,
    ) -> ExecutionResult:
        """Run a program, and return how it went; a program that fails is a result, too.

        Cancelling stops the program and the calls that are running for it.

        Args:
            scope: The run that its calls belong to; one of its own when None. The toolkit's `deps` and `approver` are
                its, where it has none.
            on_output: Told what is printed, and to which stream, while the program runs.
            journal: Where its calls are kept while it runs, so that it can be taken up after a crash: a `FileJournal`.

        Raises:
            SandboxError: No worker could be had; nothing ran.
            SandboxUnavailable: There is no sandbox here; the message says what to install.
            Exception: What an observer raised, as everywhere.
        """
        return await self._runs.run(code, RunOptions(scope, on_output, journal=journal))

    def resume(
        self,
        paused: PausedProgram,
        *,
        grants: Iterable[Grant] = (),
        denials: Iterable[Denial] = (),
        journal: JournalLog | None = None,
    ) -> ExecutionResult:
        """Take up a paused program from plain code, and return how it went on; see `resume_async`.

        Raises:
            RuntimeError: An event loop is running here: use `await toolkit.resume_async(paused)`.
        """
        options = RunOptions(may_block=True, journal=journal)
        return run_sync(
            self._runs.resume(paused, (*grants, *denials), options), "write `await toolkit.resume_async(paused)`"
        )

    async def resume_async(
        self,
        paused: PausedProgram,
        scope: RunScope | None = None,
        *,
        grants: Iterable[Grant] = (),
        denials: Iterable[Denial] = (),
        on_output: OnOutput | None = None,
        journal: JournalLog | None = None,
    ) -> ExecutionResult:
        """Take up a paused program, and return how it went on.

        The calls it made are not made again. Each call that waits is asked about once more: whether the tool is still
        available, and for its approval, with the answer given here, or one that the run's store has meanwhile. A denial
        is a PermissionError in the program. With calls left that nobody answered, the result is paused again.

        Args:
            paused: `ExecutionResult.paused`, or `PausedProgram.from_bytes(...)`.
            scope: The run that its calls belong to; one of its own when None, which goes by the id it had.
            grants: Yes to calls that wait, each as `result.pending_calls[0].grant("ada")` makes it.
            denials: No to calls that wait.
            on_output: Told what is printed from here on.
            journal: Where its calls are kept while it runs.

        Raises:
            PausedProgramError: Another engine ran it, or this toolkit lacks one of its tools; nothing ran.
            ApprovalError: An answer fits no call that waits, or was used before; no waiting call was made.
            ReplayDiverged: The program did not do again what it did before; no waiting call was made.
        """
        return await self._runs.resume(paused, (*grants, *denials), RunOptions(scope, on_output, journal=journal))

    # --- telling a model

    def prompt(self) -> str:
        """Return a system prompt for a model that answers with a program; see `extract_code` for its answer."""
        notes: tuple[str, ...] = ()
        with suppress(SandboxUnavailable):
            sandbox = self._runs.sandbox
            notes = sandbox.notes if isinstance(sandbox, Described) else ()
        tools = {name: self._toolset[tool] for name, tool in self._runs.offered().items()}
        return render_prompt(Listing(tools, self._chaining), self._preamble, self._postamble, notes)

    def tool_prompt(self) -> str:
        """Return a short text for a system prompt where programs go through one tool: one call for the whole job."""
        return render_tool_prompt(list(self._runs.offered()))

    @staticmethod
    def extract_code(text: str) -> str | None:
        """Return the Python in a model's reply, None when there is none."""
        return extract_code(text)

    # --- the tools

    @property
    def tools(self) -> list[Tool[..., Any]]:
        """The tools, in order."""
        return self._toolset.tools()

    def get_tool(self, name: str) -> Tool[..., Any]:
        """Return a tool by its own name or the one that programs use; raises UnknownTool."""
        try:
            return self._toolset[self._runs.names.get(name, name)].tool
        except UnknownTool:
            raise UnknownTool(name, tuple(self._runs.names)) from None

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
        kept = [
            entry.name
            for entry in self._toolset
            if entry.name in chosen and (wanted is None or entry.tool.tags & wanted) and (where is None or where(entry))
        ]
        return Toolkit(
            self._toolset.subset(kept),
            sandbox=self._sandbox,
            preamble=self._preamble,
            postamble=self._postamble,
            assist_tool_chaining=self._chaining,
            limits=self._limits,
            approver=self._approver,
            deps=self._deps,
            sinks=self._sinks,
        )

    def __repr__(self) -> str:
        return f"<Toolkit of {len(self._runs.names)} tools>"

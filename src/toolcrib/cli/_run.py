"""The run of a command that calls tools, and the options of such commands: approval, deadline and record."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

import typer

from toolcrib._passwords import hide_passwords
from toolcrib._run_sync import run_sync
from toolcrib.cli._approver import ApprovalFlags, approver_of
from toolcrib.cli._database import open_events
from toolcrib.cli._find_toolset import open_toolset, tools_of
from toolcrib.cli._formatting import JsonOption, say
from toolcrib.cli._status import Status
from toolcrib.cli._terminal import Terminal
from toolcrib.errors import DatabaseError
from toolcrib.pipeline import Channel, Run
from toolcrib.record import Sink
from toolcrib.toolsets import Toolset

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a command that calls tools."""

    approve: Annotated[
        list[str] | None, typer.Option("--approve", metavar="NAME", help="Approve this tool's calls.")
    ] = None
    deny: Annotated[list[str] | None, typer.Option("--deny", metavar="NAME", help="Deny this tool's calls.")] = None
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Approve every call that is not denied.")] = False
    suspend: Annotated[bool, typer.Option("--suspend", help="Stop at a call that needs approval; exit status 3.")] = (
        False
    )
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", min=0.001, help="Stop the tool, or the program, after this long."),
    ] = None
    json: JsonOption = False
    record: Annotated[
        str | None,
        typer.Option(
            "--record",
            metavar="FILE",
            help="Append each call's record to this file, as JSON lines; to a .db, all events.",
        ),
    ] = None

    def flags(self, *, suspend: bool = False, message: str = "") -> ApprovalFlags:
        """Return the flags that decide about approval; raises BadParameter where they contradict one another.

        Args:
            suspend: Whether to suspend in any case.
            message: The text that the model is shown about a denied tool.
        """
        approve, deny, suspends = frozenset(self.approve or ()), frozenset(self.deny or ()), self.suspend or suspend
        if both := sorted(approve & deny):
            raise typer.BadParameter(f"`{both[0]}` is given to --approve and to --deny", param_hint="--approve")
        if self.yes and suspends:
            raise typer.BadParameter("--yes approves, so that nothing is left to suspend", param_hint="--suspend")
        return ApprovalFlags(approve, deny, self.yes, suspends, message)


@dataclass(frozen=True, slots=True)
class CliRun:
    """A target that is ready to run, and the run that its calls belong to.

    Attributes:
        flags: The flags that decide about approval.
        json: Whether stdout is for one JSON document and nothing else.
        terminal: The terminal of the person who runs the command.
    """

    toolset: Toolset
    run: Run
    flags: ApprovalFlags
    json: bool
    terminal: Terminal

    def wait(self, work: Callable[[CliRun], Coroutine[Any, Any, T]]) -> T:
        """Open the toolset and run `work` with it to its end; with `json`, what it prints goes to stderr."""
        with redirect_stdout(sys.stderr) if self.json else nullcontext():
            return run_sync(self._run_open(work))

    async def _run_open(self, work: Callable[[CliRun], Coroutine[Any, Any, T]]) -> T:
        async with open_toolset(self.toolset) as toolset:
            flags = self.flags.named(toolset)
            approver = approver_of(flags, toolset, self.terminal if Terminal.is_interactive() else None)
            run = self.run.view(approver=approver)
            return await work(replace(self, toolset=flags.gated(toolset), run=run, flags=flags))


@contextmanager
def open_run(
    target: str, options: RunOptions, flags: ApprovalFlags, terminal: Terminal | None = None, view: Sink | None = None
) -> Generator[CliRun]:
    """Load the target and prepare a run of its tools; the record file is closed at the end."""
    toolset = tools_of(target)
    flags = flags.named(toolset) if toolset.is_open else flags
    with recorder_of(options.record) as recorder:
        sinks = tuple(sink for sink in (recorder, view) if sink is not None)
        run = Run(sinks=sinks, channel=Channel(entry="cli", hook_errors="fail"))
        # what a tool raised is on stderr in a line; its traceback is in the record, and in a log that the target opens
        logging.getLogger("toolcrib.tools").addHandler(logging.NullHandler())
        yield CliRun(toolset, run, flags, options.json, terminal or Terminal())


@contextmanager
def recorder_of(name: str | None) -> Generator[Sink | None]:
    """Yield the sink that --record names; None without one."""
    if name is None:
        yield None
        return
    try:
        sink = open_events(name)
    except DatabaseError:
        raise
    except OSError as error:
        say(f"cannot write the record to {hide_passwords(name)}: {error.strerror}")
        raise typer.Exit(Status.MISUSED) from None
    with sink:
        yield sink

"""The commands `exec`, a program that calls the tools in a sandbox, and `resume`, which lets a paused one go on."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from toolcrib.approvals import answer_of
from toolcrib.calls import CallEvent, Denial, Grant, cut, lenient
from toolcrib.cli._approver import approver_of
from toolcrib.cli._find_toolset import TargetArgument
from toolcrib.cli._formatting import arguments_text, calls_table, print_json, result_text, say, write
from toolcrib.cli._paused import KeyOption, UsedAnswers, read_paused, signing_key, write_paused
from toolcrib.cli._run import CliRun, RunOptions, open_run
from toolcrib.cli._status import Status, exit_on_error, text_of
from toolcrib.cli._terminal import Terminal, escape_control
from toolcrib.code import ExecutionResult, PausedProgram, SandboxLimits, Toolkit
from toolcrib.errors import HookError, PausedProgramError

_BLANK = "\n\n"  # before the error itself, in the traceback of a hook that raised
_TRACEBACK = "Traceback (most recent call last):"  # it ends with the error


def execute(
    target: TargetArgument,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The program, or - to read it from stdin.", show_default=False)
    ],
    *,
    options: RunOptions,
    pause: Annotated[
        Path | None,
        typer.Option("--pause", metavar="FILE", help="Stop at a call that needs approval, and keep the program here."),
    ] = None,
    key: KeyOption = None,
) -> None:
    """Run a Python program that calls the tools of TARGET, in a sandbox, and show its output and its calls."""
    flags = options.flags(suspend=pause is not None)
    terminal = Terminal()
    view = ProgramView(terminal.console, live=not options.json)
    with exit_on_error():
        code = text_of(file)
        secret = None if pause is None else signing_key(key)
        with open_run(target, options, flags, terminal, view) as run:
            result = run.wait(lambda opened: _run_program(opened, code, view, options.timeout))
            file_written = None
            if pause is not None and secret is not None and result.paused is not None:
                write_paused(file_written := pause, result.paused, target, secret)
            status = show_program(run, result, file_written)
    raise typer.Exit(status)


async def _run_program(run: CliRun, code: str, view: ProgramView, timeout: float | None = None) -> ExecutionResult:
    """Run a program with the tools of the run, and show its output and its running calls.

    Without `timeout` it has the usual limits; the time that a person at the terminal takes does not count.
    """
    toolkit = Toolkit(run.toolset, limits=limits_for(timeout))
    run.terminal.pause_view = view.paused
    with view.shown():
        return await toolkit.execute_async(code, run.run, on_output=None if run.json else view.output)


def limits_for(timeout: float | None) -> SandboxLimits:
    """Return the limits of a program."""
    if timeout is not None:
        return SandboxLimits(program_time=timeout, wall_time=timeout)
    return SandboxLimits(wall_time=None) if Terminal.is_interactive() else SandboxLimits()


def show_program(run: CliRun, result: ExecutionResult, file: Path | None = None) -> Status:
    """Write the result of a program: its value to stdout, everything else to stderr; return the exit status.

    Args:
        file: The file that a paused program is in.
    """
    if run.json:
        document = {
            "success": result.success,
            "output": result.output,
            "error_output": result.error_output,
            "return_value": lenient(result.return_value),
            "error": result.error,
            "tool_calls": _calls(result),
            "suspended": [request.to_dict() for request in result.suspended],
            "isolation": list(result.isolation),
        }
        print_json(document | ({} if file is None else {"paused": str(file)}))
        return _status(result)
    if result.output and not result.output.endswith("\n"):
        write("\n")
    if result.return_value is not None:
        write(result_text(result.return_value))
    if result.tool_calls:
        run.terminal.console.print()
        run.terminal.console.print(calls_table(_calls(result)))
    for failed in (record.outcome for record in result.records if record.outcome.get("code") == HookError.code):
        say(f"\n{failed['reference']}: {failed['traceback'].rpartition(_BLANK)[2]}")  # the program was shown no more
    if result.suspended:
        for request in result.suspended:
            say(f"\n{request.text()}")
        suspended = ", ".join(f"`{request.tool}`" for request in result.suspended)
        if file is None:
            say(f"the program stopped: {suspended} needs approval and has not run")
        else:
            command = f"toolcrib resume {shlex.quote(str(file))}"
            say(f"the program is paused: {suspended} needs approval and has not run. Resume it with: {command}")
    elif result.error_output:
        say("\n" + result.error_output.rstrip("\n"))
    if result.error and not result.suspended and _TRACEBACK not in result.error_output:
        say("\n" + result.error)
    return _status(result)


def _status(result: ExecutionResult) -> Status:
    if result.suspended:
        return Status.SUSPENDED
    return Status.DONE if result.success else Status.FAILED


def _calls(result: ExecutionResult) -> list[dict[str, Any]]:
    """Return the calls, each with who said yes or no to it, where a person was asked."""
    approvals = {record.call_id: record.approval for record in result.records if record.approval is not None}
    return [
        call | ({"approval": approvals[call["id"]]} if call["id"] in approvals else {}) for call in result.tool_calls
    ]


def resume(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `exec --pause` wrote.", show_default=False)],
    *,
    options: RunOptions,
    message: Annotated[
        str, typer.Option("--message", metavar="TEXT", help="What the program is shown with --deny.")
    ] = "",
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="TARGET", help="Its tools; those it was started with when left out."),
    ] = None,
    key: KeyOption = None,
) -> None:
    """Resume a paused program: the suspended calls are shown, and approved or denied; those made are not repeated.

    FILE is removed when the program has ended, and written anew when it is paused once more.
    """
    flags = options.flags(message=message)
    terminal = Terminal()
    view = ProgramView(terminal.console, live=not options.json)
    with exit_on_error():
        secret = signing_key(key)
        paused = read_paused(file, secret)
        place = _target_of(paused, target)
        with open_run(place, options, flags, terminal, view) as run:
            result = run.wait(lambda opened: _resume_program(opened, paused, options.timeout, view))
            if result.paused is not None:
                write_paused(file, result.paused, place, secret)
            elif _has_resumed(paused, result):
                file.unlink(missing_ok=True)
            status = show_program(run, result, None if result.paused is None else file)
    raise typer.Exit(status)


def _target_of(paused: PausedProgram, given: str | None) -> str:
    """Return the target of a paused program: as given now, or as it was started.

    Raises:
        PausedProgramError: It was not paused by `toolcrib exec`, and no target is given.
    """
    if given is not None:
        return given
    target, folder = paused.note.get("target"), paused.note.get("folder")
    if not isinstance(target, str) or not isinstance(folder, str):
        raise PausedProgramError("it does not say where its tools are; give --target")
    if folder not in sys.path:
        sys.path.append(folder)
    return target


async def _resume_program(
    run: CliRun, paused: PausedProgram, timeout: float | None, view: ProgramView
) -> ExecutionResult:
    """Ask for an answer to each suspended call, and resume the program."""
    interactive = Terminal.is_interactive()
    flags = run.flags
    if not interactive:
        flags = replace(flags, suspend=True)  # a call without an answer stays suspended
    approver = approver_of(flags, run.toolset, run.terminal if interactive else None)
    grants: list[Grant] = []
    denials: list[Denial] = []
    for call in paused.suspended_calls:
        answer = await answer_of(approver, call.request)
        by_flag = flags.yes or call.tool in (*flags.approve, *flags.deny)
        if answer is not None and not run.json and (by_flag or not interactive):
            say(call.request.text())  # a person at the terminal has seen it
        if isinstance(answer, Grant):
            grants.append(answer)
        elif answer is not None:
            denials.append(answer)
    later = replace(flags, approve=frozenset())  # a name approves the calls that were seen, and no others
    asked_later = run.run.view(
        approver=approver_of(later, run.toolset, run.terminal if interactive else None), approvals=UsedAnswers()
    )
    toolkit = Toolkit(run.toolset, limits=limits_for(timeout))
    run.terminal.pause_view = view.paused
    with view.shown():
        return await toolkit.resume_async(
            paused,
            asked_later,
            grants=grants,
            denials=denials,
            on_output=None if run.json else view.output,
        )


def _has_resumed(paused: PausedProgram, result: ExecutionResult) -> bool:
    """Return whether the program got past its suspended calls, so that its file is out of date."""
    waited = {call.call_id for call in paused.suspended_calls}
    ended = {call["id"] for call in result.tool_calls if call["outcome"] != "suspended"}
    return result.success or not waited.isdisjoint(ended)


# --- a program's calls, as they are shown

_MAX_CALLS = 8  # calls shown at a time


class ProgramView:
    """Shows a run on a terminal; without one it only passes output on. A sink of call events.

    Args:
        console: The terminal, on stderr.
        live: Whether to show running calls, where `console` is a terminal.
    """

    def __init__(self, console: Console, *, live: bool) -> None:
        self._console = console
        self._running: dict[str, str] = {}
        self._line = ""  # printed so far without a line end: a live view can only stand below whole lines
        self._live: Live | None = None
        self._wanted = live and console.is_terminal

    def emit(self, event: CallEvent) -> None:
        """Show a call that begins or ends."""
        if event.kind == "started":
            arguments = arguments_text(event.data["arguments"])
            self._running[event.call_id] = escape_control(cut(f"{event.tool}({arguments})", 200)).replace("\n", " ")
        elif event.kind == "ended":
            self._running.pop(event.call_id, None)

    def output(self, text: str, stream: str = "stdout") -> None:
        """Show output of the program; its stderr is shown at the end, with the traceback."""
        if stream != "stdout":
            return
        if self._live is None or not sys.stdout.isatty():
            write(text)
            return
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._console.print(Text(escape_control(line)))

    @contextmanager
    def shown(self) -> Generator[None]:
        """Show the live view while the body runs."""
        if not self._wanted:
            yield
            return
        self._live = Live(
            console=self._console,
            get_renderable=self._render,
            refresh_per_second=10,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
        )
        try:
            with self._live:
                yield
        finally:
            self._live = None
            if self._line:
                write(self._line + "\n")
                self._line = ""

    @contextmanager
    def paused(self) -> Generator[None]:
        """Hide the live view while the body runs."""
        live = self._live
        if live is None:
            yield
            return
        live.stop()
        try:
            yield
        finally:
            live.start()

    def _render(self) -> RenderableType:
        running = list(self._running.values())
        shown = running[:_MAX_CALLS] or ["running"]
        more = [Text(f"  and {len(running) - _MAX_CALLS} more")] if len(running) > _MAX_CALLS else []
        return Group(*(self._spinner(text) for text in shown), *more)

    def _spinner(self, text: str) -> Spinner:
        spinner = Spinner("dots", Text(text, overflow="ellipsis", no_wrap=True))
        spinner.start_time = 0.0  # all of them turn together, though each is made anew
        return spinner

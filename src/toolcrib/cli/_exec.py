"""The command `exec`: a program that calls the tools, run in a sandbox."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib.calls import lenient
from toolcrib.cli._find_toolset import TargetArgument
from toolcrib.cli._formatting import calls_table, print_json, result_text, say, write
from toolcrib.cli._paused import KeyOption, signing_key, write_paused
from toolcrib.cli._program_view import ProgramView
from toolcrib.cli._run import CliRun, RunOptions, open_run
from toolcrib.cli._status import Status, exit_on_error, text_of
from toolcrib.cli._terminal import Terminal
from toolcrib.code import ExecutionResult, SandboxLimits, Toolkit
from toolcrib.errors import HookError

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
        print_json(_document(result) | ({} if file is None else {"paused": str(file)}))
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


def _document(result: ExecutionResult) -> dict[str, Any]:
    return {
        "success": result.success,
        "output": result.output,
        "error_output": result.error_output,
        "return_value": lenient(result.return_value),
        "error": result.error,
        "tool_calls": _calls(result),
        "suspended": [request.to_dict() for request in result.suspended],
        "isolation": list(result.isolation),
    }

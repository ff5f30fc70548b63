"""`toolcrib resume`: a paused program continues, with the answers of flags or of a person."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.approvals import answer_of
from toolcrib.calls import Denial, Grant
from toolcrib.cli._approver import approver_of
from toolcrib.cli._exec import limits_for, show_program
from toolcrib.cli._formatting import say
from toolcrib.cli._paused import KeyOption, UsedAnswers, read_paused, signing_key, write_paused
from toolcrib.cli._program_view import ProgramView
from toolcrib.cli._run import CliRun, RunOptions, open_run
from toolcrib.cli._status import exit_on_error
from toolcrib.cli._terminal import Terminal
from toolcrib.code import ExecutionResult, PausedProgram, Toolkit
from toolcrib.errors import PausedProgramError


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

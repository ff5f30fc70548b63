"""`toolcrib resume`: a paused program goes on, with the answers of flags or of a person."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

from toolcrib.calls import Denial, Grant
from toolcrib.cli._approver import Answers, approver_of
from toolcrib.cli._exec import limits_for
from toolcrib.cli._formatting import say
from toolcrib.cli._paused import UsedAnswers
from toolcrib.cli._run import CliRun
from toolcrib.cli._terminal import Terminal
from toolcrib.cli._watch import Watcher
from toolcrib.code import ExecutionResult, PausedProgram, Toolkit
from toolcrib.errors import PausedProgramError

__all__ = ["Resumption", "resume_program", "target_of", "took_up"]


@dataclass(frozen=True, slots=True)
class Resumption:
    """A paused program, and how long it may go on."""

    paused: PausedProgram
    timeout: float | None = None


def target_of(paused: PausedProgram, given: str | None) -> str:
    """Return where the tools of a paused program are: as given now, or as it was started.

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


async def resume_program(run: CliRun, given: Resumption, watcher: Watcher) -> ExecutionResult:
    """Get an answer to each suspended call, and go on with the program."""
    present = Terminal.present()
    answers = run.answers
    if not present:
        answers = replace(answers, suspend=True)  # a call without an answer stays suspended
    asker = approver_of(answers, run.toolset, run.terminal if present else None)
    grants: list[Grant] = []
    denials: list[Denial] = []
    for call in given.paused.suspended_calls:
        answer = await asker(call.request)
        if answer is not None and not run.json and (not present or _named(answers, call.tool)):
            say(call.request.text())  # a person has seen it as a question
        if isinstance(answer, Grant):
            grants.append(answer)
        elif answer is not None:
            denials.append(answer)
    later = replace(answers, approve=frozenset())  # a name approves the calls that were seen, and no others
    run.run.approver = approver_of(later, run.toolset, run.terminal if present else None)
    run.run.approvals = UsedAnswers()
    toolkit = Toolkit(run.toolset, limits=limits_for(given.timeout))
    run.terminal.making_room = watcher.making_room
    with watcher.shown():
        return await toolkit.resume_async(
            given.paused,
            run.run,
            grants=grants,
            denials=denials,
            on_output=None if run.json else watcher.output,
        )


def took_up(paused: PausedProgram, result: ExecutionResult) -> bool:
    """Return whether the program came as far as the calls it waited for, so that its file is out of date."""
    waited = {call.call_id for call in paused.suspended_calls}
    ended = {call["id"] for call in result.tool_calls if call["outcome"] != "suspended"}
    return result.success or not waited.isdisjoint(ended)


def _named(answers: Answers, tool: str) -> bool:
    return answers.yes or tool in answers.approve or tool in answers.deny

"""Programs that a feature of the run asks about: each is checked as a call before it begins."""

from __future__ import annotations

import hashlib
from typing import Literal, TypeAlias

from toolcrib.calls import Completed, Denial, Failed, Grant, Rejected, Suspended, ToolCall
from toolcrib.code._as_tool import TOOL_NAME
from toolcrib.code._paused import PausedProgram, SuspendedProgramCall
from toolcrib.code._result import ExecutionResult
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Pipeline, Run
from toolcrib.tools import ez_tool

ProgramOrigin: TypeAlias = Literal["model", "host"]
Refusal: TypeAlias = Suspended | Rejected | Failed


@ez_tool(name=TOOL_NAME, effect="program", source=None)
async def program_call(code: str) -> None:
    """Run a program."""


async def refusal(
    pipeline: Pipeline, code: str, run: Run, waits: Suspended | None = None, answer: Grant | Denial | None = None
) -> Refusal | None:
    """Return the refusal of a program that may not begin; None when it may.

    Args:
        pipeline: A pipeline of `program_call`.
        code: The program.
        run: Its run.
        waits: The question about it, where it was asked before.
        answer: The answer to that, if it is known.

    Raises:
        ApprovalError: The answer cannot be used.
    """
    call: ToolCall | Suspended | None = waits
    if call is None:
        if not await run.asks_about_program(code):
            return None
        named = hashlib.sha256(f"{run.id} {code}".encode("utf-8", "surrogatepass")).hexdigest()
        call = ToolCall(TOOL_NAME, {"code": code}, f"program_{named[:24]}")  # the same, when it is sent again
    outcome = await pipeline.run(call, run.view(available=None, recorder=None), grant=answer)
    if isinstance(outcome, Failed) and outcome.code == ApprovalError.code and waits is not None:
        raise outcome.exception or ApprovalError(outcome.tool, outcome.message)
    return None if isinstance(outcome, Completed) else outcome


def not_begun(outcome: Refusal, paused: PausedProgram | None) -> ExecutionResult:
    """Return the result of a program that has not begun.

    Args:
        paused: The program, to be resumed with an answer; None where the sandbox cannot.
    """
    if not isinstance(outcome, Suspended):
        return ExecutionResult(success=False, error=outcome.text())
    call = SuspendedProgramCall(outcome.request)
    return ExecutionResult(
        success=False, error=outcome.text(), suspended=(call.request,), suspended_calls=(call,), paused=paused
    )

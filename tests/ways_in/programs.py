"""Ways in through a program: each way of calling a tool from one."""

from __future__ import annotations

import sys
from contextlib import aclosing
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from toolcrib.calls import Failed, Grant, Outcome, Suspended
from toolcrib.code import ExecutionResult, PausedProgram, ProgramDone, Toolkit
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Run
from toolcrib.sandbox import sandbox_named
from toolcrib.testing import RecordingSink
from toolcrib.testing._ways import CodeWay, Way, WayRequest, outcome_of, program_of

__all__ = [
    "CodeEventsWay",
    "CodeSessionWay",
    "ProgramToolWay",
    "ResumedProgramWay",
    "program_ways",
]


class CodeEventsWay(CodeWay):
    """The same program, with its events as they come."""

    def __init__(self) -> None:
        super().__init__()
        self.title = "code events"

    async def _execute(self, toolkit: Toolkit, code: str, run: Run) -> ExecutionResult:
        async with aclosing(toolkit.stream(code, run)) as events:
            async for event in events:
                if isinstance(event, ProgramDone):
                    return event.result
        raise AssertionError("the events ended before the program was done")


class CodeSessionWay(CodeWay):
    """The same program in a session, after another one."""

    def __init__(self) -> None:
        super().__init__("process")
        self.title = "code session"

    async def _execute(self, toolkit: Toolkit, code: str, run: Run) -> ExecutionResult:
        async with toolkit.session(run) as session:
            await session.execute_async("before = 1")
            return await session.execute_async(code)


class ResumedProgramWay(Way):
    """A program that pauses at the call, goes through bytes, and is resumed with the answer.

    For a call that needs no approval it is the same as `code`.

    Args:
        sandbox: Where it runs, by name.
    """

    abilities = frozenset({"model", "run", "answer", "stored", "concurrent"})

    def __init__(self, sandbox: str) -> None:
        self._sandbox = sandbox
        self._paused: dict[str, PausedProgram] = {}
        self.title = f"resumed program in {sandbox}"

    async def carry(self, request: WayRequest) -> Outcome:
        watch = RecordingSink()
        run = request.run.with_sinks(watch)
        toolkit = Toolkit(request.toolset, sandbox=sandbox_named(self._sandbox))
        if not isinstance(request.call, Suspended):
            result = await toolkit.execute_async(program_of(request), run)
            return self._waiting(result.paused) or outcome_of(request, watch, result)
        call = request.call
        paused = self._paused_at(call)
        answers: dict[str, Any] = {"grants": [], "denials": []}
        if request.answer is not None:
            answers["grants" if isinstance(request.answer, Grant) else "denials"].append(request.answer)
        try:
            result = await toolkit.resume_async(paused, run, **answers)
        except ApprovalError as error:
            return Failed(
                request.call.tool, request.call.call_id, error.code, str(error), "ApprovalError", exception=error
            )
        return self._waiting(result.paused) or outcome_of(request, watch, result)

    def _waiting(self, paused: PausedProgram | None) -> Suspended | None:
        """Return the call that a paused program waits for, and keep the program."""
        if paused is None:
            return None
        [call] = [made.suspended for made in paused.calls if made.suspended is not None]
        self._paused[call.request.id] = paused
        return call

    def _paused_at(self, call: Suspended) -> PausedProgram:
        """Return the program that waits for a call, with the call as it is given now."""
        key = b"a key of the tests"
        paused = PausedProgram.from_bytes(self._paused[call.request.id].to_bytes(key), key)
        journal = [
            replace(entry, fields={**entry.fields, "outcome": call})
            if (entry.kind, entry.call_id) == ("suspended", call.call_id)
            else entry
            for entry in paused.journal
        ]
        return replace(paused, journal=tuple(journal))


class ProgramToolWay(Way):
    """The function that a framework registers, which runs a program."""

    title = "program tool"
    abilities = frozenset({"model", "concurrent", "cancel"})

    async def carry(self, request: WayRequest) -> Outcome:
        watch, given = RecordingSink(), request.run
        toolkit = Toolkit(request.toolset, approver=given.approver, deps=given.deps, sinks=(*given.sinks, watch))
        paused: list[Any] = []  # a host that resumes programs has them from here
        said = await toolkit.as_tool(on_result=paused.append)(program_of(request))
        return outcome_of(request, watch, said)


program_ways: tuple[Way, ...] = (
    CodeWay(),
    CodeEventsWay(),
    ProgramToolWay(),
    *((CodeSessionWay(),) if sys.platform == "linux" else ()),
    *((ResumedProgramWay("process"),) if sys.platform == "linux" else ()),
    *(
        (CodeWay("monty"), ResumedProgramWay("monty"))
        if sys.platform == "linux" and find_spec("pydantic_monty") is not None
        else ()
    ),
)

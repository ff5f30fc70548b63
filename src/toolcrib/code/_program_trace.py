"""What is told of a program to whoever wants to know: that it runs, what it waits for, how it went."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from toolcrib.calls import ApprovalRequest, cut
from toolcrib.code._check import Finding
from toolcrib.code._result import ExecutionResult
from toolcrib.pipeline import Run
from toolcrib.record import ActivityTrace, Sink, trace_activity, wants_activities

__all__ = ["UNFOLLOWED", "FollowedProgram", "follow_program", "tell_refused"]

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_MOST = 100_000  # characters of a program that are told


@dataclass(slots=True)
class FollowedProgram:
    """One program that is followed, or is not.

    Attributes:
        activity: Emits its events; None when no sink wants them.
        run: The run that its calls belong to.
    """

    activity: ActivityTrace | None = None
    run: Run | None = None

    @property
    def counted(self) -> dict[str, Any]:
        """What is kept of a paused program, so that it is the same one when it is taken up."""
        return {} if self.activity is None else {"program": self.activity.id, "trace": self.activity.carry()}

    def waits(self, request: ApprovalRequest) -> None:
        """Tell that a call of the program waits for a person."""
        if self.activity is not None:
            self.activity.changed(state="waiting", tool=request.tool, call_id=request.call_id, request_id=request.id)

    @contextmanager
    def running(self) -> Generator[None]:
        """Run the program in the body; what leaves it as an exception ended the program."""
        if self.activity is None:
            yield
            return
        with self.activity.within():
            try:
                yield
            except BaseException as error:
                self.activity.broken_off(error)
                raise

    def ended(self, result: ExecutionResult) -> ExecutionResult:
        """Tell how the program went, and return the result."""
        if self.activity is not None:
            outcome = "paused" if result.is_paused else "completed" if result.success else "failed"
            waiting = [{"tool": call.tool, "request_id": call.request_id} for call in result.suspended_calls]
            told = {"output": len(result.output), "calls": len(result.tool_calls), "isolation": result.isolation}
            self.activity.closed(outcome, result.error, **told, **({"waiting": waiting} if waiting else {}))
        return result


UNFOLLOWED = FollowedProgram()


def follow_program(
    code: str, run: Run, sinks: tuple[Sink, ...], about: Mapping[str, Any], before: Mapping[str, Any] = _NOTHING
) -> FollowedProgram:
    """Tell that a program begins to run.

    Args:
        code: The program.
        run: The run that its calls belong to.
        sinks: Who is told, besides the sinks of the run.
        about: Where it runs, and with which tools.
        before: What `FollowedProgram.counted` gave when it paused.
    """
    if not wants_activities(sinks, run.sinks):
        return FollowedProgram(run=run)

    def told() -> dict[str, Any]:
        resumed = {"resumed": dict(before.get("trace", ()))} if before else {}
        return {"source": cut(code, _MOST), **about, **resumed}

    named = before.get("program") or run.program_id
    activity = trace_activity("program", "program", run, sinks, activity_id=named, about=told)
    return FollowedProgram(activity, run if activity is None else replace(run, parent_id=activity.id, program_id=None))


def tell_refused(
    code: str, run: Run, sinks: tuple[Sink, ...], about: Mapping[str, Any], findings: list[Finding]
) -> None:
    """Tell of a program that does not run, because it cannot work."""
    activity = follow_program(code, run, sinks, about).activity
    if activity is not None:
        activity.closed("refused", "; ".join(map(str, findings)), findings=[finding.line for finding in findings])

"""The activity of a program, for sinks: that it runs, which of its calls are suspended, how it ended."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from toolcrib.calls import ApprovalRequest, Media, cut
from toolcrib.code._check import Finding
from toolcrib.code._result import ExecutionResult
from toolcrib.pipeline import Run
from toolcrib.record import ActivityTrace, Sink, trace_activity, wants_activities

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_SOURCE_CHARS = 100_000  # of a program, in an event
_PICTURE_BYTES = 2_000_000  # of all pictures of a program, in an event


@dataclass(slots=True)
class ProgramActivity:
    """The activity of one program.

    Attributes:
        trace: Emits its events; None when no sink wants them.
        run: The run that the program's calls belong to.
    """

    trace: ActivityTrace | None = None
    run: Run | None = None

    @property
    def saved(self) -> dict[str, Any]:
        """Data that a paused program keeps, so that it goes on as the same activity."""
        return {} if self.trace is None else {"program": self.trace.id, "trace": self.trace.carry()}

    def suspended(self, request: ApprovalRequest) -> None:
        """Emit that a call of the program waits for a person."""
        if self.trace is not None:
            self.trace.changed(state="suspended", tool=request.tool, call_id=request.call_id, request_id=request.id)

    @contextmanager
    def within(self) -> Generator[None]:
        """Run the program in the body; an exception that leaves the body ended the program."""
        if self.trace is None:
            yield
            return
        with self.trace.within():
            try:
                yield
            except BaseException as error:
                self.trace.broken_off(error)
                raise

    def close(self, result: ExecutionResult) -> ExecutionResult:
        """Emit how the program ended, and return the result."""
        if self.trace is not None:
            outcome = "paused" if result.is_paused else "completed" if result.success else "failed"
            suspended = [{"tool": call.tool, "request_id": call.request_id} for call in result.suspended_calls]
            data: dict[str, Any] = {
                "output": len(result.output),
                "calls": len(result.tool_calls),
                "isolation": result.isolation,
            }
            if result.artifacts:
                data["artifacts"] = _recorded(result.artifacts)
            self.trace.closed(outcome, result.error, **data, **({"suspended": suspended} if suspended else {}))
        return result


def _recorded(artifacts: tuple[Media, ...]) -> dict[str, Any]:
    """Return artifacts by name as JSON shapes, pictures with their bytes as far as an event has room for them."""
    found: dict[str, Any] = {}
    room = _PICTURE_BYTES
    for artifact in artifacts:
        size = len(artifact.data or b"")
        is_kept = artifact.is_image and size <= room
        room -= size if is_kept else 0
        found[artifact.name] = artifact.to_dict() if is_kept else artifact.facts()
    return found


NO_ACTIVITY = ProgramActivity()


def open_activity(
    code: str, run: Run, sinks: tuple[Sink, ...], about: Mapping[str, Any], before: Mapping[str, Any] = _NOTHING
) -> ProgramActivity:
    """Emit that a program begins to run, and return its activity.

    Args:
        code: The program.
        run: The run that its calls belong to.
        sinks: The toolkit's sinks; those of the run receive the events, too.
        about: Where the program runs, and with which tools.
        before: `ProgramActivity.saved` of a program that was paused.
    """
    if not wants_activities(sinks, run.sinks):
        return ProgramActivity(run=run)

    def data() -> dict[str, Any]:
        resumed = {"resumed": dict(before.get("trace", ()))} if before else {}
        return {"source": cut(code, _SOURCE_CHARS), **about, **resumed}

    named = before.get("program") or run.channel.program_id
    trace = trace_activity("program", "program", run, sinks, activity_id=named, about=data)
    return ProgramActivity(trace, run if trace is None else run.view(parent_id=trace.id, program_id=None))


def record_refusal(
    code: str, run: Run, sinks: tuple[Sink, ...], about: Mapping[str, Any], findings: list[Finding]
) -> None:
    """Emit that a program does not run, because it cannot work."""
    trace = open_activity(code, run, sinks, about).trace
    if trace is not None:
        trace.closed("refused", "; ".join(map(str, findings)), findings=[finding.line for finding in findings])

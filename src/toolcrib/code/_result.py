"""The result of a program, for the host and for the model that wrote it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolcrib._numbers import require_number
from toolcrib._short_repr import ShortRepr
from toolcrib.calls import ApprovalRequest, CallRecord, Media, cut
from toolcrib.code._check import Finding
from toolcrib.code._paused import PausedProgram, SuspendedProgramCall

RESULT_CHARS = 20_000  # of a program's result that a model is shown, where the host does not say


@dataclass(frozen=True, slots=True, repr=False)
class ExecutionResult(ShortRepr):
    """The result of a program.

    Attributes:
        output: The text that the program printed.
        error_output: The text that it printed to stderr; and the traceback, when it failed.
        return_value: The value of its last expression, as JSON shapes; a table in it is a DataFrame where the program
            had one, else a table of pyarrow.
        tool_calls: A dict for each call, in the order they were made: `id`, `name`, `arguments` (secrets hidden),
            `outcome` (`completed`, `rejected`, `failed`, `suspended` or `cancelled`), `result` or `error`, and
            `duration_ms`. Once all of them take 32 MB, arguments are None and results cut to their beginning.
        success: Whether it reached its end.
        error: Why it did not, in a sentence with the line; None when it did.
        isolation: The layers that kept the program in, by name.
        suspended: The approval requests of the suspended calls; the program ended at these calls, which have not run.
        records: The calls' records, when the toolkit or the run has sinks.
        suspended_calls: The calls that wait for a person, each with its approval request.
        paused: The paused program, for `Toolkit.resume`; None where the sandbox cannot resume a program, or the results
            of the program's calls are too much to keep (64 MB).
        findings: The faults that were found in the program before it ran; then nothing of it ran.
        warnings: The findings of the type checker, with `typecheck="warn"`, a sentence each.
        hint: A hint for the model, after a failure.
        earlier: The results of the programs that this one was mended from, with `retry_handler`; their calls are in
            `tool_calls`, before its own.
        artifacts: The files that it wrote to `artifacts/`, and the figures that it showed: name, MIME type and bytes.
    """

    output: str = ""
    error_output: str = ""
    return_value: Any = None
    tool_calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    success: bool = True
    error: str | None = None
    isolation: tuple[str, ...] = field(default=(), repr=False)
    suspended: tuple[ApprovalRequest, ...] = ()
    records: tuple[CallRecord, ...] = ()
    suspended_calls: tuple[SuspendedProgramCall, ...] = ()
    paused: PausedProgram | None = None
    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
    hint: str = ""
    earlier: tuple[ExecutionResult, ...] = ()
    artifacts: tuple[Media, ...] = ()

    @property
    def is_paused(self) -> bool:
        """True when the program is paused: it ended at a call that waits for a person."""
        return bool(self.suspended) and not self.success

    def text(self, max_result_chars: int | None = RESULT_CHARS) -> str:
        """Return the text for the model: what was printed, or else the last value, and what went wrong.

        For a paused program the text says which calls wait; after a failure it ends with the hint. Of a long text the
        head and the tail are kept. Artifacts are named after it.

        Args:
            max_result_chars: The most characters, about; None for all.
        """
        parts = [self.output.rstrip("\n")] if self.output.strip() else []
        if not parts and self.return_value is not None:
            parts.append(f"{self.return_value}")
        if self.error_output.strip():
            parts.append(self.error_output.rstrip("\n"))
        if self.is_paused:
            resumable = "is paused, and goes on when a person has decided on"
            ended = "has ended at calls that have not run, since a person has to decide on them first"
            parts += [f"The program {ended if self.paused is None else resumable}:"]
            parts += [f"- {request.text()}".replace("\n", "\n  ") for request in self.suspended]
        elif self.error and self.error.partition(": ")[2] not in self.error_output:
            parts.append(self.error)
        if not self.success:
            parts += [f"The type checker had said: {warning}" for warning in self.warnings]
            parts += [self.hint] if self.hint else []
        require_number("ExecutionResult.text", "max_result_chars", max_result_chars, least=1)
        text = cut("\n".join(parts) or "The program ran and printed nothing.", max_result_chars)
        return "\n".join([text, *map(str, self.artifacts)])

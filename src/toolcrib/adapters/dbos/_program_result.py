"""Results of durable programs as JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.calls import ApprovalRequest, StoredFields, lenient, versioned
from toolcrib.code import ExecutionResult, Finding, PausedProgram, SuspendedProgramCall

_PLAIN = ("output", "error_output", "return_value", "tool_calls", "success", "error", "hint")


def result_to_dict(result: ExecutionResult) -> dict[str, Any]:
    """Return a result as JSON shapes: without records, and without what only its own process can use."""
    data: dict[str, Any] = {
        **{name: getattr(result, name) for name in _PLAIN},
        "return_value": lenient(result.return_value),  # of a table its summary
        "isolation": list(result.isolation),
        "warnings": list(result.warnings),
        "pending": [[call.request.to_dict(), call.in_doubt] for call in result.suspended_calls],
        "findings": [[finding.line, finding.kind, finding.message] for finding in result.findings],
    }
    return versioned("ProgramResult", data)


def result_from_dict(data: Mapping[str, Any]) -> ExecutionResult:
    """Return the result that `result_to_dict` described."""
    data = StoredFields("ProgramResult", data)
    pending = tuple(
        SuspendedProgramCall(ApprovalRequest.from_dict(request), doubt) for request, doubt in data["pending"]
    )
    return ExecutionResult(
        **{name: data[name] for name in _PLAIN},
        isolation=tuple(data["isolation"]),
        warnings=tuple(data["warnings"]),
        findings=tuple(Finding(*finding) for finding in data["findings"]),
        suspended=tuple(call.request for call in pending),
        suspended_calls=pending,
        # it goes on by itself once there is an answer, and no toolkit can take this up
        paused=PausedProgram("", "a durable program") if pending else None,
    )

"""Results of the calls of a round: the host's answers, and what the model is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolcrib.calls import REJECTION_PREFIX, CallMetadata, Failed, Media, Outcome, Rejected, render, value_class
from toolcrib.formats import WireCall, WireResult


@value_class
class ToolResult:
    """The host's answer to one call: an output, or the error that there was instead."""

    call_id: str
    name: str
    output: Any = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class ToolCallIssue:
    """A call that cannot be made, and is answered with why: unknown, not available, with arguments that do not fit.

    Attributes:
        outcome: The problem; its `code` is stable (`unknown_tool`, `not_available`, `invalid_arguments`, ...).
    """

    metadata: CallMetadata
    outcome: Failed

    @property
    def reason(self) -> str:
        """The problem, in a sentence."""
        return self.outcome.message

    def complete(self, output: Any) -> ToolResult:
        """Return an answer of the host's own, which is committed in the place of the standard one."""
        return ToolResult(self.metadata.id, self.metadata.name, output)


def rejection_reason(text: str) -> str | None:
    """Return why a call was refused, from the text that its result has in a transcript; None for any other result.

    A tool's own text is never taken for a refusal: where it begins like one, it has a mark before it in the transcript.
    """
    return text.removeprefix(REJECTION_PREFIX) if text.startswith(REJECTION_PREFIX) else None


# --- showing it to the model


def rendered(call: WireCall, outcome: Outcome, *, ran: bool) -> WireResult:
    """Return the result of an outcome for the model.

    Args:
        ran: Whether the tool was executed: what failed before that carries the prefix of a rejection.
    """
    shown = render(outcome)
    text = shown.text
    if isinstance(outcome, Rejected):
        return WireResult(call, text, is_error=True)
    if isinstance(outcome, Failed) and not ran:
        return WireResult(call, REJECTION_PREFIX + text, is_error=True)
    parts = shown.parts and tuple(part if isinstance(part, Media) else _no_refusal(part) for part in shown.parts)
    return WireResult(call, _no_refusal(text), shown.is_error, parts)


def _no_refusal(text: str) -> str:
    """Return a tool's own text so that it does not read as a refusal, which begins with a prefix."""
    return f"Result: {text}" if text.startswith(REJECTION_PREFIX) else text

"""Errors about turns, agents and rounds."""

from __future__ import annotations

from toolcrib.errors._base import MessageError, ToolcribError


class SafeExecutionError(ToolcribError, RuntimeError):
    """Something was run or changed while it was already running."""

    code = "safe_execution"


class WrongRunMethodError(ToolcribError, TypeError):
    """`returning()` on a streaming tool, or `yielding()` on one that returns."""

    code = "wrong_run_method"


class TurnTimeoutError(MessageError, TimeoutError):
    """A turn did not finish in its time; distinct from a TimeoutError that its tool raised."""

    code = "turn_timeout"
    tool: str
    seconds: float
    _template = "the turn of `{tool}` did not finish within {seconds:g} s and was stopped"


class NotPortableError(MessageError, TypeError):
    """A value cannot be written down as JSON and come back as what it is."""

    code = "not_portable"
    owner: str
    what: str
    type_name: str
    reason: str = ""

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return (
            f"{self.owner} cannot be written down: {self.what} has the type {self.type_name}, which does not go to "
            f"JSON and back{reason}. Give JSON values, or something that the annotation of the parameter can restore."
        )


class NewerForm(MessageError, ValueError):
    """Something stored is in a newer version of its form than this version of Toolcrib reads.

    Attributes:
        form: The stored form, such as `Call` or `PausedProgram`.
        version: The version in which it was written.
        known: The newest version that is read here.
    """

    code = "newer_form"
    form: str
    version: int
    known: int
    _template = (
        "the stored {form} has version {version}, and this version of toolcrib reads up to "
        "{known}: leave it as it is, and read it with the newer toolcrib that wrote it"
    )


class CompletionCheckReturnError(MessageError, TypeError):
    """A completion check returned something other than a bool."""

    code = "completion_check_return"
    tool: str
    type_name: str
    _template = "the completion check `{tool}` must return a bool, and returned {type_name}"


class RoundError(MessageError, ValueError):
    """A round is not in the state that the host's call needs; the message lists the problems."""

    code = "round_error"
    problems: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(self.problems)


class NoResult(MessageError, AttributeError):
    """The turn or call that was asked for its result or its request has none.

    Attributes:
        what: The object that was asked.
        reason: Why it has none.
        mend: The remedy.
    """

    code = "no_result"
    what: str
    reason: str
    mend: str
    _template = "{what}: {reason}; {mend}"


class CommitError(RoundError):
    """A round was not committed; the transcript is as it was."""

    code = "commit_error"

    def __str__(self) -> str:
        return f"nothing was committed: {super().__str__()}"

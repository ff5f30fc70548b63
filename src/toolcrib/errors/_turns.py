"""Errors about turns, agents and rounds."""

from __future__ import annotations

from toolcrib.errors._base import ToolcribError


class SafeExecutionError(ToolcribError, RuntimeError):
    """Something was run or changed while it was already running."""

    code = "safe_execution"


class WrongRunMethodError(ToolcribError, TypeError):
    """`returning()` on a streaming tool, or `yielding()` on one that returns."""

    code = "wrong_run_method"


class TurnTimeoutError(ToolcribError, TimeoutError):
    """A turn did not finish in its time; distinct from a TimeoutError that its tool raised."""

    code = "turn_timeout"

    def __init__(self, tool: str, seconds: float) -> None:
        super().__init__(tool, seconds)
        self.tool, self.seconds = tool, seconds

    def __str__(self) -> str:
        return f"the turn of `{self.tool}` did not finish within {self.seconds:g} s and was stopped"


class NotPortableError(ToolcribError, TypeError):
    """A value cannot be written down as JSON and come back as what it is."""

    code = "not_portable"

    def __init__(self, owner: str, what: str, type_name: str, reason: str = "") -> None:
        super().__init__(owner, what, type_name, reason)
        self.owner, self.what, self.type_name, self.reason = owner, what, type_name, reason

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return (
            f"{self.owner} cannot be written down: {self.what} has the type {self.type_name}, which does not go to "
            f"JSON and back{reason}. Give JSON values, or something that the annotation of the parameter can restore."
        )


class NewerForm(ToolcribError, ValueError):
    """Something stored is in a newer version of its form than this version of Toolcrib reads.

    Attributes:
        form: The stored form, such as `Call` or `PausedProgram`.
        version: The version in which it was written.
        known: The newest version that is read here.
    """

    code = "newer_form"

    def __init__(self, form: str, version: int, known: int) -> None:
        super().__init__(form, version, known)
        self.form, self.version, self.known = form, version, known

    def __str__(self) -> str:
        return (
            f"the stored {self.form} has version {self.version}, and this version of toolcrib reads up to "
            f"{self.known}: leave it as it is, and read it with the newer toolcrib that wrote it"
        )


class CompletionCheckReturnError(ToolcribError, TypeError):
    """A completion check returned something other than a bool."""

    code = "completion_check_return"

    def __init__(self, tool: str, type_name: str) -> None:
        super().__init__(tool, type_name)
        self.tool, self.type_name = tool, type_name

    def __str__(self) -> str:
        return f"the completion check `{self.tool}` must return a bool, and returned {self.type_name}"


class RoundError(ToolcribError, ValueError):
    """A round is not in the state that the host's call needs; the message lists the problems."""

    code = "round_error"

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "; ".join(self.problems)


class NoResult(ToolcribError, AttributeError):
    """The turn or call that was asked for its result or its request has none.

    Attributes:
        what: The object that was asked.
        reason: Why it has none.
        mend: The remedy.
    """

    code = "no_result"

    def __init__(self, what: str, reason: str, mend: str) -> None:
        super().__init__(what, reason, mend)
        self.what, self.reason, self.mend = what, reason, mend

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}; {self.mend}"


class CommitError(RoundError):
    """A round was not committed; the transcript is as it was."""

    code = "commit_error"

    def __str__(self) -> str:
        return f"nothing was committed: {super().__str__()}"

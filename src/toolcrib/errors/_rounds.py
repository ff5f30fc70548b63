"""Errors about rounds of calls."""

from __future__ import annotations

from toolcrib.errors._base import ToolcribError

__all__ = ["CommitError", "RoundError"]


class RoundError(ToolcribError, ValueError):
    """A round is not what the host takes it for."""

    code = "round_error"

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "; ".join(self.problems)


class CommitError(RoundError):
    """A round was not committed; the transcript is as it was."""

    code = "commit_error"

    def __str__(self) -> str:
        return f"nothing was committed: {super().__str__()}"

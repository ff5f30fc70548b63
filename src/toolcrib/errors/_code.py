"""Errors about programs and the sandboxes that run them."""

from __future__ import annotations

from toolcrib.errors._base import ToolcribError


class CodeError(ToolcribError):
    """A program cannot be run as it stands; `line` counts from 1, 0 when unknown."""

    code = "code_error"

    def __init__(self, problem: str, line: int = 0, kind: str = "SyntaxError") -> None:
        super().__init__(problem, line, kind)
        self.problem, self.line, self.kind = problem, line, kind

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line else ""
        return f"{self.kind}{where}: {self.problem}"


class SandboxError(ToolcribError, RuntimeError):
    """The sandbox itself failed: its worker died or broke the protocol."""

    code = "sandbox_error"


class SandboxLost(SandboxError):
    """The process of a program is gone, and it cannot be said that the program ended it: it may have been killed."""

    code = "sandbox_lost"


class SandboxUnavailable(ToolcribError, RuntimeError):
    """No sandbox of the wanted strength is available; the message names the remedy, and `layer` what is missing."""

    code = "sandbox_unavailable"

    def __init__(self, problem: str, layer: str = "", remedy: str = "") -> None:
        super().__init__(problem, layer, remedy)
        self.problem, self.layer, self.remedy = problem, layer, remedy

    def __str__(self) -> str:
        return f"{self.problem}. {self.remedy}" if self.remedy else self.problem


class PausedProgramError(ToolcribError, ValueError):
    """A paused program cannot be read or resumed here: changed or cut, of another key, format, engine or toolkit."""

    code = "paused_program"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"this paused program cannot be resumed: {self.problem}"


class ReplayDiverged(ToolcribError, RuntimeError):
    """A program that was run again up to where it paused did something else; none of its suspended calls was made."""

    code = "replay_diverged"

    def __init__(self, expected: str, came: str) -> None:
        super().__init__(expected, came)
        self.expected, self.came = expected, came

    def __str__(self) -> str:
        return (
            f"the program did not do again what it did before it paused: {self.expected} was expected, and {self.came} "
            "came. No suspended call was made. Run it again from its start"
        )


class SavedProgramError(ToolcribError, ValueError):
    """A program cannot be kept under a name, is not kept there, or did not come to its end when it was called."""

    code = "saved_program"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.name, self.problem = name, problem

    def __str__(self) -> str:
        return f"the program `{self.name}`: {self.problem}"


class SessionStateError(ToolcribError, ValueError):
    """The state of a session cannot be read or resumed here: changed, cut, of another key or format, or too large."""

    code = "session_state"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"this session cannot go on here: {self.problem}"

"""Errors about programs and the sandboxes that run them."""

from __future__ import annotations

from toolcrib.errors._base import MessageError, ToolcribError


class CodeError(MessageError):
    """A program cannot be run as it stands; `line` counts from 1, 0 when unknown."""

    code = "code_error"
    problem: str
    line: int = 0
    kind: str = "SyntaxError"

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line else ""
        return f"{self.kind}{where}: {self.problem}"


class SandboxError(ToolcribError, RuntimeError):
    """The sandbox itself failed: its worker died or broke the protocol."""

    code = "sandbox_error"


class SandboxLost(SandboxError):
    """The process of a program is gone, and it cannot be said that the program ended it: it may have been killed."""

    code = "sandbox_lost"


class SandboxUnavailable(MessageError, RuntimeError):
    """No sandbox of the wanted strength is available; the message names the remedy, and `layer` what is missing."""

    code = "sandbox_unavailable"
    problem: str
    layer: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.problem}. {self.remedy}" if self.remedy else self.problem


class PausedProgramError(MessageError, ValueError):
    """A paused program cannot be read or resumed here: changed or cut, of another key, format, engine or toolkit."""

    code = "paused_program"
    problem: str
    _template = "this paused program cannot be resumed: {problem}"


class ReplayDiverged(MessageError, RuntimeError):
    """A program that was run again up to where it paused did something else; none of its suspended calls was made."""

    code = "replay_diverged"
    expected: str
    actual: str
    _template = (
        "the program did not do again what it did before it paused: {expected} was expected, and {actual} "
        "came. No suspended call was made. Run it again from its start"
    )


class SavedProgramError(MessageError, ValueError):
    """A program cannot be kept under a name, is not kept there, or did not come to its end when it was called."""

    code = "saved_program"
    name: str
    problem: str
    _template = "the program `{name}`: {problem}"


class SessionStateError(MessageError, ValueError):
    """The state of a session cannot be read or resumed here: changed, cut, of another key or format, or too large."""

    code = "session_state"
    problem: str
    _template = "this session cannot go on here: {problem}"

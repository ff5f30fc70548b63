"""Every error Toolcrib raises or reports, in one tree.

Each class has a stable `code`, builds its own message from its fields, names the tool where there is one, pickles, and
keeps the standard-library parents a caller would catch. Nothing here imports the rest of the package.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar

__all__ = [
    "ApprovalDenied",
    "ApprovalError",
    "ApprovalRequired",
    "CodeError",
    "CommitError",
    "CompletionCheckReturnError",
    "DatabaseError",
    "DuplicateNameError",
    "EngineError",
    "FieldProblem",
    "FormatError",
    "HookError",
    "InvalidArguments",
    "InvalidOutput",
    "LimitReached",
    "LockHeldError",
    "MissingExtraError",
    "MissingProvided",
    "ModelRetry",
    "NotAvailable",
    "NotCallable",
    "NotPortableError",
    "RemoteToolError",
    "ResultNotSerializable",
    "RetriesExhausted",
    "RoundError",
    "SafeExecutionError",
    "SandboxError",
    "SandboxUnavailable",
    "SchemaError",
    "ServerError",
    "TargetError",
    "ToolConstraintError",
    "ToolTimeoutError",
    "ToolcribError",
    "TurnTimeoutError",
    "UnknownTool",
    "UnregisteredAgentError",
    "UnregisteredError",
    "UnregisteredHookError",
    "UnregisteredToolError",
    "WorkerError",
    "WrongRunMethodError",
    "closest",
]


def closest(name: str, names: Iterable[str]) -> str:
    """Return a sentence that helps with a misspelt `name`: the nearest of `names`, or all of them when they are few."""
    known = sorted(names)
    near = get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        return "Did you mean " + " or ".join(f"`{n}`" for n in near) + "?"
    if not known:
        return "There are none."
    if len(known) <= 12:
        return "There are: " + ", ".join(f"`{n}`" for n in known) + "."
    return f"There are {len(known)}, among them " + ", ".join(f"`{n}`" for n in known[:6]) + "."


class ToolcribError(Exception):
    """Root of the tree. Subclasses pass every constructor argument on, so that they pickle."""

    code: ClassVar[str] = "toolcrib_error"


# --- finding tools ---------------------------------------------------------------------------------------------------


class UnregisteredError(ToolcribError, KeyError):
    """Nothing of that name is registered."""

    code = "unregistered"
    kind: ClassVar[str] = "object"

    def __init__(self, name: str, known: tuple[str, ...] = ()) -> None:
        super().__init__(name, known)
        self.name, self.known = name, known

    def __str__(self) -> str:
        return f"no {self.kind} is registered as `{self.name}`. {closest(self.name, self.known)}"


class UnregisteredToolError(UnregisteredError):
    """No tool of that name is registered."""

    code = "unregistered_tool"
    kind = "tool"


class UnregisteredAgentError(UnregisteredError):
    """No agent of that name is registered."""

    code = "unregistered_agent"
    kind = "agent"


class UnregisteredHookError(UnregisteredError):
    """No hook of that name is registered."""

    code = "unregistered_hook"
    kind = "hook"


class UnknownTool(ToolcribError, KeyError):
    """The call names a tool that the toolset does not have."""

    code = "unknown_tool"

    def __init__(self, tool: str, known: tuple[str, ...] = ()) -> None:
        super().__init__(tool, known)
        self.tool, self.known = tool, known

    def __str__(self) -> str:
        return f"there is no tool `{self.tool}`. {closest(self.tool, self.known)}"


class NotAvailable(ToolcribError):
    """The tool exists, and may not be used in this run or at this moment."""

    code = "not_available"

    def __init__(self, tool: str, reason: str = "") -> None:
        super().__init__(tool, reason)
        self.tool, self.reason = tool, reason

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else " now"
        return f"`{self.tool}` is not available{why}. Use one of the tools that were offered."


class DuplicateNameError(ToolcribError, ValueError):
    """Two objects claim one name; both origins are named."""

    code = "duplicate_name"

    def __init__(self, name: str, first: str, second: str, mend: str = "", kind: str = "tool") -> None:
        super().__init__(name, first, second, mend, kind)
        self.name, self.first, self.second, self.mend, self.kind = name, first, second, mend, kind

    def __str__(self) -> str:
        text = f"two {self.kind}s are named `{self.name}`: {self.first} and {self.second}"
        return f"{text}. {self.mend}" if self.mend else text


class ToolConstraintError(ToolcribError, ValueError):
    """What is asked of a model, or offered to it, cannot be; raised before any request."""

    code = "tool_constraint"

    def __init__(self, tool: str, problem: str, known: tuple[str, ...] = ()) -> None:
        super().__init__(tool, problem, known)
        self.tool, self.problem, self.known = tool, problem, known

    def __str__(self) -> str:
        hint = f" {closest(self.tool, self.known)}" if self.known else ""
        return f"`{self.tool}`: {self.problem}.{hint}"


class TargetError(ToolcribError, ValueError):
    """A `TARGET` of the command line cannot be loaded, or holds no tools."""

    code = "bad_target"

    def __init__(self, target: str, problem: str) -> None:
        super().__init__(target, problem)
        self.target, self.problem = target, problem

    def __str__(self) -> str:
        return f"cannot load tools from `{self.target}`: {self.problem}"


# --- arguments and schemas -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """What is wrong with one argument, and what would be right.

    `field` is a path like `stops[0].city`, or an empty string when the arguments as a whole are wrong.
    """

    field: str
    problem: str

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}" if self.field else self.problem


class InvalidArguments(ToolcribError, TypeError, ValueError):
    """The arguments do not fit the tool's schema; nothing ran."""

    code = "invalid_arguments"

    def __init__(self, tool: str, problems: tuple[FieldProblem, ...]) -> None:
        super().__init__(tool, problems)
        self.tool, self.problems = tool, problems

    def __str__(self) -> str:
        return f"`{self.tool}` cannot take these arguments: {'; '.join(map(str, self.problems))}"


class SchemaError(ToolcribError, TypeError):
    """A parameter or return type has no JSON schema; direct Python calls still work."""

    code = "schema_error"

    def __init__(self, tool: str, parameter: str, problem: str) -> None:
        super().__init__(tool, parameter, problem)
        self.tool, self.parameter, self.problem = tool, parameter, problem

    def __str__(self) -> str:
        return (
            f"`{self.tool}` has no schema: parameter `{self.parameter}` {self.problem}. Annotate it with a type that "
            "pydantic can describe, mark it `Annotated[T, Injected]` so that the host supplies it, or give it as a "
            "fixed argument."
        )


class FormatError(ToolcribError, ValueError):
    """The tool cannot be offered to this provider as it is."""

    code = "format_error"

    def __init__(self, tool: str, format: str, problem: str) -> None:
        super().__init__(tool, format, problem)
        self.tool, self.format, self.problem = tool, format, problem

    def __str__(self) -> str:
        return f"`{self.tool}` cannot be offered to {self.format}: {self.problem}"


class MissingProvided(ToolcribError, TypeError):
    """The tool declares an injected parameter that this run does not provide."""

    code = "missing_provided"

    def __init__(self, tool: str, parameter: str, wanted: str) -> None:
        super().__init__(tool, parameter, wanted)
        self.tool, self.parameter, self.wanted = tool, parameter, wanted

    def __str__(self) -> str:
        return (
            f"`{self.tool}` needs `{self.parameter}` ({self.wanted}) from the host, and this run provides none. Open "
            f"the run with `RunScope(provide={{{self.parameter!r}: ...}})`, or give the parameter a default."
        )


class ResultNotSerializable(ToolcribError, TypeError):
    """The tool ran, and what it returned has no JSON form to show a model."""

    code = "result_not_serializable"

    def __init__(self, tool: str, type_name: str, detail: str = "") -> None:
        super().__init__(tool, type_name, detail)
        self.tool, self.type_name, self.detail = tool, type_name, detail

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return (
            f"`{self.tool}` ran, and its result of type {self.type_name} has no JSON form{detail}. Return JSON values, "
            "a dataclass, a TypedDict or a pydantic model."
        )


# --- running ---------------------------------------------------------------------------------------------------------


class ModelRetry(ToolcribError):
    """A tool raises this to have the model try again, with `message` as the advice."""

    code = "model_retry"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class RetriesExhausted(ToolcribError):
    """The model used up the retryable answers of one tool in this run."""

    code = "retries_exhausted"

    def __init__(self, tool: str, max_retries: int, last: str) -> None:
        super().__init__(tool, max_retries, last)
        self.tool, self.max_retries, self.last = tool, max_retries, last

    def __str__(self) -> str:
        return f"`{self.tool}` was retried {self.max_retries} times and still failed: {self.last}"


class ToolTimeoutError(ToolcribError, TimeoutError):
    """The deadline of one execution passed; told from a TimeoutError that the tool raised itself."""

    code = "tool_timeout"

    def __init__(self, tool: str, seconds: float, goes_on: bool = False) -> None:
        super().__init__(tool, seconds, goes_on)
        self.tool, self.seconds, self.goes_on = tool, seconds, goes_on

    def __str__(self) -> str:
        text = f"`{self.tool}` did not finish within {self.seconds:g} s"
        if self.goes_on:
            return f"{text}; it runs in a thread that cannot be stopped and goes on in the background"
        return f"{text} and was stopped"


class LimitReached(ToolcribError):
    """A budget of the run is used up."""

    code = "limit_reached"

    def __init__(self, tool: str, limit: str, value: int) -> None:
        super().__init__(tool, limit, value)
        self.tool, self.limit, self.value = tool, limit, value

    def __str__(self) -> str:
        return (
            f"`{self.tool}` was not run: this run may make {self.value} calls ({self.limit}), and they are used up. "
            "Answer with what you have."
        )


class NotCallable(ToolcribError, TypeError):
    """The tool declares an input and has no function; user code executes it."""

    code = "not_callable"

    def __init__(self, tool: str) -> None:
        super().__init__(tool)
        self.tool = tool

    def __str__(self) -> str:
        return (
            f"`{self.tool}` declares an input and has no function. Execute it in your own loop, answer it with a hook "
            "that returns Complete, or make it a function with @tool."
        )


class HookError(ToolcribError):
    """A hook raised; `kind` says which kind of hook, `hook` its name."""

    code = "hook_error"

    def __init__(self, tool: str, kind: str, hook: str, error: str) -> None:
        super().__init__(tool, kind, hook, error)
        self.tool, self.kind, self.hook, self.error = tool, kind, hook, error

    def __str__(self) -> str:
        return f"the {self.kind} `{self.hook}` of `{self.tool}` failed: {self.error}"


class LockHeldError(ToolcribError, RuntimeError):
    """A tool waits for a lock that its own caller holds; it would wait for ever."""

    code = "lock_held"

    def __init__(self, tool: str, lock: str) -> None:
        super().__init__(tool, lock)
        self.tool, self.lock = tool, lock

    def __str__(self) -> str:
        return (
            f"`{self.tool}` waits for {self.lock}, which its own caller holds. Call the plain function (`.fn`) inside, "
            "or give the two tools different locks."
        )


class SafeExecutionError(ToolcribError, RuntimeError):
    """Something was run or changed while it was already running."""

    code = "safe_execution"


class WrongRunMethodError(ToolcribError, TypeError):
    """`returning()` on a streaming tool, or `yielding()` on one that returns."""

    code = "wrong_run_method"


class TurnTimeoutError(ToolcribError, TimeoutError):
    """A turn did not finish in its time; told from a TimeoutError that its tool raised."""

    code = "turn_timeout"

    def __init__(self, tool: str, seconds: float) -> None:
        super().__init__(tool, seconds)
        self.tool, self.seconds = tool, seconds

    def __str__(self) -> str:
        return f"the turn of `{self.tool}` did not finish within {self.seconds:g} s and was stopped"


class NotPortableError(ToolcribError, TypeError):
    """A value cannot be written down as JSON and come back as what it is."""

    code = "not_portable"

    def __init__(self, owner: str, what: str, type_name: str) -> None:
        super().__init__(owner, what, type_name)
        self.owner, self.what, self.type_name = owner, what, type_name

    def __str__(self) -> str:
        return (
            f"{self.owner} cannot be written down: {self.what} is of type {self.type_name}, which does not go to JSON "
            "and back. Give JSON values, or something that the annotation of the parameter can restore."
        )


class CompletionCheckReturnError(ToolcribError, TypeError):
    """A completion check returned something other than a bool."""

    code = "completion_check_return"

    def __init__(self, tool: str, type_name: str) -> None:
        super().__init__(tool, type_name)
        self.tool, self.type_name = tool, type_name

    def __str__(self) -> str:
        return f"the completion check `{self.tool}` must return a bool, and returned {self.type_name}"


# --- rounds ----------------------------------------------------------------------------------------------------------


class InvalidOutput(ToolcribError, TypeError, ValueError):
    """What the host's own code gives as a result is not what the tool declares."""

    code = "invalid_output"

    def __init__(self, tool: str, problems: tuple[FieldProblem, ...]) -> None:
        super().__init__(tool, problems)
        self.tool, self.problems = tool, problems

    def __str__(self) -> str:
        return f"`{self.tool}` cannot be completed with this output: {'; '.join(map(str, self.problems))}"


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


# --- approval --------------------------------------------------------------------------------------------------------


class ApprovalRequired(ToolcribError):
    """A tool raises this, before it has done anything, to have a person asked; `metadata` is shown to them."""

    code = "approval_required"

    def __init__(self, metadata: dict[str, Any] | None = None) -> None:
        super().__init__(metadata)
        self.metadata = metadata or {}

    def __str__(self) -> str:
        return "this call needs approval"


class ApprovalError(ToolcribError, ValueError):
    """An answer to an approval request does not fit: unknown, stale, expired or used before."""

    code = "approval_error"

    def __init__(self, tool: str, problem: str) -> None:
        super().__init__(tool, problem)
        self.tool, self.problem = tool, problem

    def __str__(self) -> str:
        whose = f" for `{self.tool}`" if self.tool else ""
        return f"the approval{whose} cannot be used: {self.problem}"


class ApprovalDenied(ToolcribError, PermissionError):
    """A call was refused, by a person or a rule; raised where refusal has to be an exception."""

    code = "approval_denied"

    def __init__(self, tool: str, reason: str) -> None:
        super().__init__(tool, reason)
        self.tool, self.reason = tool, reason

    def __str__(self) -> str:
        return f"`{self.tool}` was not allowed: {self.reason}"


# --- code mode and extras --------------------------------------------------------------------------------------------


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


class SandboxUnavailable(ToolcribError, RuntimeError):
    """No sandbox of the wanted strength can be had here; the message names the remedy, and `layer` what is missing."""

    code = "sandbox_unavailable"

    def __init__(self, problem: str, layer: str = "", remedy: str = "") -> None:
        super().__init__(problem, layer, remedy)
        self.problem, self.layer, self.remedy = problem, layer, remedy

    def __str__(self) -> str:
        return f"{self.problem}. {self.remedy}" if self.remedy else self.problem


class PausedProgramError(ToolcribError, ValueError):
    """A paused program cannot be read or taken up here: changed or cut, of another key, format, engine or toolkit."""

    code = "paused_program"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"this paused program cannot be resumed: {self.problem}"


class ReplayDiverged(ToolcribError, RuntimeError):
    """A program that was run again up to where it paused did something else; none of its waiting calls was made."""

    code = "replay_diverged"

    def __init__(self, expected: str, came: str) -> None:
        super().__init__(expected, came)
        self.expected, self.came = expected, came

    def __str__(self) -> str:
        return (
            f"the program did not do again what it did before it paused: {self.expected} was expected, and {self.came} "
            "came. No waiting call was made. Run it anew from its start"
        )


class DatabaseError(ToolcribError, ConnectionError):
    """The database that durable work is kept in cannot be used; the message says why and names the remedy."""

    code = "database_error"

    def __init__(self, database: str, problem: str, remedy: str = "") -> None:
        super().__init__(database, problem, remedy)
        self.database, self.problem, self.remedy = database, problem, remedy

    def __str__(self) -> str:
        said = f"the database {self.database} cannot be used: {self.problem}"
        return f"{said}. {self.remedy}" if self.remedy else said


class EngineError(ToolcribError, RuntimeError):
    """Durable work was asked for where no engine can do it: none runs, or a second was to be started."""

    code = "engine_error"


class WorkerError(ToolcribError, RuntimeError):
    """A worker cannot do what was asked under its name; the message says why."""

    code = "worker_error"

    def __init__(self, worker_id: str, problem: str) -> None:
        super().__init__(worker_id, problem)
        self.worker_id, self.problem = worker_id, problem

    def __str__(self) -> str:
        return f"the worker `{self.worker_id}`: {self.problem}"


class MissingExtraError(ToolcribError, ImportError):
    """A feature needs an optional dependency; the message names the extra."""

    code = "missing_extra"

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(feature, extra)
        self.feature, self.extra = feature, extra

    def __str__(self) -> str:
        return f"{self.feature} needs an optional dependency. Install it with: pip install 'toolcrib[{self.extra}]'"


# --- servers ---------------------------------------------------------------------------------------------------------


class ServerError(ToolcribError, ConnectionError):
    """A server that tools come from cannot be reached, does not speak the protocol, or was lost."""

    code = "server_error"

    def __init__(self, server: str, problem: str) -> None:
        super().__init__(server, problem)
        self.server, self.problem = server, problem

    def __str__(self) -> str:
        return f"the server `{self.server}` {self.problem}"


class RemoteToolError(ToolcribError):
    """A server says that its tool failed; `message` is what it says."""

    code = "remote_tool_error"

    def __init__(self, server: str, message: str) -> None:
        super().__init__(server, message)
        self.server, self.message = server, message

    def __str__(self) -> str:
        return self.message

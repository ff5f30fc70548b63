"""The protocol of sandboxes: a program and its limits, the host's replies to its calls, and its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

__all__ = [
    "Dialect",
    "Emit",
    "ErrorKind",
    "HasDialect",
    "HasNotes",
    "HasSessions",
    "Host",
    "OutputStream",
    "Program",
    "ProgramError",
    "Raised",
    "Reply",
    "Resumable",
    "Sandbox",
    "SandboxLimits",
    "SandboxResult",
    "SandboxSession",
    "SaveState",
    "SuspendedReply",
    "TypeChecker",
    "TypeProblem",
    "Value",
]

OutputStream: TypeAlias = Literal["stdout", "stderr"]
ErrorKind: TypeAlias = Literal[
    "syntax", "exception", "time", "memory", "output", "calls", "paused", "stopped", "sandbox"
]


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """How much one program may use.

    Attributes:
        program_time: Seconds that the program's own code may compute; waiting for tools and sleeping does not count.
        wall_time: Seconds from start to end, tools, people and sleep included; None for no such limit. A back stop.
        sleep_time: Seconds it may sleep in all.
        memory: Bytes its values may take.
        output_kept: Characters of each stream that are kept, head and tail.
        output_killed_at: Characters printed in all at which the program is ended.
        calls: Tool calls it may make.
        calls_in_flight: Tool calls that run at a time; further ones wait.
        value_size: Characters, about, of one value that leaves the program: the arguments of a call, its result. What
            is small as text may be large as objects: 1 MB of `{}` takes the host 27 MB for a moment.
        reply_size: Characters, about, of one tool result that goes into the program.
        source_size: Characters of the program's text.
    """

    program_time: float = 10.0
    wall_time: float | None = 600.0
    sleep_time: float = 30.0
    memory: int = 256 * 1024 * 1024
    output_kept: int = 256_000
    output_killed_at: int = 16_000_000
    calls: int = 5_000
    calls_in_flight: int = 100
    value_size: int = 1_000_000
    reply_size: int = 32_000_000
    source_size: int = 200_000

    def __post_init__(self) -> None:
        for part in fields(self):
            value: float | None = getattr(self, part.name)
            may_be_zero = part.name in ("sleep_time", "calls")
            if value is not None and (value < 0 or (value == 0 and not may_be_zero)):
                raise ValueError(f"the limit {part.name} must be more than 0, and is {value}")


SaveState: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Keeps a part of the state that `Resumable.resume` takes, should this process not live to the program's end.

Lists are added to those kept before. What follows from a part must not be begun before this returns.
"""


@dataclass(frozen=True, slots=True)
class Program:
    """Code to run, and what it may use.

    Attributes:
        tools: Names the program may call as functions, each a Python identifier; `parent__child` may also be written
            `parent.child`.
        streams: Those of them whose values the program takes one by one; an engine that cannot gives it a list.
        signatures: How each tool is called, for an error that says so: `get_weather(city: str) -> Weather`.
        name: How tracebacks call the program.
        may_block: The event loop has nothing to do but this program, so that it may wait while the program computes;
            saves two changes of thread for each call.
        save_state: Where to keep what the program needs to be run again, while it runs; None when nobody asks for it.
    """

    code: str
    tools: tuple[str, ...] = ()
    streams: frozenset[str] = field(default=frozenset(), kw_only=True)
    signatures: Mapping[str, str] = field(default_factory=dict[str, str], kw_only=True)
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    name: str = "program.py"
    may_block: bool = False
    save_state: SaveState | None = field(default=None, kw_only=True)


# --- what the host answers a call with -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Value:
    """The call has a result, of JSON shapes."""

    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """The call raises in the program: `type` is the name of a builtin exception, which the program can catch."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class SuspendedReply:
    """The call waits for a person and has no reply yet; the program goes on as far as it can without, and then pauses.

    It cannot catch that. Calls already running are waited for.
    """

    reason: str


Reply: TypeAlias = Value | Raised | SuspendedReply

Emit: TypeAlias = Callable[[Any], Awaitable[None]]
"""Takes one value of a streaming call, of JSON shapes; returns when the program wants the next one."""


class Host(Protocol):
    """Whoever runs a program: answers its calls, and hears what it prints. Both are called on the event loop."""

    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any], emit: Emit | None = None) -> Reply:
        """Answer a call with JSON shapes; what this raises ends the program and is raised by `Sandbox.run`.

        Args:
            emit: Given for a tool of `Program.streams` whose values are taken one by one: each goes there, and the
                reply's own value counts for nothing. A program that takes no more of them cancels the call.
        """
        ...

    def output(self, text: str, stream: OutputStream) -> None:
        """Take what was printed, as it is printed."""
        ...


# --- what comes back -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProgramError:
    """Why a program did not reach its end.

    Attributes:
        kind: `syntax`: it cannot run as it stands, nothing ran. `exception`: it raised. `time`, `memory`, `output`,
            `calls`: a limit. `paused`: it waits for a person. `stopped`: from outside. `sandbox`: the sandbox itself
            failed.
        type: The exception's class name.
        message: What went wrong, for the model.
        line: The program's line, from 1; 0 when unknown.
        traceback: The program's own lines down to the error, as Python writes them.
    """

    kind: ErrorKind
    type: str
    message: str
    line: int = 0
    traceback: str = ""

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line else ""
        return f"{self.type}{where}: {self.message}" if self.message else f"{self.type}{where}"


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """How a program went.

    Attributes:
        value: The value of the program's last expression, as JSON shapes.
        output: What it printed; the middle is cut when it was too much.
        error_output: What it printed to stderr.
        error: Why it did not reach its end; None when it did.
        isolation: What kept it in, by name.
        calls: How many tool calls it made.
        state: What a paused program is resumed from, of JSON shapes; None when this engine cannot.
    """

    value: Any = None
    output: str = ""
    error_output: str = ""
    error: ProgramError | None = None
    isolation: tuple[str, ...] = ()
    calls: int = 0
    state: Mapping[str, Any] | None = None


class Sandbox(Protocol):
    """Runs one program away from everything of the host's but what its `Host` answers."""

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run a program to its end.

        Cancelling stops the program and the host's running calls. A program that fails is a result, too.

        Raises:
            SandboxError: No worker could be had; nothing ran.
            Exception: What `host.call` raised.
        """
        ...


@runtime_checkable
class HasNotes(Protocol):
    """A sandbox whose Python is not all of Python."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a model should know before it writes for it, a sentence each."""
        ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """What programs find in a sandbox's Python, so that they can be checked before they run.

    Attributes:
        modules: What they may import; None when that is not known.
        unlisted: Those of them that a model is not told of, being of little use to it.
        names: Functions at hand besides Python's own and the tools, such as `parallel`.
        streams: They take the values of a streaming tool one by one; they get a list otherwise.
    """

    modules: frozenset[str] | None = None
    unlisted: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    streams: bool = False


@runtime_checkable
class HasDialect(Protocol):
    """A sandbox that says which Python it has."""

    @property
    def dialect(self) -> Dialect:
        """What programs find there."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """A sandbox whose paused programs go on later, in this process or another."""

    @property
    def engine(self) -> str:
        """Its name and version, such as `process-3.11`: a state is of use to the same one only."""
        ...

    @property
    def replays(self) -> bool:
        """Whether a program is run again from its start, so that every call it made is asked for once more.

        Otherwise it goes on where it paused, and only the calls that had no reply are asked for again.
        """
        ...

    async def resume(self, program: Program, state: Mapping[str, Any], host: Host) -> SandboxResult:
        """Take up a paused program; see `Sandbox.run`.

        An engine that runs it again may hold the calls that waited back until it has asked for all the others; its
        states then have something in `pending`, and no `cut`.

        Raises:
            SandboxError: The state is none of this engine's.
        """
        ...


class SandboxSession(Protocol):
    """A place where one program after another runs, each with the names that the last one left."""

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run the next program; see `Sandbox.run`. One at a time."""
        ...

    def close(self) -> None:
        """End it; what its programs left is gone."""
        ...


@runtime_checkable
class HasSessions(Protocol):
    """A sandbox that can keep what a program leaves for the next one."""

    def session(self) -> SandboxSession:
        """Return a session of its own for the programs of one user."""
        ...


@dataclass(frozen=True, slots=True)
class TypeProblem:
    """A problem that a type checker finds at one line of a program.

    Attributes:
        rule: The checker's own name for the problem, such as `invalid-argument-type`.
    """

    line: int
    rule: str
    message: str


@runtime_checkable
class TypeChecker(Protocol):
    """A sandbox that has a type checker."""

    async def type_check(self, code: str, stubs: str) -> list[TypeProblem]:
        """Return what is wrong with a program's types, by line; nothing of the program runs.

        Args:
            code: A program that parses.
            stubs: Declarations of the functions that the program may call.
        """
        ...

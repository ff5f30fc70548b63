"""The protocol of sandboxes: a program and its limits, the host's replies to its calls, and its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from toolcrib.calls import Media
from toolcrib.errors import explain_options
from toolcrib.sandbox._worker.imports import some_of

OutputStream: TypeAlias = Literal["stdout", "stderr"]
"""The stream that a program wrote to."""
ErrorKind: TypeAlias = Literal[
    "syntax", "exception", "time", "memory", "output", "calls", "paused", "stopped", "sandbox"
]


_LONGEST = 1_000_000_000  # seconds, which every timer takes


@explain_options({"max_memory": "memory", **dict.fromkeys(("max_time", "seconds", "time", "timeout"), "wall_time")})
@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits of one program.

    Attributes:
        program_time: Seconds that the program's own code may compute; waiting for tools and sleeping does not count.
        wall_time: Seconds from start to end, tools, approvers and sleep included, but no time in which this process
            stood still or a durable program waited for its database; None for no such limit.
        sleep_time: Seconds it may sleep in all.
        memory: Bytes its values may take.
        output_kept: Characters of each stream that are kept, head and tail.
        output_killed_at: Characters printed in all at which the program is ended.
        calls: Tool calls it may make.
        calls_in_flight: Tool calls that run at a time; further ones wait.
        value_size: Characters, about, of one value that leaves the program: the arguments of a call, its result. A
            value that is small as text may be large as objects: 1 MB of `{}` takes the host 27 MB for a short time.
        reply_size: Characters, about, of one tool result that goes into the program.
        bytes_out: Bytes that leave the program beside JSON: of the tables in its value, and as many of artifacts.
        bytes_in: Bytes that go into the program beside JSON, with one tool result or at its start: tables and files.
        artifacts: Files that the program may leave in `artifacts/`; `bytes_out` bounds their size.
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
    bytes_out: int = 32_000_000
    bytes_in: int = 128_000_000
    artifacts: int = 20
    source_size: int = 200_000

    def __post_init__(self) -> None:
        for part in fields(self):
            value: float | None = getattr(self, part.name)
            may_be_zero = part.name in ("sleep_time", "calls", "artifacts")
            is_time = part.name.endswith("_time")
            if value is None and part.name == "wall_time":
                continue
            if not isinstance(value, (int, float) if is_time else int) or isinstance(value, bool):
                kind = "a number of seconds" if is_time else "a whole number"
                raise TypeError(f"SandboxLimits: {part.name} must be {kind}, and not {value!r}")
            if not (value > 0 or (value == 0 and may_be_zero)) or (is_time and value > _LONGEST):
                bound = f"at most {_LONGEST} seconds" if is_time and value > 0 else "more than 0"
                raise ValueError(f"the limit {part.name} must be {bound}, and is {value!r:.80}")


SaveState: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Saves a part of the state that `Resumable.resume` takes, for the case that this process ends before the program does.

Lists are appended to those saved before. What follows from a part must not be begun before this returns.
"""


@dataclass(frozen=True, slots=True)
class Program:
    """Code to run, with its tools and limits.

    Attributes:
        tools: Names the program may call as functions, each a Python identifier; `parent__child` may also be written
            `parent.child`.
        streams: Those of them whose values the program takes one by one; an engine that cannot gives it a list.
        signatures: How each tool is called, for error messages: `get_weather(city: str) -> Weather`.
        name: The program's file name in tracebacks.
        may_block: Whether the event loop has nothing else to do, so that it may wait while the program computes; saves
            two changes of thread for each call.
        save_state: Saves what is needed to run the program again, while it runs; None for a program without a journal.
        files: Files that the program can read, by names without a folder above.
        waited: The seconds so far in which the host waited for what keeps the program; no limit counts them.
    """

    code: str
    tools: tuple[str, ...] = ()
    streams: frozenset[str] = field(default=frozenset(), kw_only=True)
    signatures: Mapping[str, str] = field(default_factory=dict[str, str], kw_only=True)
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    name: str = "program.py"
    may_block: bool = False
    save_state: SaveState | None = field(default=None, kw_only=True)
    waited: Callable[[], float] | None = field(default=None, kw_only=True)
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes], kw_only=True, repr=False)


# --- the host and its replies ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Value:
    """The call has a result, of JSON shapes.

    Attributes:
        tables: Arrow IPC streams, of the tables that are in `value` as objects with a number under the key `$table`.
    """

    value: Any
    tables: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Raised:
    """The call raises in the program: `type` is the name of a builtin exception, which the program can catch."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class SuspendedReply:
    """The call is suspended: it waits for a person. The program goes on as far as it can without, and then pauses.

    The program cannot catch that. Calls that already run come to their end.
    """

    reason: str


Reply: TypeAlias = Value | Raised | SuspendedReply
"""The reply to a program's call: a value, an exception, or that the call is suspended."""

Emit: TypeAlias = Callable[[Any], Awaitable[None]]
"""Takes one value of a streaming call, of JSON shapes, and returns when the program wants the next one."""


class Host(Protocol):
    """The host of a program: answers its calls and takes its output, both on the event loop."""

    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any], emit: Emit | None = None) -> Reply:
        """Answer a call with JSON shapes; an exception ends the program and is raised by `Sandbox.run`.

        Args:
            emit: Takes the values of a tool of `Program.streams`, where the program takes them one by one; the value of
                the reply is not used then. A program that takes no more of them cancels the call.
        """
        ...

    def output(self, text: str, stream: OutputStream) -> None:
        """Receive what was printed, as it is printed."""
        ...


# --- results ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProgramError:
    """The error that kept a program from its end.

    Attributes:
        kind: `syntax`: it cannot run, nothing ran. `exception`: it raised. `time`, `memory`, `output`, `calls`: it came
            to a limit. `paused`: it waits for a person. `stopped`: it was ended from outside. `sandbox`: the sandbox
            failed.
        type: The exception's class name.
        message: The error's text, for the model.
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
    """The result of a program.

    Attributes:
        value: The value of the program's last expression, as JSON shapes; a table in it is a DataFrame where the
            program had one, else a table of pyarrow.
        output: The text that it printed, cut in the middle when it was too much.
        error_output: The text that it printed to stderr.
        error: Why it did not reach its end; None when it did.
        isolation: The layers that kept it in, by name.
        calls: How many tool calls it made.
        state: The state from which a paused program is resumed, of JSON shapes; None when this engine cannot.
        artifacts: The files that it left in `artifacts/`, and its figures.
    """

    value: Any = None
    output: str = ""
    error_output: str = ""
    error: ProgramError | None = None
    isolation: tuple[str, ...] = ()
    calls: int = 0
    state: Mapping[str, Any] | None = None
    artifacts: tuple[Media, ...] = ()


@runtime_checkable
class Sandbox(Protocol):
    """A place for programs, where nothing of the host's can be reached but its `Host`."""

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run a program to its end.

        Cancelling stops the program and the host's running calls. A program that fails is a result, too.

        Raises:
            SandboxError: No worker could be had; nothing ran.
            Exception: An exception of `host.call`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """The Python of a sandbox, so that programs can be checked before they run.

    Attributes:
        modules: The modules that they may import; None when that is not known.
        unlisted: Those of them that are not listed to a model, being of little use to it.
        names: Functions besides Python's own and the tools, such as `parallel`.
        streams: Whether they take the values of a streaming tool one by one; they get a list otherwise.
        notes: Sentences for a model that writes a program.
        packages: The packages that they may import beside Python's own modules.
        files: Whether they can be given files, and leave some.
    """

    modules: frozenset[str] | None = None
    unlisted: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    streams: bool = False
    notes: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    files: bool = False

    @property
    def listed_modules(self) -> str:
        """Ten of the modules that a model is shown, and the number of the others."""
        return some_of((self.modules or frozenset()) - self.unlisted, self.packages)

    @property
    def table(self) -> str:
        """The type as which a program gets a table: `DataFrame`, `pyarrow.Table`, or `list[dict]`, its rows."""
        modules = self.modules or frozenset[str]()
        return "DataFrame" if "pandas" in modules else "pyarrow.Table" if "pyarrow" in modules else "list[dict]"


@runtime_checkable
class HasDialect(Protocol):
    """A sandbox that describes its Python."""

    @property
    def dialect(self) -> Dialect:
        """The modules and names that programs find there."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """A sandbox that can resume its paused programs, in this process or another."""

    @property
    def engine(self) -> str:
        """The engine's name and version, such as `process-3.11`: only the same one can use a state."""
        ...

    @property
    def replays(self) -> bool:
        """True for an engine that runs a program again from its start, so that every call is asked for once more.

        Otherwise it goes on where it paused, and asks only for the calls that had no reply.
        """
        ...

    async def resume(self, program: Program, state: Mapping[str, Any], host: Host) -> SandboxResult:
        """Resume a paused program; see `Sandbox.run`.

        An engine that runs it again may hold the suspended calls back until it has asked for all the others; its states
        then have something in `suspended`, and no `cut`.

        Raises:
            SandboxError: The state is not of this engine.
        """
        ...


class SandboxSession(Protocol):
    """A place where one program after another runs, each with the names that the last one left."""

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run the next program, one at a time; see `Sandbox.run`."""
        ...

    def close(self) -> None:
        """End the session; the names that its programs left are gone."""
        ...


@dataclass(frozen=True, slots=True)
class SessionValues:
    """The data that the programs of a session left.

    Attributes:
        data: The values by name, as JSON shapes of the engine's own.
        left_out: The kinds of the values that are not data, or for which there was no room, by name.
    """

    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])


@runtime_checkable
class HasSessions(Protocol):
    """A sandbox that can keep the names that a program leaves for the next one."""

    def session(self) -> SandboxSession:
        """Return a session of its own for the programs of one user."""
        ...


@runtime_checkable
class HasSessionValues(Protocol):
    """A session whose data can be taken out of it."""

    async def values(self, program: Program, host: Host) -> SessionValues:
        """Return the data of the session.

        Args:
            program: An empty program, with the tools and limits of the next one.
            host: Its host.

        Raises:
            SandboxError: A program is running, or the session is over.
        """
        ...


@runtime_checkable
class RestoresSessions(Protocol):
    """A sandbox whose sessions can begin with the data of another one."""

    def restored_session(self, data: Mapping[str, Any]) -> SandboxSession:
        """Return a session, as `HasSessions.session` does, whose first program finds this `SessionValues.data`."""
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
        """Return the type errors of a program, by line; nothing of the program runs.

        Args:
            code: A program that parses.
            stubs: Declarations of the functions that the program may call.
        """
        ...

"""Turn: a tool with its arguments, to be run once."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any, Generic, Never, overload
from uuid import UUID

from typing_extensions import TypeVar

from toolcrib._numbers import require_seconds
from toolcrib.approvals import require_answer
from toolcrib.calls import (
    ApprovalRequest,
    Completed,
    Denial,
    Grant,
    Outcome,
    StoredFields,
    Suspended,
    ToolCall,
    error_of,
    versioned,
)
from toolcrib.errors import (
    SafeExecutionError,
    TurnTimeoutError,
    WrongRunMethodError,
    explain_options,
    refuse_unknown_options,
)
from toolcrib.hooks import HookMethod, Observed, Observers, TurnHook, tag_set
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import Stepped
from toolcrib.tools import Deadline, Tool, ToolRegistry
from toolcrib.turns._arguments import (
    checked_tool,
    evaluated,
    named_arguments,
    pack,
    pack_arguments,
    require_options,
    unpack_arguments,
)
from toolcrib.turns._binding import UNBOUNDED, UNFOLLOWED, Clock, Table, TurnBinding, lone_binding
from toolcrib.turns._locked import Locked, locked
from toolcrib.turns._stop_reason import StopReason, reason_of

T = TypeVar("T", default=Any)
V = TypeVar("V", default=T)
"""The value of a turn's outcome: of a streaming tool the list of its values."""
S = TypeVar("S")
_NO_TAGS: frozenset[str] = frozenset()
_numbers = Random()  # seeded by the system; an id is not a secret
if hasattr(os, "register_at_fork"):  # a forked child must not hand out its parent's ids
    os.register_at_fork(after_in_child=_numbers.seed)


_OPTIONS = ("tool", "timeout", "args", "kwargs", "tags", "metadata")
_OF_OTHERS = {  # what others call an option, and where it is here
    **dict.fromkeys(("arguments", "input", "inputs", "params"), "kwargs"),
    **dict.fromkeys(("approver", "deps", "limits", "principal", "run"), "of the run: `turn.returning(run=Run(...))`"),
}


class Turn(Observed, Generic[T, V]):
    """A tool with its arguments, as the host made them: what should happen, once it is run.

    The arguments are Python objects and pass as they are: extra ones are ignored with a log line, missing ones are a
    TypeError when the turn runs. One that is a callable without parameters is called then, and its result passed.

    Args:
        tool: The tool, or the name it is registered by.
        timeout: Seconds for the whole run, waits for locks included and the time of an approver not; None for any.
        args: Arguments by position; they are kept by name, in `kwargs`.
        kwargs: Arguments by name.
        tags: Words by which global hooks choose.
        metadata: A dict of your own; it may be changed at any time.

    Attributes:
        output: The result of the last run, or the list of values it has yielded.
        stop_reason: How the last run ended; None before that.
        outcome: The outcome of the last run as a value; None when it did not come to one.

    Raises:
        UnregisteredToolError: No tool is registered by that name.
    """

    __slots__ = (
        "_is_running",
        "_kwargs",
        "_metadata",
        "_observers",
        "_tags",
        "_timeout",
        "_tool",
        "_uuid",
        "ended",
        "outcome",
        "output",
        "started",
        "stop_reason",
    )

    before_run = HookMethod(TurnHook.BEFORE_RUN)
    after_run = HookMethod(TurnHook.AFTER_RUN)
    on_timeout = HookMethod(TurnHook.ON_TIMEOUT)
    on_error = HookMethod(TurnHook.ON_ERROR)
    on_complete = HookMethod(TurnHook.ON_COMPLETE)

    tool: Locked[Tool[..., Any]] = locked("tool", "What it runs.")
    timeout: Locked[float | None] = locked("timeout", "Seconds for the whole run; None for any number.")
    kwargs: Locked[dict[str, Any]] = locked("kwargs", "The arguments, by name.")

    @overload
    def __init__(
        self: Turn[S, S],
        tool: Tool[..., Coroutine[Any, Any, S]],
        timeout: float | None = 60,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        tags: Iterable[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Turn[S, list[S]],
        tool: Tool[..., AsyncIterable[S]] | Tool[..., Iterator[S]],
        timeout: float | None = 60,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        tags: Iterable[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Turn[S, S],
        tool: Tool[..., S],
        timeout: float | None = 60,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        tags: Iterable[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Turn[Any],
        tool: str | Tool[..., Any],
        timeout: float | None = 60,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        tags: Iterable[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None: ...
    def __init__(
        self,
        tool: str | Tool[..., Any],
        timeout: float | None = 60,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        tags: Iterable[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **unknown: Never,
    ) -> None:
        if unknown:
            of_tool = tool.spec.argument_names if isinstance(tool, Tool) else ()
            words = {name: f"`kwargs={{{name!r}: ...}}`, an argument of the tool" for name in of_tool}
            refuse_unknown_options("Turn", unknown, _OPTIONS, {**words, **_OF_OTHERS})
        require_options(timeout, kwargs, metadata)
        self._tool = tool = ToolRegistry.get(tool) if isinstance(tool, str) else checked_tool(tool)
        require_seconds("a turn", "timeout", timeout)
        self._timeout = timeout
        self._kwargs = named_arguments(tool, args, kwargs or {}) if args else dict(kwargs) if kwargs else {}
        self._tags = tag_set(tags, "a turn") if tags else _NO_TAGS
        self._metadata = metadata
        self._is_running = False
        self._uuid: str | None = None  # made when it is asked for: most turns only wait
        self._observers: Observers | None = None
        self.started: float | None = None  # seconds since the epoch: a float costs less than a datetime
        self.ended: float | None = None
        self.output: Any = None
        self.stop_reason: StopReason | None = None
        self.outcome: Outcome[V] | None = None

    # --- what it is

    @property
    def id(self) -> str:
        """The text of `uuid`; the call that the turn makes has this id, and so have its approvals and records."""
        if self._uuid is None:
            # of version 4; `uuid4` costs a fifth of a turn
            digits = f"{_numbers.getrandbits(128):032x}"
            self._uuid = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
        return self._uuid

    @id.setter
    def id(self, value: str) -> None:
        self._uuid = str(UUID(value))

    @property
    def has_id(self) -> bool:
        """True if the id was read, set or restored; another turn may still be given one."""
        return self._uuid is not None

    @property
    def uuid(self) -> UUID:
        """Names the turn, also after it was written down and restored."""
        return UUID(self.id)

    @property
    def tool_name(self) -> str:
        """The name that the tool is registered by."""
        return self._tool.__name__

    @property
    def tags(self) -> frozenset[str]:
        """The words by which global hooks choose."""
        return self._tags

    @property
    def metadata(self) -> dict[str, Any]:
        """A dict of the host's own; it may be changed at any time."""
        if self._metadata is None:
            self._metadata = {}
        return self._metadata

    @metadata.setter
    def metadata(self, value: dict[str, Any]) -> None:
        self._metadata = value

    @property
    def start_time(self) -> datetime | None:
        """The time at which the last run began, in UTC."""
        return None if self.started is None else datetime.fromtimestamp(self.started, UTC)

    @property
    def end_time(self) -> datetime | None:
        """The time at which the last run ended, in UTC; None while it runs."""
        return None if self.ended is None else datetime.fromtimestamp(self.ended, UTC)

    @property
    def is_running(self) -> bool:
        """True if the turn runs now."""
        return self._is_running

    @property
    def request(self) -> ApprovalRequest | None:
        """The request to a person, when the turn is suspended."""
        return self.outcome.request if isinstance(self.outcome, Suspended) else None

    @property
    def observers(self) -> Observers:
        """The table of its own observers."""
        if self._observers is None:
            self._observers = Observers(self.tags)
        return self._observers

    @property
    def own_observers(self) -> Observers | None:
        """The same, and None when nothing is attached."""
        return self._observers

    def busy(self) -> str:
        """Return the activity that forbids changes, in words."""
        return "is running" if self._is_running else ""

    # --- running it

    @explain_options()
    async def returning(
        self,
        *,
        run: Run | None = None,
        grant: Grant | Denial | None = None,
        pipeline: Pipeline | None = None,
    ) -> T:
        """Run the turn and return what its tool returns.

        Args:
            run: The run it is part of, with its deps, approver, limits; a plain one when None.
            grant: The answer to `turn.request`, when the turn is suspended; the call continues where it was.
            pipeline: Adds the gates of a toolset; without one, only those of the tool itself count.

        Raises:
            WrongRunMethodError: The tool streams; use `yielding()`.
            SafeExecutionError: The turn runs already.
            TurnTimeoutError: It did not finish in its time.
            ApprovalRequired: A person has to be asked first; `turn.request` is the question.
            ApprovalDenied: A person or a rule said no.
            Exception: The error that the tool raised.
        """
        if self._tool.is_streaming:
            raise WrongRunMethodError(f"the tool `{self.tool_name}` yields values; run its turn with yielding()")
        outcome = await self.run_within(lone_binding(self._tool, run, pipeline), grant)
        if isinstance(outcome, Completed):
            return outcome.value
        raise error_of(outcome)

    @explain_options()
    async def yielding(
        self,
        *,
        run: Run | None = None,
        grant: Grant | Denial | None = None,
        pipeline: Pipeline | None = None,
    ) -> AsyncGenerator[T, None]:
        """Run the turn and yield the values of its tool as they come; arguments and errors are those of `returning`.

        Leaving early stops the tool, and the turn is `CANCELLED`.
        """
        if not self._tool.is_streaming:
            raise WrongRunMethodError(f"the tool `{self.tool_name}` returns one value; run its turn with returning()")
        async with self.streaming(lone_binding(self._tool, run, pipeline), grant) as (values, clock):
            async for value in values:
                self.output.append(value)
                clock.rest()
                yield value
                clock.begin()
        if self.outcome is not None and not isinstance(self.outcome, Completed):
            raise error_of(self.outcome)

    async def run_within(
        self, binding: TurnBinding, grant: Grant | Denial | None = None, *, followed: bool = False
    ) -> Outcome:
        """Run the turn over `binding` and return its outcome; for agents, which answer more than exceptions can say.

        Args:
            followed: Sinks have had the event that the turn begins.

        Raises:
            TurnTimeoutError: It did not finish in its time.
            Exception: The error that a hook raised.
        """
        if binding.followed and not (followed or self._is_running):
            with binding.follow(self, self._tool, self._kwargs) as run, UNFOLLOWED if run is None else run.within():
                return await self.run_within(binding, grant, followed=True)
        table, clock, waits = self._begin(binding, grant)
        error: Exception | None = None
        try:
            if table:
                await binding.fire_begin(self, table)
            with clock:  # what an argument waits for counts
                call = waits or binding.stored or self._call(binding) or await self._asked_call(binding)
                outcome = await binding.pipeline.run(call, binding.run, grant=grant)
            self.outcome = outcome
            if isinstance(outcome, Completed):
                self.output = outcome.value
            return outcome
        except Exception as raised:
            error = raised
            raise
        finally:
            self._stop(clock, error)
            if table:
                await binding.fire_end(self, table, error)

    @asynccontextmanager
    async def streaming(
        self, binding: TurnBinding, grant: Grant | Denial | None = None
    ) -> AsyncGenerator[tuple[AsyncIterable[T], Clock]]:
        """Run the turn over `binding` while the body takes the values, which it adds to `output`.

        Gives the values and the turn's clock: who gives a value away says `rest()` before and `begin()` after, so
        that nothing of the taker's is stopped when the time is over. The outcome is in `outcome` in the end.
        """
        follows = binding.followed and not self._is_running
        with binding.follow(self, self._tool, self._kwargs) if follows else UNFOLLOWED as run:
            table, clock, waits = self._begin(binding, grant)
            self.output = []
            error: Exception | None = None
            try:
                if table:
                    await binding.fire_begin(self, table)
                with clock:
                    call = waits or binding.stored or self._call(binding) or await self._asked_call(binding)
                stream = aclosing(binding.pipeline.stream(call, binding.run, grant=grant, ended=self._conclude))
                async with stream if run is None else Stepped(stream, run.within) as values:
                    with clock as running:
                        yield values, running
            except Exception as raised:
                error = raised
                raise
            finally:
                self._stop(clock, error)
                if table:
                    await binding.fire_end(self, table, error)

    # --- inside

    def _begin(self, binding: TurnBinding, grant: Grant | Denial | None) -> tuple[Table, Clock, Suspended | None]:
        """Begin a run, and return its hooks, its clock and the call that waits for `grant`, if one does."""
        if self._is_running:
            raise SafeExecutionError(f"{self!r} is running already; make another turn to run the tool again")
        if grant is not None:
            require_answer(f"the answer about `{self.tool_name}`", grant)
        table = binding.table(self)
        seconds, clock = self._timeout, UNBOUNDED
        if seconds is not None:
            clock = Deadline(seconds, TurnTimeoutError, self._tool.__name__, seconds)
        waiting = self.outcome
        self._is_running = True
        self.started = time.time()
        self.ended = self.output = self.stop_reason = self.outcome = None
        return table, clock, waiting if grant is not None and isinstance(waiting, Suspended) else None

    def _call(self, binding: TurnBinding) -> ToolCall | None:
        """Return the call; None when an argument has to be asked for first."""
        for value in self._kwargs.values():
            if callable(value):
                return None
        name = binding.names.get(self._tool) or self._tool.spec.name
        return ToolCall(name, self._kwargs, self._uuid or self.id, "host")

    async def _asked_call(self, binding: TurnBinding) -> ToolCall:
        """Return the call with what its callables return."""
        kwargs = {key: await evaluated(value) for key, value in self._kwargs.items()}
        return ToolCall(binding.names.get(self._tool) or self._tool.spec.name, kwargs, self.id, "host")

    def _conclude(self, outcome: Outcome) -> None:
        self.outcome = outcome
        if isinstance(outcome, Completed) and not self._tool.is_streaming:
            self.output = outcome.value  # what came before it were reports

    def _stop(self, clock: Clock, error: Exception | None) -> None:
        if clock is not UNBOUNDED:
            clock.close()
        self.ended = time.time()
        self._is_running = False
        outcome = self.outcome
        done = error is None and type(outcome) is Completed
        self.stop_reason = StopReason.COMPLETED if done else reason_of(outcome, error)

    # --- writing it down

    def copy(self) -> Turn[T, V]:
        """Return a turn of its own with the same tool, arguments, tags, metadata and hooks, not run yet."""
        turn: Turn[Any] = Turn(self._tool, self._timeout, None, self._kwargs, self.tags, dict(self._metadata or {}))
        if self._observers is not None:
            turn.observers.adopt(self._observers)
        return turn

    def to_dict(self) -> dict[str, Any]:
        """Return the turn as JSON shapes, the real arguments included: for safe keeping. Hooks are left out.

        Raises:
            NotPortableError: A value does not go to JSON and back; it is named.
        """
        owner = f"the turn of `{self.tool_name}`"
        kwargs, typed = pack_arguments(owner, self._tool.spec, self._kwargs)
        start, end = self.start_time, self.end_time
        data: dict[str, Any] = {
            "uuid": self.id,
            "tool_name": self.tool_name,
            "kwargs": kwargs,
            "metadata": {key: pack(owner, f"metadata[{key!r}]", value) for key, value in self.metadata.items()},
            "timeout": self._timeout,
            "start_time": start and start.isoformat(),
            "end_time": end and end.isoformat(),
            "stop_reason": self.stop_reason and self.stop_reason.value,
            "output": None if self._is_running else pack(owner, "the output", self.output),
            "tags": sorted(self.tags),
        }
        return versioned("Turn", {**data, "typed": typed} if typed else data)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], tools: Iterable[Tool[..., Any]] = ()) -> Turn[Any]:
        """Return the turn that `to_dict` described, with its id; its output is JSON values.

        Args:
            tools: Where its tool is looked for before the registry.

        Raises:
            UnregisteredToolError: There is no tool of that name.
            ValueError: A field is missing.
        """
        data = StoredFields(cls, data)
        name = data["tool_name"]
        tool = next((t for t in tools if t.__name__ == name), None) or ToolRegistry.get(name)
        kwargs = unpack_arguments(tool.spec, data["kwargs"], data.get("typed", []))
        turn: Turn[Any] = cls(tool, data["timeout"], None, kwargs, data.get("tags"), dict(data["metadata"]))
        turn._uuid, turn.output = str(UUID(data["uuid"])), data["output"]
        start, end = data["start_time"], data["end_time"]
        turn.started = start and datetime.fromisoformat(start).timestamp()
        turn.ended = end and datetime.fromisoformat(end).timestamp()
        turn.stop_reason = data["stop_reason"] and StopReason(data["stop_reason"])
        return turn

    def __repr__(self) -> str:
        state = "running" if self._is_running else self.stop_reason.value if self.stop_reason else "not run"
        return f"<Turn of {self.tool_name}, {state}>"

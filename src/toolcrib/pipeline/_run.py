"""Run: one user's piece of work, with its identity, options, counters and standing grants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import lru_cache, partial
from inspect import isawaitable, iscoroutine, signature
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, Never, NoReturn, TypeAlias, cast

from toolcrib import approvals as _approvals
from toolcrib import calls, record, schema, tools
from toolcrib import hooks as _hooks
from toolcrib.calls import MODEL
from toolcrib.errors import explain_missing, refuse_unknown_options
from toolcrib.hooks import GateLike, GateStep, ambient, gate_steps
from toolcrib.pipeline._run_options import (
    DEFAULT_CHANNEL,
    DEFAULT_DURABILITY,
    OPTION_WORDS,
    PART_OF,
    CallLimits,
    Channel,
    Durability,
    changed,
    require_options,
)
from toolcrib.pipeline._run_state import RunState, SharedState
from toolcrib.schema import RunContext
from toolcrib.toolsets import ToolEntry

Execute: TypeAlias = Callable[[dict[str, Any], RunContext[Any] | None], Awaitable[Any]]
"""Executes what is inside a wrapper, with the arguments and the context that the tool's function is given."""

BodyWrapper: TypeAlias = Callable[[Any, Execute, dict[str, Any], RunContext[Any] | None], Awaitable[Any]]
"""Returns what the tool of a call returns, by executing what is inside, with the arguments and the context."""

BeginStep: TypeAlias = Callable[[Any], Awaitable[None]]
"""Is awaited with a call right before the first line of its tool; what it raises keeps the tool from beginning."""

_NOTHING: Mapping[Any, Any] = MappingProxyType({})
_NO_SLOT: AbstractAsyncContextManager[None] = nullcontext()


async def _in_slot(call: Any, execute: Execute, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
    async with call.run.slot(is_outermost=True):
        return await execute(arguments, ctx)


@explain_missing(dict.fromkeys(("__enter__", "__aenter__"), "`run = Run(...)`, which nothing has to close"))
class Run(RunState):
    """One user's piece of work: an agent's run, a session, a program. A host opens it, and the pipeline checks it.

    A run is one object and is never copied: what is given the same run shares its budget, its retry counts and its
    standing grants. `view` gives an adapter other options over the same run.

    Attributes:
        id: Names the run in the record; made when none is given.
        deps: The value that the host gives its tools, as `ctx.deps`.
        limits: The run's budget, and what has to be called in it.
        approver: A function of the request, async or not, that is asked at once when a call needs approval; None
            suspends the call.
        approvals: Where requests are kept and answers looked up, and that an approved call began and what it came to:
            after a crash it is known to be in doubt. Without a store, a standing grant holds in the run.
        principal: On whose behalf the calls are made.
        provide: Values for `Injectable` and `Injected` parameters, by type or name.
        sinks: Where this run's events go, besides the pipeline's own.
        available: The names that may be called; None for all that are not off.
        gates: Conditions of your own between each call of the run and its tool: objects with `stage` and `check(call)`,
            or functions of the call.
        deliveries: Steps that each value and result of the calls passes before anyone has it, after those of the tool:
            objects with `deliver(call, value)`, or functions of both.
        features: Features with gates, deliveries and a state of their own, such as the policy `Provenance()`, by which
            values that others wrote are asked about.
        channel: The way by which calls come and answers go back: agent, conversation, client, texts of errors.
        durability: The stores outside of this process that know the calls: a recorder, a fence, a store of effects.
    """

    __slots__ = (
        "approvals", "approver", "available", "begin_steps", "channel", "compiled_gates", "deliveries",
        "delivery_steps", "deps", "durability", "feature_parts", "features", "gate_steps", "gates", "limits",
        "principal", "provide", "sinks", "wants_ctx", "wrappers",
    )  # fmt: skip
    deps: Any
    limits: CallLimits | None
    approver: _approvals.Approver | None
    approvals: _approvals.ApprovalStore | None
    principal: str | None
    provide: Mapping[Any, Any]
    sinks: tuple[record.Sink, ...]
    available: frozenset[str] | None
    gates: Sequence[GateLike]
    deliveries: Sequence[_hooks.DeliveryLike]
    features: Sequence[_hooks.Feature]
    channel: Channel
    durability: Durability
    compiled_gates: tuple[GateStep, ...] | None
    begin_steps: tuple[BeginStep, ...] | None
    wants_ctx: bool
    wrappers: tuple[BodyWrapper, ...]
    gate_steps: tuple[GateStep, ...]
    delivery_steps: tuple[_hooks.DeliveryStep, ...]
    feature_parts: tuple[_hooks.FeatureParts, ...]

    def __init__(
        self,
        id: str = "",
        *,
        deps: Any = None,
        limits: CallLimits | None = None,
        approver: _approvals.Approver | None = None,
        approvals: _approvals.ApprovalStore | None = None,
        principal: str | None = None,
        provide: Mapping[Any, Any] = _NOTHING,
        sinks: Iterable[record.Sink] = (),
        available: frozenset[str] | None = None,
        gates: Sequence[GateLike] = (),
        deliveries: Sequence[_hooks.DeliveryLike] = (),
        features: Sequence[_hooks.Feature] = (),
        channel: Channel = DEFAULT_CHANNEL,
        durability: Durability = DEFAULT_DURABILITY,
        **moved: Never,
    ) -> None:
        if moved:
            refuse_unknown_options("a Run", moved, _OPTIONS, OPTION_WORDS)
        self.deps = deps
        self.limits = limits
        self.approver = approver
        self.approvals = approvals
        self.principal = principal
        self.provide = provide
        self.sinks = record.require_sinks("Run", sinks) if sinks else ()
        self.available = available
        self.gates, self.deliveries, self.features = gates, deliveries, features
        self.channel = channel
        self.durability = durability
        self.gate_steps, self.delivery_steps, self.feature_parts = (), (), ()
        self.begin_steps, self.compiled_gates, self.wrappers = (), (), ()
        self.wants_ctx = deps is not None or bool(provide)
        self._state = SharedState()
        if gates or deliveries or features:
            self._compile_steps()
        if (
            id
            or limits is not None
            or approver is not None
            or approvals is not None
            or available is not None
            or provide
            or type(channel) is not Channel
            or durability is not DEFAULT_DURABILITY
            or not (principal is None or type(principal) is str)
        ):
            self._set_up(id)
        if deps is not None or gates or features:
            self.compiled_gates = None  # made where they are asked first, as `begin_steps`
        if type(self) is Run:
            self.__class__ = _MadeRun

    def _compile_steps(self) -> None:
        """Compile the steps of the host: its gates, its deliveries and those of its features."""
        for name in ("gates", "deliveries", "features"):
            values: Any = getattr(self, name)
            if isinstance(values, Iterator):  # which could be read but once
                setattr(self, name, tuple(cast("Iterator[Any]", values)))
        self.gate_steps = gate_steps("Run", self.gates) if self.gates else ()
        self.delivery_steps = _hooks.delivery_steps("Run", self.deliveries) if self.deliveries else ()
        self.feature_parts = _hooks.feature_parts("Run", self.features) if self.features else ()
        self.delivery_steps += tuple(step for parts in self.feature_parts for step in parts.deliveries)
        self.wants_ctx = self.wants_ctx or bool(self.gate_steps)
        self.begin_steps = None

    def _set_up(self, id: str) -> None:
        """Check options that are not the default, and set what follows from them."""
        if id:
            self._state.id = id
        require_options(self, id)
        limits, durability = self.limits, self.durability
        if self.approvals is None:
            self.approvals = durability.store
        if limits is not None and limits.concurrency is not None:
            self.wrappers = (_in_slot,)
        if self.available is not None or limits is not None:
            self.compiled_gates = None
        if self.approvals is not None or durability is not DEFAULT_DURABILITY:
            self.begin_steps = None

    def __repr__(self) -> str:
        options = ((name, getattr(self, name)) for name in _OPTIONS if name not in _UNSHOWN)
        names = [name for name, value in options if not any(value is default for default in _DEFAULTS)]
        whose = "" if self.principal is None else f" of {self.principal}"
        return f"<Run {self.id}{whose}{': ' if names else ''}{', '.join(names)}>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled; raises TypeError."""
        raise TypeError(
            "a run is one object, which counts for all that are given it, and is not copied or pickled: give the run "
            "itself, or run.view(...) for other options; another process makes one, and takes over what was counted: "
            "Run(...).restore(run.counted())"
        )

    def set_compiled_gates(self, steps: tuple[GateStep, ...]) -> None:
        """Set the gates of the run: its own, and those that its options come to."""
        object.__setattr__(self, "compiled_gates", steps)

    def set_begin_steps(self, steps: tuple[BeginStep, ...]) -> None:
        """Set what its calls pass right before their tools begin."""
        object.__setattr__(self, "begin_steps", steps)

    def view(self, **options: Any) -> RunView:
        """Return this run with other options for some of its calls: a frozen view, which has no state of its own.

        Args:
            options: Options of the run, but for `id`, `limits`, `gates`, `deliveries` and `features`, which are the
                run's; and single options of its channel and its durability, by their own names: `agent="planner"`.

        Raises:
            TypeError: One of them is not an option.
        """
        return RunView(self, options)

    def with_sinks(self, *sinks: record.Sink) -> RunView:
        """Return a view of this run whose events go to more sinks."""
        return self.view(sinks=(*self.sinks, *sinks))

    @property
    def run(self) -> Run:
        """The run itself; a view's is the one that it was made of."""
        return self

    # --- what it asks and executes

    def offers(self, entry: ToolEntry) -> bool:
        """Return whether a tool may be called in the run."""
        if not entry.off if self.available is None else entry.name in self.available:
            return True
        return entry.name in self.revealed

    @property
    def is_executing(self) -> bool:
        """True if the code that asks is part of an execution of the run."""
        outer = current_run()
        return outer is not None and outer.run is self.run

    def slot(self, *, is_outermost: bool = False) -> AbstractAsyncContextManager[Any]:
        """Return a context manager that holds one of the executions that may run at a time.

        An execution that is part of another one of the same run shares its slot.

        Args:
            is_outermost: Whether it is known to be part of none.
        """
        most = None if self.limits is None else self.limits.concurrency
        if most is None or (not is_outermost and self.is_executing):
            return _NO_SLOT
        state, loop = self._state, asyncio.get_running_loop()
        if state.slots is None:
            state.slots = {}
        slots = state.slots.get(loop)
        if slots is None:
            for closed in [known for known in tuple(state.slots) if known.is_closed()]:
                state.slots.pop(closed, None)
            slots = state.slots[loop] = asyncio.Semaphore(most)
        return slots

    @property
    def has_asking_deps(self) -> bool:
        """True if the run's deps may say that a tool needs approval."""
        return self.deps is not None and isinstance(self.deps, _approvals.AgentContext)

    @property
    def asking_tools(self) -> tuple[str, ...]:
        """The tools that need approval as the run's deps say."""
        return tuple(self.deps.need_user_approve_tools) if self.has_asking_deps else ()

    def asks_for(self, tool: str) -> bool:
        """Return whether the run's deps say that this tool needs approval."""
        return self.has_asking_deps and tool in self.deps.need_user_approve_tools

    def client_of(self, ctx: RunContext[Any]) -> schema.CallClient:
        """Return the client of a call, with the host in its place where it lacks something."""
        return tools.LinkedClient(
            ctx, self.channel.client, self.channel.sample, self.read_input if self.feature_parts else None
        )

    def context(self) -> RunContext[Any]:
        """Return the run as code sees it that no call executes: a condition, an instruction, a hook of an agent."""
        ask = None if self.approver is None else partial(_approvals.answer_of, self.approver)
        return RunContext(self.deps, "", "", self.id, provided=self.provide, revealed=self.revealed, ask=ask, run=self)


_OPTIONS: Final = tuple(name for name in signature(Run).parameters if name != "moved")
_UNSHOWN: Final = frozenset({"channel", "id", "principal"})  # in the repr; of the others it has the names
_DEFAULTS: Final = (None, (), _NOTHING, DEFAULT_CHANNEL, DEFAULT_DURABILITY)
_OF_THE_RUN: Final = frozenset({"deliveries", "features", "gates", "id", "limits"})  # in every view of it
_VIEWED: Final = frozenset({*_OPTIONS, *PART_OF}) - _OF_THE_RUN - {n for n, part in PART_OF.items() if part == "limits"}
_SLOTS: Final = (*RunState.__slots__, *Run.__slots__)
_copied: Final = attrgetter(*_SLOTS)  # at once: an adapter makes a view for each call
_SETTERS: Final = tuple(getattr(Run, name).__set__ for name in _SLOTS)
_GATE_OPTIONS: Final = frozenset({"available", "deps"})  # of which gates are made
_BEGIN_OPTIONS: Final = frozenset({"approvals", "durability", "fence", "recorder"})  # of which begin steps are made


class _MadeRun(Run):
    """A run whose options are set. A class of its own, so that to make a run costs nothing more."""

    __slots__ = ()
    __qualname__ = Run.__qualname__

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"the options of a run are given when it is made: Run({name}=...); for other calls of it use "
            f"run.view({name}=...)"
        )


class RunView(_MadeRun):
    """A run with other options, for some of its calls. Made by `Run.view`; frozen, as the run is.

    Attributes:
        run: The run itself.
    """

    __slots__ = ("_of",)

    def __init__(self, run: Run, options: Mapping[str, Any]) -> None:
        unknown = options.keys() - _VIEWED
        if unknown:
            raise TypeError(
                f"a view of a run has no `{min(unknown)}` of its own; the options are {', '.join(sorted(_VIEWED))}"
            )
        for set_option, value in zip(_SETTERS, _copied(run), strict=True):
            set_option(self, value)
        write = object.__setattr__
        write(self, "_of", run.run)
        for name, value in _grouped(options, run.channel, run.durability).items():
            write(self, name, value)
        write(self, "wants_ctx", self.deps is not None or bool(self.provide or self.gate_steps))
        if not _GATE_OPTIONS.isdisjoint(options):
            write(self, "compiled_gates", None)
        if not _BEGIN_OPTIONS.isdisjoint(options):
            write(self, "begin_steps", None)

    @property
    def run(self) -> Run:
        return self._of


def current_run() -> Run | None:
    """Return the run of the tool whose code runs here; None outside of a tool."""
    here: Any = ambient.get()
    if here is None or isinstance(here, Run):
        return here
    return here.run


def require_run(run: object) -> None:
    """Raise TypeError for what is given in the place of a run."""
    if not isinstance(run, Run):
        mend = "run=Run(limits=CallLimits(...))" if isinstance(run, CallLimits) else "run=Run(principal='ann')"
        items = cast("Iterable[object]", run if isinstance(run, list | tuple) else (run,))
        if any(isinstance(item, calls.Grant | calls.Denial) for item in items):
            mend = "run=Run(principal='ann'); answers are given by name, as in grants=[grant] or denials=[denial]"
        raise TypeError(f"`run` is {run!r:.80}; give a run, as in {mend}")


def open_run(run: Run | Callable[..., Run] | None, *context: Any) -> Run | None:
    """Return the run that a host gives as `run=`: the run itself, or the one that its function returns.

    Args:
        run: The run or the function; None where the host gives none.
        context: The values that the function takes.

    Raises:
        TypeError: The function returned something else, such as None; the calls would lack the limits and the
            principal that the host meant.
    """
    if not callable(run):
        if run is not None:
            require_run(run)
        return run
    opened = cast("object", run(*context))
    if isinstance(opened, Run):
        return opened
    who, returned = getattr(run, "__qualname__", type(run).__name__), f"{opened!r:.80}"
    mend = "return the run, as in `return Run(principal='ann')`"
    if isawaitable(opened):
        if iscoroutine(opened):
            opened.close()
        returned, mend = "an awaitable", "write it as a plain `def`, which returns the run"
    raise TypeError(f"run= is the function `{who}`, which returned {returned}, and not a Run: {mend}")


def run_for(run: Run | None, entry: str, *, run_id: str = "", **options: Any) -> Run:
    """Return the run that an adapter's calls belong to: the given one, that of the tool that runs here, or a new one.

    Args:
        run: The run that the host gave; its own `entry` stays.
        entry: Which way the calls come.
        run_id: The id of a new run.
        options: Other options of the run.
    """
    if run is not None:
        require_run(run)
        return run.view(**options, **({"entry": entry} if run.channel.entry == DEFAULT_CHANNEL.entry else {}))
    outer = current_run()
    if outer is None and not options:
        return Run(run_id, channel=_channel_of(entry))
    if outer is None:
        return Run(run_id, **_grouped({"entry": entry, **options}, DEFAULT_CHANNEL, DEFAULT_DURABILITY))
    new = {"entry": entry, "available": None, "parent_id": None, "recorder": None, "reader": MODEL}
    return outer.view(**{**new, **options})


@lru_cache(maxsize=64)
def _channel_of(entry: str) -> Channel:
    """Return the channel of a run whose calls come in a way; one for all such runs, as it is frozen."""
    return Channel(entry=entry)


def _grouped(options: Mapping[str, Any], channel: Channel, durability: Durability) -> dict[str, Any]:
    """Return options of a run, with those of its channel and durability laid over these."""
    of_run: dict[str, Any] = {}
    of_channel: dict[str, Any] = {}
    of_durability: dict[str, Any] = {}
    for name, value in options.items():
        part = PART_OF.get(name)
        (of_run if part is None else of_channel if part == "channel" else of_durability)[name] = value
    if of_channel:
        of_run["channel"] = changed(of_run.get("channel", channel), of_channel)
    if of_durability:
        of_run["durability"] = changed(of_run.get("durability", durability), of_durability)
    return of_run

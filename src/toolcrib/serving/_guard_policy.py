"""Policy of a guard: the gates that are put around tools which another framework's agent already has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import Parameter, iscoroutinefunction, isfunction, signature
from typing import Any, ParamSpec, TypeVar, cast

from toolcrib._numbers import require_seconds
from toolcrib.approvals import ApprovalPolicy
from toolcrib.errors import explain_options
from toolcrib.hooks import GateStep, HookSet, require_hooks, require_policy
from toolcrib.pipeline import CallLimits, Run, open_run, require_limits
from toolcrib.record import Sink
from toolcrib.tools import Tool, adapter_of
from toolcrib.toolsets import ToolNames, Toolset, check_names, is_pattern

P = ParamSpec("P")
T = TypeVar("T")

_NAMES_OF_TOOLS = ("name", "tool", "tool_name")


def takes_policy(guard: Callable[P, T]) -> Callable[P, T]:
    """Return a guard, or what constructs one, that says where its gates are given when it is called without a policy.

    It decorates a function of an adapter, which takes what is of its framework alone, or an `__init__`.
    """
    parameters = signature(guard)
    name = guard.__qualname__.removesuffix(".__init__")
    is_function = "self" not in parameters.parameters

    @wraps(guard)
    def checked(*args: P.args, **options: P.kwargs) -> T:
        try:
            bound = parameters.bind(*args, **options)
        except TypeError as error:
            how = f"{name}({'agent, ' if is_function else ''}GuardPolicy(approve=[...]))"
            raise TypeError(f"{name}: {error}; its gates are those of a policy: {how}") from None
        if is_function:
            guarded = next(iter(bound.arguments.values()))
            several = cast("Collection[object]", guarded) if isinstance(guarded, list | tuple | set) else [guarded]
            for value in several:
                require_theirs(value, guard.__module__)
        return guard(*args, **options)

    return checked


def require_theirs(value: object, module: str) -> None:
    """Check that an agent, or a tool, is of the framework of an adapter.

    Args:
        value: The agent or tool.
        module: A module of the adapter.

    Raises:
        TypeError: It is of another framework, or of ours.
    """
    package, adapter = module.rpartition("._")[0], adapter_of(value)
    if adapter == package.rpartition(".")[2]:
        return
    if isinstance(value, Tool | Toolset):
        name = f"`{value.name}`" if isinstance(value, Tool) else "a toolset"
        raise TypeError(
            f"{name} belongs to Toolcrib, and has gates of its own: as_tools([...]) of {package} gives it to an agent, "
            "and Toolset([...]).with_approval(...) puts gates around it"
        )
    kind = f"{type(value).__qualname__} of {type(value).__module__}"
    mend = f"; use guard of toolcrib.adapters.{adapter}" if adapter not in (None, "mcp_client") else ""
    if isfunction(value):
        mend = f"; wrap it with the `tool(...)` of {package.rpartition('.')[2]}, or what makes tools of functions there"
    raise TypeError(f"guard of {package} takes objects of its framework, and not {kind}{mend}")


@dataclass(slots=True)
class _LastCheck:
    """The last check of the names of a policy, for the gates of runs that are opened later."""

    are_all: bool = False
    by_words: bool = True
    gates: tuple[GateStep, ...] = ()


def require_plain_function(who: str, run: object) -> None:
    """Raise TypeError for an async function as `run=`, whose run would come later than the first call."""
    if iscoroutinefunction(run):
        name = getattr(run, "__name__", "run")
        mend = "write it as a plain `def`, which returns the run, as run=lambda ctx: Run(...) does"
        raise TypeError(f"{who}: run is `{name}`, an async function; {mend}")


@explain_options(
    {
        "requires_approval": "approve",
        "tools": "approve",
        "exclude": "leave",
        "gates": "GuardPolicy(run=lambda ctx: Run(gates=[...]))",
        "budgets": "GuardPolicy(run=lambda ctx: Run(gates=[Budgets([...])]))",
        "approver": "GuardPolicy(run=lambda ctx: Run(approver=...))",
        "approvals": "GuardPolicy(run=lambda ctx: Run(approvals=...))",
        "principal": "GuardPolicy(run=lambda ctx: Run(principal=...))",
    }
)
@dataclass(frozen=True, slots=True)
class GuardPolicy:
    """The gates that `guard` of an adapter puts around each tool of an agent.

    Attributes:
        approve: Which calls need approval: True for all, the names of tools, or a function of the final arguments and
            the run context, as for `requires_approval` of a tool.
        run: A function that opens the run of the calls for each run of the agent, given the framework's own context:
            its approver, approval store, principal and provenance policy. A `Run` itself is one for all conversations
            and users: its counts, and grants that hold for later calls, too.
        limits: The limits of each conversation, or thread, of this process, over all runs of the agent in it.
        sinks: Where the events and records of calls go.
        hooks: Decision hooks that are asked about each call.
        timeout: Seconds for one execution.
        leave: Names of tools that stay as they are. A tool that the framework does not let us guard, such as one that
            a provider runs, is an error unless it is named here.

    Several guards may have one policy: each counts its calls by itself, and knows the names of its own tools.

    A name that no tool has, limits per tool included, is an error where `guard` is given all tools; where they are
    known in a run alone, before its first request to the model. Where more tools may come later, a name that is nearly
    that of a tool is an error, and any other is logged. The names in the gates of a run, such as budgets, are checked
    in the same way; those of a run that a function opens when it has opened it.
    """

    approve: ApprovalPolicy | Collection[str] = False
    run: Run | Callable[[Any], Run] | None = None
    sinks: tuple[Sink, ...] = ()
    hooks: HookSet | None = None
    timeout: float | None = None
    leave: Collection[str] = field(default=())
    limits: CallLimits | None = None
    _known: ToolNames = field(default_factory=ToolNames, init=False, repr=False, compare=False)
    _check: _LastCheck = field(default_factory=_LastCheck, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_seconds("GuardPolicy", "timeout", self.timeout)
        if isinstance(self.run, Run) and self.run.limits is not None and self.limits is not None:
            raise TypeError("GuardPolicy: the limits are given twice, as limits=... and in the run")
        if isinstance(self.sinks, Sink):
            raise TypeError(f"GuardPolicy: sinks takes several of them, as in sinks=[{type(self.sinks).__name__}(...)]")
        object.__setattr__(self, "sinks", tuple(self.sinks))
        for sink in self.sinks:
            if not isinstance(cast("object", sink), Sink):
                raise TypeError(f"GuardPolicy: sinks has {sink!r:.80}; give sinks, as in sinks=[ListSink()]")
        require_hooks("GuardPolicy", self.hooks)
        require_limits("GuardPolicy", self.limits)
        require_plain_function("GuardPolicy", self.run)
        is_function = callable(self.run) and not isinstance(self.run, type)
        if self.run is not None and not isinstance(self.run, Run) and not (is_function and _takes(self.run, 1)):
            raise TypeError(
                "GuardPolicy: run must be a function of the framework's own context: run=lambda ctx: Run(...)"
            )
        if callable(self.approve) and _first_parameter(self.approve) in _NAMES_OF_TOOLS:
            raise TypeError(
                "GuardPolicy: approve must be a function of the arguments and the run context, which knows the tool: "
                "approve=lambda arguments, ctx: ctx.tool_name == ..."
            )
        if callable(self.approve):
            require_policy("GuardPolicy: approve", self.approve)
        for option, names in self._named():
            _require_names(option, names)

    def _named(self) -> list[tuple[str, Collection[str]]]:
        """Return the options that name tools, with the names."""
        approve = () if isinstance(self.approve, bool) or callable(self.approve) else self.approve
        return [("approve", approve), ("leave", self.leave)]

    @property
    def tool_names(self) -> set[str]:
        """The names of tools that the policy has, in any of its options."""
        limited = () if self.limits is None else self.limits.tool_names
        gates = self.run.gate_steps if isinstance(self.run, Run) else ()
        return {*limited}.union(*(names for _, names in self._named()), *(gate.tool_names for gate in gates))

    def check_names(self, names: Iterable[str], *, are_all: bool = True, by_words: bool = True) -> None:
        """Check that the tools that the policy names are among those of an agent.

        Args:
            names: The agent's tools, as far as they are known; those of earlier calls are known, too.
            are_all: Whether there are no others: see `check_names` of `toolsets`.
            by_words: Whether a name that is a part of that of a tool is nearly that: see there, too.

        Raises:
            ToolConstraintError: There is no such tool.
        """
        self._known.update(names)
        self._check.are_all, self._check.by_words = are_all, by_words
        limited = () if self.limits is None else self.limits.tool_names
        for option, named in (*self._named(), ("limits", limited)):
            check_names(f"GuardPolicy({option}=...)", named, self._known, are_all=are_all, by_words=by_words)
        self._check_gates(self.run.gate_steps if isinstance(self.run, Run) else self._check.gates)

    @property
    def opened_run(self) -> Run | Callable[[Any], Run] | None:
        """The run of the calls, or a function that opens it and checks the names in its gates."""
        opens = self.run
        if opens is None or isinstance(opens, Run):
            return opens

        def checked(context: Any) -> Run:
            run = cast("Run", open_run(opens, context))
            self._check.gates = run.gate_steps
            self._check_gates(run.gate_steps)
            return run

        return checked

    def _check_gates(self, gates: Iterable[GateStep]) -> None:
        about = self._check
        for gate in gates if self._known else ():
            who = f"the gate `{gate.name}` of the run"
            check_names(who, gate.tool_names, self._known, are_all=about.are_all, by_words=about.by_words)

    @classmethod
    def checked(cls, policy: object) -> GuardPolicy:
        """Return a policy for one guard, which knows the tools of this one alone; TypeError for anything else."""
        if isinstance(policy, cls):
            return replace(policy)
        raise TypeError(f"a guard has its gates from a GuardPolicy(approve=[...]), and not from {policy!r:.80}")

    def refuse(self, name: str, because: str) -> None:
        """Refuse a tool that cannot be guarded.

        Args:
            name: Its name.
            because: Why no gate can be around it.

        Raises:
            ValueError: It is not left as it is.
        """
        if name not in self.leave:
            raise ValueError(
                f"`{name}` cannot be guarded: {because}. Take it from the agent, or leave it as it is: "
                f"GuardPolicy(leave=[{name!r}])"
            )

    def around(self, tools: Toolset) -> Toolset:
        """Return a toolset with the gates around its tools, but for those that stay as they are."""
        return self._around(tools).beside(self._known)

    def _around(self, tools: Toolset) -> Toolset:
        unguarded = [name for name in tools.entries if name in self.leave]
        if unguarded:
            return Toolset.combined(
                self._around(tools.subset(tools.entries.keys() - unguarded)), tools.subset(unguarded)
            )
        if isinstance(self.approve, bool) or callable(self.approve):
            guarded = tools if self.approve is False else tools.with_approval(self.approve)
        else:
            asked = [name for name in tools.entries if name in self.approve]
            guarded = tools.with_approval(names=asked) if asked else tools
        if self.hooks is not None:
            guarded = guarded.with_hooks(self.hooks)
        return guarded if self.timeout is None else guarded.with_timeout(self.timeout)


def _require_names(option: str, names: Collection[str]) -> None:
    """Check that an option has several names of tools; raises TypeError and ValueError."""
    if isinstance(names, str):
        raise TypeError(f"GuardPolicy: {option} takes several names, as in {option}=[{names!r}]")
    if not isinstance(cast("object", names), Collection):
        raise TypeError(f"GuardPolicy: {option} is {names!r:.80}; give a list of names, or leave it out")
    if isinstance(names, Mapping):
        raise TypeError(f"GuardPolicy: {option} is a list of names, as in {option}={[*cast('Any', names)]!r:.200}")
    for value in cast("Collection[Any]", names):
        if not isinstance(value, str):
            name = getattr(value, "name", None) or getattr(value, "__name__", "NAME")
            raise TypeError(f"GuardPolicy: {option} has {value!r:.60}; give the name of the tool: {option}=[{name!r}]")
        if is_pattern(value):
            raise ValueError(f"GuardPolicy: {option} has {value!r}, a pattern; name each tool, or give approve=True")


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Return whether a function takes so many values; True where its signature is not known."""
    try:
        signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _first_parameter(function: Callable[..., Any]) -> str:
    try:
        parameters = [*signature(function).parameters.values()]
    except (TypeError, ValueError):
        return ""
    return parameters[0].name if parameters and parameters[0].kind is not Parameter.VAR_POSITIONAL else ""

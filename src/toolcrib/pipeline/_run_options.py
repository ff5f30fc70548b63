"""Options of a run by who reads them: its budget, the channel that its calls come by, and what outlives its process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar, cast

from toolcrib import approvals as _approvals
from toolcrib import schema, toolsets
from toolcrib._numbers import require_number, require_seconds
from toolcrib._short_repr import ShortRepr
from toolcrib.calls import MODEL, Access, ResultReader
from toolcrib.errors import explain_options
from toolcrib.hooks import target_name
from toolcrib.toolsets import is_pattern

P = TypeVar("P", "Channel", "Durability")
_NOTHING: Mapping[Any, Any] = MappingProxyType({})
_STORE_MEND: Final = "a store, as in SqliteApprovalStore('approvals.db')"

ErrorPolicy: TypeAlias = Literal["message", "masked"]
"""The part of an unexpected exception that the model gets: its message, or a reference to the log."""


@explain_options(
    {
        "calls": "total",
        "max_calls": "total",
        "max_concurrency": "concurrency",
        "max_tool_calls": "total",
        **{
            f"per_{time}": f"Run(gates=[Budgets([Limit(calls=10, per={time!r})])])"
            for time in ("minute", "hour", "day")
        },
        "required": "requirements",
        "spend": "Run(gates=[Budgets([Limit(spend=50, currency='EUR', per='day')])])",
        "tools": "per_tool",
    }
)
@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits on a run's calls, and the tools that it has to call; None sets no limit.

    A call is counted when it arrives, also one that is refused or denied then.

    Attributes:
        total: Calls in the run.
        per_tool: Calls of one tool: a number for each of them, or numbers by name.
        concurrency: Executions at a time, in one event loop. What a tool itself calls runs within the tool's execution.
        requirements: The calls that the run needs before it is finished; `Run.finish` says what is lacking.
    """

    total: int | None = None
    per_tool: int | Mapping[str, int] | None = None
    concurrency: int | None = None
    requirements: Sequence[Requirement] = ()

    def __post_init__(self) -> None:
        mend = "requirements, as in requirements=[must_call('save')]"
        requirements = as_tuple("CallLimits", "requirements", self.requirements)
        object.__setattr__(self, "requirements", requirements)
        _require_each("CallLimits", "requirements", requirements, Requirement, mend)
        if isinstance(self.total, Mapping):
            raise TypeError(
                f"CallLimits: total is {self.total!r:.80}; limits of single tools are per_tool={self.total!r:.80}"
            )
        if not isinstance(self.per_tool, Mapping | int | None):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(
                f"CallLimits: per_tool is {self.per_tool!r:.80}; give numbers by name, as in per_tool={{'pay': 1}}"
            )
        if isinstance(self.per_tool, Mapping) and not _are_names(self.per_tool):
            raise TypeError("CallLimits: per_tool has the name of a tool before each number, as in per_tool={'pay': 1}")
        several = dict(self.per_tool).values() if isinstance(self.per_tool, Mapping) else (self.per_tool,)
        require_number("CallLimits", "total", self.total, least=0)
        require_number("CallLimits", "concurrency", self.concurrency, least=1)
        for value in several:
            if value is None and isinstance(self.per_tool, Mapping):
                raise TypeError("CallLimits: per_tool has None, which limits nothing; leave the tool out of it")
            require_number("CallLimits", "per_tool", value, least=0)
        if pattern := next((name for name in self.tool_names if is_pattern(name)), None):
            mend = f"Run(gates=[Budgets([Limit(calls=10, by='tool', tools=[{pattern!r}])])])"
            raise ValueError(f"CallLimits: {pattern!r} is a pattern, and a limit names a tool; use {mend}")

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the tools that have limits of their own, or have to be called."""
        limited = self.per_tool if isinstance(self.per_tool, Mapping) else ()
        return (*limited, *(requirement.tool for requirement in self.requirements))

    def of(self, tool: str) -> int | None:
        """Return how often one tool may be called."""
        return self.per_tool.get(tool) if isinstance(self.per_tool, Mapping) else self.per_tool


@dataclass(frozen=True, slots=True)
class Requirement:
    """A tool that a run has to complete; made by `must_call`.

    Attributes:
        before_finish: Whether the run is unfinished without it; else `Run.remarks` says so and no more.
    """

    tool: str
    before_finish: bool = True


@explain_options()
def must_call(tool: toolsets.Selectable, *, before_finish: bool = True) -> Requirement:
    """Require that a tool completes in a run: `CallLimits(requirements=[must_call("save")])`; or give its selector."""
    return Requirement(target_name(tool), before_finish)


class CallRecorder(Protocol):
    """Records each call of a run before it is executed, so that another process knows that it may have been done."""

    async def begin(self, call: Any) -> None:
        """Record a `Call` that is about to be executed: its tool runs when this has returned."""
        ...


@explain_options()
@dataclass(frozen=True, repr=False)  # without slots: `changed` copies it for each call of some adapters
class Channel(ShortRepr):
    """The way by which a run's calls come and their answers go back. An adapter fills it in; a host seldom has to.

    Attributes:
        entry: Which way the calls come, for the record.
        agent: The agent whose turns make the calls, by name.
        conversation_id: The conversation that the calls are part of, by the host's own id for it: a request shows it.
        access: The rights and the holder of the token of the request that makes the calls; None where there is
            no token, and no scope is asked for.
        reader: Who reads the results: a model, unless an adapter or a program does.
        errors: The part of a tool's unexpected exception that a model gets: its `message`, or a reference number alone
            (`masked`), by which the host finds the exception in the log and the record.
        hook_errors: The effect of an observer's error: `raise` it to the host, or `fail` the call, for an adapter that
            answers over a protocol.
        client: The client that makes the calls, where it can be asked for something meanwhile: `ctx.elicit` and others.
        sample: The host's own answer to `ctx.sample`, where the client has no model for it.
        question_wait: Seconds that a question of a tool (`ctx.elicit`) waits in `Run.approvals`, where neither client
            nor approver answers it; 0 where no person reads that store.
        parent_id: The program or request that makes the calls, for the record; None for the activity that the current
            code is part of.
        program_id: The id of the next program of the run, where it has one already; None for a new one.
        record_words: Whether the sinks are given what the user said, with the next call; a replay under another policy
            needs it. Arguments and results are theirs in either case, but for what is marked as secret.
    """

    entry: str = "pipeline"
    agent: str | None = None
    conversation_id: str | None = None
    access: Access | None = None
    reader: ResultReader = MODEL
    errors: ErrorPolicy = "message"
    hook_errors: Literal["raise", "fail"] = "raise"
    client: schema.ClientLink | None = None
    sample: Callable[[schema.SampleRequest], Awaitable[schema.Sampled]] | None = None
    question_wait: float = 60.0
    parent_id: str | None = None
    program_id: str | None = None
    record_words: bool = True

    def __post_init__(self) -> None:
        if self.errors not in ("message", "masked"):
            raise ValueError(f"Channel: errors is {self.errors!r:.80}; give 'message' or 'masked'")
        require_seconds("Channel", "question_wait", self.question_wait, from_zero=True)
        if self.hook_errors not in ("raise", "fail"):
            raise ValueError(f"Channel: hook_errors is {self.hook_errors!r:.80}; give 'raise' or 'fail'")


@explain_options()
@dataclass(frozen=True)  # without slots, as `Channel`
class Durability:
    """The stores, outside of the process, that know the calls of a run.

    Attributes:
        store: The run's `approvals`, where it is to know of calls with an effect, too, which need no approval: an equal
            call is asked about while one of them is in doubt, or for an hour after one that ended in a process which is
            gone. A call has an effect unless its tool's `effect` is `none`, `fetch` or `program`, or it is idempotent.
        recorder: Records that a call begins before its tool does, for work that outlives its process.
        begun: The records of earlier executions, by call id: a person sees it who is asked about a call in doubt. Of
            one that failed, `failed with` is the error.
        fence: Awaited right before a tool's first line, also by what runs inside a tool; it does not return where this
            process may begin nothing any more.
    """

    store: _approvals.ApprovalStore | None = None
    recorder: CallRecorder | None = None
    begun: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: _NOTHING)
    fence: Callable[[], Awaitable[None]] | None = None

    def __post_init__(self) -> None:
        if self.store is not None:
            _require("Durability", "store", self.store, _approvals.ApprovalStore, _STORE_MEND)


def changed(part: P, changes: Mapping[str, Any]) -> P:
    """Return the channel or the durability with other options; as `replace` does, and quicker: adapters do for calls.

    Args:
        part: The channel or the durability.
        changes: Options of it, by name.
    """
    copy = object.__new__(type(part))
    vars(copy).update(vars(part))
    vars(copy).update(changes)
    copy.__post_init__()
    return copy


def require_options(run: Any, id: object) -> None:
    """Check that the options of a run are what they are for; raises TypeError for what would fail its calls later.

    Args:
        run: The run.
        id: The id that it is given, which is not made yet where it is empty.
    """
    if run.approver is not None:
        _approvals.require_approver("Run", run.approver)
    _require("Run", "id", id, str, "a text; what tools are given is deps=...")
    _require("Run", "approvals", run.approvals, _approvals.ApprovalStore, _STORE_MEND)
    require_limits("Run", run.limits)
    _require("Run", "principal", run.principal, str, "a name")
    if type(run.channel) is not Channel:
        _require("Run", "channel", run.channel, Channel, "Channel, as in Channel(errors='masked')")
    if type(run.durability) is not Durability:
        _require("Run", "durability", run.durability, Durability, "Durability, as in Durability(store=...)")
    if run.provide:
        _require("Run", "provide", run.provide, Mapping, "values by their types, as in provide={Shop: shop}")
    available: object = run.available
    if available is not None and not _are_names(available):
        raise TypeError(f"Run: available is {available!r:.80}; give a set of names, as in available={{'pay'}}")


def _are_names(values: object) -> bool:
    """Return whether values are a collection of texts, which can be read again and again."""
    if isinstance(values, str | bytes) or not isinstance(values, Collection):
        return False
    return all(isinstance(name, str) for name in cast("Collection[object]", values))


def require_limits(who: str, limits: object) -> None:
    """Check that the limits of an option are `CallLimits`, or None; raises TypeError."""
    if limits is not None and not isinstance(limits, CallLimits):
        how = "total=3"
        if isinstance(limits, Mapping):
            numbers = cast("Mapping[str, object]", limits)
            are_options = numbers.keys() <= {field.name for field in fields(CallLimits)}
            written = ", ".join(f"{name}={value!r}" for name, value in numbers.items())
            how = f"{written:.80}" if are_options else f"per_tool={numbers!r:.80}"
        raise TypeError(f"{who}: limits is {limits!r:.80}; give CallLimits, as in CallLimits({how})")


def as_tuple(who: str, name: str, values: Any) -> tuple[Any, ...]:
    """Return several values as a tuple; raises TypeError for what holds no values."""
    try:
        return tuple(values)
    except TypeError:
        raise TypeError(f"{name} of a {who} is a list of them, as in {name}=[...], and not {values!r:.80}") from None


def _require_each(who: str, name: str, values: Iterable[object], kind: type, mend: str) -> None:
    for value in values:
        if not _fits(value, kind):
            raise TypeError(f"{who}: {name} has {value!r:.80}; give {mend}")


def _require(who: str, name: str, value: object, kind: type, mend: str) -> None:
    if value is not None and not _fits(value, kind):
        raise TypeError(f"{who}: {name} is not {value!r:.80}; give {mend}")


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, type):  # which has the methods of its objects
        return False
    return type(value) is kind or _is_subclass(type(value), kind) or isinstance(value, kind)


@lru_cache(maxsize=256)
def _is_subclass(cls: type, kind: type) -> bool:
    """Return whether a class is of a kind, known from its first object: a protocol takes long to say so."""
    return issubclass(cls, kind)


DEFAULT_CHANNEL: Final = Channel()
"""The channel of a run that no adapter opened."""
DEFAULT_DURABILITY: Final = Durability()
"""The durability of a run that ends with its process."""
_PARTS: Final[Mapping[str, type[Any]]] = {"limits": CallLimits, "channel": Channel, "durability": Durability}
PART_OF: Final[Mapping[str, str]] = {option.name: part for part, cls in _PARTS.items() for option in fields(cls)}
"""The option of a run in which each option of these classes stands, by name."""
OPTION_WORDS: Final[Mapping[str, str]] = {  # where an option stands that is not of the run itself
    **{name: f"Run({part}={_PARTS[part].__name__}({name}=...))" for name, part in PART_OF.items()},
    **dict.fromkeys(("context", "dependencies", "metadata"), "deps"),
    **dict.fromkeys(("approval_store", "approval_database"), "approvals"),
    **dict.fromkeys(("tenant", "tenant_id", "user", "user_id"), "principal"),
    **dict.fromkeys(("session_id", "thread_id"), "Run(channel=Channel(conversation_id=...))"),
    **dict.fromkeys(("max_calls", "max_tool_calls", "usage_limits"), "Run(limits=CallLimits(total=...))"),
    **dict.fromkeys(("max_iterations", "max_rounds", "max_steps", "max_turns"), "session.run(max_rounds=...)"),
    "messages": "Session(..., transcript=...)",
    "store": "Run(approvals=SqliteApprovalStore('a.db')), or Run(durability=Durability(store=...)) for all effects",
}

"""What is known of a tool before any call: built once per tool and pipeline, read on every call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from pydantic import BaseModel

from toolcrib.approvals import digest
from toolcrib.calls import ApprovalRequest, DecisionNote, RawArguments, ToolCall, lenient
from toolcrib.errors import ApprovalError, SchemaError
from toolcrib.hooks import DecisionHook, HookSet
from toolcrib.pipeline._run import Run
from toolcrib.record import Trace
from toolcrib.schema import RunContext
from toolcrib.toolsets import ToolEntry

__all__ = ["Executor", "Performed", "Plan", "Prepared", "RunnableTool"]

_TEXT = (str, bytes)  # written out as `str | bytes` it would be made anew on every call
_NOWHERE = nullcontext()


class Executor(Protocol):
    """Wraps the execution of a tool, and nothing else: the seam for durable engines."""

    async def execute(self, prepared: Prepared, run: Callable[[], Awaitable[Any]]) -> Any:
        """Return what `run()` returns; run it again only when the tool is idempotent and nothing was yielded."""
        ...


@dataclass(frozen=True, slots=True)
class RunnableTool:
    """What an overridden `_call_tool_func` is given: the tool, and how to go on."""

    name: str
    entry: ToolEntry
    call_func: Callable[[dict[str, Any], RunContext[Any]], Awaitable[Any]]


class Plan:
    """The gates of one tool in one pipeline, flattened.

    Attributes:
        guarded: Whether decision hooks or pre hooks have to run.
        held: Post hooks that need the whole result, so that a stream's values wait for them.
        each: Post hooks that see each value of a stream.
        direct: Whether executing is nothing but the tool's body.
        live: The body of a streaming tool whose values can be given as they come.
    """

    __slots__ = (
        "_defaults",
        "approvals",
        "availability",
        "body",
        "direct",
        "each",
        "entry",
        "executor",
        "guarded",
        "held",
        "hook_sets",
        "live",
        "max_result_chars",
        "max_retries",
        "name",
        "off",
        "pre",
        "runners",
        "spec",
        "streaming",
        "timeout",
        "tool",
        "wants_ctx",
    )

    def __init__(self, entry: ToolEntry, hooks: HookSet | None, executor: Executor | None) -> None:
        tool = entry.tool
        self._defaults: dict[str, Any] | None = None
        self.entry, self.tool, self.spec, self.name, self.off = entry, tool, tool.spec, entry.name, entry.off
        self.body = tool.body if tool.fn is not None else None
        self.streaming = tool.is_streaming
        self.timeout, self.max_retries, self.max_result_chars = (
            entry.timeout,
            entry.max_retries,
            tool.options.max_result_chars,
        )
        self.pre, self.approvals, self.availability = entry.pre, entry.approvals, entry.availability
        self.held = tuple(step for step in entry.post if not (step.per_value and self.streaming))
        self.each = tuple(step for step in entry.post if step.per_value and self.streaming)
        self.hook_sets = ((hooks, entry.name), *entry.hook_sets) if hooks is not None else entry.hook_sets
        self.runners, self.executor = entry.runners, executor
        self.guarded = bool(self.hook_sets or self.pre)
        self.direct = not self.streaming and not self.runners and executor is None and self.body is not None
        held_back = bool(self.held or self.runners) or executor is not None
        self.live = self.body if self.streaming and not held_back else None
        self.wants_ctx = bool(
            self.guarded or entry.post or self.approvals or self.availability or self.runners or self._injects()
        )

    def _injects(self) -> bool:
        try:
            return bool(self.spec.injected)
        except SchemaError:  # told where the arguments are read, with the parameter's name
            return True

    def decisions(self) -> list[DecisionHook]:
        """Return the decision hooks, in order; asked anew, because a hook may be registered at any time."""
        return [decision for hooks, name in self.hook_sets for decision in hooks.decisions_for(name)]

    def read(self, call: ToolCall) -> dict[str, Any]:
        """Return the call's arguments as Python values by parameter name.

        Raises:
            InvalidArguments: They do not fit.
            SchemaError: The tool has no schema to check a model's arguments against.
        """
        raw, spec = call.arguments, self.spec
        if call.origin == "model":
            text = isinstance(raw, _TEXT)
            return spec.arguments(spec.validate_json(raw) if text else spec.validate_python(raw))
        if isinstance(raw, _TEXT):
            raw = spec.arguments(spec.validate_json(raw))
        bound = self.tool.bind((), raw)
        return self._filled(bound) if self.guarded or self.approvals else bound

    def _filled(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return a host's arguments with the defaults, where a gate will look at them; the function has its own."""
        if not (self.guarded or self.approvals):
            return arguments
        if self._defaults is None:
            self._defaults = dict(self.spec.defaults)
        return {**self._defaults, **arguments}

    def parse(self, raw: RawArguments) -> BaseModel:
        """Return the input that a model's arguments describe; raises what `read` does."""
        return self.spec.validate_json(raw) if isinstance(raw, str | bytes) else self.spec.validate_python(raw)

    def reread(self, arguments: Mapping[str, Any], call: ToolCall) -> dict[str, Any]:
        """Return edited arguments, validated again; for a host's only the names are."""
        if call.origin == "host":
            return self._filled(self.tool.bind((), arguments))
        return self.spec.arguments(self.spec.validate_python(arguments))


class Prepared:
    """A call that passed every gate before the tool: only `perform` and `finish` are left.

    Not a frozen dataclass: it is filled in step by step, on the hot path, and what most calls do not need is a default
    of the class.

    Attributes:
        arguments: The final arguments; nothing edits them any more.
        ctx: The run as hooks and tool see it, with the dict that this call's middleware shares; None when nobody looks.
        trace: Who follows the call; None when nobody listens.
        notes: What the decision hooks said.
        asks: Why a person has to be asked.
        ask_metadata: What they should see besides the arguments.
        approved: The digest of the arguments that somebody said yes to; None when nobody had to.
        request: What was asked when it was suspended; None for a call that was not.
        revealed: Whether the tool could be called because it was found in the run.
        resumed: What the sinks of the process that suspended the call gave to those of this one; None for a new call.
        shown: The arguments for a record, where nobody can change them any more; None where they may yet be.
        source: What the input is made of, anew for everybody who is shown it; None for the arguments as they came.
    """

    ctx: RunContext[Any] | None = None
    notes: tuple[DecisionNote, ...] = ()
    asks: tuple[str, ...] = ()
    ask_metadata: Mapping[str, Any] = MappingProxyType({})
    approved: str | None = None
    request: ApprovalRequest | None = None
    revealed: bool = False
    resumed: Mapping[str, str] | None = None
    shown: dict[str, Any] | None = None
    source: Mapping[str, Any] | None = None

    def __init__(self, call: ToolCall, plan: Plan, trace: Trace | None = None) -> None:
        self.call = call
        self.plan = plan
        self.trace = trace
        self.arguments: dict[str, Any] = {}

    def __enter__(self) -> Prepared:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Close the record as cancelled, when the body is left by an exception."""
        if kind is not None:
            self.cut_off()

    def cut_off(self) -> None:
        """Close the record as cancelled, unless it was made."""
        if self.trace is not None:
            self.trace.cancelled()

    def within(self) -> AbstractContextManager[None]:
        """Return what the code of hooks and tool is executed in, so that what they start is known to be the call's."""
        return _NOWHERE if self.trace is None else self.trace.within()

    def approve(self) -> None:
        """Note that somebody said yes to the arguments as they are now."""
        self.approved = digest(self.plan.name, self.arguments)

    def require_approved(self, arguments: Mapping[str, Any]) -> None:
        """Raise ApprovalError when these are not the arguments that somebody said yes to."""
        if self.approved is not None and digest(self.plan.name, arguments) != self.approved:
            raise ApprovalError(self.plan.name, "the arguments changed after it was given, before the tool ran")

    @property
    def watched(self) -> bool:
        """Whether somebody wants to see each value of a stream."""
        return self.trace is not None or bool(self.plan.each)

    @property
    def metadata(self) -> dict[str, Any]:
        """The dict that this call's middleware shares."""
        return self.ctx.metadata if self.ctx is not None else {}

    def revise(self, arguments: Mapping[str, Any]) -> None:
        """Take edited arguments in the place of those it has, validated again.

        Raises:
            InvalidArguments: They do not fit.
        """
        self.arguments, self.source, self.shown = self.plan.reread(arguments, self.call), arguments, None

    def parse(self) -> BaseModel:
        """Return the input as it is now, made anew: read from the arguments, it would be validated twice.

        Some validators change what they are given.
        """
        return self.plan.parse(self.call.arguments if self.source is None else self.source)

    def enter(self, run: Run, metadata: dict[str, Any] | None = None) -> None:
        """Make the context that hooks and tool are given."""
        call_id, tool, provided, revealed = self.call.id, self.plan.name, run.provide, run.revealed
        self.ctx = RunContext(  # by position, which costs half: agents have one made for every turn
            run.deps,
            call_id,
            tool,
            run.id,
            metadata or {},
            None,
            False,
            None,
            call_id,
            provided,
            revealed,
            None if self.trace is None else self.trace.yielded,
            run.approver,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what a resumed call needs, as JSON shapes; the arguments are the real ones."""
        return {
            "name": self.call.name,
            "id": self.call.id,
            "origin": self.call.origin,
            "arguments": self.plan.spec.dump(self.arguments, redact=False),
            "metadata": lenient(self.metadata),
            "decisions": [note.to_dict() for note in self.notes],
            "asks": list(self.asks),
            "ask_metadata": {str(name): lenient(value) for name, value in self.ask_metadata.items()},
            "revealed": self.revealed,
            "trace": {} if self.trace is None else self.trace.carry(),
        }


class Performed:
    """A call whose tool ran: its value, or its exception."""

    __slots__ = ("error", "prepared", "value")

    def __init__(self, prepared: Prepared, value: Any = None, error: Exception | None = None) -> None:
        self.prepared = prepared
        self.value = value
        self.error = error

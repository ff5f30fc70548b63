"""Entry of a tool in a toolset: its name there, and every gate around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from toolcrib import approvals as _approvals
from toolcrib import hooks as _hooks
from toolcrib import results as _results
from toolcrib.formats import NO_OPTIONS, ProviderOptions
from toolcrib.hooks import (
    GateLike,
    GateStep,
    HookSet,
    PerValue,
    gate_steps,
    refuse_argument_names,
    require_parameters,
    several,
)
from toolcrib.schema import RunContext
from toolcrib.tools import Tool

Availability: TypeAlias = Callable[[RunContext[Any]], bool | Awaitable[bool]]
"""A function of the context that says whether a tool may be used now; sync or async."""
ToolRunner: TypeAlias = Callable[[dict[str, Any], RunContext[Any], Any], Awaitable[Any]]
"""Runs a tool with its arguments, in a context, in the place of its own function."""


@dataclass(frozen=True, slots=True)
class PreStep:
    """One piece of middleware before the tool; `tool_name` is set when it is a toolset-wide one that wants the name."""

    fn: Callable[..., Any]
    name: str
    tool_name: str | None = None

    def call(self, ctx: RunContext[Any], args: dict[str, Any], metadata: dict[str, Any]) -> Any:
        """Call it with what its kind gets."""
        return self.fn(ctx, args, metadata) if self.tool_name is None else self.fn(ctx, self.tool_name, args, metadata)


@dataclass(frozen=True, slots=True)
class PostStep:
    """One piece of middleware after the tool; `per_value` ones see each value of a stream."""

    fn: Callable[..., Any]
    name: str
    tool_name: str | None = None
    per_value: bool = False

    def call(self, ctx: RunContext[Any], result: Any, metadata: dict[str, Any]) -> Any:
        """Call it with what its kind gets."""
        if self.tool_name is None:
            return self.fn(ctx, result, metadata)
        return self.fn(ctx, self.tool_name, result, metadata)


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """One tool of a toolset, with every gate around it, outermost first.

    Views make new entries from old ones by adding to them, so that a gate once there cannot be lost.

    Attributes:
        name: The name that models call it by in this toolset.
        origin: Where the tool comes from, for messages.
        off: Whether it is left out of the default availability.
        pre: Middleware before the tool, in the order it runs.
        post: Middleware after the tool, in the order it runs.
        hook_sets: Decision hooks, each with the name the tool had where the set was put on.
        approvals: When approval is needed; one that says so is enough.
        availability: Each must say yes.
        runners: Overridden `_call_tool_func` methods around the execution.
        provider: The options of providers beside the schema.
        results: Where a result is kept that is too long for a model; None cuts it.
        scopes: The scopes that the token of a request needs for a call, where the request has a token.
        toolsets: The ids of the toolsets that it is in; of a tool of an MCP server the server's name is one.
        identities: The identity of what is behind it, as the host says.
        gates: The gates that its toolsets were given, outermost first.
        deliveries: The functions that its values pass on the way out, outermost last.
    """

    name: str
    tool: Tool[..., Any]
    origin: str
    off: bool = False
    description_override: str | None = None
    timeout: float | None = None
    max_retries: int = 3
    pre: tuple[PreStep, ...] = ()
    post: tuple[PostStep, ...] = ()
    hook_sets: tuple[tuple[HookSet, str], ...] = ()
    approvals: tuple[_approvals.ApprovalPolicy, ...] = ()
    availability: tuple[Availability, ...] = ()
    runners: tuple[ToolRunner, ...] = field(default=())
    skip_unavailable: bool = True
    provider: ProviderOptions = NO_OPTIONS
    results: _results.ResultStore | None = None
    toolsets: tuple[str, ...] = ()
    scopes: frozenset[str] = frozenset()
    identities: tuple[str, ...] = ()
    gates: tuple[GateStep, ...] = ()
    deliveries: tuple[_hooks.DeliveryStep, ...] = ()

    @property
    def may_ask(self) -> bool:
        """True if a gate of the tool may ask a person to approve a call."""
        return bool(self.approvals or self.hook_sets or self.gates)

    @property
    def max_result_chars(self) -> int | None:
        """The most characters of a result that go back to a model: the tool's own, or else those of its store."""
        of_tool = self.tool.options.max_result_chars
        return self.results.max_result_chars if of_tool is None and self.results is not None else of_tool

    @property
    def description(self) -> str:
        """The text that says to models what it is for."""
        return self.tool.description if self.description_override is None else self.description_override

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the input."""
        return self.tool.parameters

    @property
    def return_schema(self) -> dict[str, Any] | None:
        """The JSON schema of the result, if it is known."""
        return self.tool.return_schema

    def with_middleware(self, pre: tuple[PreStep, ...], post: tuple[PostStep, ...]) -> ToolEntry:
        """Return the entry with middleware around what it has."""
        return replace(self, pre=(*pre, *self.pre), post=(*self.post, *post))

    def with_hooks(self, hooks: HookSet) -> ToolEntry:
        """Return the entry with a hook set asked before those it has."""
        return replace(self, hook_sets=((hooks, self.name), *self.hook_sets))

    def with_timeout(self, seconds: float) -> ToolEntry:
        """Return the entry with at most `seconds` for one execution."""
        return replace(self, timeout=seconds if self.timeout is None else min(seconds, self.timeout))

    def with_approval(self, policy: _approvals.ApprovalPolicy) -> ToolEntry:
        """Return the entry with one more reason to ask for approval; TypeError for a policy of other parameters."""
        if callable(policy):
            require_parameters("approval policy", policy, "arguments", "ctx", result="True or False")
            names = self.tool.spec.argument_names
            refuse_argument_names("approval policy", policy, self.name, names, "arguments", "ctx")
        return replace(self, approvals=(*self.approvals, policy))

    def with_gates(self, gates: Iterable[GateLike]) -> ToolEntry:
        """Return the entry with gates that are asked before those it has; raises what `gate_steps` does."""
        return replace(self, gates=(*gate_steps(f"`{self.name}`", gates), *self.gates))

    def with_deliveries(self, deliveries: Iterable[_hooks.DeliveryLike]) -> ToolEntry:
        """Return the entry with deliveries after those it has; raises what `delivery_steps` does."""
        return replace(self, deliveries=(*self.deliveries, *_hooks.delivery_steps(f"`{self.name}`", deliveries)))

    def with_identity(self, text: str) -> ToolEntry:
        """Return the entry with one more text that tells what is behind the tool from others."""
        return replace(self, identities=(*self.identities, text))

    def with_availability(self, predicate: Availability) -> ToolEntry:
        """Return the entry with one more condition for being available; TypeError for one of other parameters."""
        require_parameters("availability check", predicate, "ctx", result="True or False", takes_none=True)
        return replace(self, availability=(*self.availability, predicate))


def entry_of(tool: Tool[..., Any], *, max_retries: int, timeout: float | None, skip_unavailable: bool) -> ToolEntry:
    """Return the entry of a tool with the gates of its own options."""
    options, source = tool.options, tool.source
    if source is not None:
        require_parameters("availability check", source.is_available, "ctx", result="True or False", takes_none=True)
    return ToolEntry(
        name=tool.name,
        tool=tool,
        origin=tool.origin,
        off=not options.default,
        timeout=options.timeout if options.timeout is not None else timeout,
        max_retries=max_retries if options.max_retries is None else options.max_retries,
        approvals=() if options.requires_approval is False else (options.requires_approval,),
        availability=() if source is None else (source.is_available,),
        skip_unavailable=skip_unavailable,
        provider=options.provider,
    )


def steps_before(name: str, hooks: object, *, wide: bool) -> tuple[PreStep, ...]:
    """Return the middleware of one slot as steps; `wide` ones get the tool's name."""
    return tuple(PreStep(fn, label_of(fn), name if wide else None) for fn in several(hooks))


def steps_after(name: str, hooks: object, *, wide: bool) -> tuple[PostStep, ...]:
    """Return the middleware of one slot as steps; `wide` ones get the tool's name."""
    steps: list[PostStep] = []
    for hook in several(hooks):
        fn = hook.fn if isinstance(hook, PerValue) else hook
        steps.append(PostStep(fn, label_of(fn), name if wide else None, isinstance(hook, PerValue)))
    return tuple(steps)


def label_of(fn: Any) -> str:
    """Return the name of a function, or of the class of what is called like one."""
    return getattr(fn, "__name__", type(fn).__name__)

"""Middleware: functions around a tool of a toolset that may edit its arguments and its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolcrib.errors import explain_options
from toolcrib.hooks._parameters import require_parameters
from toolcrib.schema import RunContext

PreHookFunc: TypeAlias = Callable[
    [RunContext[Any], dict[str, Any], dict[str, Any]], Awaitable[dict[str, Any]] | dict[str, Any]
]
"""A function from the context, the arguments and metadata to the arguments that run; sync or async."""
PostHookFunc: TypeAlias = Callable[[RunContext[Any], Any, dict[str, Any]], Any]
"""A function from the context, the result or the tool's exception, and metadata to the result; sync or async."""
GlobalPreHookFunc: TypeAlias = Callable[
    [RunContext[Any], str, dict[str, Any], dict[str, Any]], Awaitable[dict[str, Any]] | dict[str, Any]
]
"""A pre hook of a toolset, which is given the tool's name as well."""
GlobalPostHookFunc: TypeAlias = Callable[[RunContext[Any], str, Any, dict[str, Any]], Any]
"""A post hook of a toolset, which is given the tool's name as well."""


@dataclass(frozen=True, slots=True)
class PerValue:
    """A post hook that is given each value of a streaming tool as it comes, instead of the list at the end."""

    fn: PostHookFunc | GlobalPostHookFunc


def per_value(fn: PostHookFunc | GlobalPostHookFunc) -> PerValue:
    """Mark a post hook, of one tool or a global one, to be given each value of a streaming tool as it comes."""
    return PerValue(fn)


@explain_options()
@dataclass(frozen=True, slots=True)
class GlobalHooks:
    """The middleware of every tool of a toolset; each slot takes one function or several, which run in order.

    Attributes:
        pre: `(ctx, tool_name, args, metadata) -> args`, before the tool's own pre hooks.
        post: `(ctx, tool_name, result, metadata) -> result`, after the tool's own post hooks; the result may be the
            tool's exception.

    Raises:
        TypeError: A function cannot be called with these parameters.
    """

    pre: GlobalPreHookFunc | tuple[GlobalPreHookFunc, ...] | list[GlobalPreHookFunc] | None = None
    post: GlobalPostHookFunc | PerValue | Sequence[GlobalPostHookFunc | PerValue] | None = None

    def __post_init__(self) -> None:
        require_middleware([self.pre], "ctx", "tool_name", "args", "metadata")
        require_middleware([self.post], "ctx", "tool_name", "result", "metadata")


def several(slot: Any) -> tuple[Any, ...]:
    """Return the functions of a slot that takes one, several or none."""
    return () if slot is None else tuple(slot) if isinstance(slot, list | tuple) else (slot,)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] -- functions of any kind


def require_middleware(slots: Iterable[object], *parameters: str) -> None:
    """Raise TypeError when a function in one of the slots cannot be called with these parameters."""
    for slot in slots:
        for fn in several(slot):
            checked = fn.fn if isinstance(fn, PerValue) else fn
            require_parameters("middleware", checked, *parameters, result=f"the {parameters[-2]}")

"""Injection of the parameters that the run supplies, the same for tools and for hooks."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol, cast
from uuid import uuid4

from toolcrib.schema import IdempotencyKey, InjectedParameter, RunContext


class ContextSource(Protocol):
    """A run context, or a run that makes one."""

    def context(self) -> RunContext[Any]:
        """Return the context."""
        ...


ambient: ContextVar[ContextSource | None] = ContextVar("toolcrib_run_context", default=None)
"""The context, or else the run, of the tool whose code runs here; None outside of a tool."""


def ambient_context() -> RunContext[Any] | None:
    """Return the run context of the tool whose code runs here: what a tool that it calls directly is given."""
    here = ambient.get()
    return None if here is None else here.context()


def supply(
    parameters: Mapping[str, InjectedParameter], values: dict[str, Any], ctx: RunContext[Any] | None
) -> str | None:
    """Fill in what `values` lacks of `parameters` from the run, and return the name of one that nothing provides.

    An injected parameter is looked up by name, then by type; an Injectable by type, or by a subclass that is provided.
    """
    missing: str | None = None
    for name, parameter in parameters.items():
        if name in values:
            continue
        found = ctx if parameter.kind == "context" else _look_up(parameter, ctx)
        if found is not None:
            values[name] = found
        elif parameter.has_default:
            continue
        elif parameter.optional:
            values[name] = None
        else:
            missing = missing or name
    return missing


def _look_up(parameter: InjectedParameter, ctx: RunContext[Any] | None) -> Any:
    if parameter.type is IdempotencyKey:  # a direct call is made once, so any will do
        return IdempotencyKey(uuid4().hex if ctx is None else ctx.idempotency_key or uuid4().hex)
    if ctx is None:
        return None
    provided: Mapping[Any, Any] = ctx.provided
    if parameter.kind == "injected" and parameter.name in provided:
        return provided[parameter.name]
    if parameter.type in provided:
        return provided[parameter.type]
    wanted_type: Any = parameter.type
    if not isinstance(wanted_type, type):
        return None
    kinds = (key for key in provided if isinstance(key, type) and issubclass(key, cast("type[Any]", wanted_type)))
    match = next(kinds, None)
    return None if match is None else provided[match]


def wanted(parameter: InjectedParameter) -> str:
    """Return the type that a parameter asks for, in words for an error."""
    return (
        "the run context" if parameter.kind == "context" else getattr(parameter.type, "__name__", str(parameter.type))
    )

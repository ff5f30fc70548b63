"""How a parameter that the run supplies gets its value; the same for tools and for hooks."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, cast
from uuid import uuid4

from toolcrib.schema import IdempotencyKey, InjectedParameter, RunContext

__all__ = ["ambient", "supply", "wanted"]

ambient: ContextVar[RunContext[Any] | None] = ContextVar("toolcrib_run_context", default=None)
"""The context of the run that the current code belongs to: what a tool called directly from another tool is given."""


def supply(
    parameters: Mapping[str, InjectedParameter], values: dict[str, Any], ctx: RunContext[Any] | None
) -> str | None:
    """Fill in what `values` lacks of `parameters` from the run, and return the name of one that nobody provides.

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
        return IdempotencyKey(uuid4().hex if ctx is None else ctx.idempotency_key)
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
    """Return what a parameter asks for, in words for an error."""
    return (
        "the run context" if parameter.kind == "context" else getattr(parameter.type, "__name__", str(parameter.type))
    )

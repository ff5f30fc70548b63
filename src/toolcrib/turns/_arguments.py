"""Tool and arguments of a turn, checked when it is made."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from inspect import iscoroutine
from typing import Any, cast

from toolcrib.tools import Tool, is_thunk

__all__ = ["checked_tool", "evaluated", "named_arguments", "seconds_of"]

_log = logging.getLogger("toolcrib.turns")


def checked_tool(tool: object) -> Tool[..., Any]:
    """Return `tool` when it is one."""
    if isinstance(tool, Tool):
        return cast("Tool[..., Any]", tool)
    raise TypeError(f"a turn needs a tool or the name of a registered one, not {tool!r}; decorate it with @tool")


def named_arguments(tool: Tool[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a host's arguments by name, complete or not; what the tool does not take is dropped with a log line."""
    named, dropped = tool.spec.name_host(args, kwargs)
    if dropped:
        _log.info("a turn of %s ignores the arguments %s", tool.__name__, ", ".join(dropped))
    return named


async def evaluated(value: Any) -> Any:
    """Return what a callable without parameters returns, and anything else, a tool too, as it is."""
    if isinstance(value, Tool) or not is_thunk(value):
        return cast("Any", value)
    made = value()
    return await made if iscoroutine(made) else made


def seconds_of(text: str | None) -> float | None:
    """Return the seconds since the epoch of an ISO time."""
    return None if text is None else datetime.fromisoformat(text).timestamp()

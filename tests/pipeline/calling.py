"""Calls for the tests of the pipeline: of a function made a tool, and of one that needs approval."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolcrib.calls import Outcome, Suspended, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.tools import ez_tool


@ez_tool(requires_approval=True)
async def pay(cents: int, to: str = "ann") -> str:
    return f"{cents} to {to}"


async def suspended(pipeline: Pipeline, arguments: Any = None, name: str = "pay", **scope: Any) -> Suspended:
    call = ToolCall(name, {"cents": 5} if arguments is None else arguments)
    outcome = await pipeline.run(call, Run(**scope))
    assert isinstance(outcome, Suspended), outcome
    return outcome


async def run(fn: Any, arguments: Any = "{}", scope: Run | None = None, **options: Any) -> Outcome:
    """Make a tool of a function and call it."""
    made = ez_tool(**options)(fn)
    return await Pipeline([made]).run(ToolCall(made.name, arguments), scope)


def raising(error: BaseException) -> Callable[[], Any]:
    async def fail() -> None:
        raise error

    return fail

"""The ways in over which a gate is tested, and the tools of these tests.

A gate is one code, which every way in calls: it is tested over a way in of each kind. That a way in calls it, and what
the way in makes of each outcome, is tested over all of them (tests/test_ways_translation.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolcrib.hooks import HookSet
from toolcrib.schema import RunContext
from toolcrib.testing import WAYS, Ability
from toolcrib.tools import Tool, ez_tool

__all__ = ["REPRESENTATIVES", "appending", "asking", "brief", "decides", "each_representative", "representatives"]

REPRESENTATIVES = ("run", "stream", "turn", "openai round", "code", "mcp over stdio", "pydantic_ai", "durable agent")
"""One way in of each kind, by its title."""


def representatives(*abilities: Ability) -> pytest.MarkDecorator:
    """Run a test, which takes `way`, over the representatives that have these abilities."""
    able = [way for way in WAYS if way.title in REPRESENTATIVES and way.abilities.issuperset(abilities)]
    return pytest.mark.parametrize("way", able, ids=repr)


each_representative = representatives()
"""Run a test, which takes `way`, over all representatives."""


def appending(ran: list[Any], **options: Any) -> Tool[..., Any]:
    """Return a tool that notes what it was called with."""

    @ez_tool(**options)
    async def append(text: str, times: int = 1) -> str:
        """Append a text."""
        ran.append((text, times))
        return text * times

    return append


def brief(**options: Any) -> Tool[..., Any]:
    """Return a tool as it was before `append` had its second parameter."""

    @ez_tool(**options)
    async def append(text: str) -> str:
        """Append a text."""
        return text

    return append


def decides(decision: Callable[..., Any]) -> HookSet:
    """Return a hook set that decides for the tool `append`."""
    hooks = HookSet()

    @hooks.on("append")
    async def decide(call: Any, given: Any) -> Any:
        return decision(given)

    return hooks


def asking(got: list[Any], form: Any = bool, **options: Any) -> Tool[..., Any]:
    """Return a tool that asks a person."""

    @ez_tool(**options)
    async def ask(ctx: RunContext[Any], text: str) -> str:
        """Ask."""
        answer = await ctx.elicit(text, form)
        await ctx.log("info", {"answer": answer.action})
        got.append(answer.data)
        return answer.action

    return ask

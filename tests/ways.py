"""Every way of calling a tool, those over which a gate is tested, and the tools of these tests.

A gate is one code, which every way in calls: it is tested over a way in of each kind. That a way in calls it, and what
the way in makes of each outcome, is tested over all of them (tests/test_ways_translation.py). The ways in that are not
of `toolcrib.testing` are in tests/ways_in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import pytest

from tests.ways_in.host import AgentWay, CommandLineWay, StepsWay
from tests.ways_in.programs import program_ways
from toolcrib.errors import MissingExtraError
from toolcrib.hooks import HookSet
from toolcrib.schema import RunContext
from toolcrib.testing import Ability, Way
from toolcrib.testing._rounds import round_ways
from toolcrib.testing._ways import RunWay, StreamWay, TurnWay
from toolcrib.tools import Tool, ez_tool

__all__ = [
    "REPRESENTATIVES",
    "WAYS",
    "appending",
    "asking",
    "brief",
    "decides",
    "each_representative",
    "every_way",
    "representatives",
    "ways",
]

_SDKS = {
    "pydantic_ai": ("pydantic_ai",),
    "mcp": ("mcp", "anyio", "httpx2"),
    "openai_agents": ("agents",),
    "langchain": ("langchain", "langchain_core", "langgraph"),
    "google_adk": ("google.adk",),
    "agent_framework": ("agent_framework",),
    "claude_agent_sdk": ("claude_agent_sdk",),
    "smolagents": ("smolagents",),
    "durable": (),
}
"""The ways in that need an extra, by their module in tests/ways_in, with what the extra installs."""


def _ways_of(name: str, packages: Sequence[str]) -> Sequence[Way]:
    """Return the ways in of a module; none where its extra is not installed."""
    try:
        module = import_module(f"tests.ways_in.{name}")
    except ImportError as error:
        absent = f"{error.name}."
        related = any(absent.startswith(f"{each}.") or f"{each}.".startswith(absent) for each in packages)
        if not (related or isinstance(error, MissingExtraError)):
            raise
        return ()
    return getattr(module, f"{name}_ways")


WAYS: list[Way] = [
    RunWay(),
    StepsWay(),
    StreamWay(),
    CommandLineWay(),
    *program_ways,
    TurnWay(),
    AgentWay(1),
    AgentWay(3),
    *round_ways,
    *(way for name, packages in _SDKS.items() for way in _ways_of(name, packages)),
]
"""Every way of calling a tool."""


def ways(*abilities: Ability) -> pytest.MarkDecorator:
    """Run a test, which takes `way`, over every way in that has these abilities."""
    return pytest.mark.parametrize("way", [way for way in WAYS if way.abilities.issuperset(abilities)], ids=repr)


every_way = ways()
"""Run a test, which takes `way`, over every way in."""

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

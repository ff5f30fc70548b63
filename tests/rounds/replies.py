"""Tools and replies that the tests of rounds share."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from toolcrib.calls import Ask, CallMetadata, Complete, Reject, RunNormally, ToolCall
from toolcrib.formats import PROVIDERS
from toolcrib.hooks import HookSet
from toolcrib.rounds import ToolRound, WireFormat, decode
from toolcrib.testing import wire_reply
from toolcrib.tools import Tool, ez_tool, tool_input
from toolcrib.toolsets import Toolset, ToolsetLike

FORMATS: tuple[WireFormat, ...] = tuple(PROVIDERS)


class SearchResult(BaseModel):
    snippets: list[str]


@tool_input("web_search", output=SearchResult)
class WebSearch(BaseModel):
    """Search the web."""

    query: str = Field(description="The query to search for.")
    max_results: int | None = None


@tool_input("read_file", output=str)
class ReadFile(BaseModel):
    """Read a file."""

    path: str


def adding(ran: list[Any], **options: Any) -> Tool[..., Any]:
    """Return a tool that notes what it was called with."""

    @ez_tool(**options)
    async def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        ran.append((a, b))
        return a + b

    return add


def asks(*calls: tuple[str, Any], format: WireFormat = "openai", text: str = "") -> dict[str, Any]:
    """Return a reply that makes these calls, with the ids `call_0`, `call_1`, ..."""
    return wire_reply(format, [ToolCall(name, raw, f"call_{n}") for n, (name, raw) in enumerate(calls)], text)


def policy(ran: list[Any] | None = None) -> HookSet:
    """Return hooks that answer 1, refuse 2, ask about 3, and let the rest run with 10 more."""
    hooks = HookSet()

    @hooks.on("add")
    async def decide(call: CallMetadata, given: Any) -> Any:
        if ran is not None:
            ran.append(given.a)
        match given.a:
            case 1:
                return Complete(111)
            case 2:
                return Reject("two is too few")
            case 3:
                return Ask("three is a crowd")
            case _:
                return RunNormally(given.model_copy(update={"a": given.a + 10}))

    return hooks


def round_of(tools: ToolsetLike, *calls: tuple[str, Any], **options: Any) -> ToolRound:
    """Return the round of a reply that makes these calls."""
    return decode(Toolset.of(tools), asks(*calls), **options)


def results_in(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return id and text of the results in an OpenAI transcript."""
    return [(m["tool_call_id"], m["content"]) for m in messages if m["role"] == "tool"]

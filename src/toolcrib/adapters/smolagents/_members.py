"""Tools of smolagents, and those of an agent, as members of a toolset, with our gates around them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any, cast

from PIL import Image
from smolagents import MultiStepAgent
from smolagents import Tool as TheirTool
from smolagents.agent_types import AgentImage, AgentText

from toolcrib.adapters.smolagents._calls import FINAL_ANSWER, tools_of
from toolcrib.adapters.smolagents._tools import AgentTool, parameters_of
from toolcrib.calls import Media
from toolcrib.schema import RunContext
from toolcrib.serving import OriginalResults
from toolcrib.serving.frameworks import FrameworkMember, provided, require_tools
from toolcrib.tools import Tool
from toolcrib.toolsets import Toolset


def from_tools(tools: Iterable[TheirTool]) -> list[Tool[..., Any]]:
    """Return tools of smolagents, those of MCP servers and of the Hub included, as members for `Toolset([...])`.

    They run in a thread. An image that one returns is `Media`.
    """
    return [
        Member(tool).tool() for tool in require_tools("from_tools", tools, TheirTool, "the `tool(...)` of smolagents")
    ]


def member_of(value: object) -> Toolset | Tool[..., Any] | None:
    """Return the tools of an agent, or a tool, as a member for `Toolset([...])`; None for anything else.

    A tool that has gates of ours keeps them. `final_answer` is left out: it ends a run of the agent.
    """
    if isinstance(value, TheirTool):
        return value.tools.only(value.name) if isinstance(value, AgentTool) else Member(value).tool()
    if not isinstance(value, MultiStepAgent):
        return None
    return Toolset([member_of(tool) for name, tool in tools_of(value).items() if name != FINAL_ANSWER])


class Member(FrameworkMember):
    """One of their tools."""

    def __init__(self, theirs: TheirTool) -> None:
        self.theirs = theirs
        inputs = cast("Mapping[str, Mapping[str, Any]]", theirs.inputs)
        super().__init__(theirs.name, theirs.description, parameters_of(inputs))

    async def run(self, arguments: dict[str, Any]) -> Any:
        if isinstance(self.theirs, AgentTool):
            return await self.theirs.call(arguments)
        return await asyncio.to_thread(cast("Any", self.theirs), **arguments)

    async def make(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        result = await self.run(arguments)
        value = _value_of(result)
        originals = provided(ctx, OriginalResults)
        if originals is not None:
            originals.keep(ctx.call_id, value, result)
        return value


def _value_of(result: Any) -> Any:
    if isinstance(result, AgentText):
        return result.to_raw()
    if not isinstance(result, Image.Image):
        return result
    image: Any = result.to_raw() if isinstance(result, AgentImage) else result
    png = BytesIO()
    image.save(png, format="png")
    return Media("image/png", png.getvalue())

"""Tools of smolagents as members of a toolset, with our gates around them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any, cast

from PIL import Image
from smolagents import Tool as TheirTool
from smolagents.agent_types import AgentImage, AgentText

from toolcrib.adapters.smolagents._inputs import parameters_of
from toolcrib.adapters.smolagents._tools import AgentTool
from toolcrib.calls import Media
from toolcrib.errors import ToolcribError
from toolcrib.hooks import ambient_context
from toolcrib.schema import ToolSpec
from toolcrib.serving import OriginalResults
from toolcrib.tools import BaseTool, Tool

__all__ = ["Member", "from_tools"]


def from_tools(tools: Iterable[TheirTool]) -> list[Tool[..., Any]]:
    """Return tools of smolagents, those of MCP servers and of the Hub included, as members for `Toolset([...])`.

    They run in a thread. An image that one returns is `Media`.
    """
    return [Member(tool).tool() for tool in tools]


class Member(BaseTool):
    """One of their tools."""

    def __init__(self, theirs: TheirTool) -> None:
        self.theirs = theirs
        self._parameters = parameters_of(cast("Mapping[str, Mapping[str, Any]]", theirs.inputs))

    def tool(self) -> Tool[..., Any]:
        """Return it as one of ours."""
        spec = ToolSpec.from_schema(
            self._call, self._parameters, name=self.theirs.name, description=self.theirs.description
        )
        return Tool(spec, source=self)

    def get_definition(self) -> Mapping[str, Any]:
        return {"name": self.theirs.name, "description": self.theirs.description, "parameters": self._parameters}

    async def make(self, arguments: dict[str, Any]) -> Any:
        """Run their tool, and return its value."""
        if isinstance(self.theirs, AgentTool):
            return await self.theirs.call(arguments)
        return await asyncio.to_thread(cast("Any", self.theirs), **arguments)

    async def _call(self, **arguments: Any) -> Any:
        ctx = ambient_context()
        if ctx is None:
            raise ToolcribError(f"`{self.theirs.name}` is called outside a run")
        result = await self.make(arguments)
        value = _value_of(result)
        originals = cast("Mapping[Any, Any]", ctx.provided).get(OriginalResults)
        if isinstance(originals, OriginalResults):
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

"""Tools of ADK as members of a toolset, with our gates around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import BaseTool as TheirTool
from google.adk.tools import FunctionTool, ToolContext

from toolcrib.errors import ToolcribError
from toolcrib.hooks import ambient_context
from toolcrib.schema import RunContext, ToolSpec
from toolcrib.tools import BaseTool, Tool

__all__ = ["Member", "from_tools"]


def from_tools(tools: Iterable[Any]) -> list[Tool[..., Any]]:
    """Return tools of ADK, or functions as it takes them, as members for `Toolset([...])`.

    Inside an agent of ADK they see its context. Outside one they see that of a new session of our principal.

    Raises:
        TypeError: One of them has no declaration: the model's provider runs it.
    """
    return [Member(tool if isinstance(tool, TheirTool) else FunctionTool(tool)).tool() for tool in tools]


class Member(BaseTool):
    """One of their tools."""

    def __init__(self, theirs: TheirTool) -> None:
        self.theirs = theirs
        declaration = theirs._get_declaration()  # pyright: ignore[reportPrivateUsage] -- tools declare themselves by it alone
        if declaration is None:
            raise TypeError(f"`{theirs.name}` has no declaration: the model's provider runs it itself")
        schema = declaration.parameters
        given: Any = declaration.parameters_json_schema
        if given is None and schema is not None:
            given = schema.json_schema.model_dump(mode="json", exclude_none=True)
        self._parameters: dict[str, Any] = given or {"type": "object", "properties": {}}

    def tool(self) -> Tool[..., Any]:
        """Return it as one of ours."""
        spec = ToolSpec.from_schema(
            self._call, self._parameters, name=self.theirs.name, description=self.theirs.description
        )
        return Tool(spec, source=self)

    def get_definition(self) -> Mapping[str, Any]:
        return {"name": self.theirs.name, "description": self.theirs.description, "parameters": self._parameters}

    async def _call(self, **arguments: Any) -> Any:
        ctx = ambient_context()
        if ctx is None:
            raise ToolcribError(f"`{self.theirs.name}` is called outside a run")
        found = cast("Mapping[Any, Any]", ctx.provided).get(ToolContext)
        theirs: ToolContext = found if isinstance(found, ToolContext) else _context(ctx)
        return await self.theirs.run_async(args=arguments, tool_context=theirs)


def _context(ctx: RunContext[Any]) -> ToolContext:
    """Return a context of ADK for a call that comes from elsewhere."""
    user = getattr(ctx.run, "principal", None) or "user"
    session = Session(id=ctx.run_id, app_name="toolcrib", user_id=user)
    invocation = InvocationContext(
        session_service=InMemorySessionService(),
        invocation_id=ctx.run_id,
        agent=LlmAgent(name="toolcrib"),
        session=session,
    )
    return ToolContext(invocation, function_call_id=ctx.call_id)

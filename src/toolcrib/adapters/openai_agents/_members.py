"""Function tools of the OpenAI Agents SDK, and those of its agents, as members of a toolset, with gates of ours."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from inspect import isawaitable
from typing import Any, cast

from agents import (
    Agent,
    FunctionTool,
    RunContextWrapper,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrailData,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputFileContent,
    ToolOutputGuardrailData,
    ToolOutputGuardrailTripwireTriggered,
    ToolOutputImage,
    ToolOutputText,
)
from agents.tool_context import ToolContext
from pydantic import TypeAdapter, ValidationError

from toolcrib.adapters.openai_agents._tools import Invocation
from toolcrib.errors import ModelRetry
from toolcrib.schema import RunContext
from toolcrib.serving.frameworks import AgentTools, FrameworkMember, media_at, provided, require_tools
from toolcrib.tools import Tool
from toolcrib.toolsets import Toolset

_CONTENT: TypeAdapter[ToolOutputText | ToolOutputImage | ToolOutputFileContent] = TypeAdapter(
    ToolOutputText | ToolOutputImage | ToolOutputFileContent
)


def from_tools(tools: Iterable[Any]) -> list[Tool[..., Any]]:
    """Return function tools of the SDK as members for `Toolset([...])`.

    Inside an agent of the SDK they see its context. Outside one they see one made of our `deps`. Their guardrails are
    asked: what one rejects is an error that the model is shown.

    Raises:
        TypeError: One of them is not a function tool, so that there is nothing that the pipeline could run.
    """
    found = require_tools("from_tools", tools, FunctionTool)
    other = next((each for each in found if not isinstance(each, FunctionTool)), None)
    if other is not None:
        raise TypeError(
            f"{getattr(other, 'name', other)!r} is not a FunctionTool: the SDK or a provider runs it itself"
        )
    return [member(tool) for tool in found]


def member_of(value: object) -> Toolset | Tool[..., Any] | None:
    """Return the tools of an agent, or a function tool, as a member for `Toolset([...])`; None for anything else.

    Of an agent these are the function tools that it has itself, and those of its MCP servers, which are connected
    while the toolset is open. A tool that has gates of ours keeps them.
    """
    if isinstance(value, FunctionTool):
        return _member_of(value)
    return Toolset([AgentTools(partial(_opened, value))]) if isinstance(value, Agent) else None


def _member_of(tool: FunctionTool) -> Toolset | Tool[..., Any]:
    ours = Invocation.of(tool)
    return member(tool) if ours is None else ours.tools.only(ours.name)


@asynccontextmanager
async def _opened(agent: Agent[Any], ctx: RunContext[Any]) -> AsyncGenerator[list[Toolset | Tool[..., Any]]]:
    async with AsyncExitStack() as stack:
        for server in agent.mcp_servers:
            await server.connect()
            stack.push_async_callback(server.cleanup)
        tools = await agent.get_all_tools(RunContextWrapper(ctx.deps))
        yield [_member_of(tool) for tool in tools if isinstance(tool, FunctionTool)]


def member(theirs: FunctionTool, *, in_agent: bool = False) -> Tool[..., Any]:
    """Return one function tool as a tool of ours; in an agent, the SDK asks its guardrails itself."""
    wrapped = _Member(theirs) if in_agent else _CheckedMember(theirs)
    return wrapped.tool(requires_approval=wrapped.asks if callable(theirs.needs_approval) else theirs.needs_approval)


class _Member(FrameworkMember):
    def __init__(self, theirs: FunctionTool) -> None:
        self._theirs = theirs
        super().__init__(theirs.name, theirs.description, theirs.params_json_schema)

    async def asks(self, arguments: dict[str, Any], ctx: RunContext[Any]) -> bool:
        """Return the result of the tool's own condition."""
        condition: Any = self._theirs.needs_approval
        asks = condition(_wrapper(ctx), arguments, ctx.call_id)
        return bool(await asks if isawaitable(asks) else asks)

    async def make(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        text = json.dumps(arguments)
        theirs = _wrapper(ctx)
        agent = theirs.agent if isinstance(theirs, ToolContext) else None
        context = ToolContext(
            theirs.context,
            theirs.usage,
            self._theirs.name,
            ctx.call_id,
            text,
            theirs.tool_call if isinstance(theirs, ToolContext) else None,
            agent=agent,
            turn_input=theirs.turn_input,
            _approvals=theirs._approvals,  # pyright: ignore[reportPrivateUsage] -- a tool of ours reads the answers there
        )
        return _value_of(await self.invoke(context, text))

    async def invoke(self, context: ToolContext[Any], arguments: str) -> Any:
        """Run their tool, and return what the SDK is given."""
        return await self._theirs.on_invoke_tool(context, arguments)


class _CheckedMember(_Member):
    """A function tool whose guardrails are asked here."""

    async def invoke(self, context: ToolContext[Any], arguments: str) -> Any:
        agent: Any = context.agent or Agent("toolcrib")
        for before in self._theirs.tool_input_guardrails or ():
            verdict = await before.run(ToolInputGuardrailData(context, agent))
            _check(verdict, ToolInputGuardrailTripwireTriggered(before, verdict))
        output = await super().invoke(context, arguments)
        for after in self._theirs.tool_output_guardrails or ():
            verdict = await after.run(ToolOutputGuardrailData(context, agent, output))
            _check(verdict, ToolOutputGuardrailTripwireTriggered(after, verdict))
        return output


def _check(verdict: ToolGuardrailFunctionOutput, tripped: Exception) -> None:
    """Raise what a guardrail has against a call."""
    if verdict.behavior["type"] == "reject_content":
        raise ModelRetry(verdict.behavior["message"])
    if verdict.behavior["type"] == "raise_exception":
        raise tripped


def _wrapper(ctx: RunContext[Any]) -> RunContextWrapper[Any]:
    """Return the SDK's context where an agent of it makes the call, or one made of ours."""
    found = provided(ctx, ToolContext) or provided(ctx, RunContextWrapper)
    return RunContextWrapper(ctx.deps) if found is None else found


def _value_of(result: Any) -> Any:
    """Return a tool's value with media in the place of the SDK's content, which tools of MCP servers give as dicts."""
    match result:
        case list():
            return [_value_of(part) for part in cast("list[Any]", result)]
        case {"type": "text" | "image" | "file"}:
            content = _content_of(cast("dict[str, Any]", result))
            return result if content is None else _value_of(content)
        case ToolOutputText():
            return result.text
        case ToolOutputImage(image_url=str() as url):
            return media_at(url, "image/png", "")
        case ToolOutputFileContent(file_data=str() as data) if data.startswith("data:"):
            return media_at(data, "application/octet-stream", result.filename or "")
        case ToolOutputFileContent(file_url=str() as url):
            return media_at(url, "application/octet-stream", result.filename or "")
        case _:
            return result


def _content_of(described: dict[str, Any]) -> ToolOutputText | ToolOutputImage | ToolOutputFileContent | None:
    try:
        content = _CONTENT.validate_python(described)
    except ValidationError:
        return None
    return content if described.keys() <= type(content).model_fields.keys() else None

"""Source of tools: a toolset or an agent of Pydantic AI, each of whose tools becomes a Tool, with our gates around."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from inspect import isawaitable
from typing import Any, cast

import pydantic_ai
from pydantic_ai import Agent
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import (
    AbstractCapability,
    CombinedCapability,
    DynamicCapability,
    Hooks,
    PrepareTools,
    WrapperCapability,
)
from pydantic_ai.exceptions import ApprovalRequired as TheirApprovalRequired
from pydantic_ai.exceptions import CallDeferred
from pydantic_ai.exceptions import ModelRetry as TheirModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturn
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import Tool as TheirTool
from pydantic_ai.tools import ToolDenied
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset, ToolsetTool
from pydantic_ai.usage import RunUsage
from pydantic_core import to_json

from toolcrib.adapters.pydantic_ai._deferred_calls import KEY, Waiting
from toolcrib.adapters.pydantic_ai._media import with_media
from toolcrib.errors import ApprovalDenied, ApprovalRequired, ModelRetry, ToolcribError, explain_options
from toolcrib.hooks import ambient_context
from toolcrib.schema import RunContext, ToolSpec
from toolcrib.serving.frameworks import gates_lost, provided, require_tools, without_others
from toolcrib.tools import BaseTool, Tool, ToolOptions
from toolcrib.toolsets import Toolset

_RETRIES = 3  # of a tool that does not say, as in a toolset of ours
_STATE = "toolcrib_pydantic_ai"
"""The entry in a call's own metadata with the state that Pydantic AI needs when the call is resumed."""


@explain_options()
def from_tools(
    tools: AbstractToolset[Any] | Iterable[AbstractToolset[Any] | TheirTool[Any] | Callable[..., Any]],
    *,
    model: Model | str | None = None,
    usage: RunUsage | None = None,
) -> list[PydanticToolset]:
    """Return tools, toolsets and functions as Pydantic AI takes them, as members for `Toolset([...])`.

    A toolset lists its tools when the run opens. Inside an agent of Pydantic AI they see the agent's run. Outside one
    they see one made of our `deps`, and of:

    Args:
        tools: One toolset, or several of all kinds.
        model: The model that they find as `ctx.model`; without one, a model that answers no request.
        usage: The usage that they find as `ctx.usage`, and may count in.
    """
    if isinstance(cast("object", tools), AbstractAgent):
        raise TypeError("the tools of an agent are those of the agent as a member: Toolset([agent])")
    members: list[Any] = (
        [tools] if isinstance(tools, AbstractToolset) else require_tools("from_tools", tools, TheirTool)
    )
    toolsets: list[AbstractToolset[Any]] = [member for member in members if isinstance(member, AbstractToolset)]
    alone = [member for member in members if not isinstance(member, AbstractToolset)]
    if alone:
        toolsets.append(FunctionToolset(alone))
    return [PydanticToolset(toolset, model, usage) for toolset in toolsets]


class PydanticToolset:
    """A source of tools: a toolset of Pydantic AI. Made by `from_tools`."""

    def __init__(
        self, toolset: AbstractToolset[Any], model: Model | str | None = None, usage: RunUsage | None = None
    ) -> None:
        self._toolset = toolset
        self._model = infer_model(model) if isinstance(model, str) else model or FunctionModel(_no_model)
        self._usage = RunUsage() if usage is None else usage

    @asynccontextmanager
    async def open_source(self, ctx: RunContext[Any]) -> AsyncGenerator[Toolset]:
        """Enter the toolset, and give its tools while it is entered."""
        theirs = self.context(ctx)
        async with await self._toolset.for_run(theirs) as entered:
            ready = await entered.for_run_step(theirs)
            tools = await ready.get_tools(theirs)
            # an external tool has nothing that the pipeline could run
            yield Toolset([self.member(ready, t) for t in tools.values() if t.tool_def.kind != "external"])

    def member(self, toolset: AbstractToolset[Any], tool: ToolsetTool[Any]) -> Tool[..., Any]:
        """Return one of their tools as one of ours.

        Args:
            toolset: The toolset that calls it, in the run and step of which it is.
            tool: The tool, as `get_tools` of this toolset gave it.
        """
        return _Member(self, toolset, tool).tool()

    def context(self, ctx: RunContext[Any]) -> pydantic_ai.RunContext[Any]:
        """Return their context for ours."""
        found = provided(ctx, pydantic_ai.RunContext)
        if found is not None:
            return cast("pydantic_ai.RunContext[Any]", found)
        run: dict[str, Any] = {"run_id": ctx.run_id or None, "max_retries": _RETRIES}
        return pydantic_ai.RunContext(deps=ctx.deps, model=self._model, usage=self._usage, **run)


class _Member(BaseTool):
    """One of their tools."""

    def __init__(self, source: PydanticToolset, toolset: AbstractToolset[Any], member: ToolsetTool[Any]) -> None:
        self._source, self._toolset, self._member = source, toolset, member

    def tool(self) -> Tool[..., Any]:
        definition = self._member.tool_def
        spec = ToolSpec.from_schema(
            self._call,
            without_others(definition.parameters_json_schema),
            name=definition.name,
            description=definition.description or "",
            returns=definition.return_schema,
            check=self._check,
        )
        spec.is_elsewhere = True
        asks = definition.kind == "unapproved"  # of these the caller has to ask; the toolset itself does not
        return Tool(spec, ToolOptions(max_retries=self._member.max_retries, requires_approval=asks), source=self)

    def _check(self, arguments: Mapping[str, Any]) -> None:
        """Raise what their validator raises; the arguments stay as the model sent them."""
        self._read(arguments)

    def _read(self, arguments: Mapping[str, Any]) -> Any:
        """Return the arguments as their validator makes them; raises what it raises."""
        return self._member.args_validator.validate_json(to_json(dict(arguments), fallback=repr))

    async def _call(self, **arguments: Any) -> Any:
        ctx = ambient_context()
        if ctx is None:
            raise ToolcribError(f"`{self._member.tool_def.name}` is called outside a run")
        theirs = self._context(ctx, arguments)
        member = self._member
        try:
            values = self._read(arguments)
            if member.args_validator_func is not None:
                checked = member.args_validator_func(theirs, **values)
                if isawaitable(checked):
                    await checked
            result = await self._toolset.call_tool(member.tool_def.name, values, theirs, member)
        except TheirModelRetry as error:
            raise ModelRetry(error.message) from error
        except TheirApprovalRequired as error:
            # their question as ours; the call keeps what they need with the answer
            metadata = error.metadata or {}
            ctx.metadata[_STATE] = {"arguments": dict(arguments), "metadata": dict(metadata)}
            shown = {key: value for key, value in metadata.items() if key != KEY}
            waiting = Waiting.of(metadata)
            if waiting is not None:
                shown["asked"] = waiting.request.text()  # hooks in there may have edited what is shown out here
            raise ApprovalRequired(shown) from error
        except CallDeferred as error:
            raise ToolcribError(f"`{member.tool_def.name}` has to be executed elsewhere") from error
        if isinstance(result, ToolDenied):
            raise ApprovalDenied(member.tool_def.name, result.message)
        if not isinstance(result, ToolReturn):
            return with_media(result)
        tool_return = cast("ToolReturn[Any]", result)
        return with_media(tool_return.return_value) if tool_return.content is None else tool_return

    def _context(self, ctx: RunContext[Any], arguments: Mapping[str, Any]) -> pydantic_ai.RunContext[Any]:
        """Return their context for one call, with the answer to what the call was suspended for."""
        name = self._member.tool_def.name
        asked: Any = ctx.metadata.get(_STATE)
        theirs = self._source.context(ctx)
        messages, metadata = theirs.messages, None
        if ctx.approved and isinstance(asked, dict):
            state = cast("dict[str, Any]", asked)
            metadata = _granted(state["metadata"], ctx, state["arguments"], arguments)
            messages = [*messages, ModelResponse(parts=[ToolCallPart(name, state["arguments"], ctx.call_id)])]
        return replace(
            theirs,
            tool_call_id=ctx.call_id,
            tool_name=name,
            tool_call_approved=ctx.approved,
            tool_call_metadata=metadata,
            messages=messages,
            max_retries=self._member.max_retries,
        )


async def _no_model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    raise RuntimeError("these tools run outside an agent and have no model: from_tools(..., model=...)")


def _granted(
    metadata: dict[str, Any], ctx: RunContext[Any], asked: Mapping[str, Any], now: Mapping[str, Any]
) -> dict[str, Any]:
    """Return their metadata, saying who approved where the other side is a toolset of ours."""
    waiting = Waiting.of(metadata)
    if waiting is None:
        return metadata
    override = None if dict(asked) == dict(now) else dict(now)
    grant = waiting.request.grant(ctx.approved_by or "host", override_args=override, user_input=ctx.user_input)
    return {**metadata, **replace(waiting, grant=grant).metadata()}


_AROUND_TOOLS = (
    "before_tool_validate",
    "wrap_tool_validate",
    "after_tool_validate",
    "on_tool_validate_error",
    "before_tool_execute",
    "wrap_tool_execute",
    "after_tool_execute",
    "on_tool_execute_error",
    "prepare_tools",
    "get_wrapper_toolset",
)
"""The methods by which a capability stands around the tools of its agent."""


def member_of(value: object) -> Toolset | None:
    """Return the tools of an agent, a toolset or a tool as a member for `Toolset([...])`; None for anything else.

    Raises:
        TypeError: A capability of the agent is around its tools, and would not be around them elsewhere.
    """
    match value:
        case Agent():
            agent = cast("Agent[Any, Any]", value)
            around = _around_tools(agent._root_capability)  # pyright: ignore[reportPrivateUsage] -- there is no other way to it
            if around is not None:
                raise gates_lost(f"the capability {type(around).__name__}")
            return Toolset([PydanticToolset(CombinedToolset(agent.toolsets))])
        case AbstractToolset():
            return Toolset(from_tools(cast("AbstractToolset[Any]", value)))
        case TheirTool():
            return Toolset(from_tools([cast("TheirTool[Any]", value)]))
        case _:
            return None


def _around_tools(capability: AbstractCapability[Any]) -> AbstractCapability[Any] | None:
    """Return the capability that may refuse, edit or hide calls of tools; None where none does."""
    base: type[Any] = AbstractCapability
    if isinstance(capability, CombinedCapability):
        return next(filter(None, map(_around_tools, capability.capabilities)), None)
    if isinstance(capability, DynamicCapability):
        return capability  # what it is in a run is not known before
    if isinstance(capability, Hooks):
        base = Hooks
        if any(capability._registry.get(name) for name in _AROUND_TOOLS):  # pyright: ignore[reportPrivateUsage] -- as above
            return capability
    elif isinstance(capability, WrapperCapability):
        base = WrapperCapability
        inside = _around_tools(capability.wrapped)
        if inside is not None:
            return inside
    if type(capability).__module__.startswith("pydantic_ai.") and not isinstance(capability, PrepareTools):
        return None  # instrumentation, tool search and the like, which are not gates
    is_own = any(getattr(type(capability), name) is not getattr(base, name) for name in _AROUND_TOOLS)
    return capability if is_own else None

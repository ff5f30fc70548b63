"""Gates around the tools of an agent of LangChain, as a middleware of `create_agent`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import iscoroutinefunction
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse, ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool as TheirTool
from langchain_core.tools import ToolException
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command

from toolcrib.adapters.langchain._calls import ENTRY, CallOfGraph, record_answers
from toolcrib.adapters.langchain._members import Member, value_of
from toolcrib.adapters.langchain._tools import GatedTool, result_of
from toolcrib.approvals import SuspendedCallStore
from toolcrib.calls import Completed, Failed, Outcome, ToolCall, new_call_id
from toolcrib.errors import ToolcribError, register_signal
from toolcrib.schema import RunContext, ToolSpec
from toolcrib.serving import GuardPolicy, takes_policy
from toolcrib.serving.frameworks import FrameworkTools, GuardedTools, provided
from toolcrib.tools import Tool

__all__ = ["GuardMiddleware", "UsageMiddleware"]


class UsageMiddleware(AgentMiddleware[Any, Any, Any]):
    """Records what each request to a model takes: `create_agent(..., tools, middleware=[UsageMiddleware(tools)])`.

    The record has it in the run of the tools' calls. A `GuardMiddleware` does so by itself.

    Args:
        tools: The agent's tools that `as_tools` or `guard` made.
    """

    def __init__(self, tools: Iterable[TheirTool]) -> None:
        super().__init__()
        self._ours = {id(tool.tools): tool.tools for tool in tools if isinstance(tool, GatedTool)}

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """Record a request."""
        return self._record(request, handler(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """Guard a request to the model in an event loop."""
        return self._record(request, await handler(request))

    def _record(self, request: ModelRequest[Any], response: Any) -> Any:
        answers = cast("list[Any]", response.result) if isinstance(response, ModelResponse) else [response]
        for tools in self._ours.values():
            record_answers(tools, request.runtime, request.state, answers)
        return cast("Any", response)


class GuardMiddleware(UsageMiddleware):
    """Gates around every tool that an agent runs: `create_agent(..., middleware=[GuardMiddleware(policy)])`.

    Args:
        policy: The gates.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.
    """

    @takes_policy
    def __init__(self, policy: GuardPolicy, *, suspended: SuspendedCallStore | None = None) -> None:
        super().__init__([])
        self._tools = GuardedTools(ENTRY, policy, suspended)
        self._ours[0] = self._tools.none

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """Refuse a model with tools that its provider runs, unless the policy leaves them."""
        self._check(request.tools)
        return super().wrap_model_call(request, handler)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """Guard a request to the model in an event loop."""
        self._check(request.tools)
        return await super().awrap_model_call(request, handler)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Make a call through the gates, in a thread that runs no event loop."""
        if self._tools.leaves(request.tool_call["name"]):
            return handler(request)
        handling = _Handling(request, handler)
        call = self._call(handling)
        try:
            return handling.reply(call, call.outcome_now())
        except _InterruptError as error:
            call.forget()
            raise error.theirs from None

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Make a call through the gates."""
        if self._tools.leaves(request.tool_call["name"]):
            return await handler(request)
        handling = _Handling(request, handler)
        call = self._call(handling)
        try:
            return handling.reply(call, await call.outcome())
        except _InterruptError as error:
            call.forget()
            raise error.theirs from None

    # --- inside

    def _check(self, tools: Sequence[Any]) -> None:
        self._tools.check_names(tool.name for tool in tools if isinstance(tool, TheirTool))
        for tool in tools:
            described = cast("dict[str, Any]", tool) if isinstance(tool, dict) else {}
            name = described.get("name") or described.get("type")
            if name is not None:
                self._tools.refuse(name, "a provider runs it itself")

    def gated(self, name: str, tool: TheirTool | None) -> FrameworkTools:
        """Return a tool with the gates around it, made once; None is one that the agent does not know."""
        return self._tools.guard(name, tool, (_Unregistered(name) if tool is None else _Handled(tool)).tool)

    def _call(self, handling: _Handling) -> CallOfGraph:
        tool_call = handling.request.tool_call
        call = ToolCall(tool_call["name"], dict(tool_call["args"]), tool_call["id"] or new_call_id())
        runtime = cast("ToolRuntime[Any, Any] | None", cast("Any", handling.request).runtime)
        return CallOfGraph(self.gated(tool_call["name"], handling.request.tool), call, runtime, {_Handling: handling})


class _InterruptError(BaseException):
    """Passes a call whose tool interrupts the graph: that is not a result, and no failure."""

    def __init__(self, theirs: GraphBubbleUp) -> None:
        super().__init__(theirs)
        self.theirs = theirs


register_signal(_InterruptError)


class _Handling:
    """One call of a guarded tool: what makes it, and what came of that."""

    def __init__(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> None:
        self.request, self._handler = request, handler
        self._result: Any = None
        self._value: Any = None
        self._error: Exception | None = None

    async def make(self, arguments: dict[str, Any], *, is_approved: bool = False) -> Any:
        """Run the tool with these arguments, and return its value."""
        edited = cast("Any", {**self.request.tool_call, "args": arguments})
        request = self.request.override(tool_call=edited)
        try:
            if iscoroutinefunction(self._handler):
                self._result = await self._handler(request)
            else:
                self._result = await asyncio.to_thread(self._handler, request)
            self._value = value_of(self._result)
        except ToolException as error:
            self._error = error
            raise
        except GraphBubbleUp as error:
            self._error = error
            if is_approved:  # it is not made anew: the grant of it is used
                raise
            raise _InterruptError(error) from error
        return self._value

    def reply(self, call: CallOfGraph, outcome: Outcome) -> ToolMessage | Command[Any]:
        """Return the message of the tool itself where nothing was made of it, or one that says what came of the call.

        Raises:
            GraphBubbleUp: The tool, which a person had approved, interrupted the graph.
        """
        if isinstance(self._error, GraphBubbleUp):
            call.forget()
            raise self._error
        result = None if call.has_deliveries else self._result
        if result is not None and isinstance(outcome, Completed) and outcome.value is self._value:
            return result
        if isinstance(outcome, Failed) and self._result is not None and outcome.exception is self._error:
            return self._result
        tool_call = self.request.tool_call
        about: dict[str, Any] = {"name": tool_call["name"], "tool_call_id": tool_call["id"]}
        try:
            content, artifact = result_of(outcome)
        except ToolException as error:
            return ToolMessage(content=str(error), status="error", **about)
        return ToolMessage(content=content, artifact=artifact, **about)


class _Handled(Member):
    """A tool that is run by what a middleware is given; by itself where a toolset of ours has it."""

    async def make(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        handling = provided(ctx, _Handling)
        if handling is None:
            return await super().make(ctx, arguments)
        return await handling.make(arguments, is_approved=ctx.approved)


class _Unregistered:
    """A tool that the agent does not know, and that another middleware may run."""

    def __init__(self, name: str) -> None:
        self._name = name

    def tool(self) -> Tool[..., Any]:
        """Return it as one of ours."""
        spec = ToolSpec.from_schema(self._make, {"type": "object", "additionalProperties": True}, name=self._name)
        spec.is_elsewhere = True
        return Tool(spec)

    async def _make(self, ctx: RunContext, **arguments: Any) -> Any:
        handling = provided(ctx, _Handling)
        if handling is None:
            raise ToolcribError(f"`{self._name}` is not a tool of the agent, and no middleware runs it here")
        return await handling.make(arguments)

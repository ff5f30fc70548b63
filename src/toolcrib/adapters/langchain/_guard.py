"""Gates around tools of LangChain: a middleware of `create_agent`, and tools for a `ToolNode` or a chain."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import iscoroutinefunction
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse, ToolCallRequest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages import ToolCall as TheirCall
from langchain_core.tools import BaseTool as TheirTool
from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolNode, ToolRuntime
from langgraph.pregel import Pregel
from langgraph.types import Command

from toolcrib.adapters.langchain._calls import ENTRY, CallOfGraph, record_answers, run_of_step
from toolcrib.adapters.langchain._members import Member, failed_tool, value_of
from toolcrib.adapters.langchain._tools import GatedTool, gated_tool, result_of
from toolcrib.approvals import SuspendedCallStore
from toolcrib.calls import Completed, Failed, Outcome, ToolCall, new_call_id
from toolcrib.errors import RemoteToolError, ToolcribError
from toolcrib.schema import RunContext, ToolSpec
from toolcrib.serving import GuardPolicy, takes_policy
from toolcrib.serving.frameworks import FrameworkTools, GuardedTools, provided, require_tools
from toolcrib.tools import Tool

_log = logging.getLogger("toolcrib.adapters")
_DROPPED = (
    "the model is asked again while the call %s of `%s` has no result: LangGraph drops a call that waits for a person "
    "where the input is not a Command. Give their answers as agent.invoke(Command(resume=answers(...)), config)"
)


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
        # the graph was not resumed with the answer of a call that has no result
        ended = {message.tool_call_id for message in request.messages if isinstance(message, ToolMessage)}
        for message in request.messages:
            for call in message.tool_calls if isinstance(message, AIMessage) else ():
                if call["id"] not in ended:
                    _log.warning(_DROPPED, call["id"], call["name"])
        answers = cast("list[Any]", response.result) if isinstance(response, ModelResponse) else [response]
        for tools in self._ours.values():
            record_answers(tools, request.runtime, request.state, answers)
        return cast("Any", response)


class GuardMiddleware(UsageMiddleware):
    """Gates around every tool that an agent runs: `create_agent(..., middleware=[GuardMiddleware(policy)])`.

    Args:
        policy: The gates.
        tools: All tools that the agent may have: a name in the policy that none of them has is an error here. When
            None, it is one before the first call, where the tools that the agent was made with are known.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.

    Raises:
        ToolConstraintError: No tool has a name that the policy has.
    """

    @takes_policy
    def __init__(
        self, policy: GuardPolicy, *, tools: Iterable[Any] | None = None, suspended: SuspendedCallStore | None = None
    ) -> None:
        super().__init__([])
        self._tools = GuardedTools(ENTRY, policy, suspended)
        self._ours[0] = self._tools.none
        self._are_known = False
        if tools is not None:
            self._require_names(tools)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """Refuse a model with tools that its provider runs, unless the policy leaves them."""
        self._check(request)
        return super().wrap_model_call(request, handler)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """Guard a request to the model in an event loop."""
        self._check(request)
        return await super().awrap_model_call(request, handler)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Make a call through the gates, in a thread that runs no event loop."""
        self._require_ready(request, handler)
        if self._tools.leaves(request.tool_call["name"]):
            return handler(request)
        handling = _Handling(request, handler)
        call = self._call(handling)
        return handling.reply(call, call.outcome_now())

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Make a call through the gates."""
        self._require_ready(request, handler)
        if self._tools.leaves(request.tool_call["name"]):
            return await handler(request)
        handling = _Handling(request, handler)
        call = self._call(handling)
        return handling.reply(call, await call.outcome())

    # --- inside

    def _check(self, request: ModelRequest[Any]) -> None:
        tools = cast("Sequence[Any]", request.tools)
        _require_unguarded(tool for tool in tools if isinstance(tool, TheirTool) and not self._tools.leaves(tool.name))
        self._tools.check_names(map(_name_of, tools), are_all=self._are_known)
        for tool in tools:
            if isinstance(tool, dict):
                self._tools.refuse(_name_of(cast("dict[str, Any]", tool)), "a provider runs it itself")
        run_of_step(self._tools.none, request.runtime, request.state)

    def _require_ready(self, request: ToolCallRequest, handler: Callable[..., object]) -> None:
        """Check that no middleware is behind the guard, and, before the first call, the names of the policy."""
        # LangGraph's node makes the call, or a tool that `guard` made
        if not str(getattr(handler, "__module__", "")).startswith(("langgraph.", "toolcrib.")):
            raise TypeError(
                "GuardMiddleware is not the last of middleware=[...]: one behind it that wraps calls of tools could "
                "make another call than was approved, or make it again. Put the guard last, as in "
                "middleware=[..., guard]"
            )
        if not self._are_known:
            self._require_names(cast("Any", request).runtime.tools)

    def _require_names(self, tools: Iterable[Any]) -> None:
        self._tools.check_names(map(_name_of, tools), are_all=True)
        self._are_known = True

    def gated(self, name: str, tool: TheirTool | None) -> FrameworkTools:
        """Return a tool with the gates around it, made once; None is one that the agent does not know."""
        return self._tools.guard(name, tool, (_Unregistered(name) if tool is None else _Handled(tool)).tool)

    def _call(self, handling: _Handling) -> CallOfGraph:
        tool_call = handling.request.tool_call
        call = ToolCall(tool_call["name"], dict(tool_call["args"]), tool_call["id"] or new_call_id())
        runtime = cast("ToolRuntime[Any, Any] | None", cast("Any", handling.request).runtime)
        return CallOfGraph(self.gated(tool_call["name"], handling.request.tool), call, runtime, {_Handling: handling})


def _name_of(tool: Any) -> str:
    """Return the name of a tool of an agent: a tool, a function, or what describes one that a provider runs."""
    if isinstance(tool, dict):
        described = cast("dict[str, Any]", tool)
        return str(described.get("name") or described.get("type"))
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", tool))


def _require_unguarded(tools: Iterable[TheirTool]) -> None:
    """Raise TypeError for a tool with the gates of `guard`: two guards would ask about one call twice."""
    for tool in tools:
        if isinstance(tool, GatedTool) and tool.is_guarded:
            mend = "one GuardPolicy has them all; or name the tool in GuardPolicy(leave=[...])"
            raise TypeError(f"`{tool.name}` has the gates of a guard already: {mend}")


class _Handling:
    """One call of a guarded tool: its arguments and its outcome."""

    def __init__(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> None:
        self.request, self._handler = request, handler
        self._result: Any = None
        self._value: Any = None
        self._error: Exception | None = None

    async def make(self, arguments: dict[str, Any]) -> Any:
        """Run the tool with these arguments, and return its value."""
        edited = cast("Any", {**self.request.tool_call, "args": arguments})
        request = self.request.override(tool_call=edited)
        try:
            if iscoroutinefunction(self._handler):
                self._result = await self._handler(request)
            else:
                self._result = await asyncio.to_thread(self._handler, request)
            self._value = value_of(self._result)
        except RemoteToolError as error:
            self._error = error
            raise
        except ToolException as error:
            raise failed_tool(error) from error
        return self._value

    def reply(self, call: CallOfGraph, outcome: Outcome) -> ToolMessage | Command[Any]:
        """Return the message of the tool itself where no call was made of it, or one with the outcome of the call."""
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
        return await handling.make(arguments)


class _Unregistered:
    """A tool that the agent does not know, and that another middleware may run."""

    def __init__(self, name: str) -> None:
        self._name = name

    def tool(self) -> Tool[..., Any]:
        spec = ToolSpec.from_schema(self._make, {"type": "object", "additionalProperties": True}, name=self._name)
        spec.is_elsewhere = True
        return Tool(spec)

    async def _make(self, ctx: RunContext, **arguments: Any) -> Any:
        handling = provided(ctx, _Handling)
        if handling is None:
            raise ToolcribError(f"`{self._name}` is not a tool of the agent, and no middleware runs it here")
        return await handling.make(arguments)


@takes_policy
def guard(
    tools: Iterable[TheirTool], policy: GuardPolicy, *, suspended: SuspendedCallStore | None = None
) -> list[TheirTool]:
    """Return tools with the gates of a policy around each, for a `ToolNode` or a chain.

    A tool has what the graph injects into it, and a `Command` that it returns is the graph's. An agent of
    `create_agent` has a `GuardMiddleware` instead, which is also around tools that come later.

    Args:
        tools: The tools.
        policy: The gates.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.

    Raises:
        TypeError: An agent or a graph is given, to which nothing can be added; or a plain function is among them.
        ValueError: No tool has a name that the policy has.
    """
    if isinstance(tools, Pregel):
        raise TypeError(
            "an agent has its gates from the beginning: create_agent(..., middleware=[GuardMiddleware(policy)]); a "
            "graph of your own has them around the tools of its ToolNode: ToolNode(guard(tools, policy))"
        )
    policy = GuardPolicy.checked(policy)
    tools = require_tools("guard", tools, TheirTool)
    gates = GuardMiddleware(policy, tools=tools, suspended=suspended)
    _require_unguarded(tool for tool in tools if tool.name not in policy.leave)
    return [tool if tool.name in policy.leave else _guarded(tool, gates) for tool in tools]


def _guarded(tool: TheirTool, gates: GuardMiddleware) -> TheirTool:
    node = ToolNode([tool])

    async def call(toolcrib_runtime: ToolRuntime[Any, Any] | None = None, **arguments: Any) -> Any:
        async def run(request: ToolCallRequest) -> Any:
            if toolcrib_runtime is None:
                return await tool.ainvoke(cast("Any", request.tool_call))
            return _result_in(await node.ainvoke(_input_of(request, toolcrib_runtime), toolcrib_runtime.config))

        request = _request(tool, arguments, toolcrib_runtime)
        return _result_of(await gates.awrap_tool_call(request, run), toolcrib_runtime)

    def call_now(toolcrib_runtime: ToolRuntime[Any, Any] | None = None, **arguments: Any) -> Any:
        def run(request: ToolCallRequest) -> Any:
            if toolcrib_runtime is None:
                return tool.invoke(cast("Any", request.tool_call))
            return _result_in(node.invoke(_input_of(request, toolcrib_runtime), toolcrib_runtime.config))

        request = _request(tool, arguments, toolcrib_runtime)
        return _result_of(gates.wrap_tool_call(request, run), toolcrib_runtime)

    options = {"return_direct": tool.return_direct, "is_guarded": True}
    return gated_tool(gates.gated(tool.name, tool), tool.name, call, call_now, **options)


def _request(tool: TheirTool, arguments: dict[str, Any], runtime: ToolRuntime[Any, Any] | None) -> ToolCallRequest:
    call_id = None if runtime is None else runtime.tool_call_id
    call = TheirCall(type="tool_call", name=tool.name, args=arguments, id=call_id or "")
    return ToolCallRequest(call, tool, None if runtime is None else runtime.state, cast("Any", runtime))


def _input_of(request: ToolCallRequest, runtime: ToolRuntime[Any, Any]) -> Any:
    return {"__type": "tool_call_with_context", "tool_call": request.tool_call, "state": runtime.state}


def _result_in(value: Any) -> Any:
    """Return the result of a node of one call: a message or a command, or the tool's list of them."""
    found: list[Any] = []
    for part in cast("list[Any]", value) if isinstance(value, list) else [value]:
        found += cast("dict[str, list[Any]]", part)["messages"] if isinstance(part, dict) else [part]
    return found[0] if len(found) == 1 else found


def _result_of(reply: Any, runtime: ToolRuntime[Any, Any] | None) -> Any:
    """Return the result of the tool: its message in a graph, and its content elsewhere."""
    if runtime is not None or not isinstance(reply, ToolMessage):
        return reply
    if reply.status == "error":
        raise ToolException(reply.text)
    return reply.content

"""Tools of LangChain with the gates of a policy around each, for a `ToolNode` or a chain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import BaseTool as TheirTool
from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolNode, ToolRuntime
from langgraph.pregel import Pregel

from toolcrib.adapters.langchain._guard import GuardMiddleware
from toolcrib.adapters.langchain._tools import gated_tool
from toolcrib.approvals import SuspendedCallStore
from toolcrib.serving import GuardPolicy, takes_policy


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
        TypeError: An agent or a graph is given, to which nothing can be added any more.
        ValueError: No tool has a name that the policy has.
    """
    if isinstance(tools, Pregel):
        raise TypeError(
            "an agent has its gates from the beginning: create_agent(..., middleware=[GuardMiddleware(policy)]); a "
            "graph of your own has them around the tools of its ToolNode: ToolNode(guard(tools, policy))"
        )
    tools, gates = [*tools], GuardMiddleware(policy, suspended=suspended)
    policy.check_names(tool.name for tool in tools)
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

    return gated_tool(gates.gated(tool.name, tool), tool.name, call, call_now, return_direct=tool.return_direct)


def _request(tool: TheirTool, arguments: dict[str, Any], runtime: ToolRuntime[Any, Any] | None) -> ToolCallRequest:
    call_id = None if runtime is None else runtime.tool_call_id
    call = ToolCall(type="tool_call", name=tool.name, args=arguments, id=call_id or "")
    return ToolCallRequest(call, tool, None if runtime is None else runtime.state, cast("Any", runtime))


def _input_of(request: ToolCallRequest, runtime: ToolRuntime[Any, Any]) -> Any:
    return {"__type": "tool_call_with_context", "tool_call": request.tool_call, "state": runtime.state}


def _result_in(given: Any) -> Any:
    """Return what a node of one call gives: a message or a command, or the list of them that the tool returned."""
    found: list[Any] = []
    for part in cast("list[Any]", given) if isinstance(given, list) else [given]:
        found += cast("dict[str, list[Any]]", part)["messages"] if isinstance(part, dict) else [part]
    return found[0] if len(found) == 1 else found


def _result_of(reply: Any, runtime: ToolRuntime[Any, Any] | None) -> Any:
    """Return what the tool gives: its message in a graph, and its content elsewhere."""
    if runtime is not None or not isinstance(reply, ToolMessage):
        return reply
    if reply.status == "error":
        raise ToolException(reply.text)
    return reply.content

"""Tools of LangChain, made of a toolset; what their graphs ask a person, and the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any, cast

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command, Interrupt
from pydantic import Field, SkipValidation

from toolcrib.adapters.langchain._calls import BLOCKS, ENTRY, CallOfGraph
from toolcrib.approvals import SuspendedCallStore
from toolcrib.calls import ApprovalRequest, Completed, Outcome, ToolCall, new_call_id, render
from toolcrib.errors import ApprovalError, ToolcribError, explain_options
from toolcrib.pipeline import Run
from toolcrib.record import Sink
from toolcrib.serving.frameworks import (
    FrameworkRuns,
    FrameworkTools,
    Given,
    OpenFrameworkRun,
    answer_payload,
    answered,
    request_in,
    require_stopped,
)
from toolcrib.toolsets import ToolsetLike


@explain_options()
def as_tools(
    tools: ToolsetLike,
    *,
    run: Run | OpenFrameworkRun | None = None,
    sinks: Iterable[Sink] = (),
    suspended: SuspendedCallStore | None = None,
) -> list[BaseTool]:
    """Return the tools for `create_agent(tools=[...])`, a `ToolNode` or a chain; every call goes over the pipeline.

    A call that needs approval interrupts the graph, which needs a checkpointer: `approval_requests` says what a person
    is asked, and the graph goes on with `Command(resume=answers(...))`.

    Args:
        tools: The tools; members that list themselves have to be known: `async with toolset.open() as opened`.
        run: The run of the calls, or a function that opens one for what a user says, given the `ToolRuntime`; without
            it, the run of the tool that the graph runs in, or a new one. `deps` are the graph's context where the run
            has none, and the thread is the conversation.
        sinks: Where the events of calls go.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.
    """
    bridge = FrameworkTools(tools, FrameworkRuns(ENTRY, run, suspended), sinks)
    return [_tool(bridge, name) for name in bridge.entries]


class GatedTool(StructuredTool):
    """One tool as LangChain calls it.

    Attributes:
        tools: The tools that call it.
        is_guarded: Whether it is a tool of LangChain's, with the gates of `guard` around it.
    """

    tools: SkipValidation[FrameworkTools] = Field(exclude=True, repr=False)
    is_guarded: bool = Field(default=False, exclude=True, repr=False)


def _tool(bridge: FrameworkTools, name: str) -> BaseTool:
    async def call(toolcrib_runtime: ToolRuntime[Any, Any] | None = None, **arguments: Any) -> tuple[Any, Any]:
        call = _call(bridge, name, arguments, toolcrib_runtime)
        return _graph_result(call, await call.outcome())

    def call_now(toolcrib_runtime: ToolRuntime[Any, Any] | None = None, **arguments: Any) -> tuple[Any, Any]:
        call = _call(bridge, name, arguments, toolcrib_runtime)
        return _graph_result(call, call.outcome_now())

    return gated_tool(bridge, name, call, call_now, response_format="content_and_artifact")


def gated_tool(
    bridge: FrameworkTools, name: str, call: Callable[..., Any], call_now: Callable[..., Any], **options: Any
) -> BaseTool:
    """Return one tool as LangChain calls it.

    Args:
        call: Makes a call of it in an event loop, given its arguments and `toolcrib_runtime`.
        call_now: Does the same in a thread that runs no event loop.
    """
    for function in (call, call_now):  # LangChain keeps it from callbacks and traces by its type, and reads no text
        function.__annotations__["toolcrib_runtime"] = ToolRuntime
    entry = bridge.entries[name]
    return GatedTool(
        tools=bridge,
        name=name,
        description=entry.description,
        args_schema=entry.parameters,
        func=call_now,
        coroutine=call,
        handle_tool_error=True,
        **options,
    )


def _call(
    bridge: FrameworkTools, name: str, arguments: dict[str, Any], runtime: ToolRuntime[Any, Any] | None
) -> CallOfGraph:
    call_id = None if runtime is None else runtime.tool_call_id
    return CallOfGraph(bridge, ToolCall(name, arguments, call_id or new_call_id()), runtime)


def _graph_result(call: CallOfGraph, outcome: Outcome) -> tuple[Any, Any]:
    """Return the result for the graph: a command that the tool returned is the graph's.

    Raises:
        ToolcribError: Deliveries are around the tool, and a command would go round them.
    """
    value: Any = outcome.value if isinstance(outcome, Completed) else None
    commands = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not any(isinstance(command, Command) for command in commands):
        return result_of(outcome)
    if call.has_deliveries:
        raise ToolcribError(
            f"`{outcome.tool}` returns a Command, which no delivery can read; return its value alone, or leave out the "
            "deliveries"
        )
    return cast("Any", value), None


def result_of(outcome: Outcome) -> tuple[Any, Any]:
    """Return the content for the model, and the value as JSON shapes.

    Raises:
        ToolException: There is no result; its text says why, for the model.
    """
    if not isinstance(outcome, Completed):
        raise ToolException(outcome.text())
    shown = render(outcome, structured=True)
    if shown.is_error:
        raise ToolException(shown.text)
    return (BLOCKS.contents(shown) if shown.parts else shown.text), shown.value


def approval_requests(interrupts: Iterable[Interrupt] | None) -> list[ApprovalRequest]:
    """Return the requests in `result["__interrupt__"]` that a person must answer; other interrupts are left out.

    Raises:
        ApprovalError: LangChain's `HumanInTheLoopMiddleware` asks, and no gate of ours.
    """
    return [request for _, request in _requests_in(interrupts)]


def answers(interrupts: Iterable[Interrupt], *given: Given) -> dict[str, Any]:
    """Return answers as `Command(resume=...)` takes them, for some or all of the interrupts.

    Args:
        interrupts: The questions of the graph: `result["__interrupt__"]`.
        given: The answers of a person; or a request itself, whose answer the approval store has.

    Raises:
        ApprovalError: An answer is for nothing that is asked; or LangChain's `HumanInTheLoopMiddleware` asks, and no
            gate of ours.
    """
    return {id: answer_payload(answer) for id, answer in answered(_requests_in(interrupts), given)}


def _requests_in(interrupts: Iterable[Interrupt] | None) -> list[tuple[str, ApprovalRequest]]:
    require_stopped("interrupts are those of a result, result['__interrupt__']", interrupts, Iterable, NoneType)
    asked = list(interrupts or ())
    if any(not isinstance(interrupt, Interrupt) for interrupt in asked):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
        kind = type(interrupts).__name__
        raise TypeError(f"interrupts are those of a result, result['__interrupt__'], or of a state, and not a {kind}")
    found = [(interrupt.id, request_in(interrupt.value)) for interrupt in asked]
    ours = [(id, request) for id, request in found if request is not None]
    theirs = [] if ours else [name for interrupt in asked for name in _asked_by_langchain(interrupt.value)]
    if theirs:
        raise ApprovalError(
            theirs[0],
            "HumanInTheLoopMiddleware of LangChain asks, and takes Command(resume={'decisions': [...]}); for requests "
            f"and answers of Toolcrib, leave it out and name the tool in the guard: GuardPolicy(approve={theirs!r})",
        )
    return ours


def _asked_by_langchain(value: Any) -> list[str]:
    """Return the names of the tools that LangChain's own middleware asks about in an interrupt."""
    match value:
        case {"action_requests": [*_]}:
            return [str(action["name"]) for action in cast("dict[str, list[dict[str, Any]]]", value)["action_requests"]]
        case {"type": "tool_approval", "name": str() as name}:
            return [name]
        case _:
            return []

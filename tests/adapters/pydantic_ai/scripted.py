"""A model that makes the calls of a script, and what became of them."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.tools import DeferredToolRequests

from toolcrib.tools import Tool, ez_tool

Call = tuple[str, Any, str]


def scripted(*steps: Sequence[Call], seen: list[AgentInfo] | None = None) -> FunctionModel:
    """Return a model that makes the calls of one step after the other: name, arguments, id; and then is done."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if seen is not None:
            seen.append(info)
        made = sum(isinstance(message, ModelResponse) for message in messages)
        if made < len(steps):
            return ModelResponse(parts=[ToolCallPart(*call) for call in steps[made]])
        return ModelResponse(parts=[TextPart("done")])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        for number, part in enumerate((await answer(messages, info)).parts):
            if isinstance(part, ToolCallPart):
                yield {number: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)}
            elif isinstance(part, TextPart):
                yield part.content

    return FunctionModel(answer, stream_function=stream)


def agent(model: FunctionModel, *toolsets: Any, **options: Any) -> Agent[Any, Any]:
    """Return an agent whose run may stop for approval."""
    return Agent(model, toolsets=toolsets, output_type=[str, DeferredToolRequests], **options)


def results(messages: list[ModelMessage]) -> list[tuple[str, str, Any]]:
    """Return what the model was told of each call: its id, how it went, the content."""
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    return [(part.tool_call_id, part.outcome, part.content) for part in parts]


def refunding(ran: list[Any], **options: Any) -> Tool[..., Any]:
    """Return a tool that notes what it was called with, and needs approval."""

    @ez_tool(**{"requires_approval": True, **options})
    async def refund(order: int, cents: int = 100) -> str:
        """Give money back."""
        ran.append((order, cents))
        return f"refunded {cents} on {order}"

    return refund

"""An agent of Pydantic AI, which stores its messages and the calls that wait."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.crash.pay import open_run, stored_answers, tools
from tests.crash.points import CENTS, folder, kill_at, next_call, write
from toolcrib.adapters.pydantic_ai import answers, approval_requests, as_tools

DEFERRED = TypeAdapter(DeferredToolRequests)


async def _model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    parts = [
        part for message in messages for part in message.parts if isinstance(part, ToolReturnPart | RetryPromptPart)
    ]
    call = next_call([str(part.content) for part in parts])
    return ModelResponse(parts=[TextPart("the end") if call is None else ToolCallPart("pay", {"cents": CENTS}, call)])


async def run() -> str | None:
    """Run the agent."""
    file = folder() / "agent.json"
    toolset = as_tools(tools, run=open_run)
    agent: Agent[None, Any] = Agent(FunctionModel(_model), toolsets=[toolset], output_type=[str, DeferredToolRequests])
    if file.exists():
        messages, deferred = json.loads(file.read_text())
        waiting = DEFERRED.validate_json(deferred)
        given = await stored_answers(approval_requests(waiting))
        if given is None:
            return None
        kill_at("loaded")
        results = await answers(waiting, *given, toolset=toolset)
        history = ModelMessagesTypeAdapter.validate_json(messages)
        done = await agent.run(message_history=history, deferred_tool_results=results)
    else:
        done = await agent.run("Pay 5.")
    kill_at("unsaved")
    if not isinstance(done.output, DeferredToolRequests):
        return str(done.output)
    write(file, json.dumps([done.all_messages_json().decode(), DEFERRED.dump_json(done.output).decode()]))
    kill_at("saved")
    return None

"""The booking in an agent of Pydantic AI, whose messages are in a file."""

from __future__ import annotations

from typing import Any

import pydantic_ai
from pydantic import TypeAdapter
from pydantic_ai import (
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.frameworks.killed.desk import Desk, How, Resumed
from toolcrib.adapters.pydantic_ai import answers, approval_requests, as_tools
from toolcrib.calls import Denial, Grant

_REQUESTS, _RESULTS = TypeAdapter(DeferredToolRequests), TypeAdapter(DeferredToolResults)


async def _model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    was_called = any(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)
    return ModelResponse(parts=[TextPart("done") if was_called else ToolCallPart("book", {"city": "Oslo"}, "c1")])


class Agent(Desk):
    """The agent; its messages are kept beside the results with the yes, which the host gives to its run."""

    def agent(self) -> pydantic_ai.Agent[None, Any]:
        """Return the agent."""
        toolset = as_tools([self.book], run=self.run)
        return pydantic_ai.Agent(FunctionModel(_model), toolsets=[toolset], output_type=[str, DeferredToolRequests])

    async def ask(self) -> None:
        done = await self.agent().run("go")
        self.write("messages", done.all_messages_json().decode())
        self.write("requests", _REQUESTS.dump_json(done.output).decode())

    async def approve(self, how: How) -> None:
        asked = _REQUESTS.validate_json(self.read("requests"))
        if how == "plain":
            given = DeferredToolResults(approvals={"c1": True}, metadata=asked.metadata)
        else:
            [request] = approval_requests(asked)
            given = await answers(asked, self.yes(request, how))
        self.write("yes", _RESULTS.dump_json(given).decode())

    async def resume(self) -> Resumed:
        history = ModelMessagesTypeAdapter.validate_json(self.read("messages"))
        return await self._resumed(history, _RESULTS.validate_json(self.read("yes")))

    async def _resumed(self, history: list[ModelMessage], given: DeferredToolResults) -> Resumed:
        done = await self.agent().run(message_history=history, deferred_tool_results=given)
        if not isinstance(done.output, DeferredToolRequests):
            parts = [part for message in done.all_messages() for part in message.parts]
            return Resumed([part.content for part in parts if isinstance(part, ToolReturnPart)])
        asked, messages = done.output, done.all_messages()

        async def answer(given: Grant | Denial) -> Resumed:
            return await self._resumed(messages, await answers(asked, given))

        return Resumed([], approval_requests(asked), answer)

"""Way in that needs the extra `langchain`: an agent of LangChain, whose scripted model makes the call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast
from uuid import uuid4

from langchain import agents
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from tests.ways_in.framework import Conversation, FrameworkWay
from toolcrib.adapters.langchain import answers, approval_requests, as_tools
from toolcrib.approvals import MemorySuspendedCalls
from toolcrib.pipeline import Run
from toolcrib.testing._ways import Ability, RunWay, Way, WayRequest

__all__ = ["langchain_ways"]


class _Scripted(FakeMessagesListChatModel):
    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        """Return the model itself: it knows what it will call."""
        return self


class LangChainWay(FrameworkWay):
    """An agent of LangChain; answered in a new agent, from its checkpoint."""

    title = "langchain"
    abilities: ClassVar[frozenset[Ability]] = RunWay.abilities - {"json"}  # it makes no call of malformed arguments

    async def begin(self, request: WayRequest, run: Run, calls: MemorySuspendedCalls) -> Conversation:
        state = InMemorySaver(), {"configurable": {"thread_id": uuid4().hex}}
        made = request.new
        call = {"name": made.name, "args": request.json_arguments, "id": made.id, "type": "tool_call"}
        conversation = Conversation(calls, state)
        agent = _agent(request, run, conversation, [AIMessage("", tool_calls=[call]), AIMessage("done")])
        return await _conversed(agent, {"messages": "call it"}, conversation)

    async def go_on(self, request: WayRequest, run: Run, stopped: Conversation) -> Conversation:
        agent = _agent(request, run, stopped, [AIMessage("done")])
        if request.answer is None:
            return await _conversed(agent, None, stopped)
        waiting = (await agent.aget_state(stopped.state[1])).interrupts
        return await _conversed(agent, Command(resume=answers(waiting, request.answer)), stopped)


async def _conversed(agent: Any, given: Any, conversation: Conversation) -> Conversation:
    result: Any = await agent.ainvoke(given, conversation.state[1])
    requests = tuple(approval_requests(result.get("__interrupt__") or ()))
    shown = "\n".join(str(message.content) for message in result["messages"][2:])
    return replace(conversation, requests=requests, shown=shown)


def _agent(request: WayRequest, run: Run, conversation: Conversation, script: list[Any]) -> Any:
    tools = as_tools(request.toolset, run=lambda runtime: run, suspended=conversation.calls)
    create_agent: Any = cast("Any", agents).create_agent  # its type is partly unknown
    return create_agent(_Scripted(responses=script), tools=tools, checkpointer=conversation.state[0])


langchain_ways: tuple[Way, ...] = (LangChainWay(),)

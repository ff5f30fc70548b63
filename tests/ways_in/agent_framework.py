"""Way in that needs the extra `agent-framework`: an agent of Microsoft Agent Framework, whose scripted model calls."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, ClassVar

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
)

from tests.ways_in.framework import Conversation, FrameworkWay
from toolcrib.adapters.agent_framework import answers, approval_requests, as_tools
from toolcrib.approvals import MemorySuspendedCalls
from toolcrib.pipeline import Run
from toolcrib.testing._ways import Ability, RunWay, Way, WayRequest

__all__ = ["agent_framework_ways"]


class _Scripted(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    def __init__(self, steps: list[Content]) -> None:
        super().__init__()
        self._steps = steps

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse[Any]]:
        return self._say(self._steps.pop(0) if self._steps else Content.from_text("done"))

    async def _say(self, content: Content) -> ChatResponse[Any]:
        return ChatResponse(messages=[Message(role="assistant", contents=[content])])


class AgentFrameworkWay(FrameworkWay):
    """An agent of Microsoft Agent Framework; answered in a new agent, from the JSON of its session."""

    title = "agent_framework"
    abilities: ClassVar[frozenset[Ability]] = RunWay.abilities - {"json"}  # it makes an object of malformed text

    async def begin(self, request: WayRequest, run: Run, calls: MemorySuspendedCalls) -> Conversation:
        made = request.new
        script = [Content.from_function_call(made.id, made.name, arguments=request.json_arguments)]
        session = AgentSession(session_id=f"way {made.id}")
        return await _conversed(_agent(request, run, calls, script), session, "call it", calls)

    async def go_on(self, request: WayRequest, run: Run, stopped: Conversation) -> Conversation:
        kept, asked = stopped.state
        session = AgentSession.from_dict(kept)
        agent = _agent(request, run, stopped.calls, [])
        said: str | Message = "well?"
        if request.answer is not None:
            said = await answers(map(Content.from_dict, asked), request.answer, agent=agent, session=session)
        return await _conversed(agent, session, said, stopped.calls)


async def _conversed(
    agent: Agent[Any], session: AgentSession, said: str | Message, calls: MemorySuspendedCalls
) -> Conversation:
    response = await agent.run(said, session=session)
    asked = response.user_input_requests
    shown = "\n".join(map(_shown, _results(response.messages)))
    state = session.to_dict(), [content.to_dict() for content in asked]
    return Conversation(calls, state, tuple(approval_requests(asked)), shown)


def _agent(request: WayRequest, run: Run, calls: MemorySuspendedCalls, script: list[Content]) -> Agent[Any]:
    provider = as_tools(request.toolset, run=lambda session: run, suspended=calls)
    return Agent(_Scripted(script), context_providers=[provider])


def _results(messages: Sequence[Message]) -> list[Content]:
    return [content for message in messages for content in message.contents if content.type == "function_result"]


def _shown(content: Content) -> str:
    return "\n".join(part.text or part.uri or "" for part in content.items or ()) or str(content.result)


agent_framework_ways: tuple[Way, ...] = (AgentFrameworkWay(),)

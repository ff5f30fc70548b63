"""Way in that needs the extra `google-adk`: an agent of Google ADK, whose scripted model makes the call."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from copy import deepcopy
from typing import Any, ClassVar

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from pydantic import Field

from tests.ways_in.framework import Conversation, FrameworkWay, NotOffered
from toolcrib.adapters.google_adk import answers, approval_requests, as_tools
from toolcrib.approvals import MemorySuspendedCalls
from toolcrib.pipeline import Run
from toolcrib.testing._ways import Ability, RunWay, Way, WayRequest

__all__ = ["google_adk_ways"]

_APP, _USER = "way", "ann"


class _Scripted(BaseLlm):
    model: str = "scripted"
    steps: list[types.Part] = Field(default_factory=list[types.Part])

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Say what comes next, and that it is done after the last."""
        part = self.steps.pop(0) if self.steps else types.Part(text="done")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


class GoogleADKWay(FrameworkWay):
    """An agent of Google ADK; answered in a new agent, from its session."""

    title = "google_adk"
    abilities: ClassVar[frozenset[Ability]] = RunWay.abilities - {
        "json",
        "media",
    }  # its model sends values, and gets JSON

    async def begin(self, request: WayRequest, run: Run, calls: MemorySuspendedCalls) -> Conversation:
        sessions = InMemorySessionService()
        session = await sessions.create_session(app_name=_APP, user_id=_USER)
        made = request.new
        call = types.FunctionCall(name=made.name, args=request.json_arguments, id=made.id)
        script = [types.Part(function_call=call)]
        return await _conversed(request, run, calls, (sessions, session.id), script, _text("call it"))

    async def go_on(self, request: WayRequest, run: Run, stopped: Conversation) -> Conversation:
        sessions, session, events = stopped.state
        said = _text("well?") if request.answer is None else answers(events, request.answer)
        # ADK itself drops a second answer in one session
        return await _conversed(request, run, stopped.calls, (deepcopy(sessions), session), [], said)


async def _conversed(
    request: WayRequest,
    run: Run,
    calls: MemorySuspendedCalls,
    where: tuple[InMemorySessionService, str],
    script: list[types.Part],
    said: types.Content,
) -> Conversation:
    sessions, session = where
    tools: Any = as_tools(request.toolset, run=lambda context: run, suspended=calls)
    agent = LlmAgent(name="way", model=_Scripted(steps=script), tools=tools)
    runner = Runner(app_name=_APP, agent=agent, session_service=sessions)
    try:
        events = [each async for each in runner.run_async(user_id=_USER, session_id=session, new_message=said)]
    except ValueError as error:
        if "not found" not in str(error):
            raise
        raise NotOffered from error
    replies = [reply.response for event in events for reply in event.get_function_responses()]
    requests = tuple(approval_requests(events))
    return Conversation(calls, (deepcopy(sessions), session, events), requests, "\n".join(map(str, replies)), _USER)


def _text(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


google_adk_ways: tuple[Way, ...] = (GoogleADKWay(),)

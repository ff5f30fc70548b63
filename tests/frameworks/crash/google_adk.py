"""An agent of Google ADK, whose session is in a file."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.genai import types

from tests.crash.pay import open_run, stored_answers, tools
from tests.crash.points import CENTS, folder, kill_at, next_call, write
from tests.frameworks.scripted_adk import ScriptedLlm, saying
from toolcrib.adapters.google_adk import answers, approval_requests, as_tools


class _Model(ScriptedLlm):
    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        call = next_call([str(part.function_response.response) for part in parts if part.function_response])
        part = types.Part(text="the end")
        if call is not None:
            part = types.Part(function_call=types.FunctionCall(name="pay", args={"cents": CENTS}, id=call))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def run() -> str | None:
    """Run the agent."""
    sessions, file = InMemorySessionService(), folder() / "session.json"
    session = await sessions.create_session(app_name="bank", user_id="ann", session_id="s")
    stored: list[Any] = Session.model_validate_json(file.read_text()).events if file.exists() else []
    for event in stored:
        await sessions.append_event(session, event)
    agent = LlmAgent(name="cashier", model=_Model(), tools=[*as_tools(tools, run=open_run)])
    runner = Runner(app_name="bank", agent=agent, session_service=sessions)
    latest = _since_the_user(stored)
    given = await stored_answers(approval_requests(latest))
    if given is None:
        return None
    if file.exists():
        if said_in(stored[-1:]):
            return said_in(stored[-1:])
        kill_at("loaded")
    said: types.Content = answers(latest, *given) if given else saying("Go on." if stored else "Pay 5.")
    events = [event async for event in runner.run_async(user_id="ann", session_id="s", new_message=said)]
    kill_at("unsaved")
    found = await sessions.get_session(app_name="bank", user_id="ann", session_id="s")
    assert found is not None
    write(file, found.model_dump_json())
    kill_at("saved")
    return None if approval_requests(events) else said_in(events)


def _since_the_user(events: list[Any]) -> list[Any]:
    """Return the events after the last one of the user."""
    last = max((place for place, event in enumerate(events) if event.author == "user"), default=-1)
    return events[last + 1 :]


def said_in(events: list[Any]) -> str | None:
    """Return the last text that the model said."""
    texts = [part.text for event in events for part in (event.content.parts if event.content else None) or []]
    return next((text for text in reversed(texts) if text), None)

"""A booking in an agent of Google ADK, whose session is in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.genai import types

from tests.frameworks.resumed.booking import booking, run_in
from tests.frameworks.scripted_adk import ScriptedLlm, calling, saying
from toolcrib.adapters.google_adk import answers, approval_requests, as_tools


async def main(step: str, folder: Path) -> None:
    """Ask or answer."""
    sessions, file = InMemorySessionService(), folder / "state.json"
    session = await sessions.create_session(app_name="trips", user_id="ann", session_id="s")
    kept: list[Any] = []
    if step == "answer":
        kept = Session.model_validate_json(file.read_text()).events
        for event in kept:
            await sessions.append_event(session, event)
    script = [calling(("book", {"city": "Oslo"}))] if step == "ask" else []
    agent = LlmAgent(
        name="trips", model=ScriptedLlm(steps=script), tools=[*as_tools([booking(folder)], run=run_in(folder))]
    )
    runner = Runner(app_name="trips", agent=agent, session_service=sessions)
    if step == "answer":
        [request] = approval_requests(kept)
        said: types.Content = answers(kept, request.grant("ann"))
    else:
        said = saying("go")
    events = [event async for event in runner.run_async(user_id="ann", session_id="s", new_message=said)]
    if step == "ask":
        found = await sessions.get_session(app_name="trips", user_id="ann", session_id="s")
        assert found is not None
        file.write_text(found.model_dump_json())
        print([request.arguments for request in approval_requests(events)])
        return
    print([reply.response for event in events for reply in event.get_function_responses()])

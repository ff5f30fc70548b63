"""The booking in an agent of Google ADK, whose session is in a file."""

from __future__ import annotations

from typing import Any

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.genai import types

from tests.frameworks.killed.desk import Desk, How, Resumed
from tests.frameworks.scripted_adk import ScriptedLlm, calling, saying
from toolcrib.adapters.google_adk import answers, approval_requests, as_tools
from toolcrib.calls import Denial, Grant

_WHERE = {"user_id": "ann", "session_id": "s"}


class Agent(Desk):
    """The agent; its session is kept beside the message with the yes, which the host sends."""

    async def runner(self, events: list[Event], *turns: types.Content) -> Runner:
        """Return the runner of the agent, in a session with these events."""
        sessions = InMemorySessionService()
        session = await sessions.create_session(app_name="trips", **_WHERE)
        for event in events:
            await sessions.append_event(session, event)
        tools: list[Any] = [*as_tools([self.book], run=self.run)]
        agent = LlmAgent(name="trips", model=ScriptedLlm(steps=[*turns]), tools=tools)
        return Runner(app_name="trips", agent=agent, session_service=sessions)

    def events(self) -> list[Event]:
        """Return the events of the session at its question."""
        return Session.model_validate_json(self.read("session")).events

    async def ask(self) -> None:
        runner = await self.runner([], calling(("book", {"city": "Oslo"})))
        async for _ in runner.run_async(new_message=saying("go"), **_WHERE):
            pass
        found = await runner.session_service.get_session(app_name="trips", **_WHERE)
        assert found is not None
        self.write("session", found.model_dump_json())

    async def approve(self, how: How) -> None:
        events = self.events()
        [request] = approval_requests(events)
        said = answers(events, self.yes(request, how))
        if how == "plain":
            [part] = said.parts or []
            assert part.function_response is not None
            part.function_response.response = {"confirmed": True}
        self.write("yes", said.model_dump_json())

    async def resume(self) -> Resumed:
        return await self._resumed(
            await self.runner(self.events()), types.Content.model_validate_json(self.read("yes"))
        )

    async def _resumed(self, runner: Runner, said: types.Content) -> Resumed:
        events = [event async for event in runner.run_async(new_message=said, **_WHERE)]
        outputs = [reply.response for event in events for reply in event.get_function_responses()]

        async def answer(given: Grant | Denial) -> Resumed:
            return await self._resumed(runner, answers(events, given))

        return Resumed(outputs, approval_requests(events), answer)

"""The booking in an agent of Microsoft Agent Framework, whose session is in a file."""

from __future__ import annotations

import json
from typing import Any

import agent_framework
from agent_framework import AgentSession, Content, Message

from tests.frameworks.killed.desk import Desk, How, Resumed
from tests.frameworks.scripted_agent_framework import ScriptedClient, calling, outputs
from toolcrib.adapters.agent_framework import answers, approval_requests, as_tools
from toolcrib.calls import Denial, Grant


class Agent(Desk):
    """The agent; its session is kept beside the message with the yes, which the host sends."""

    def agent(self, *turns: list[Content]) -> agent_framework.Agent[Any]:
        """Return the agent, with what its model says."""
        return agent_framework.Agent(
            ScriptedClient(*turns), context_providers=[as_tools([self.book], run=lambda session: self.run())]
        )

    def stored(self) -> tuple[AgentSession, list[Content]]:
        """Return the session at its question, and the question."""
        session, contents = json.loads(self.read("session"))
        return AgentSession.from_dict(session), [Content.from_dict(each) for each in contents]

    async def ask(self) -> None:
        agent = self.agent(calling(("book", {"city": "Oslo"})))
        session = agent.create_session()
        asked = (await agent.run("go", session=session)).user_input_requests
        self.write("session", json.dumps([session.to_dict(), [content.to_dict() for content in asked]]))

    async def approve(self, how: How) -> None:
        session, asked = self.stored()
        if how == "plain":
            message = Message(role="user", contents=[asked[0].to_function_approval_response(True)])
        else:
            [request] = approval_requests(asked)
            message = await answers(asked, self.yes(request, how), agent=self.agent(), session=session)
        self.write("yes", json.dumps(message.to_dict()))

    async def resume(self) -> Resumed:
        message = Message.from_dict(json.loads(self.read("yes")))
        return await self._resumed(self.agent(), message, self.stored()[0])

    async def _resumed(self, agent: agent_framework.Agent[Any], message: Message, session: AgentSession) -> Resumed:
        response = await agent.run(message, session=session)
        asked = response.user_input_requests

        async def answer(given: Grant | Denial) -> Resumed:
            said = await answers(asked, given, agent=agent, session=session)
            return await self._resumed(agent, said, session)

        return Resumed(outputs(response), approval_requests(asked), answer)

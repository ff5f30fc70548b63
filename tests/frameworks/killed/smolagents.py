"""The booking in an agent of smolagents, whose memory is in a file."""

from __future__ import annotations

import asyncio
import json
import pickle

from smolagents import AgentError, ToolCallingAgent

from tests.frameworks.killed.desk import Desk, How, Resumed
from tests.frameworks.scripted_smolagents import QUIET, Script
from toolcrib.adapters.smolagents import answers, approval_requests, as_tools
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.serving.frameworks import Given, answer_of, answer_payload


class Agent(Desk):
    """The agent; the host keeps the answer that it gives."""

    def agent(self, script: Script) -> ToolCallingAgent:
        """Return the agent, with its tools."""
        agent = ToolCallingAgent([], script, **QUIET)
        as_tools([self.book], agent, run=self.run)
        return agent

    async def ask(self) -> None:
        agent = self.agent(Script([("book", {"city": "Oslo"})]))
        try:
            await asyncio.to_thread(agent.run, "go")
        except AgentError:
            (self.folder / "memory").write_bytes(pickle.dumps(agent.memory.steps))
        [request] = approval_requests(agent)
        self.write("request", json.dumps(request.to_dict()))

    async def approve(self, how: How) -> None:
        request = ApprovalRequest.from_dict(json.loads(self.read("request")))
        self.write("yes", json.dumps(answer_payload(self.yes(request, how))))

    async def resume(self) -> Resumed:
        agent = self.agent(Script())
        agent.memory.steps = pickle.loads((self.folder / "memory").read_bytes())
        request = ApprovalRequest.from_dict(json.loads(self.read("request")))
        return await self._resumed(agent, answer_of(request, json.loads(self.read("yes"))) or request)

    async def _resumed(self, agent: ToolCallingAgent, given: Given) -> Resumed:
        task = await asyncio.to_thread(answers, agent, given)

        async def answer(given: Grant | Denial) -> Resumed:
            return await self._resumed(agent, given)

        return Resumed([task], approval_requests(agent), answer)

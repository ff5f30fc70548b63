"""The booking in an agent of LangChain, whose checkpoints are in a file."""

from __future__ import annotations

import json
import pickle
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from tests.frameworks.killed.desk import Desk, How, Resumed
from tests.frameworks.scripted import Scripted
from toolcrib.adapters.langchain import answers, approval_requests, as_tools
from toolcrib.calls import Denial, Grant

_CONFIG: Any = {"configurable": {"thread_id": "t"}}


class Agent(Desk):
    """The agent; its checkpoints are kept beside the yes, which the host sends."""

    def agent(self, *turns: AIMessage) -> Any:
        """Return the agent, with what its model says."""
        self._saver = InMemorySaver()
        model = Scripted(responses=[*turns, AIMessage("done")])
        return create_agent(model, tools=as_tools([self.book], run=self.run), checkpointer=self._saver)

    def resumed_agent(self) -> Any:
        """Return the agent at its checkpoint."""
        agent = self.agent()
        storage, writes, blobs = pickle.loads((self.folder / "checkpoints").read_bytes())
        for thread, spaces in storage.items():
            for space, checkpoints in spaces.items():
                self._saver.storage[thread][space].update(checkpoints)
        for key, value in writes.items():
            self._saver.writes[key].update(value)
        self._saver.blobs.update(blobs)
        return agent

    async def ask(self) -> None:
        call = {"name": "book", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"}
        await self.agent(AIMessage("", tool_calls=[call])).ainvoke({"messages": "go"}, _CONFIG)
        saver = self._saver
        storage = {thread: {space: dict(each) for space, each in by.items()} for thread, by in saver.storage.items()}
        writes = {key: dict(value) for key, value in saver.writes.items()}
        (self.folder / "checkpoints").write_bytes(pickle.dumps((storage, writes, dict(saver.blobs))))

    async def approve(self, how: How) -> None:
        waiting = (await self.resumed_agent().aget_state(_CONFIG)).interrupts
        [request] = approval_requests(waiting)
        given = {"type": "approve"} if how == "plain" else answers(waiting, self.yes(request, how))
        self.write("yes", json.dumps(given))

    async def resume(self) -> Resumed:
        return await self._resumed(self.resumed_agent(), json.loads(self.read("yes")))

    async def _resumed(self, agent: Any, given: Any) -> Resumed:
        result = await agent.ainvoke(Command(resume=given), _CONFIG)
        outputs = [message.content for message in result["messages"] if message.type == "tool"]
        waiting = result.get("__interrupt__", [])

        async def answer(given: Grant | Denial) -> Resumed:
            return await self._resumed(agent, answers(waiting, given))

        return Resumed(outputs, approval_requests(waiting), answer)

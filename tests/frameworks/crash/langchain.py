"""An agent of LangChain, whose checkpoints are in a file."""

from __future__ import annotations

import pickle
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from tests.crash.pay import open_run, stored_answers, tools
from tests.crash.points import CENTS, folder, kill_at, next_call
from tests.frameworks.scripted import Scripted
from toolcrib.adapters.langchain import answers, approval_requests, as_tools

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class _Model(Scripted):
    def _generate(self, messages: list[BaseMessage], *about: Any, **more: Any) -> ChatResult:
        call = next_call([str(message.content) for message in messages if message.type == "tool"])
        calls: Any = [{"name": "pay", "args": {"cents": CENTS}, "id": call, "type": "tool_call"}]
        said = AIMessage("the end") if call is None else AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=said)])


async def run() -> str | None:
    """Run the agent."""
    file, saver = folder() / "checkpoints", InMemorySaver()
    if file.exists():
        storage, writes, blobs = pickle.loads(file.read_bytes())
        for thread, spaces in storage.items():
            for space, checkpoints in spaces.items():
                saver.storage[thread][space].update(checkpoints)
        for key, value in writes.items():
            saver.writes[key].update(value)
        saver.blobs.update(blobs)
    agent: Any = create_agent(_Model(responses=[]), tools=as_tools(tools, run=open_run), checkpointer=saver)
    waiting = (await agent.aget_state(CONFIG)).interrupts
    given = await stored_answers(approval_requests(waiting))
    if given is None:
        return None
    if file.exists():
        kill_at("loaded")
    result = await agent.ainvoke(Command(resume=answers(waiting, *given)) if given else {"messages": "Pay 5."}, CONFIG)
    kill_at("unsaved")
    storage = {thread: {space: dict(each) for space, each in by.items()} for thread, by in saver.storage.items()}
    file.write_bytes(
        pickle.dumps((storage, {key: dict(value) for key, value in saver.writes.items()}, dict(saver.blobs)))
    )
    kill_at("saved")
    return None if "__interrupt__" in result else str(result["messages"][-1].content)

"""A booking in an agent of LangChain, whose checkpoints are in a file."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from tests.frameworks.resumed.booking import booking, run_in
from tests.frameworks.scripted import Scripted
from toolcrib.adapters.langchain import answers, approval_requests, as_tools

CONFIG: Any = {"configurable": {"thread_id": "t"}}


async def main(step: str, folder: Path) -> None:
    """Ask or answer."""
    call = {"name": "book", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"}
    script = [*([AIMessage("", tool_calls=[call])] if step == "ask" else []), AIMessage("done")]
    saver, file = InMemorySaver(), folder / "state"
    if step == "answer":
        storage, writes, blobs = pickle.loads(file.read_bytes())
        for thread, spaces in storage.items():
            for space, checkpoints in spaces.items():
                saver.storage[thread][space].update(checkpoints)
        for key, value in writes.items():
            saver.writes[key].update(value)
        saver.blobs.update(blobs)
    tools = as_tools([booking(folder)], run=run_in(folder))
    agent: Any = create_agent(Scripted(responses=script), tools=tools, checkpointer=saver)
    if step == "ask":
        result = await agent.ainvoke({"messages": "go"}, CONFIG)
        storage = {thread: {space: dict(each) for space, each in by.items()} for thread, by in saver.storage.items()}
        writes = {key: dict(value) for key, value in saver.writes.items()}
        file.write_bytes(pickle.dumps((storage, writes, dict(saver.blobs))))
        print([request.arguments for request in approval_requests(result["__interrupt__"])])
        return
    waiting = (await agent.aget_state(CONFIG)).interrupts
    [request] = approval_requests(waiting)
    result = await agent.ainvoke(Command(resume=answers(waiting, request.grant("ann"))), CONFIG)
    print([message.content for message in result["messages"] if message.type == "tool"])

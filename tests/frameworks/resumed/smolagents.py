"""A booking in an agent of smolagents, whose memory and requests are in files."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

from smolagents import AgentError, ToolCallingAgent

from tests.frameworks.resumed.booking import booking, run_in
from tests.frameworks.scripted_smolagents import QUIET, Script
from toolcrib.adapters.smolagents import answers, approval_requests, as_tools
from toolcrib.calls import ApprovalRequest
from toolcrib.errors import ApprovalError


def main(step: str, folder: Path) -> None:
    """Ask or answer."""
    agent = ToolCallingAgent([], Script(*([[("book", {"city": "Oslo"})]] if step == "ask" else [])), **QUIET)
    as_tools([booking(folder)], agent, run=run_in(folder))
    memory, asked = folder / "state", folder / "state.json"
    if step == "ask":
        try:
            agent.run("go")
        except AgentError:
            memory.write_bytes(pickle.dumps(agent.memory.steps))
            asked.write_text(json.dumps([request.to_dict() for request in approval_requests(agent)]))
            print([request.arguments for request in approval_requests(agent)])
        return
    agent.memory.steps = pickle.loads(memory.read_bytes())
    [request] = map(ApprovalRequest.from_dict, json.loads(asked.read_text()))
    try:
        task = answers(agent, request.grant("ann"))
    except ApprovalError as error:
        print(f"ApprovalError: {error}")
        return
    print(task, agent.run(task, reset=False), len(agent.memory.steps))

"""An agent of smolagents, whose memory and requests are in a file."""

from __future__ import annotations

import asyncio
import json
import pickle
from typing import Any

from smolagents import AgentError, ToolCallingAgent
from smolagents.memory import ActionStep

from tests.crash.pay import open_run, stored_answers, tools
from tests.crash.points import CENTS, folder, kill_at, next_call
from tests.frameworks.scripted_smolagents import QUIET, Script
from toolcrib.adapters.smolagents import answers, approval_requests, as_tools
from toolcrib.calls import ApprovalRequest

NEEDLE = "pay(cents=5): "  # what the task of a call that was answered has before its result


class _Model(Script):
    agent: Any = None

    def generate(self, messages: Any, *about: Any, **more: Any) -> Any:
        texts = [step.observations or "" for step in self.agent.memory.steps if isinstance(step, ActionStep)]
        texts = [text for text in texts if text and "suspended" not in text]
        tasks = [step.task for step in self.agent.memory.steps if hasattr(step, "task") and NEEDLE in step.task]
        said = [*texts, *tasks]
        call = None if "is suspended until" in "".join(said[-1:]) else next_call(said)  # else it waits, too
        self._turns = [[("final_answer", {"answer": "the end"}) if call is None else ("pay", {"cents": CENTS})]]
        return super().generate(messages, *about, **more)


def run() -> str | None:
    """Run the agent."""
    file, model = folder() / "memory", _Model()
    model.agent = agent = ToolCallingAgent([], model, **QUIET)
    as_tools(tools, agent, run=open_run)
    task, more = "Pay 5.", dict[str, Any]()
    try:
        if file.exists():
            steps, asked = pickle.loads(file.read_bytes())
            agent.memory.steps = steps
            given = asyncio.run(stored_answers(map(ApprovalRequest.from_dict, json.loads(asked))))
            if given is None:
                return None
            kill_at("loaded")
            task, more = answers(agent, *given), {"reset": False}
            kill_at("answered")
        result = agent.run(task, **more)
    except AgentError:
        result = None
    kill_at("unsaved")
    asked = [request.to_dict() for request in approval_requests(agent)]
    file.write_bytes(pickle.dumps((agent.memory.steps, json.dumps(asked))))
    kill_at("saved")
    return None if result is None or asked else str(result)

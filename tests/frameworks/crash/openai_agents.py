"""An agent of the OpenAI Agents SDK, which stores its state."""

from __future__ import annotations

import os
from typing import Any

from agents import Agent, ModelResponse, Runner, RunState
from agents.testing import ScriptedModel, assistant_message, function_call

from tests.crash.pay import open_run, stored_answers, tools
from tests.crash.points import CENTS, folder, kill_at, next_call, write
from toolcrib.adapters.openai_agents import answers, approval_requests, as_tools

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"


class _Model(ScriptedModel):
    async def get_response(self, system_instructions: Any, input: Any, *about: Any, **more: Any) -> ModelResponse:
        items = [] if isinstance(input, str) else [item for item in input if item.get("type") == "function_call_output"]
        call = next_call([str(item["output"]) for item in items])
        said = assistant_message("the end") if call is None else function_call("pay", {"cents": CENTS}, call_id=call)
        self.enqueue([said])
        return await super().get_response(system_instructions, input, *about, **more)


async def run() -> str | None:
    """Run the agent."""
    file = folder() / "state.json"
    agent = Agent(name="cashier", tools=[*as_tools(tools, run=open_run)], model=_Model())
    if file.exists():
        state = await RunState.from_string(agent, file.read_text())
        given = await stored_answers(await approval_requests(state))
        if given is None:
            return None
        kill_at("loaded")
        await answers(state, *given)
        result = await Runner.run(agent, state)
    else:
        result = await Runner.run(agent, "Pay 5.")
    kill_at("unsaved")
    if not result.interruptions:
        return str(result.final_output)
    write(file, result.to_state().to_string())
    kill_at("saved")
    return None

"""A booking in an agent of the OpenAI Agents SDK."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents import Agent, Runner, RunState
from agents.testing import ScriptedModel, assistant_message, function_call

from tests.frameworks.resumed.booking import booking, run_in
from toolcrib.adapters.openai_agents import answers, approval_requests, as_tools


async def main(step: str, folder: Path) -> None:
    """Ask or answer."""
    call: list[Any] = [[function_call("book", {"city": "Oslo"}, call_id="c1")]] if step == "ask" else []
    model = ScriptedModel([*call, [assistant_message("done")]])
    agent = Agent(name="trips", tools=[*as_tools([booking(folder)], run=run_in(folder))], model=model)
    if step == "ask":
        state = (await Runner.run(agent, "go")).to_state()
        (folder / "state.json").write_text(state.to_string())
        print([request.arguments for request in await approval_requests(state)])
        return
    state = await RunState.from_string(agent, (folder / "state.json").read_text())
    open_requests = await approval_requests(state)  # none where the call has had its answer
    await answers(state, *(request.grant("ann") for request in open_requests))
    result = await Runner.run(agent, state)
    print([item.output for item in result.new_items if item.type == "tool_call_output_item"])

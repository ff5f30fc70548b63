"""The booking in an agent of the OpenAI Agents SDK."""

from __future__ import annotations

from typing import Any

import agents
from agents import Runner, RunState
from agents.testing import ScriptedModel, assistant_message, function_call

from tests.frameworks.killed.desk import Desk, How, Resumed
from toolcrib.adapters.openai_agents import answers, approval_requests, as_tools, guard
from toolcrib.calls import Denial, Grant
from toolcrib.serving import GuardPolicy


class Agent(Desk):
    """The agent; its state is kept with the yes in it."""

    is_guarded = False

    def agent(self, *turns: Any) -> agents.Agent[Any]:
        """Return the agent, with what its model says: its tool has gates in the first place, or is guarded."""
        model = ScriptedModel([*turns, [assistant_message("done")]])
        if not self.is_guarded:
            return agents.Agent(name="trips", tools=[*as_tools([self.book], run=self.run)], model=model)
        own = agents.function_tool(self.book.fn, name_override="book")
        agent = agents.Agent(name="trips", tools=[own], model=model)
        return guard(agent, GuardPolicy(approve=["book"], run=self.run))

    async def ask(self) -> None:
        result = await Runner.run(self.agent([function_call("book", {"city": "Oslo"}, call_id="c1")]), "go")
        self.write("state", result.to_state().to_string())

    async def approve(self, how: How) -> None:
        state = await RunState.from_string(self.agent(), self.read("state"))
        if how == "plain":
            state.approve(state.get_interruptions()[0])
        else:
            await answers(state, *[self.yes(request, how) for request in await approval_requests(state)])
        self.write("state", state.to_string())

    async def resume(self) -> Resumed:
        agent = self.agent()
        return await self._resumed(agent, await RunState.from_string(agent, self.read("state")))

    async def _resumed(self, agent: agents.Agent[Any], state: RunState[Any, Any]) -> Resumed:
        result = await Runner.run(agent, state)
        outputs = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
        if not result.interruptions:
            return Resumed(outputs)
        after = result.to_state()
        asked = await approval_requests(after)
        if not asked:  # the store has the answers
            return await self._resumed(agent, await answers(after))

        async def answer(given: Grant | Denial) -> Resumed:
            return await self._resumed(agent, await answers(after, given))

        return Resumed(outputs, asked, answer)

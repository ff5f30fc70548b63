"""Answers to the interruptions of an agent of the OpenAI Agents SDK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from agents import RunContextWrapper, RunState
from agents.items import ToolApprovalItem
from openai.types.responses import ResponseFunctionToolCall

from toolcrib.adapters.openai_agents._tools import Invocation, is_object, normal
from toolcrib.calls import ApprovalRequest, Denial, Grant, Rejected, ToolCall
from toolcrib.serving.frameworks import AskedCall, Given, answered, is_to_earlier, unknown_call


async def approval_requests(state: RunState[Any, Any]) -> list[ApprovalRequest]:
    """Return the requests that a person must answer, in the order the model asked.

    What the approval store has an answer to, and interruptions of tools without gates of ours, are left out.

    Raises:
        ApprovalError: A call waits that another process asked about, and no approval store knows it here.
    """
    return [interruption.asked.request for interruption in await _interruptions(state) if interruption.asked.is_open]


async def answers(state: RunState[Any, Any], *given: Given) -> RunState[Any, Any]:
    """Return the state with the answers of people, which the agent goes on with: `Runner.run(agent, state)`.

    Those are the answers that are given, and those that the approval store has. `state.approve` and `state.reject` do
    for a plain yes or no to a call that is not in doubt, too. A grant says who gave it, and may hold for other
    arguments or for later calls; a denial that is given here is in the record. A grant for a request that another one
    has replaced, as the tool has changed or the call is in doubt, leaves the call suspended.

    Args:
        state: The state of the run that stopped, which is changed.
        given: The answers of a person. A request whose answer the approval store has may be among them.

    Raises:
        ApprovalError: An answer is for nothing that is asked, a request was answered otherwise before, or a call waits
            that another process asked about, and no approval store knows it here.
    """
    interruptions = await _interruptions(state)
    waiting = [(interruption, interruption.asked.request) for interruption in interruptions]
    for each in given:
        is_answer = isinstance(each, Grant | Denial)
        earlier = [(item, each) for item, request in waiting if is_answer and is_to_earlier(each, request)]
        for item, answer in earlier or [*answered(waiting, [each])]:
            if not isinstance(answer, ApprovalRequest):
                item.decide(state, await item.take(answer))
    for item in interruptions:
        if not item.asked.is_open and not item.is_decided:
            item.decide(state, await item.stored())
    return state


@dataclass
class _Interruption:
    """A call of ours that a run stopped at.

    Attributes:
        context: The context with which the state is resumed.
    """

    item: ToolApprovalItem
    invocation: Invocation
    asked: AskedCall
    context: RunContextWrapper[Any]
    is_decided: bool = False

    async def take(self, answer: Grant | Denial) -> bool | str:
        """Keep an answer; return whether the call goes on, or the text for the model of one that is denied."""
        run = self.invocation.run_of(self.context, self.asked.request.run_id)
        return await self.invocation.tools.take_answer(self.asked.suspended, answer, run)

    async def stored(self) -> bool | str:
        """Return the same for what the store has."""
        outcome = self.asked.outcome
        if isinstance(self.asked.stored, Denial):
            return await self.take(self.asked.stored)
        return outcome.text() if isinstance(outcome, Rejected) else True

    def decide(self, state: RunState[Any, Any], verdict: bool | str) -> None:
        """Put the answer into the state, where no other one is needed."""
        if isinstance(verdict, str):
            state.reject(self.item, rejection_message=verdict)
        elif verdict:
            state.approve(self.item)
        self.is_decided = True


async def _interruptions(state: RunState[Any, Any]) -> list[_Interruption]:
    if not isinstance(cast("object", state), RunState):
        raise TypeError(f"it takes the state of a run that stopped, `result.to_state()`, and not {state!r:.80}")
    found: list[_Interruption] = []
    context = _context(state)
    for item in state.get_interruptions():
        invocation = await _invocation(item, context)
        raw = item.raw_item
        if invocation is None or not isinstance(raw, ResponseFunctionToolCall) or not is_object(raw.arguments):
            continue
        call, run = ToolCall(invocation.name, normal(raw.arguments), raw.call_id), invocation.run_of(context)
        asked = await invocation.tools.find_asked(call, run)
        if asked is None:
            raise unknown_call(call.name, run)
        found.append(_Interruption(item, invocation, asked, context))
    return found


async def _invocation(item: ToolApprovalItem, context: RunContextWrapper[Any]) -> Invocation | None:
    """Return the tool of ours that an interruption is of."""
    known = next((tool for tool in item.agent.tools if tool.name == item.tool_name), None)
    if known is None:
        found = await item.agent.get_mcp_tools(context)
        known = next((tool for tool in found if tool.name == item.tool_name), None)
    return Invocation.of(known)


def _context(state: RunState[Any, Any]) -> RunContextWrapper[Any]:
    context = state._context  # pyright: ignore[reportPrivateUsage] -- what the state is resumed with; there is no other way to it
    return RunContextWrapper(None) if context is None else context

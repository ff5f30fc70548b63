"""Answers to the interruptions of an agent of the OpenAI Agents SDK."""

from __future__ import annotations

from typing import Any

from agents import RunContextWrapper, RunState
from agents.items import ToolApprovalItem
from openai.types.responses import ResponseFunctionToolCall

from toolcrib.adapters.openai_agents._tools import Invocation, normal
from toolcrib.approvals import meant_by
from toolcrib.calls import ApprovalRequest, Denial, Grant, Suspended, ToolCall

__all__ = ["answers", "approval_requests"]


async def approval_requests(state: RunState[Any, Any]) -> list[ApprovalRequest]:
    """Return what a person has to decide, in the order the model asked; interruptions of other tools are left out."""
    return [suspended.request for _, _, suspended in await _waiting(state)]


async def answers(state: RunState[Any, Any], *given: Grant | Denial) -> RunState[Any, Any]:
    """Return the state with the answers of a person, which the agent goes on with: `Runner.run(agent, state)`.

    `state.approve` and `state.reject` do for a plain yes or no, too. A grant says who gave it, and may hold for other
    arguments or for later calls; a denial that is given here is in the record. A grant for a request that another one
    has replaced, as the tool has changed or the call is in doubt, leaves the call suspended.

    Args:
        state: The state of the run that stopped, which is changed.
        given: The answers of a person.

    Raises:
        ApprovalError: An answer is for nothing that is asked, or a request was answered before.
    """
    waiting = [(one, one[2].request) for one in await _waiting(state)]
    for each in given:
        before = each.request_id
        replaced = [one for one, request in waiting if before and before in (request.replaces, request.follows)]
        for item, invocation, suspended in replaced or meant_by(each, waiting):
            if replaced and isinstance(each, Grant):
                continue
            run = invocation.run_of(_context(state), suspended.request.run_id)
            answer = suspended.request.deny(message=each.message, by=each.by) if replaced else each
            text = await invocation.tools.take_answer(suspended, answer, run)
            if text is None:
                state.approve(item)
            else:
                state.reject(item, rejection_message=text)
    return state


async def _waiting(state: RunState[Any, Any]) -> list[tuple[ToolApprovalItem, Invocation, Suspended]]:
    found: list[tuple[ToolApprovalItem, Invocation, Suspended]] = []
    for item in state.get_interruptions():
        invocation = await _invocation(item, _context(state))
        raw = item.raw_item
        if invocation is None or not isinstance(raw, ResponseFunctionToolCall):
            continue
        call = ToolCall(invocation.name, normal(raw.arguments), raw.call_id)
        suspended = await invocation.tools.find_current(call, invocation.run_of(_context(state)))
        if suspended is not None:
            found.append((item, invocation, suspended))
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

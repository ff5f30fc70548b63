"""Suspended calls of an agent as approval requests, and answers as the task that it goes on with."""

from __future__ import annotations

import asyncio
import copyreg
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, cast

from smolagents import AgentError, MultiStepAgent, utils

from toolcrib.adapters.smolagents._calls import ANSWERED, AgentCalls, managed_by, tools_of
from toolcrib.adapters.smolagents._tools import AgentTool
from toolcrib.approvals import is_answer_to
from toolcrib.calls import ApprovalRequest
from toolcrib.errors import ApprovalError
from toolcrib.serving.frameworks import Given, require_given, require_stopped, unknown_call


def approval_requests(agent: MultiStepAgent) -> list[ApprovalRequest]:
    """Return the requests that a person must answer before an agent goes on, of its calls in this process."""
    require_stopped("it takes the agent that stopped", agent, MultiStepAgent)
    return [request for calls in _calls_of(agent) for request in calls.waiting.values()]


def answers(agent: MultiStepAgent, *given: Given) -> str:
    """Make the calls that are answered, and return their outcomes as a task: `agent.run(task, reset=False)`.

    Args:
        agent: The agent that made them, or one with the same tools in another process.
        given: Grants and denials; or a request whose answer the approval store has. Without any, all that wait.

    Raises:
        ApprovalError: No call of the agent waits for an answer, or its request was answered before.
    """
    lines: list[str] = []
    waiting = approval_requests(agent)
    for answer in given or waiting:
        require_given(answer)
        tools = _tools_for(agent, answer)
        for tool in tools:
            text = tool.calls.loop.run(_take_up(tool, answer))
            if text is not None:
                lines.append(text)
                break
        else:
            raise _unknown(answer, tools)
    return "\n".join([ANSWERED, *lines, "Go on with the task."])


async def run_agent(agent: MultiStepAgent, task: str = "", *, given: Iterable[Given] = (), **options: Any) -> Any:
    """Run an agent in a thread, and the calls of its tools in this event loop; return what `agent.run` returns.

    Cancelling interrupts the agent, and stops the calls that run.

    Args:
        task: The task; with answers, a text that the agent gets after them.
        given: Answers to suspended calls, as `answers` takes them: the agent continues with their outcomes.
        options: More for `agent.run`, but for `stream`, whose steps are taken in the caller's own thread.

    Raises:
        AgentError: The agent was interrupted: a person has to answer `approval_requests(agent)`.
        ApprovalError: No call of the agent waits for an answer.
    """
    if options.get("stream"):
        raise TypeError("run_agent has no stream: iterate over `agent.run(task, stream=True)` in a thread of your own")
    answered, theirs = tuple(given), cast("Any", agent)

    def work() -> Any:
        if not answered:
            return theirs.run(task, **options)
        return theirs.run("\n".join(filter(None, [answers(agent, *answered), task])), **{"reset": False, **options})

    with ExitStack() as stack:
        for calls in _calls_of(agent):
            stack.enter_context(calls.loop.hosted(asyncio.get_running_loop()))
        try:
            return await asyncio.to_thread(work)
        except asyncio.CancelledError:
            agent.interrupt()
            for calls in _calls_of(agent):
                await calls.cancel()
            raise


async def _take_up(tool: AgentTool, answered: Given) -> str | None:
    """Make a call that is answered, and return its outcome; None for a call that these tools do not know."""
    run = tool.calls.run_of(tool.tools)
    tool.calls.count_steps(tool.tools, run)
    known = next((request for request in tool.calls.waiting.values() if _is_for(answered, request)), None)
    request_id = _request_id(answered) if known is None else known.id
    answer = None if isinstance(answered, ApprovalRequest) else answered
    found = await tool.tools.take_up(request_id, answer, run)
    if found is None:
        return None
    request, outcome = found
    tool.calls.settle(request, outcome)
    arguments = ", ".join(f"{name}={value!r}" for name, value in request.arguments.items())
    return f"{request.tool}({arguments}): {tool.calls.result_text(outcome)}"


def _calls_of(agent: MultiStepAgent) -> Iterator[AgentCalls]:
    return iter({id(tool.calls): tool.calls for tool in _tools_of(agent)}.values())


def _tools_for(agent: MultiStepAgent, answer: Given) -> list[AgentTool]:
    """Return the tools that a call may be of: first those that know of it."""
    named = [tool for tool in _tools_of(agent) if tool.name == answer.tool]
    return sorted(named, key=lambda tool: not any(_is_for(answer, request) for request in tool.calls.waiting.values()))


def _tools_of(agent: MultiStepAgent) -> Iterator[AgentTool]:
    yield from (tool for tool in tools_of(agent).values() if isinstance(tool, AgentTool))
    for managed in managed_by(agent):
        yield from _tools_of(managed)


def _is_for(answer: Given, request: ApprovalRequest) -> bool:
    return answer.id == request.id if isinstance(answer, ApprovalRequest) else is_answer_to(answer, request)


def _request_id(answer: Given) -> str:
    return answer.id if isinstance(answer, ApprovalRequest) else answer.request_id or ""


def _unknown(answer: Given, tools: list[AgentTool]) -> ApprovalError:
    if not tools:
        return ApprovalError(answer.tool, "the agent has no such tool with gates: give `as_tools` or `guard` the agent")
    return unknown_call(answer.tool, tools[0].calls.run_of(tools[0].tools), _request_id(answer))


# --- memory that is kept for another process


def _reduced(error: AgentError) -> tuple[Any, ...]:
    """Return how to make an error of a step again: pickle would call its class without the logger that it needs."""
    return type(error).__new__, (type(error), *error.args), vars(error)


for _kind in vars(utils).values():
    if isinstance(_kind, type) and issubclass(_kind, AgentError):
        copyreg.pickle(_kind, _reduced)

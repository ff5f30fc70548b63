"""Answers to the deferred calls of a run, as Pydantic AI takes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from pydantic_ai.agent import AbstractAgent
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied

from toolcrib.adapters.pydantic_ai._deferred_calls import Waiting
from toolcrib.adapters.pydantic_ai._guard import GuardedAgent
from toolcrib.adapters.pydantic_ai._toolset import ToolcribToolset
from toolcrib.calls import ApprovalRequest, Denial, Failed, Grant
from toolcrib.errors import ApprovalError, explain_options
from toolcrib.pipeline import Channel, Pipeline, Run
from toolcrib.serving.frameworks import Given, answered


def approval_requests(requests: DeferredToolRequests) -> list[ApprovalRequest]:
    """Return the requests that a person must answer, in the order the model asked; other toolsets' are left out."""
    return [waiting.request for waiting in _waiting(requests).values()]


@explain_options()
async def answers(
    requests: DeferredToolRequests,
    *given: Given,
    toolset: ToolcribToolset[Any] | AbstractAgent[Any, Any] | None = None,
    run: Run | None = None,
) -> DeferredToolResults:
    """Return answers as the results that the next run of the agent takes.

    Results of calls that are not ours are added with `results.update(...)`.

    Args:
        requests: The output of the run that stopped.
        given: The answers of a person; or a request itself, whose answer the approval store of the next run has.
        toolset: The result of `as_tools` or `guard`, or the agent that has it alone. Pydantic AI does not pass a
            denial on to a toolset, so it is recorded here.
        run: The run that denials are recorded in: its sinks, its store.

    Raises:
        ApprovalError: An answer is for nothing that is asked.
        ValueError: There are denials and no toolset to record them at, or the agent has several.
    """
    waiting = _waiting(requests)
    asked = [(call_id, suspended.request) for call_id, suspended in waiting.items()]
    results = DeferredToolResults()
    for call_id, answer in answered(asked, given):
        if isinstance(answer, ApprovalRequest):
            results.approvals[call_id] = ToolApproved()
            results.metadata[call_id] = replace(waiting[call_id], is_stored=True).metadata()
            continue
        if isinstance(answer, Grant):
            override = None if answer.override_args is None else dict(answer.override_args)
            results.approvals[call_id] = ToolApproved(override_args=override)
            results.metadata[call_id] = replace(waiting[call_id], grant=answer).metadata()
        else:
            its_run = run or Run(channel=Channel(entry="pydantic_ai"))
            await _record(waiting[call_id], answer, _toolset_of(toolset), its_run)
            results.approvals[call_id] = ToolDenied(answer.message or f"`{answer.tool}` was denied")
        results.answered_by[call_id] = answer.by
    return results


def _waiting(requests: DeferredToolRequests) -> dict[str, Waiting]:
    if not isinstance(cast("object", requests), DeferredToolRequests):
        what = type(requests).__name__
        raise TypeError(f"the requests are the `output` of a run that stopped, DeferredToolRequests, and not a {what}")
    found = {call.tool_call_id: Waiting.of(requests.metadata.get(call.tool_call_id)) for call in requests.approvals}
    return {call_id: waiting for call_id, waiting in found.items() if waiting is not None}


def _toolset_of(toolset: ToolcribToolset[Any] | AbstractAgent[Any, Any] | None) -> ToolcribToolset[Any]:
    """Return the toolset that denials are recorded at."""
    if isinstance(toolset, ToolcribToolset):
        return toolset
    if isinstance(toolset, GuardedAgent):
        return toolset.guarded
    ours = [] if toolset is None else [member for member in toolset.toolsets if isinstance(member, ToolcribToolset)]
    if len(ours) != 1:
        mend = "answers(..., toolset=what as_tools returned), or the agent when it has one such toolset"
        raise ValueError(f"a denial is recorded at the toolset: {mend}")
    return ours[0]


async def _record(waiting: Waiting, denial: Denial, toolset: ToolcribToolset[Any], run: Run) -> None:
    """End the suspended call with the denial in the pipeline: it is in the record, and no grant opens it any more."""
    if run.principal is None:
        run = run.view(principal=waiting.request.principal)
    async with toolset.tools.open(run.context(), hide_unavailable=False) as opened:
        outcome = await Pipeline(opened, sinks=toolset.sinks).run(waiting.suspended, run, grant=denial)
    if isinstance(outcome, Failed) and isinstance(outcome.exception, ApprovalError):
        raise outcome.exception

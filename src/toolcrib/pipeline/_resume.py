"""Taking up a suspended call: its state restored, availability and approval asked again, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, cast

from toolcrib.calls import DecisionNote, Denial, Failed, Grant, Outcome, Suspended, ToolCall
from toolcrib.errors import ApprovalError
from toolcrib.pipeline._answers import answered, approve
from toolcrib.pipeline._approve import reasons_for, shown_request
from toolcrib.pipeline._failures import not_offered, offered
from toolcrib.pipeline._gates import available
from toolcrib.pipeline._plan import Plan, Prepared
from toolcrib.pipeline._run import Run

__all__ = ["approve_again", "pass_again", "restored"]


async def approve_again(
    prepared: Prepared, suspended: Suspended, run: Run, given: Grant | Denial | None
) -> Outcome | None:
    """Ask availability and step 5 once more for a call that was suspended; None when it may go on."""
    plan, call = prepared.plan, prepared.call
    refused = await _offered_again(prepared, run)
    if refused is None and given is not None and given.call_id not in (None, call.id):
        error = ApprovalError(plan.name, f"it answers the call {given.call_id}, and this is {call.id}")
        refused = Failed(plan.name, call.id, error.code, str(error), "ApprovalError", exception=error)
    if refused is None:
        reasons = await reasons_for(prepared, run)
        reasons = reasons if isinstance(reasons, Failed) or reasons else [suspended.request.reason]
        refused = reasons if isinstance(reasons, Failed) else await answered(prepared, run, reasons, given)
    return refused


async def pass_again(prepared: Prepared, run: Run) -> Outcome | None:
    """Ask availability and step 5 once more for a call that waited for nobody; None when it may go on."""
    refused = await _offered_again(prepared, run)
    return await approve(prepared, run, None) if refused is None else refused


async def _offered_again(prepared: Prepared, run: Run) -> Outcome | None:
    plan = prepared.plan
    if prepared.trace is not None:
        prepared.trace.received(shown_request(prepared), prepared.resumed)
    if prepared.revealed:
        run.revealed[plan.name] = None  # it was found in the run that asked, which this one goes on with
    if not offered(plan.entry, run):
        return not_offered(plan.name, prepared.call.id)
    return await available(prepared) if plan.availability else None


def restored(plan: Plan, state: Any, run: Run) -> Prepared:
    """Return the call that a suspended one's state describes: the state itself, or its JSON.

    Raises:
        InvalidArguments: The tool has changed since, and does not take the arguments any more.
    """
    if isinstance(state, Prepared) and state.plan.entry.tool is plan.entry.tool:
        again = copy(state)  # the same call may be resumed twice at once, and only one of them goes on
        again.resumed = {} if state.trace is None else state.trace.carry()
        return again
    data: Mapping[str, Any] = cast("Mapping[str, Any]", state) if isinstance(state, Mapping) else state.to_dict()
    call = ToolCall(data["name"], data["arguments"], data["id"], data["origin"])
    prepared = Prepared(call, plan)
    prepared.arguments = plan.read(ToolCall(call.name, data["arguments"], call.id))
    prepared.enter(run, dict(data["metadata"]))
    prepared.notes = tuple(DecisionNote(**note) for note in data["decisions"])
    prepared.asks, prepared.ask_metadata = tuple(data["asks"]), dict(data["ask_metadata"])
    prepared.revealed, prepared.resumed = data.get("revealed", False), data.get("trace", {})
    return prepared

"""For a door that keeps calls between the steps: one is read early, and taken through decisions again."""

from __future__ import annotations

from toolcrib.calls import Failed, Outcome, ToolCall
from toolcrib.errors import InvalidArguments, SchemaError
from toolcrib.hooks import HookSet
from toolcrib.pipeline._answers import approve
from toolcrib.pipeline._failures import misread, not_offered, offered
from toolcrib.pipeline._gates import decide
from toolcrib.pipeline._plan import Plan, Prepared
from toolcrib.pipeline._run import Run

__all__ = ["once_more", "received"]


def received(plan: Plan, call: ToolCall, run: Run) -> Prepared | Failed:
    """Return a call of this tool with its arguments read, or why it cannot be made."""
    if not offered(plan.entry, run):
        return not_offered(plan.name, call.id)
    prepared = Prepared(call, plan)
    try:
        prepared.arguments = plan.read(call)
    except (InvalidArguments, SchemaError) as error:
        return misread(plan.name, call.id, error)
    return prepared


async def once_more(prepared: Prepared, run: Run, hooks: HookSet | None, edited: bool) -> Outcome | None:
    """Ask more decision hooks, and step 5 again where that changed something; None when the call may go on."""
    before, asks = prepared.arguments, prepared.asks
    if hooks is not None:
        with prepared.within():
            ended = await decide(prepared, hooks.decisions_for(prepared.plan.name))
        if ended is not None:
            return ended
    if not edited and prepared.arguments is before and prepared.asks == asks:
        return None  # what was settled stays settled
    prepared.approved = None
    if prepared.ctx is not None:
        prepared.ctx.approved = False
    return await approve(prepared, run, None)

"""What an answer to an approval request does to a call: it goes on, with other arguments perhaps, or ends here."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

from toolcrib.calls import Denial, Failed, Grant, Outcome, ToolCall
from toolcrib.errors import InvalidArguments, SchemaError
from toolcrib.pipeline._approve import ask, reasons_for
from toolcrib.pipeline._failures import failure, hook_failure
from toolcrib.pipeline._gates import decide_and_edit
from toolcrib.pipeline._plan import Prepared
from toolcrib.pipeline._run import Run

__all__ = ["answered", "approve"]


async def approve(prepared: Prepared, run: Run, given: Grant | Denial | None) -> Outcome | None:
    """Have step 5 say whether a call may go on; None when it may."""
    with prepared.within():
        reasons = await reasons_for(prepared, run)
    if isinstance(reasons, Failed):
        return reasons
    return await answered(prepared, run, reasons, given) if reasons else None


async def answered(prepared: Prepared, run: Run, reasons: list[str], given: Grant | Denial | None) -> Outcome | None:
    """Get an answer for these reasons and do what it says; None when the call may go on."""
    with prepared.within():
        answer = await ask(prepared, run, reasons, given)
        if not isinstance(answer, Grant):
            return answer
        if answer.override_args is not None:
            refused = await _override(prepared, run, answer.override_args)
            if refused is not None:
                return refused
        return await _welcome(prepared, answer)


async def _override(prepared: Prepared, run: Run, arguments: Mapping[str, Any]) -> Outcome | None:
    """Take the arguments a person gave through steps 2 to 4: guards see them, and approval is not asked again."""
    plan, call = prepared.plan, prepared.call
    replaced = ToolCall(call.name, dict(arguments), call.id, call.origin)
    prepared.call, prepared.source, prepared.asks, prepared.notes, prepared.shown = replaced, None, (), (), None
    try:
        prepared.arguments = plan.read(replaced)
    except (InvalidArguments, SchemaError) as error:
        return failure(plan, call.id, run, error)
    return await decide_and_edit(prepared, run) if plan.guarded else None


async def _welcome(prepared: Prepared, grant: Grant) -> Outcome | None:
    prepared.approve()
    ctx, source = prepared.ctx, prepared.plan.tool.source
    if ctx is None:
        return None
    ctx.approved, ctx.approver, ctx.user_input = True, grant.approver, grant.user_input
    if source is None or grant.user_input is None:
        return None
    try:
        made = source.process_user_input(ctx, grant.user_input)
        ctx.user_input = await made if isinstance(made, Awaitable) else made
    except Exception as error:  # the tool's own code, before it runs: the call fails and nothing was done
        return hook_failure(prepared.plan, prepared.call.id, "method", "process_user_input", error)
    return None

"""A call in doubt that a person has answered."""

from collections.abc import Callable

from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ApprovalRequest, Denial, Grant, Suspended, ToolCall
from toolcrib.pipeline import Pipeline, Run


async def answered_in_doubt(pipeline: Pipeline, answer: Callable[[ApprovalRequest], Grant | Denial]) -> str:
    """Leave a call of `refund` as a process does that dies while it runs, answer its request, return its id."""
    store = MemoryApprovalStore()
    call = await pipeline.run(ToolCall("refund", {"order": 7}), Run("run_1", approvals=store))
    assert isinstance(call, Suspended)
    grant = call.request.grant("bob")
    await store.use(call.request, grant)
    await store.begin(call.request, grant)
    await store.break_off(call.request, grant)
    doubt = await pipeline.run(call, Run("run_1", approvals=store))
    assert isinstance(doubt, Suspended)
    await store.answer(answer(doubt.request))
    await pipeline.run(doubt, Run("run_1", approvals=store))
    return call.call_id

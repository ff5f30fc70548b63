"""A pipeline whose steps are recorded: what was decided about a call is not asked again, and it is not made twice."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from toolcrib.adapters.dbos._client import AnswerStore
from toolcrib.adapters.dbos._continuation import IN_DOUBT
from toolcrib.approvals import digest
from toolcrib.calls import (
    ApprovalRequest,
    Completed,
    Denial,
    Grant,
    Outcome,
    Suspended,
    ToolCall,
    lenient,
    outcome_from_dict,
)
from toolcrib.errors import ApprovalError
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Pipeline, Prepared, Run
from toolcrib.pipeline._steps import close
from toolcrib.tools import Tool
from toolcrib.turns import Turn

__all__ = ["NotingStore", "RecordedPipeline", "Unit", "current_unit"]

_ASKED = (
    "a worker stopped while this call was being made, and it may have been done; approve to make it again, deny to "
    'leave it, or approve with the user input {"result": ...} to give what it came to'
)


class Unit:
    """One call on its way through a workflow: prepared and written down, then performed.

    Attributes:
        waiting: The suspended call that is taken up, if it is one.
        state: What an earlier execution wrote down about the prepared call; None before that.
        reached: What there is to be written down, when the call is prepared.
        recorded: Set when it is written down, so that the tool may run.
        approval: Who said yes or no, when, to which digest.
        children: The turns that were put on agents meanwhile.
        changes: What was done to the agent's context meanwhile.
        over: Whether it has ended, and nothing is gathered any more.
    """

    def __init__(self, work_id: str, waiting: Suspended | None) -> None:
        self.work_id, self.waiting = work_id, waiting
        self.state: Mapping[str, Any] | None = None
        self.reached: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.recorded = asyncio.Event()
        self.answer: Grant | Denial | None = None
        self.approval: dict[str, Any] | None = None
        self.children: list[dict[str, Any]] = []
        self.changes: list[dict[str, Any]] = []
        self.finished = self.over = False

    async def reach(self, state: dict[str, Any]) -> None:
        """Hand over what is to be written down, and wait until it is."""
        self.reached.set_result(state)
        await self.recorded.wait()

    def note(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        """Keep who said what, for the record."""
        said = answer.to_dict()
        said.pop("user_input", None)  # what a person typed may be a secret, and so may
        said.pop("override_args", None)  # the arguments they gave
        self.answer = answer
        self.approval = {**said, "digest": request.digest, "request_id": request.id}


current_unit: ContextVar[Unit | None] = ContextVar("toolcrib_durable_unit", default=None)


class NotingStore:
    """An approval store as one call sees it: it notes the answer, and gives it again to the same work.

    The answer to a request is used up before it is written down that the call is prepared. A worker that dies in
    between has not made the call, and the answer belongs to this work alone.
    """

    def __init__(self, store: AnswerStore, unit: Unit) -> None:
        self._store, self._unit = store, unit

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered."""
        await self._store.put(request)

    async def answer(self, answer: Grant | Denial) -> None:
        """Take a grant or a denial."""
        await self._store.answer(answer)

    async def take(self, request: ApprovalRequest) -> Grant | Denial | None:
        """Return what answers this request and use it up."""
        try:
            answer = await self._store.take(request)
        except ApprovalError:
            waiting = self._unit.waiting
            if waiting is None or waiting.request.id != request.id:
                raise
            answer = (await self._store.show(request.id)).answer
        if answer is not None:
            self._unit.note(request, answer)
        return answer

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        """Keep an answer that came with the call, and use it up."""
        self._unit.note(request, answer)
        await self._store.use(request, answer)


class RecordedPipeline(Pipeline):
    """Runs the tools of an agent whose turns are durable; only inside a unit."""

    async def prepare(
        self,
        call: ToolCall | Suspended | Prepared,
        run: Run,
        grant: Grant | Denial | None = None,
        *,
        hooks: HookSet | None = None,
    ) -> Prepared | Outcome:
        """Take a call through its gates and have that written down; or return what was written down before."""
        unit = current_unit.get()
        if unit is None:
            raise RuntimeError("a durable agent's turns are run by its workers")
        if unit.state is not None:
            return await self._taken_up(unit, unit.state, run)
        prepared = await super().prepare(unit.waiting or call, run, grant, hooks=hooks)
        if isinstance(prepared, Prepared):
            prepared = self._told_result(unit, prepared)
        await unit.reach(_written(prepared, unit))
        return prepared

    def gives_context(self, tool: Tool[..., Any]) -> bool:
        """Return whether a tool or its gates are given the run's context."""
        for name, entry in self.toolset.entries.items():
            if entry.tool is tool:
                plan = self._plan(name)
                return plan is None or plan.wants_ctx
        return True

    def _told_result(self, unit: Unit, prepared: Prepared) -> Prepared | Outcome:
        """Return the outcome that a person gave for a call in doubt, if one did; else the call."""
        asked, answer = unit.waiting, unit.answer
        if asked is None or IN_DOUBT not in asked.request.metadata or not isinstance(answer, Grant):
            return prepared
        given: Any = answer.user_input
        if not isinstance(given, Mapping) or "result" not in given:
            return prepared
        value = cast("Mapping[str, Any]", given)["result"]
        return close(prepared.trace, Completed(prepared.plan.name, prepared.call.id, value))

    async def _taken_up(self, unit: Unit, state: Mapping[str, Any], run: Run) -> Prepared | Outcome:
        """Return a call that an earlier execution prepared: to be made again if it may be, else as a question."""
        unit.approval = state.get("approval")
        if "outcome" in state:
            return outcome_from_dict(state["outcome"])
        prepared = self.restore(state["prepared"], run)
        if not isinstance(prepared, Prepared):
            return prepared
        prepared.approved = state["approved"]
        prepared.trace = trace = self._trace(prepared.call, run, prepared.plan)
        if trace is not None:
            trace.decisions, trace.approval = list(prepared.notes), unit.approval
        ctx = prepared.ctx
        if ctx is not None and prepared.approved is not None:
            ctx.approved, ctx.approver, ctx.user_input = True, state["approver"], state["user_input"]
        if prepared.plan.tool.options.idempotent:
            return prepared
        request = _question(prepared, unit, run)
        if run.approvals is not None:
            await run.approvals.put(request)
        if trace is not None:
            trace.suspended(request)
        prepared.approved = None
        return close(trace, Suspended(request.tool, request.call_id, request, prepared))


def _written(prepared: Prepared | Outcome, unit: Unit) -> dict[str, Any]:
    """Return what has to be written down of a call before its tool may run."""
    kept: dict[str, Any] = {} if unit.approval is None else {"approval": unit.approval}
    if not isinstance(prepared, Prepared):
        return {**kept, "outcome": prepared.to_dict()}
    ctx = prepared.ctx
    return {
        **kept,
        "prepared": prepared.to_dict(),
        "approved": prepared.approved,
        "approver": None if ctx is None else ctx.approver,
        "user_input": None if ctx is None else lenient(ctx.user_input),
    }


def _question(prepared: Prepared, unit: Unit, run: Run) -> ApprovalRequest:
    plan, arguments = prepared.plan, prepared.arguments
    return ApprovalRequest(
        id=f"ask_{uuid5(NAMESPACE_URL, f'toolcrib:in-doubt:{unit.work_id}').hex}",
        call_id=prepared.call.id,
        tool=plan.name,
        arguments=plan.spec.dump(arguments, redact=True),
        digest=digest(plan.name, arguments),
        requested=plan.spec.dump(arguments, redact=True),
        reason=_ASKED,
        metadata={IN_DOUBT: "it may have been done"},
        run_id=run.id,
        principal=run.principal,
    )


def step_name(kind: str, turn: Turn[Any], data: Mapping[str, Any]) -> str:
    """Return what a step is called: by the tool, what is asked of it, and which of the workflow's calls it is."""
    return f"{kind} {turn.tool_name} {digest(turn.tool_name, data['kwargs'])[:16]} 1"

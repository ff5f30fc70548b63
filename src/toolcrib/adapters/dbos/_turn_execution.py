"""TurnExecution: one execution of a turn's workflow, which keeps its call before the tool begins."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from toolcrib.adapters.dbos._client import AnswerStore
from toolcrib.approvals import digest
from toolcrib.calls import ApprovalRequest, Denial, Grant, Suspended
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Call
from toolcrib.turns import Turn

__all__ = ["TurnExecution", "WorkStore", "current_execution", "step_name"]


class TurnExecution:
    """One call on its way through a workflow: it is kept before it is executed. The journal of its run.

    Attributes:
        waiting: The suspended call that is taken up, if it is one.
        asked: The request of the call that is taken up: its answer belongs to this work, used up or not.
        reached: The call as JSON, when it passed its gates.
        recorded: Set when that is kept, so that the tool may run.
        approval: Who approved, when, and which digest.
        children: The turns that were put on agents meanwhile.
        changes: What was done to the agent's context meanwhile.
        over: Whether it has ended, and nothing is gathered any more.
    """

    def __init__(self, work_id: str, waiting: Suspended | None) -> None:
        self.work_id, self.waiting = work_id, waiting
        self.asked = None if waiting is None else waiting.request.id
        self.reached: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.recorded = asyncio.Event()
        self.approval: dict[str, Any] | None = None
        self.children: list[dict[str, Any]] = []
        self.changes: list[dict[str, Any]] = []
        self.finished = self.over = False

    async def begin(self, call: Call) -> None:
        """Hand over the call to be kept, and wait until it is."""
        if not self.reached.done():
            self.reached.set_result({"call": call.to_dict()})
        await self.recorded.wait()

    def note(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        """Keep who answered what, for the record."""
        kept = answer.to_dict()
        for secret in ("user_input", "override_args", "done"):  # what a person typed may be a secret
            kept.pop(secret, None)
        self.approval = {**kept, "digest": request.digest, "request_id": request.id}


current_execution: ContextVar[TurnExecution | None] = ContextVar("toolcrib_turn_execution", default=None)


class WorkStore:
    """An approval store as one piece of work sees it: an answer that it used up before is given to it again.

    The answer to a request is used up before it is kept that the call begins. A worker that dies in between has not
    made the call, and the answer belongs to this work alone.
    """

    def __init__(self, store: AnswerStore, execution: TurnExecution) -> None:
        self._store, self._execution = store, execution

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered."""
        await self._store.put(request)

    async def answer(self, answer: Grant | Denial) -> None:
        """Take a grant or a denial."""
        await self._store.answer(answer)

    async def take(self, request: ApprovalRequest) -> Grant | Denial | None:
        """Return what answers this request and use it up; or what this work used up for it before."""
        try:
            answer = await self._store.take(request)
        except ApprovalError:
            if request.id != self._execution.asked:
                raise
            answer = (await self._store.show(request.id)).answer
        if answer is not None:
            self._execution.note(request, answer)
        return answer

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        """Keep an answer that came with the call, and use it up."""
        self._execution.note(request, answer)
        await self._store.use(request, answer)


def step_name(kind: str, turn: Turn[Any], data: Mapping[str, Any]) -> str:
    """Return what a step is called: by the tool, what is asked of it, and which of the workflow's calls it is."""
    return f"{kind} {turn.tool_name} {digest(turn.tool_name, data['kwargs'])[:16]} 1"

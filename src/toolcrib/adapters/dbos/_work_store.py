"""Approval store of one piece of durable work, which may ask twice for one answer, but acts on it once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from toolcrib.adapters.dbos._client import AnswerStore
from toolcrib.adapters.dbos._outage import WaitedTime, outlast
from toolcrib.adapters.dbos._result_turns import result_with_turns
from toolcrib.adapters.dbos._turn_execution import TurnExecution
from toolcrib.approvals import ApprovalEntry
from toolcrib.calls import ApprovalRequest, Denial, Done, Grant
from toolcrib.errors import ApprovalError
from toolcrib.tools import Tool, stopped_clocks

__all__ = ["WorkStore"]


class WorkStore:
    """An approval store as one turn or program sees it: an answer that it used up before is given to it again.

    A database that is away is waited for: an error of it is no answer to the call that asks.

    A worker may die after it used an answer up and before it is recorded that the call has begun. The worker that takes
    the work up gets the same answer again: the call has not been made, and the answer belongs to this work alone.

    Args:
        store: The store of requests and answers.
        execution: The turn's, which notes the answers; of its requests, it owns the one that it waited for. None for a
            program, which owns all of its requests: its journal lets one execution begin the call.
        tools: The tools of the agent, for a result that is a turn.
        waits: The program's time of waiting for the database.
        fence: Awaited before a request is kept; it does not return where the work was handed over. What another worker
            began meanwhile would look as if it were in doubt, and a person would be asked about it.
    """

    def __init__(
        self,
        store: AnswerStore,
        execution: TurnExecution | None = None,
        tools: Iterable[Tool[..., Any]] = (),
        waits: WaitedTime | None = None,
        fence: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._store, self._execution, self._tools, self._waits = store, execution, tools, waits
        self._fence = fence

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered."""
        with self._without_clock():
            if self._fence is not None:
                await self._fence()
            await outlast(lambda: self._store.put(request))

    async def answer(self, answer: Grant | Denial) -> None:
        """Take a grant or a denial."""
        await outlast(lambda: self._store.answer(answer))

    async def take(self, request: ApprovalRequest) -> Grant | Denial | None:
        """Return the answer to this request and use it up; or the one that this work used up for it before."""
        if self._execution is not None and request.in_doubt and request.id != self._execution.asked:
            return None  # the workflow that goes on takes it, which records the call again before it begins
        tried = False  # then an answer that was used up meanwhile was by the try that heard no reply

        async def take() -> Grant | Denial | None:
            nonlocal tried
            mine, tried = tried, True
            try:
                return await self._store.take(request)
            except ApprovalError:  # it is used up, perhaps by an execution of this work that is cut off, or will be
                used = await self._used(request.id, mine=mine)
                if used is None:
                    raise
                return used

        with self._without_clock():
            answer = await outlast(take)
        if answer is not None:
            self._note(request, answer)
        if (
            self._execution is None
            or not isinstance(answer, Grant)
            or answer.done is None
            or request.returns is not None
        ):
            return answer
        return replace(answer, done=Done(result_with_turns(request, answer.done.value, self._tools)))

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        """Keep an answer that came with the call, and use it up, unless this work used it up before."""
        self._note(request, answer)
        tried = False

        async def use() -> None:
            nonlocal tried
            used, tried = await self._used(request.id, mine=tried), True
            if used != answer:
                await self._store.use(request, answer)

        with self._without_clock():
            await outlast(use)

    def _without_clock(self) -> AbstractContextManager[None]:
        if self._execution is not None:
            return stopped_clocks()
        return nullcontext() if self._waits is None else self._waits.counted()

    def _note(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        if self._execution is not None:
            self._execution.note(request, answer)

    async def _used(self, request_id: str, *, mine: bool) -> Grant | Denial | None:
        if not mine and self._execution is not None and request_id != self._execution.asked:
            return None
        entry = await self._entry(request_id)
        return None if entry is None or entry.used_at is None else entry.answer

    async def _entry(self, request_id: str) -> ApprovalEntry | None:
        try:
            return await self._store.show(request_id)
        except ApprovalError:  # there is no such request
            return None

"""Approval store of one piece of durable work, which waits for a database that is away."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from toolcrib._processes import this_process
from toolcrib.approvals import ApprovalEntry, Execution, WrappedApprovalStore
from toolcrib.calls import ApprovalRequest, Denial, Done, Grant
from toolcrib.clock import WaitedTime
from toolcrib.durable._answered import AnswerStore
from toolcrib.durable._outage import readable
from toolcrib.durable._result_turns import result_with_turns
from toolcrib.durable._turn_execution import TurnExecution
from toolcrib.pipeline import Run
from toolcrib.tools import Tool, stopped_clocks

T = TypeVar("T")

_log = logging.getLogger("toolcrib.durable")
_IN_DOUBT = (
    "%s: the call of `%s` is in doubt, as it had begun and is not known to have ended. Find out whether it was done, "
    "and answer with `toolcrib approvals done %s --result JSON`, `approve` to have it done now, or `deny`, and with "
    "`--database` where it is not the default"
)


class WorkStore(WrappedApprovalStore):
    """An approval store as one turn or program sees it.

    A database that is away is waited for: its error is not an answer to the call that asks. An answer is used up when
    its call begins, after that is in the work's journal: a worker that takes the work up before gets the answer again.

    Args:
        store: The store of requests and answers.
        execution: The turn's, which notes the answers; of its requests, it owns the one that it waited for. None for a
            program, which owns all of its requests: its journal lets one execution begin the call.
        tools: The tools of the agent, for a result that is a turn.
        waits: The program's time of waiting for the database.
        fence: Awaited before a request is kept and before a call begins; it does not return where the work was handed
            over. What another worker began meanwhile would look as if it were in doubt, and what this one begins is in
            doubt for the other: a person would be asked about it.
        work_id: The id of the work, for the log; the execution's where there is one.
        retried: The ids of the calls of a program that ended with an error before, and are made again.
        held_store: The store as one into which only the execution that has the work writes, which is asked in the same
            transaction: of a hand-over after the fence, it learns there. The store itself when None.
    """

    def __init__(
        self,
        store: AnswerStore,
        execution: TurnExecution | None = None,
        tools: Iterable[Tool[..., Any]] = (),
        waits: WaitedTime | None = None,
        fence: Callable[[], Awaitable[None]] | None = None,
        work_id: str = "",
        retried: Collection[str] = (),
        held_store: AnswerStore | None = None,
    ) -> None:
        super().__init__(store)
        self._held_store = held_store or store
        self._work_id = work_id if execution is None else execution.work_id
        self._execution, self._tools, self._waits, self._fence = execution, tools, waits, fence
        self._begun: set[str] = set()  # the calls that this execution has begun
        self._retried = retried if execution is None else execution.retried

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered; one about a call in doubt is in the log, too."""

        async def put() -> None:
            if self._fence is not None:
                await self._fence()  # asked at each try, as the work may be handed over while the database is away
            await self._held_store.put(request)

        await self._patiently(put)
        if request.in_doubt:
            _log.warning(_IN_DOUBT, self._work_id, request.tool, request.id)

    async def answer(self, answer: Grant | Denial) -> None:
        """Store a grant or a denial."""
        await readable(lambda: self.store.answer(answer))

    async def take(self, request: ApprovalRequest) -> Grant | Denial | ApprovalEntry | None:
        """Return the answer to this request; None for a call in doubt whose answer this work did not wait for."""
        if self._execution is not None and request.in_doubt and request.id != self._execution.asked:
            return None  # the workflow that goes on takes it, which records the call again before it begins
        answer = await self._patiently(lambda: self.store.take(request))
        if isinstance(answer, ApprovalEntry) and await self._cut_off(answer):
            answer = await self._patiently(lambda: self.store.take(request))
        if isinstance(answer, Grant | Denial):
            self._note(request, answer)
        if (
            self._execution is None
            or not isinstance(answer, Grant)
            or answer.done is None
            or request.returns is not None
        ):
            return answer
        return replace(answer, done=Done(result_with_turns(request, answer.done.value, self._tools)))

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> ApprovalEntry | None:
        """Keep an answer that came with the call."""
        self._note(request, answer)
        return await self._patiently(lambda: self.store.use(request, answer))

    async def begin(
        self, request: ApprovalRequest, grant: Grant | None, *, again: bool = False
    ) -> ApprovalEntry | None:
        """Record that a call begins; return the entry by which it has begun elsewhere."""
        tried = False  # then an execution that this process began is that of a try which heard no reply

        async def begin() -> ApprovalEntry | None:
            nonlocal tried
            if self._fence is not None:
                await self._fence()  # one that was handed over would use the answer up, and begin nothing
            mine, tried = tried, True
            begun = await self._held_store.begin(request, grant, again=again)
            execution = None if begun is None else begun.execution
            if mine and execution is not None and execution.process == this_process():
                return await self._held_store.begin(request, grant, again=True)
            return begun

        begun = await self._patiently(begin)
        if begun is not None and await self._cut_off(begun):
            begun = await self._patiently(begin)
        if begun is None:
            self._begun.add(request.call_id)
        return begun

    async def _cut_off(self, entry: ApprovalEntry) -> bool:
        """Record that the execution of an entry was cut off, and return whether it was.

        What another execution of this work has begun and not ended was cut off when the work came here, though its
        process may still live: the one that was handed over ends nothing any more. So was one that ended with an error
        where its call is retried: else the error would be the result of the retry, too.
        """
        if entry.request.call_id in self._begun:
            return False
        ended = None if entry.execution is None else entry.execution.result
        is_retried = entry.request.call_id in self._retried and ended is not None and "error" in ended
        if entry.execution_state != "running" and not is_retried:
            return False
        if self._fence is not None:
            await self._patiently(self._fence)
        grant = entry.answer if isinstance(entry.answer, Grant) else None
        await self._patiently(lambda: self._held_store.break_off(entry.request, grant))
        return True

    async def end(self, request: ApprovalRequest, grant: Grant | None, result: Mapping[str, Any] | None = None) -> None:
        """Record that a call has ended."""
        await self._patiently(lambda: self.store.end(request, grant, result))

    async def break_off(self, request: ApprovalRequest, grant: Grant | None) -> None:
        """Record that a call which began here was broken off."""
        await self._patiently(lambda: self.store.break_off(request, grant))

    async def undo(self, request: ApprovalRequest) -> None:
        """Forget that a call began, which asked for approval before it did anything."""
        await self._patiently(lambda: self.store.undo(request))

    async def like(self, request: ApprovalRequest) -> tuple[ApprovalEntry, ...]:
        """Return the entries of other, equal calls."""
        return await self._patiently(lambda: self.store.like(request))

    async def digest_key(self) -> bytes | None:
        """Return the key for the digests of secret arguments."""
        return await self._patiently(super().digest_key)

    async def claim(self, key: str) -> Execution | None:
        """Claim another piece of work; None for a program, of which its journal says who goes on with it."""
        return None if self._execution is None else await self._patiently(partial(super().claim, key))

    async def release(self, key: str, *, ended: bool, result: Mapping[str, Any] | None = None) -> None:
        """Release a claim."""
        if self._execution is not None:
            await self._patiently(partial(super().release, key, ended=ended, result=result))

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a verb of the store once its database answers; no clock of the work runs meanwhile."""
        waits: AbstractContextManager[None] = nullcontext() if self._waits is None else self._waits.counted()
        with waits if self._execution is None else stopped_clocks():
            return await readable(work)

    def _note(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        if self._execution is not None:
            self._execution.note(request, answer)


def held_run(
    run: Run,
    execution: TurnExecution,
    approvals: AnswerStore,
    tools: Iterable[Tool[..., Any]],
    may_begin: Callable[[], Awaitable[None]],
    held_store: AnswerStore | None = None,
) -> Run:
    """Return a run as one execution of a turn has it: its recorder, its fence, and its view of the approval store.

    Args:
        run: The run.
        execution: Its recorder.
        approvals: The store of requests and answers.
        tools: The tools of the agent.
        may_begin: The fence.
        held_store: The store as one into which only the execution that has the turn writes; see `WorkStore`.
    """

    async def fence() -> None:
        with stopped_clocks():  # a database that is waited for is no time of the tool
            await may_begin()

    return run.view(
        approvals=WorkStore(approvals, execution, tools, fence=may_begin, held_store=held_store),
        recorder=execution,
        begun=execution.begun,
        fence=fence,
        conversation_id=execution.conversation_id or run.channel.conversation_id,
    )

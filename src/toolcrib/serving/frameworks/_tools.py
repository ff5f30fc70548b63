"""Tools inside an agent of another framework: their calls, which of these are suspended, and how they go on."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from toolcrib.approvals import (
    LedgerStore,
    MemorySuspendedCalls,
    ReviewableApprovalStore,
    SuspendedCall,
    counts_before,
    digest,
    find_entry,
    require_fit,
)
from toolcrib.calls import ApprovalRequest, Denial, Failed, Grant, Outcome, Suspended, ToolCall, outcome_from_dict
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Call, Pipeline, Run, is_call
from toolcrib.record import Sink
from toolcrib.serving._entries import is_shown, run_reporting
from toolcrib.serving.frameworks._answers import is_to_earlier, rebound
from toolcrib.serving.frameworks._runs import CountedRequest, FrameworkRuns, RecentValues, record_usage
from toolcrib.toolsets import ToolEntry, Toolset, ToolsetLike

Answer: TypeAlias = Callable[[ApprovalRequest], Grant | Denial | None]
"""Returns the answer to the request of a suspended call, as the framework has it; None when it has none."""


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A suspended call that a framework's run stopped at.

    Attributes:
        suspended: The call, with the request that a person answers now.
        stored: The answer that the run's store has.
        outcome: The outcome of the call, where it needs no answer: another process executed it.
    """

    suspended: Suspended
    stored: Grant | Denial | None = None
    outcome: Call | Outcome | None = None

    @property
    def request(self) -> ApprovalRequest:
        """The question to a person."""
        return self.suspended.request

    @property
    def is_open(self) -> bool:
        """True if a person still has to answer."""
        return self.stored is None and self.outcome is None


class FrameworkTools:
    """The tools of an open toolset inside an agent of another framework.

    A call is known by the id that the framework gave it, its arguments and the conversation. One that is suspended is
    kept, so that it goes on when the framework makes it again, in this process or in another with the same store. It
    is not forgotten then: its request is answered once, so that a second process which resumes it is refused.

    Attributes:
        pipeline: A pipeline of the tools.
        runs: The runs of the calls, which several of these may share.
    """

    def __init__(self, tools: ToolsetLike, runs: FrameworkRuns, sinks: Iterable[Sink] = ()) -> None:
        self.pipeline = Pipeline(tools, sinks=sinks)
        self.runs = runs
        runs.check_for(self.pipeline)
        self._admitted: RecentValues[str, Call | Outcome] = RecentValues()
        self._ended: RecentValues[str, Outcome] = RecentValues()

    @property
    def entries(self) -> Mapping[str, ToolEntry]:
        """The tools, by name."""
        return self.pipeline.toolset.entries

    def only(self, name: str) -> Toolset:
        """Return one of the tools, with its gates, for another way in."""
        return self.pipeline.toolset.subset([name])

    def may_ask(self, name: str) -> bool:
        """Return whether a call of a tool may need approval, as far as is known before its run."""
        entry = self.entries[name]
        return entry.may_ask or self.runs.may_ask

    def may_hide(self, run: Run) -> bool:
        """Return whether some tool may be none that a model is shown in a run."""
        return run.available is not None or any(entry.off or entry.availability for entry in self.entries.values())

    async def shows(self, name: str, run: Run) -> bool:
        """Return whether a model is shown a tool now; the pipeline asks again when it is called."""
        entry = self.entries[name]
        is_offered = not entry.off if run.available is None else name in run.available
        if not is_offered and name not in run.revealed:
            return False
        return not entry.availability or await is_shown(entry, run.context())

    def record_usage(self, run: Run, requests: Iterable[CountedRequest]) -> None:
        """Record the usage of an agent's requests to its model, each once in a run; see `record_usage`."""
        record_usage(run, requests, self.pipeline.sinks)

    async def find_suspended(self, call: ToolCall, run: Run) -> Suspended | None:
        """Return the suspended call that an equal one goes on with."""
        store = self.runs.store_of(run)
        if isinstance(store, MemorySuspendedCalls) and store.is_empty:
            return None  # without the key, which takes as long as the gates
        found = await store.find(self._key(call, run))
        outcome = None if found is None else outcome_from_dict(found.state)
        if not isinstance(outcome, Suspended):
            return None
        self.runs.rejoin(run, outcome)
        return outcome

    async def find_asked(self, call: ToolCall, run: Run) -> AskedCall | None:
        """Return the suspended call that an equal one goes on with, and the answer that the run's store has.

        One whose tool has changed is asked about anew, and one that has begun is asked about as in doubt.
        """
        found = await self.find_suspended(call, run)
        if found is None:
            return None
        entry = await find_entry(run.approvals, found.request.id)
        if self.pipeline.is_current(found.request) and (entry is None or entry.execution is None):
            return AskedCall(found, None if entry is None or entry.state == "pending" else entry.answer)
        admitted = await self.pipeline.admit(found, run)
        if not isinstance(admitted, Suspended):
            self._admitted[self._key(call, run)] = admitted
            return AskedCall(found, outcome=admitted)
        await self._keep(self._key(call, run), admitted, run)
        return AskedCall(admitted)

    async def calls_in_doubt(self, run: Run) -> frozenset[str]:
        """Return the ids of calls that are in doubt, as the run's store knows, and whose question has no answer."""
        store = run.approvals
        if not isinstance(store, LedgerStore):
            return frozenset()
        begun = {
            entry.request.id: entry.request.call_id
            for entry in await store.unended()
            if entry.execution_state == "in doubt"
            and entry.request.principal == run.principal
            and (ours := self.entries.get(entry.request.tool)) is not None
            and not ours.tool.options.idempotent
        }
        answered = {entry.request.follows for entry in await store.answered()} if begun else set[str | None]()
        return frozenset(call_id for request_id, call_id in begun.items() if request_id not in answered)

    async def admit(self, call: ToolCall, run: Run, *, answer: Answer | None = None) -> Suspended | None:
        """Pass a call through every gate before its tool, for a framework that asks first whether a person has to.

        Args:
            answer: Gives the answer to a suspended call, for a framework that asks again when it goes on; the run's
                store and approver are asked then, too.

        Returns:
            The suspended call; or None where the call is admitted or has ended, and `call` takes its outcome.
        """
        key = self._key(call, run)
        if key in self._admitted:
            return None
        found = await self.find_suspended(call, run)
        if found is not None and answer is None:
            return found
        grant = None if found is None or answer is None else answer(found.request)
        admitted = await self.pipeline.admit(found or call, run, grant=grant)
        if isinstance(admitted, Suspended):
            await self._keep(key, admitted, run)
            return admitted
        forgotten = self._admitted.keep(key, admitted)
        if forgotten is not None and is_call(forgotten):
            self.pipeline.discard(forgotten)
        return None

    def take(self, call: ToolCall, run: Run) -> Call | Outcome | None:
        """Return the result of a call's admission, for a framework that runs the tool itself; None without one."""
        return self._admitted.pop(self._key(call, run), None)

    async def call(
        self,
        call: ToolCall,
        run: Run,
        *,
        answer: Answer | None = None,
        lost: Answer | None = None,
        report: Callable[[Any], Awaitable[object]] | None = None,
    ) -> Outcome:
        """Make a call, or go on with the equal one that was admitted or suspended, and return the outcome.

        Args:
            answer: Gives the answer to a suspended call; without one, the run's store and approver are asked.
            lost: Gives the answer to a call that is not known to be suspended, when it has to wait for a person: they
                were asked by the framework itself, or by a process whose calls are not known here. One that names the
                question of that process is an answer to this one, where no store knows it.
            report: Receives the values that the tool yields.
        """
        admitted = self._admitted.pop(self._key(call, run), None) if self._admitted else None
        if admitted is not None:
            return await self._keep_suspended(await self._go_on(admitted), call, run)
        suspended = await self.find_suspended(call, run)
        grant = None if suspended is None or answer is None else answer(suspended.request)
        outcome = await self._keep_suspended(await self._run(suspended or call, run, grant, report), call, run)
        if suspended is None and lost is not None and isinstance(outcome, Suspended):
            reply = lost(outcome.request)
            grant = None if reply is None else rebound(reply, outcome.request, run)
            if grant is not None:
                return await self._keep_suspended(await self._run(outcome, run, grant, report), call, run)
        return outcome

    async def call_once(
        self,
        call: ToolCall,
        run: Run,
        *,
        answer: Answer | None = None,
        report: Callable[[Any], Awaitable[object]] | None = None,
    ) -> Outcome:
        """Make a call as `call` does, and return the same outcome when a framework replays it in this process."""
        key = self._key(call, run)
        ended = self._ended.get(key)
        if ended is not None:
            return ended
        outcome = await self.call(call, run, answer=answer, report=report)
        if not isinstance(outcome, Suspended):
            self._ended.keep(key, outcome)
        return outcome

    async def take_up(
        self, request_id: str, answer: Grant | Denial | None, run: Run
    ) -> tuple[ApprovalRequest, Outcome] | None:
        """Make a suspended call that a framework does not make again, and return its request and the outcome.

        Args:
            answer: The answer; None where the run's store has it.

        Returns:
            None where no call that waits for this request is kept.

        Raises:
            ApprovalError: The answer is for another call, or the request was answered before.
        """
        found = await self.runs.find_request(request_id, run)
        if found is None or found[1].tool not in self.entries:
            return None
        key, suspended = found
        outcome = await self._apply_answer(suspended, answer, run)
        if isinstance(outcome, Suspended):
            await self._keep(key, outcome, run)
        return suspended.request, outcome

    async def take_answer(self, suspended: Suspended, answer: Grant | Denial, run: Run) -> bool | str:
        """Keep a grant until the framework makes the call again, or end the call with a denial.

        A grant is kept in the run's store, so that it counts in every process; without one, in this process. One for a
        request which another one has replaced, as the tool has changed or the call is in doubt, is not kept.

        Returns:
            Whether the framework may make the call again, as no further answer is needed; or the text for the model, of
            a call that was denied.

        Raises:
            ApprovalError: The answer is for another call, or the request was answered otherwise before.
        """
        request = suspended.request
        if isinstance(answer, Denial):
            denial = request.deny(message=answer.message, by=answer.by) if is_to_earlier(answer, request) else answer
            return (await self.deny(suspended, denial, run)).text()
        if is_to_earlier(answer, request):
            return False
        require_fit(request, answer)
        entry = await find_entry(run.approvals, request.id)
        if run.approvals is None or entry is None:
            self.runs.give(request, answer)
            return True
        if answer.request_id is None and not answer.standing:
            answer = replace(answer, request_id=request.id)
        if entry.state == "pending" or entry.answer is None or not counts_before(entry.answer, answer):
            await run.approvals.answer(answer)
            entry = await find_entry(run.approvals, request.id)
        return answer.standing or entry is None or entry.state != "pending"

    async def deny(self, suspended: Suspended, denial: Denial, run: Run) -> Outcome:
        """End a suspended call with a denial, for a framework that does not make the call again then.

        Raises:
            ApprovalError: The denial is for another call, or the request was answered before.
        """
        if run.principal is None:
            run = run.view(principal=suspended.request.principal)
        return await self._apply_answer(suspended, denial, run)

    async def deny_calls(self, name: str, messages: Mapping[str, str], run: Run) -> None:
        """End suspended calls of a tool that the framework alone knows to be denied; the run's store has them.

        Args:
            messages: The user's messages, by call id.
        """
        store = run.approvals
        for entry in await store.list(pending=True) if isinstance(store, ReviewableApprovalStore) else ():
            asked = entry.request
            if asked.tool == name and asked.principal == run.principal and asked.call_id in messages:
                found = await self.runs.find_request(asked.id, run)
                if found is not None:
                    await self.deny(found[1], asked.deny(message=messages[asked.call_id]), run)

    # --- inside

    async def _apply_answer(self, suspended: Suspended, answer: Grant | Denial | None, run: Run) -> Outcome:
        if isinstance(answer, Grant):
            require_fit(suspended.request, answer)
        outcome = await self.pipeline.run(suspended, run, grant=answer)
        if isinstance(outcome, Failed) and isinstance(outcome.exception, ApprovalError):
            raise outcome.exception
        return outcome

    async def _run(
        self,
        call: ToolCall | Suspended,
        run: Run,
        grant: Grant | Denial | None,
        report: Callable[[Any], Awaitable[object]] | None,
    ) -> Outcome:
        entry = self.entries.get(call.tool if isinstance(call, Suspended) else call.name)
        if report is None or entry is None or not entry.tool.is_watched:
            return await self.pipeline.run(call, run, grant=grant)
        return await run_reporting(self.pipeline, call, run, report, grant=grant)

    async def _go_on(self, admitted: Call | Outcome) -> Outcome:
        if not is_call(admitted):
            return admitted
        executed = await self.pipeline.execute(admitted)
        return await self.pipeline.finish(executed) if is_call(executed) else executed

    async def _keep_suspended(self, outcome: Outcome, call: ToolCall, run: Run) -> Outcome:
        """Return an outcome, and keep it where it is a suspended call."""
        if isinstance(outcome, Suspended):
            await self._keep(self._key(call, run), outcome, run)
        return outcome

    async def _keep(self, key: str, suspended: Suspended, run: Run) -> None:
        state = json.loads(json.dumps(suspended.to_dict()))
        request = suspended.request
        asked = (request.id, *filter(None, (request.follows, request.replaces)))  # old answers name the others
        stored = SuspendedCall(key, run.principal or "", suspended.tool, asked, state)
        await self.runs.store_of(run).keep(stored)

    def _key(self, call: ToolCall, run: Run) -> str:
        raw = call.arguments
        if isinstance(raw, Mapping):
            raw = json.dumps(dict(raw), default=str)
        text = raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
        about = {"entry": self.runs.entry, "id": call.id, "arguments": text}
        return digest(call.name, {**about, "principal": run.principal, "conversation": run.channel.conversation_id})

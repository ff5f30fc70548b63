"""Pipeline: the one way a tool is run for a model.

`prepare` asks every gate, `perform` runs the tool, `finish` lets post hooks at the result and closes the record; `run`
and `stream` are made of them, and nothing else does the work of one.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, overload

from toolcrib.calls import (
    Denial,
    Failed,
    Grant,
    Outcome,
    Rejected,
    Suspended,
    ToolCall,
    Yielded,
    completed,
)
from toolcrib.errors import (
    ApprovalError,
    ApprovalRequired,
    InvalidArguments,
    SchemaError,
)
from toolcrib.hooks import HookRaised, HookSet
from toolcrib.pipeline._answers import approve
from toolcrib.pipeline._at_once import at_once
from toolcrib.pipeline._failures import failure, misread, not_offered, offered, tool_failure, unknown
from toolcrib.pipeline._gates import apply_post, available, decide_and_edit
from toolcrib.pipeline._passes import once_more, received
from toolcrib.pipeline._plan import Executor, Performed, Plan, Prepared
from toolcrib.pipeline._reports import Reports
from toolcrib.pipeline._resume import approve_again, pass_again, restored
from toolcrib.pipeline._run import Run
from toolcrib.pipeline._steps import asked_late, begin, close, each, execute, observer_failed, read_arguments
from toolcrib.record import LogSink, Sink, Stepped, Trace, calls_log, merged_sinks
from toolcrib.toolsets import Toolset, ToolsetLike

__all__ = ["Pipeline"]

_LOG_SINK = LogSink()


class Pipeline:
    """Runs the tools of a toolset for whoever asks over a door.

    Args:
        tools: A toolset, a toolset class, or a sequence of tools.
        hooks: Decision hooks that are asked before the toolset's own.
        sinks: Where the events of every call go; the logger `toolcrib.calls` gets them in any case.
        executor: Wraps each execution.
    """

    def __init__(
        self,
        tools: ToolsetLike,
        *,
        hooks: HookSet | None = None,
        sinks: Iterable[Sink] = (),
        executor: Executor | None = None,
    ) -> None:
        self.toolset = Toolset.of(tools)
        if not self.toolset.is_open:
            raise ValueError(
                "the toolset has members whose tools are not known yet; open it: "
                "`async with toolset.open(ctx) as bound:`"
            )
        self._sinks = tuple(sinks)
        if hooks is not None:
            hooks.check(self.toolset.entries)
        self._hooks, self._executor = hooks, executor
        self._plans: dict[str, Plan] = {}
        self.toolset.tell_when_renewed(self)

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """Where the events of every call go."""
        return self._sinks

    def renewed(self) -> None:
        """Forget what is known of the tools: a source of the toolset has others now."""
        self._plans.clear()

    # --- the whole way

    async def run(
        self, call: ToolCall | Suspended, run: Run | None = None, *, grant: Grant | Denial | None = None
    ) -> Outcome:
        """Take a call from its arguments to its outcome.

        Args:
            call: A new call, or a suspended one, whose hooks are not run again.
            run: The run it belongs to; one of its own when None.
            grant: The answer to the approval request of this call, if it is known.

        Raises:
            Exception: What an observer raised, unless the scope has it fail the call.
        """
        if run is None:
            run = Run()
        prepared = await self.prepare(call, run, grant)
        if not isinstance(prepared, Prepared):
            return prepared
        performed = await self.perform(prepared, run)
        if not isinstance(performed, Performed):
            return performed
        return await self.finish(performed, run) if prepared.plan.held else self._concluded(performed, run)

    @overload
    def stream(
        self, call: ToolCall | Suspended, run: Run | None = None, *, grant: Grant | Denial | None = None
    ) -> AsyncGenerator[Yielded | Outcome, None]: ...
    @overload
    def stream(
        self,
        call: ToolCall | Suspended,
        run: Run | None = None,
        *,
        grant: Grant | Denial | None = None,
        ended: Callable[[Outcome], None],
    ) -> AsyncGenerator[Any, None]: ...
    async def stream(
        self,
        call: ToolCall | Suspended,
        run: Run | None = None,
        *,
        grant: Grant | Denial | None = None,
        ended: Callable[[Outcome], None] | None = None,
    ) -> AsyncGenerator[Any, None]:
        """Yield each value of a streaming tool as it comes, as `Yielded`, and at the end the outcome.

        Of a tool that returns, these are what it gave to `ctx.report`.
        Where post hooks need the whole result, the values come after them. Closing the iterator early stops the tool.

        Args:
            call: As for `run`, like `scope` and `grant`.
            ended: Is given the outcome; the values then come as they are, which is quicker, and also those that a
                decision hook gave in the tool's place. The last of a tool that returns is its result.
        """
        if run is None:
            run = Run()
        prepared = await self.prepare(call, run, grant)
        if not isinstance(prepared, Prepared) or (body := prepared.plan.live) is None:
            work = at_once(self, self._plans, prepared, run, plain=ended is not None)
            if isinstance(prepared, Prepared) and prepared.ctx is not None and not prepared.plan.streaming:
                reports = Reports(prepared.ctx, work)
                async with aclosing(reports.values()) as told:
                    async for value in told:
                        yield value if ended is not None else Yielded(value)
                work = reports.result()
            outcome, values = await work
            for value in values:
                yield value if ended is not None else Yielded(value)
            if ended is None:
                yield outcome
            else:
                ended(outcome)
            return
        left = False
        with prepared:
            try:
                while True:
                    begin(prepared)
                    performed = Performed(prepared, kept := [])
                    try:
                        prepared.require_approved(prepared.arguments)
                        watched = prepared.watched
                        stream: Any = body.stream(prepared.arguments, prepared.ctx, prepared.plan.timeout)
                        if prepared.trace is not None:
                            stream = Stepped(stream, prepared.trace.within)
                        async with run.slot(), stream as values:
                            async for value in values:
                                shown = await each(prepared, value) if watched else value
                                kept.append(shown)
                                left = True  # unless the next value is asked for
                                yield Yielded(shown) if ended is None else shown
                                left = False
                    except HookRaised:
                        raise
                    except Exception as error:  # the tool's own code: what it raised becomes the outcome
                        performed.error = error
                    outcome = await asked_late(performed, run)
                    if outcome is not None or not isinstance(performed.error, ApprovalRequired):
                        break  # else it asked before it did anything, and was granted
                outcome = await self.finish(performed, run) if outcome is None else outcome
            except HookRaised as raised:
                outcome = observer_failed(prepared, run, raised)
            if ended is not None:
                ended(outcome)
            elif not left:  # else nobody takes it
                yield outcome

    # --- prepare: steps 1 to 5

    def receive(self, call: ToolCall, run: Run) -> Prepared | Failed:
        """Read a call before its gates are asked: nothing is counted, decided or recorded yet.

        Returns:
            What `prepare` takes; or what is wrong with the call, of which `prepare` makes the same outcome.
        """
        plan = self._plans.get(call.name) or self._plan(call.name)
        return unknown(self.toolset, call, run) if plan is None else received(plan, call, run)

    async def prepare(
        self,
        call: ToolCall | Suspended | Prepared,
        run: Run,
        grant: Grant | Denial | None = None,
        *,
        hooks: HookSet | None = None,
    ) -> Prepared | Outcome:
        """Take a call through every gate before the tool.

        Args:
            call: A new call, one that `receive` has read, or a suspended one.
            run: The run it belongs to.
            grant: The answer to the approval request of this call, if it is known.
            hooks: Decision hooks for this call alone, asked before the others.

        Returns:
            What `perform` takes; or the outcome, when a gate ends the call.
        """
        if isinstance(call, Suspended):
            return await self._resume(call, run, grant)
        read = isinstance(call, Prepared)
        prepared, call = (call, call.call) if read else (None, call)
        plan = self._plans.get(call.name) or self._plan(call.name)
        trace = self._trace(call, run, plan)
        if plan is None:
            return close(trace, unknown(self.toolset, call, run))
        if prepared is None:
            prepared = Prepared(call, plan, trace)
        else:
            prepared.trace = trace
        try:
            refused: Outcome | None = None
            if plan.off or run.available is not None or run.limits is not None:
                refused = self._refusal(plan, call, run)
                prepared.revealed = plan.name in run.revealed
            if refused is None and (plan.wants_ctx or run.deps is not None or run.provide):
                prepared.enter(run)
                refused = await available(prepared) if plan.availability else None
            if refused is None and (trace is not None or not read):
                refused = read_arguments(prepared, run, read)
            if refused is None and (plan.guarded or hooks is not None):
                first = () if hooks is None else hooks.decisions_for(plan.name)
                refused = await decide_and_edit(prepared, run, first)
            if refused is None and (plan.approvals or prepared.asks or run.deps is not None):
                refused = await approve(prepared, run, grant)
            return prepared if refused is None else close(trace, refused)
        except BaseException:  # quicker than `with prepared:`, on the way of every call
            prepared.cut_off()
            raise

    async def _resume(self, suspended: Suspended, run: Run, given: Grant | Denial | None) -> Prepared | Outcome:
        """Take up a suspended call: availability and step 5 again, nothing else."""
        state = suspended.prepared
        plan, call = self._plan(suspended.tool), ToolCall(suspended.tool, {}, suspended.call_id)
        trace = self._trace(call, run, plan)
        if plan is None or state is None:
            return close(trace, unknown(self.toolset, call, run))
        try:
            prepared = restored(plan, state, run)
        except (InvalidArguments, SchemaError) as error:  # the tool has changed since
            changed = ApprovalError(plan.name, f"the tool has changed since it was asked ({error})")
            return close(trace, failure(plan, call.id, run, changed))
        prepared.plan, prepared.trace, prepared.request = plan, trace, suspended.request
        prepared.enter(run, dict(prepared.metadata))
        with prepared:
            refused = await approve_again(prepared, suspended, run, given)
            return prepared if refused is None else close(trace, refused)

    async def again(
        self,
        prepared: Prepared,
        run: Run,
        *,
        hooks: HookSet | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> Prepared | Outcome:
        """Take a prepared call through more decisions, or edited arguments through step 5, before it is performed.

        Returns:
            The same as `prepare`; approval is asked again when the arguments changed, or a hook asks for it.

        Raises:
            InvalidArguments: The edited arguments do not fit; the call is as it was.
        """
        if arguments is not None:
            prepared.revise(arguments)
        with prepared:
            refused = await once_more(prepared, run, hooks, arguments is not None)
            return prepared if refused is None else close(prepared.trace, refused)

    def restore(self, state: Mapping[str, Any], run: Run) -> Prepared | Failed:
        """Return the call that `Prepared.to_dict` described, no gate asked; Failed when the tool does not take it now.

        Have `readmit` ask before it is performed.
        """
        call = ToolCall(state["name"], state["arguments"], state["id"], state["origin"])
        plan = self._plan(call.name)
        if plan is None:
            return unknown(self.toolset, call, run)
        try:
            return restored(plan, state, run)
        except (InvalidArguments, SchemaError) as error:
            return misread(plan.name, call.id, error)

    async def readmit(self, prepared: Prepared, run: Run) -> Prepared | Outcome:
        """Take a restored call through availability and step 5 once more; hooks are not run again."""
        prepared.trace = self._trace(prepared.call, run, prepared.plan)
        with prepared:
            refused = await pass_again(prepared, run)
            return prepared if refused is None else close(prepared.trace, refused)

    # --- perform: step 6

    def performed(self, prepared: Prepared, value: Any = None, error: Exception | None = None) -> Performed:
        """Return what `finish` takes for a prepared call that the host's own code executed."""
        begin(prepared)
        return Performed(prepared, value, error)

    async def perform(self, prepared: Prepared, run: Run) -> Performed | Outcome:
        """Run the tool of a prepared call, once.

        Returns:
            What `finish` takes; or the outcome, when the tool itself asked for approval and did not get it.
        """
        plan = prepared.plan
        if prepared.trace is not None:
            begin(prepared)
        performed = Performed(prepared)
        try:
            if prepared.approved is not None:
                prepared.require_approved(prepared.arguments)
            free = run.limits is None or run.limits.concurrency is None
            if free and plan.direct and plan.body is not None:
                if prepared.trace is None:
                    performed.value = await plan.body.call(prepared.arguments, prepared.ctx, plan.timeout)
                else:
                    with prepared.within():
                        performed.value = await plan.body.call(prepared.arguments, prepared.ctx, plan.timeout)
            else:
                async with run.slot():
                    with prepared.within():
                        performed.value = await execute(prepared)
            return performed
        except HookRaised as raised:
            return observer_failed(prepared, run, raised)
        except Exception as error:  # the tool's own code: what it raised becomes the outcome
            performed.error = error
        except BaseException:
            prepared.cut_off()
            raise
        with prepared:
            if isinstance(performed.error, ApprovalRequired):
                late = await asked_late(performed, run)
                return await self.perform(prepared, run) if late is None else late  # it did nothing before it asked
        return performed

    # --- finish: steps 7 and 8

    async def finish(self, performed: Performed, run: Run) -> Outcome:
        """Let the post hooks at the result or the exception, and close the call's record."""
        prepared = performed.prepared
        outcome: Outcome | None = None
        if prepared.plan.held:
            with prepared, prepared.within():
                outcome = await apply_post(performed, run)
        return self._concluded(performed, run) if outcome is None else close(prepared.trace, outcome)

    def finished(self, performed: Performed, run: Run) -> Outcome | None:
        """Return what `finish` does, at once; None where a post hook has to be awaited, and nothing was done."""
        return None if performed.prepared.plan.held else self._concluded(performed, run)

    def _concluded(self, performed: Performed, run: Run) -> Outcome:
        """Return what a call came to that nobody touches any more, and close its record."""
        prepared = performed.prepared
        plan, call_id = prepared.plan, prepared.call.id
        if performed.error is None:
            outcome = completed(plan.name, call_id, performed.value, plan.max_result_chars)
            if run.requirements:
                run.completed.add(plan.name)
        else:
            outcome = tool_failure(plan, call_id, run, performed.error)
        return outcome if prepared.trace is None else close(prepared.trace, outcome)

    # --- inside

    def _plan(self, name: str) -> Plan | None:
        """Return a tool's plan, made when the tool is first called; None for a name that is not in the toolset."""
        plan = self._plans.get(name)
        if plan is None and name in self.toolset:
            plan = self._plans[name] = Plan(self.toolset[name], self._hooks, self._executor)
        return plan

    def _trace(self, call: ToolCall, run: Run, plan: Plan | None) -> Trace | None:
        logs = calls_log.isEnabledFor(logging.INFO)
        if not (logs or self._sinks or run.sinks):
            return None
        sinks = merged_sinks(self._sinks, run.sinks)
        about = "" if plan is None else plan.entry.description
        return Trace(call, run, (*sinks, _LOG_SINK) if logs else sinks, about)

    def _refusal(self, plan: Plan, call: ToolCall, run: Run) -> Outcome | None:
        if not offered(plan.entry, run):
            return not_offered(plan.name, call.id)
        if run.limits is None:
            return None
        spent = run.admit(plan.name)
        return None if spent is None else Rejected(plan.name, call.id, str(spent), "limit")

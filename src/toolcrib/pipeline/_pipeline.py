"""Pipeline: the one way a tool is run for a model.

`admit` asks every gate, `execute` runs the tool, `finish` runs the post hooks on the result and closes the record.
`run` and `stream` are made of them, and `recover` is the one way back for a call that was stored.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Never, TypeAlias, overload

from typing_extensions import TypeIs

from toolcrib import calls
from toolcrib._run_sync import run_sync
from toolcrib.calls import Completed, Failed, Outcome, Suspended, ToolCall, Yielded
from toolcrib.errors import (
    ApprovalError,
    CallStateError,
    InvalidArguments,
    SchemaError,
    explain_missing,
    explain_options,
    raising_newer_forms,
    refuse_unknown_options,
)
from toolcrib.hooks import HookSet
from toolcrib.pipeline._admit import (
    admit,
    admit_at_once,
    admit_edited,
    admit_more,
    check_answer,
    ids_of,
    recover_call,
    restored_call,
)
from toolcrib.pipeline._approve import Answer
from toolcrib.pipeline._call import Call
from toolcrib.pipeline._execute import begin, execute, execution_outcome, process_value, values_of
from toolcrib.pipeline._failures import invalid_arguments, not_allowed, not_offered, unknown
from toolcrib.pipeline._finish import LateValues, close, completed_outcome, conclude, finish, refuse, set_result
from toolcrib.pipeline._live_call import LiveCall
from toolcrib.pipeline._pipeline_tools import PipelineTools, logs_calls
from toolcrib.pipeline._run import Run, require_run

Stored: TypeAlias = Suspended | Call | Mapping[str, Any]
"""A call that a step of the pipeline returned, or its JSON."""


@explain_missing(
    {
        **dict.fromkeys(
            ("ainvoke", "call", "call_tool", "execute_tool", "invoke"),
            "`await pipeline.run(ToolCall(name, arguments), run)`",
        ),
        **dict.fromkeys(("__enter__", "__aenter__"), "`async with toolset.open() as opened:`, and Pipeline(opened)"),
    }
)
@explain_options(
    {
        **dict.fromkeys(("approvals", "approver", "deps", "limits", "principal"), "Run(...), given with a call"),
        "budgets": "Toolset(...).with_gates(Budgets([...])), or Run(gates=[Budgets([...])])",
        "deliveries": "Toolset(...).with_deliveries(...), or Run(deliveries=[...])",
        "gates": "Toolset(...).with_gates(...), or Run(gates=[...])",
        "middleware": "Toolset(..., pre_hooks=..., post_hooks=...)",
    }
)
class Pipeline(PipelineTools):
    """Runs the tools of a toolset for every way of calling them.

    Args:
        tools: A toolset, a toolset class, or a sequence of tools.
        hooks: Decision hooks that are asked before the toolset's own.
        sinks: Where the events of every call go; the logger `toolcrib.calls` gets them in any case.
        executor: Wraps each execution.
    """

    # --- the whole way

    async def run(
        self,
        call: ToolCall | Stored,
        run: Run | None = None,
        *,
        grant: calls.Grant | calls.Denial | None = None,
        **unknown: Never,
    ) -> Outcome:
        """Run a call from its arguments to its outcome.

        Args:
            call: A new call; or a stored one, which is recovered: its hooks are not run again.
            run: The run it belongs to; a new one when None.
            grant: The answer to the approval request of this call, if it is known.

        Raises:
            Exception: The exception of an observer, unless the run has it fail the call.
            TypeError: An option is unknown; it may be one of the run: `run=Run(approver=...)`.
        """
        if unknown:
            refuse_unknown_options("pipeline.run()", unknown, {"run": Run.__name__, "grant": calls.Grant.__name__}, {})
        if type(call) is ToolCall:
            admitted: Any = self._arrived(call, Run() if run is None else run)
            if type(admitted) is LiveCall:
                admitted = admit_at_once(admitted) or await admit(admitted, grant)
        else:
            admitted = await self.admit(call, run, grant=grant)
        if type(admitted) is not LiveCall:
            return admitted
        if admitted.state != "executed" and (ended := await execute(admitted)) is not None:
            return ended
        plan, of_run = admitted.plan, admitted.run
        if plan.finish_is_async or of_run.delivery_steps or of_run.approvals is not None:
            return await finish(admitted)
        return conclude(admitted)

    def run_sync(
        self,
        call: ToolCall | Stored,
        run: Run | None = None,
        *,
        grant: calls.Grant | calls.Denial | None = None,
        **unknown: Never,
    ) -> Outcome:
        """Run a call as `run` does, from plain code; RuntimeError where an event loop runs already."""
        return run_sync(self.run(call, run, grant=grant, **unknown), instead="await pipeline.run(...)")

    @overload
    def stream(
        self, call: ToolCall | Stored, run: Run | None = None, *, grant: calls.Grant | calls.Denial | None = None
    ) -> AsyncGenerator[Yielded | Outcome, None]: ...
    @overload
    def stream(
        self,
        call: ToolCall | Stored,
        run: Run | None = None,
        *,
        grant: calls.Grant | calls.Denial | None = None,
        ended: Callable[[Outcome], None],
    ) -> AsyncGenerator[Any, None]: ...
    async def stream(
        self,
        call: ToolCall | Stored,
        run: Run | None = None,
        *,
        grant: calls.Grant | calls.Denial | None = None,
        ended: Callable[[Outcome], None] | None = None,
    ) -> AsyncGenerator[Any, None]:
        """Yield each value of a streaming tool as it comes, as `Yielded`, and at the end the outcome.

        Of a tool that returns, these are what it gave to `ctx.report`.
        Where post hooks need the whole result, the values come after them. Closing the iterator early stops the tool.

        Args:
            call: As for `run`, like `run` and `grant`.
            ended: Is given the outcome; the values then come as they are, which is quicker, and also those that a
                decision hook gave in the tool's place. The last of a tool that returns is its result.
        """
        plain = ended is not None
        admitted = await self.admit(call, run, grant=grant)
        if isinstance(admitted, LiveCall) and admitted.plan.streams_through and admitted.state == "admitted":
            ended_early: Outcome | None = None
            watched = admitted.watched
            with admitted:
                while admitted.state == "admitted":
                    results: list[Any] = []
                    async with values_of(admitted, results) as values:
                        async for value in values:  # no generator in between: each costs as much as a value
                            shown = await process_value(admitted, value) if watched else value
                            results.append(shown)
                            try:
                                yield shown if plain else Yielded(shown)
                            except BaseException as left:
                                admitted.execution = replace(admitted.execution, consumer_error=left)
                                raise
                    ended_early = await execution_outcome(admitted)
            outcome = await finish(admitted) if ended_early is None else ended_early
        else:
            entry = admitted.entry if is_call(admitted) else self.toolset.entries.get(admitted.tool)
            streams = entry is not None and entry.tool.is_streaming
            late = LateValues(admitted, self.run, streaming=streams, plain=plain)
            async with aclosing(late.values()) as rest:
                async for value in rest:
                    yield value if plain else Yielded(value)
            outcome = late.outcome
        if ended is not None:
            ended(outcome)
        else:
            yield outcome

    # --- admit: steps 1 to 5

    def receive(self, call: ToolCall, run: Run) -> Call | Failed:
        """Read a call before its gates are asked: nothing is counted, decided or recorded yet.

        Returns:
            What `admit` takes; or what is wrong with the call, of which `admit` makes the same outcome.
        """
        plan = self._plans.get(call.name) or self._plan(call.name)
        if plan is None:
            return unknown(self.toolset, call, run)
        if not run.offers(plan.entry):
            return not_offered(plan.name, call.id)
        if (refused := not_allowed(plan.entry, call)) is not None:
            return refused
        received = LiveCall(call, plan, run)
        try:
            received.read_arguments()
        except (InvalidArguments, SchemaError) as error:
            return invalid_arguments(plan.name, call.id, error)
        return received

    async def admit(
        self,
        call: ToolCall | Stored,
        run: Run | None = None,
        *,
        grant: calls.Grant | calls.Denial | None = None,
        hooks: HookSet | None = None,
    ) -> Call | Outcome:
        """Pass a call through every gate before the tool.

        Args:
            call: A new call, or one that `receive` has read; a stored one is recovered, and one that was admitted stays
                so.
            run: The run it belongs to; a new one when None. A call that was received has its run.
            grant: The answer to the approval request of this call, if it is known.
            hooks: Decision hooks for this call alone, asked before the others; of a call that is new.

        Returns:
            The call, `admitted`, for `execute`; or the outcome, when a gate ends it.

        Raises:
            CallStateError: The call has ended, or was begun.
            TypeError: Hooks are given for a call that is admitted; see `readmit`.
        """
        if isinstance(call, ToolCall):
            arrived = self._arrived(call, Run() if run is None else run)
            if not isinstance(arrived, LiveCall):
                return arrived
            live, read = arrived, False
        elif not isinstance(call, LiveCall) and isinstance(call, Suspended | Mapping):
            return await self.recover(call, run, grant=grant)
        else:
            live, read = _live(call), True
            if live.state == "admitted" and hooks is not None:
                raise TypeError(
                    f"the call {live.id} of `{live.name}` is admitted: ask further hooks about it with "
                    "`await pipeline.readmit(call, hooks=hooks)`"
                )
            if live.done_before or live.state == "admitted":
                return live
            _require_open(live)
            live.trace = self._trace(live.received, live.run, live.plan)
        if hooks is not None:
            live.extra_hooks = (*live.extra_hooks, hooks)
        return admit_at_once(live, read) or await admit(live, grant, read=read)

    async def readmit(
        self, call: Call, *, hooks: HookSet | None = None, arguments: Mapping[str, Any] | None = None
    ) -> Call | Outcome:
        """Ask gates about a call that was admitted and not executed: further hooks, or all hooks about an edit.

        Args:
            call: The call; one that was only received is admitted.
            hooks: Decision hooks for this call alone, which are asked besides.
            arguments: The host's arguments in the place of those that it has: every hook is asked about them.

        Returns:
            As `admit`.

        Raises:
            CallStateError: The call has ended, or was begun.
            InvalidArguments: The host's arguments do not fit; the call is as it was.
        """
        live = _live(call)
        if live.done_before:
            return live
        _require_open(live)
        if arguments is not None:
            live.edit(arguments)
        if live.state == "received":
            return await self.admit(live, hooks=hooks)
        if hooks is not None:
            live.extra_hooks = (*live.extra_hooks, hooks)
        if arguments is not None:
            return await admit_edited(live)
        return live if hooks is None else await admit_more(live, hooks)

    def admit_now(self, call: Call) -> bool:
        """Admit a call that `receive` has read, where nothing stands before its tool and no sink hears of it.

        Returns:
            Whether it is admitted; else it is as it was, and `admit` asks its gates.
        """
        live = _live(call)
        if live.state != "received" or self._sinks or live.run.sinks or logs_calls(logging.INFO):
            return False
        return admit_at_once(live, True) is live

    def restore(self, state: Mapping[str, Any], run: Run) -> Call | Failed:
        """Return the call that `Call.to_dict` described, no gate asked; Failed when the tool does not take it now.

        Have `recover` ask before it is executed.
        """
        plan, received = self._plan(state["name"]), ToolCall(state["name"], state["arguments"], state["id"])
        if plan is None:
            return refuse(run, received, None, unknown(self.toolset, received, run))
        try:
            return restored_call(plan, state, run)
        except (ApprovalError, InvalidArguments, SchemaError) as error:
            return refuse(run, received, None, invalid_arguments(plan.name, state["id"], error), plan.entry)

    async def recover(
        self,
        state: Stored | ToolCall,
        run: Run | None = None,
        *,
        grant: calls.Grant | calls.Denial | None = None,
        begun: int = 1,
        used: calls.Grant | None = None,
    ) -> Call | Outcome:
        """Recover a call that was stored: availability, limits and approval are asked again, hooks are not.

        A call that was begun and is not known to have ended is executed again when its tool is idempotent, with the
        same key. Otherwise it is suspended, and its request says that it is in doubt: `request.grant()` has it done,
        `request.done(result)` gives its result if it was done, and `request.deny()` leaves it.

        Args:
            state: A suspended call, the JSON of `Call.to_dict`, or what `restore` made of that. A `ToolCall` is one
                that was begun, and of which nothing else was kept: all its gates are asked, and it is in doubt.
            run: The run it goes on in; a new one when None.
            grant: The answer to its request, if it is known.
            begun: How often a call of which only its `ToolCall` was kept may have been executed: each time is asked
                about by a request of its own.
            used: The grant by which such a call was begun: it serves the call of an idempotent tool again, as long as
                it fits.

        Returns:
            As `admit`. A call that was done already is `executed`, and `execute` leaves it as it is.

        Raises:
            CallStateError: The call has ended.
            ApprovalError: The arguments that the grant gives do not fit the tool; the call is as it was, and so is the
                grant's request.
            InvalidOutput: The result that the grant gives does not fit the tool; the call is as it was.
            NewerForm: The state, or what a gate reads, is in a newer version than this one; the call is as it was.
            ValueError: It is not the state of a call: a field is missing.
        """
        run = Run() if run is None else run
        with raising_newer_forms():
            return await self._recover(state, run, grant, begun, used)

    async def _recover(
        self, state: Stored | ToolCall, run: Run, grant: Answer | None, begun: int, used: calls.Grant | None
    ) -> Call | Outcome:
        name, call_id = ids_of(state)
        plan, received = self._plan(name), ToolCall(name, {}, call_id)
        check_answer(plan, name, grant, state, run)
        trace = self._trace(received, run, plan)
        if plan is None:
            return refuse(run, received, trace, unknown(self.toolset, received, run))
        return await recover_call(LiveCall(received, plan, run, trace), state, grant, begun, used)

    def check_answer(
        self,
        name: str,
        answer: calls.Grant | calls.Denial | None,
        state: Stored | ToolCall | None = None,
        run: Run | None = None,
    ) -> None:
        """Check that an answer is one, and what it gives: the result of a call in doubt, or other arguments.

        Args:
            name: The tool.
            answer: The answer; nothing is checked without one.
            state: The call, as `recover` takes it; when None, arguments are not checked.
            run: The run it goes on in.

        Raises:
            ApprovalError: The tool does not take the arguments.
            InvalidOutput: The result is not of the type that the tool of this name declares.
            TypeError: It is not an answer.
        """
        check_answer(self._plan(name), name, answer, state, run)

    # --- execute: step 6

    async def execute(self, call: Call) -> Call | Outcome:
        """Run the tool of an admitted call, once.

        Returns:
            The call, `executed`, for `finish`; or the outcome, when the tool itself asked for approval and did not get
            it.

        Raises:
            CallStateError: It was executed before.
            Exception: The exception of an observer, unless the run has it fail the call.
        """
        live = _live(call)
        if live.state == "executed" and live.done_before:
            return live
        outcome = await execute(live)
        return live if outcome is None else outcome

    def executed(self, call: Call, value: Any = None, error: Exception | None = None) -> Call:
        """Return a call as `executed`, with the host's result in the place of the tool's.

        Raises:
            CallStateError: It is closed, or did not pass its gates.
        """
        live = _live(call)
        if live.state not in ("executing", "executed"):  # `executing` is one whose execution was broken off
            begin(live)
        set_result(live, value, error)
        return live

    # --- finish: steps 7 and 8

    async def finish(self, call: Call) -> Outcome:
        """Run the post hooks on the result or the exception of an executed call, and close its record."""
        return await finish(_live(call))

    def finish_now(self, call: Call) -> Outcome | None:
        """Return the result of `finish` at once; None where something must be awaited, and nothing was done."""
        live = _live(call)
        plan, run = live.plan, live.run
        waits = plan.finish_is_async or run.delivery_steps or (run.approvals is not None and live.is_noted)
        return None if waits else conclude(live)

    async def completed(self, name: str, call_id: str, value: Any, run: Run) -> Completed | Failed:
        """Return a result that the host or a hook gives in the place of a tool's, shown to a model as the tool's is."""
        plan = self._plan(name)
        if plan is None:
            return Completed(name, call_id, value, "hook")
        return await completed_outcome(LiveCall(ToolCall(name, {}, call_id), plan, run), value)

    def discard(self, call: Call) -> None:
        """Close the record of a call as cancelled, unless it was made: it will not be answered."""
        _live(call).close_cancelled()

    def answer(self, call: Call, outcome: Outcome) -> Outcome:
        """Close a call with an outcome of the host's own, in the place of the tool's."""
        live = _live(call)
        return close(live, outcome) if live.outcome is None or live.state != "closed" else live.outcome

    def provide(self, call: Call, values: Mapping[str, Any]) -> None:
        """Add values for injected parameters of one call."""
        live = _live(call)
        if values and live.ctx is None:
            live.enter()
        if values and live.ctx is not None:
            live.ctx.provided = {**live.ctx.provided, **values}

    def conclude(self, call: Call) -> Outcome:
        """Close an executed call with its result as it is: neither post hooks nor deliveries have it."""
        return conclude(_live(call))

    # --- inside

    def _arrived(self, call: ToolCall, run: Run) -> LiveCall | Outcome:
        """Return the call that a request makes, `received`; the outcome for one of an unknown tool."""
        if not isinstance(run, Run):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            require_run(run)
        plan = self._plans.get(call.name) or self._plan(call.name)
        trace = self._trace(call, run, plan) if self._sinks or run.sinks or logs_calls(logging.INFO) else None
        if plan is None:
            return refuse(run, call, trace, unknown(self.toolset, call, run))
        return LiveCall(call, plan, run, trace)


def is_call(step_result: Call | Outcome) -> TypeIs[Call]:
    """Return whether a step of the pipeline returned the call, and not its outcome."""
    return isinstance(step_result, LiveCall)


def _require_open(call: LiveCall) -> None:
    """Check that a call has neither ended nor begun; raises CallStateError."""
    if call.state not in ("received", "admitted"):
        raise CallStateError(call.name, call.id, call.state)


def _live(call: Call) -> LiveCall:
    if not isinstance(call, LiveCall):
        problem = f"`{type(call).__name__}` is not a call"
        raise TypeError(
            f"{problem}: give ToolCall(name, arguments) to `run` and `admit`, and to the other steps the call that "
            "`admit` returned"
        )
    return call

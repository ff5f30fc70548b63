"""PipelineTools: the tools of a pipeline, compiled, with their gates and the sinks of their calls."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from toolcrib import calls, record
from toolcrib.calls import ToolCall
from toolcrib.errors import UnknownTool
from toolcrib.hooks import GateStep, HookSet, require_hooks
from toolcrib.pipeline._call import Executor
from toolcrib.pipeline._compiled_tool import CompiledTool
from toolcrib.pipeline._gates import run_steps, steps_between, tool_steps
from toolcrib.pipeline._run import Run
from toolcrib.toolsets import ToolEntry, Toolset, ToolsetLike, shortener_of

# The logger `calls_log` of `record`, by its name: a call without sinks does not load the room.
logs_calls = logging.getLogger("toolcrib.calls").isEnabledFor


class PipelineTools:
    """The tools of a pipeline, each compiled when it is first called, and where the events of their calls go."""

    def __init__(
        self,
        tools: ToolsetLike,
        *,
        hooks: HookSet | None = None,
        sinks: Iterable[record.Sink] = (),
        executor: Executor | None = None,
    ) -> None:
        self.toolset = Toolset.of(tools)
        self.toolset.require_open()
        self._sinks = record.require_sinks("Pipeline", sinks) if sinks else ()
        require_hooks("Pipeline", hooks)
        if hooks is not None:
            hooks.check(self.toolset.entries)
        self._hooks, self._executor = hooks, executor
        self._plans: dict[str, CompiledTool] = {}
        self.toolset.listen_for_renewal(self)

    def __repr__(self) -> str:
        return f"<Pipeline of {self.toolset!r}>"

    @property
    def sinks(self) -> tuple[record.Sink, ...]:
        """The sinks of the events of every call."""
        return self._sinks

    def sinks_for(self, run: Run) -> tuple[record.Sink, ...]:
        """Return where the events of a run's calls go, with the log where that wants them."""
        sinks = record.merged_sinks(self._sinks, run.sinks) if run.sinks else self._sinks
        return (*sinks, record.LogSink()) if logs_calls(logging.INFO) else sinks

    def gates_for(self, entry: ToolEntry) -> tuple[GateStep, ...]:
        """Return the gates of a tool, asked for once: a subclass that executes nothing may leave some out."""
        return tool_steps(entry, self._hooks)

    def check_run(self, run: Run) -> None:
        """Check that the gates of a host's run are about tools by their names; raises ToolConstraintError.

        An adapter does where the run comes to the tools: a call would be refused, and a model be told of it.
        """
        if run.compiled_gates != ():
            self.toolset.require_named(run_steps(run))

    def renewed(self) -> None:
        """Forget what is known of the tools: a source of the toolset has others now."""
        self._plans.clear()

    def explain(self, name: str, run: Run | None = None) -> str:
        """Return the steps between a call of a tool and its function, in order: a line for each gate and delivery.

        Args:
            name: The tool.
            run: The run of the calls, whose options have gates, too; a run without options when None.

        Raises:
            UnknownTool: The toolset has no such tool.
        """
        steps = enumerate(self.explained_steps(name, run), 1)
        return "\n".join(f"{number:>2} {stage:<9} {text}" for number, (stage, text) in steps)

    def explained_steps(self, name: str, run: Run | None = None) -> list[tuple[str, str]]:
        """Return the lines of `explain` as stages and names; raises what it does."""
        plan = self._plan(name)
        if plan is None:
            raise UnknownTool(name, tuple(self.toolset.entries))
        return steps_between(plan, Run() if run is None else run)

    def is_current(self, request: calls.ApprovalRequest) -> bool:
        """Return whether a request is about the tool as it is now; a tool that is gone has not changed."""
        plan = self._plan(request.tool)
        return plan is None or plan.definition == request.definition

    def wants_context(self, name: str) -> bool:
        """Return whether a tool or its gates are given the run context."""
        plan = self._plan(name)
        return plan is None or plan.wants_ctx

    def has_deliveries(self, name: str, run: Run) -> bool:
        """Return whether results of a tool pass deliveries in a run: what came beside its value has not passed them."""
        plan = self._plan(name)
        return bool(run.delivery_steps) or (plan is not None and bool(plan.deliveries))

    def _plan(self, name: str) -> CompiledTool | None:
        """Return a tool's plan, made when the tool is first called; None for a name that is not in the toolset."""
        plan = self._plans.get(name)
        if plan is None and name in self.toolset:
            entry = self.toolset[name]
            shortener, steps = shortener_of(entry, self.toolset), self.gates_for(entry)
            plan = CompiledTool(entry, self.toolset, self._hooks, self._executor, shortener, steps)
            self._plans[name] = plan
        return plan

    def _trace(self, call: ToolCall, run: Run, plan: CompiledTool | None) -> record.Trace | None:
        sinks = self.sinks_for(run)
        return record.Trace(call, run, sinks, "" if plan is None else plan.description) if sinks else None

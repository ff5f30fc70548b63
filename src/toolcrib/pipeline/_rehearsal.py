"""Rehearsal: the gates of a pipeline, asked about recorded calls. No tool is executed, and no post hook runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.calls import DecisionNote, Outcome, Suspended, ToolCall
from toolcrib.hooks import HookSet
from toolcrib.pipeline._call import Call
from toolcrib.pipeline._compiled_tool import CompiledTool
from toolcrib.pipeline._gates import DECISION_HOOKS, PRE_HOOKS
from toolcrib.pipeline._live_call import LiveCall
from toolcrib.pipeline._pipeline import Pipeline
from toolcrib.pipeline._run import Run
from toolcrib.toolsets import Toolset, ToolsetLike

__all__ = ["Rehearsal", "Rehearsed"]


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What the gates gave for a call.

    Attributes:
        made: The admitted call, or the outcome that a gate gave.
        notes: What decision hooks and the policy decided, in order.
        arguments: The final arguments, secrets hidden, of an admitted call; else None.
    """

    made: Call | Outcome
    notes: tuple[DecisionNote, ...]
    arguments: Mapping[str, Any] | None


class Rehearsal:
    """Asks every gate before a tool about calls that were made before, and executes none of them.

    No sink and no log has the calls, and no principal is asked for consent.

    Args:
        tools: A toolset, a toolset class, or a sequence of tools.
        hooks: Decision hooks that are asked before the toolset's own.
        asks_hooks: Whether decision hooks and pre hooks run; they are the host's code, and may do anything.
    """

    def __init__(self, tools: ToolsetLike, *, hooks: HookSet | None = None, asks_hooks: bool = True) -> None:
        self._pipeline = _Gates(tools, hooks, asks_hooks=asks_hooks)

    @property
    def toolset(self) -> Toolset:
        """The tools."""
        return self._pipeline.toolset

    async def admit(self, call: ToolCall | Suspended, run: Run, *, hooks: HookSet | None = None) -> Rehearsed:
        """Pass a call, or one that was suspended, through every gate before the tool; as `Pipeline.admit`."""
        self._pipeline.latest = None
        made = await self._pipeline.admit(call, run, hooks=hooks)
        live = made if isinstance(made, LiveCall) else self._pipeline.latest
        notes = () if live is None else live.notes
        return Rehearsed(made, notes, made.args.for_display if isinstance(made, LiveCall) else None)

    def stand_in(self, call: Call, value: Any = None, error: Exception | None = None) -> Outcome:
        """Close an admitted call with what came of it when it was made: it counts, and the run reads its result.

        Raises:
            CallStateError: It has a result already, or did not pass its gates.
        """
        return self._pipeline.stand_in(call, value, error)


class _Gates(Pipeline):
    def __init__(self, tools: ToolsetLike, hooks: HookSet | None, *, asks_hooks: bool) -> None:
        super().__init__(tools, hooks=hooks)
        self._asks_hooks = asks_hooks
        self.latest: LiveCall | None = None

    def _arrived(self, call: ToolCall, run: Run) -> LiveCall | Outcome:
        made = super()._arrived(call, run)
        self.latest = made if isinstance(made, LiveCall) else None
        return made

    def stand_in(self, call: Call, value: Any, error: Exception | None) -> Outcome:
        live: Any = self.executed(call, value, error)
        return self._concluded(live)

    def _plan(self, name: str) -> CompiledTool | None:
        is_new = name not in self._plans
        plan = super()._plan(name)
        if plan is not None and is_new:
            left_out = {step for step in plan.steps if step.resume is not None}  # it may ask another server
            if not self._asks_hooks:
                left_out.update((DECISION_HOOKS, PRE_HOOKS), plan.entry.gates)
                plan.hook_sets = ()
            plan.set_steps(tuple(step for step in plan.steps if step not in left_out))
        return plan

    def _trace(self, call: ToolCall, run: Run, plan: CompiledTool | None) -> None:
        return None

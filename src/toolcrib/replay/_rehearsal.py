"""Rehearsal: the gates of a pipeline, asked about recorded calls. No tool is executed, and no post hook runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.calls import DecisionNote, Outcome, Suspended, ToolCall
from toolcrib.hooks import GateStep, HookSet
from toolcrib.pipeline import Call, Pipeline, Run, is_call
from toolcrib.record import Sink
from toolcrib.toolsets import ToolEntry, Toolset, ToolsetLike

_OF_HOOKS = ("decide", "edit")  # stages


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """The decision of the gates about a call.

    Attributes:
        result: The admitted call, or the outcome that a gate gave.
        notes: The decisions of decision hooks and the policy, in order.
        arguments: The final arguments, secrets hidden, of an admitted call; else None.
    """

    result: Call | Outcome
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
        received = self._pipeline.receive(call, run) if isinstance(call, ToolCall) else call
        if is_call(received):
            result = await self._pipeline.admit(received, run, hooks=hooks)
            notes = received.notes
        else:
            result = await self._pipeline.admit(call, run, hooks=hooks)
            notes = result.notes if is_call(result) else ()
        return Rehearsed(result, notes, result.shown_arguments if is_call(result) else None)

    def stand_in(self, call: Call, value: Any = None, error: Exception | None = None) -> Outcome:
        """Close an admitted call with the outcome that it had: it counts, and the run reads its result.

        Raises:
            CallStateError: It has a result already, or did not pass its gates.
        """
        return self._pipeline.conclude(self._pipeline.executed(call, value, error))


class _Gates(Pipeline):
    def __init__(self, tools: ToolsetLike, hooks: HookSet | None, *, asks_hooks: bool) -> None:
        super().__init__(tools, hooks=hooks)
        self._asks_hooks = asks_hooks

    def gates_for(self, entry: ToolEntry) -> tuple[GateStep, ...]:
        steps = (step for step in super().gates_for(entry) if step.resume is None)  # such a gate may ask another server
        if self._asks_hooks:
            return tuple(steps)
        return tuple(step for step in steps if step.stage not in _OF_HOOKS and step not in entry.gates)

    def sinks_for(self, run: Run) -> tuple[Sink, ...]:
        return ()

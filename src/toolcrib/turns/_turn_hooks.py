"""Hooks of a turn, called when it begins and when it ends."""

from __future__ import annotations

from typing import cast

from toolcrib.calls import Outcome
from toolcrib.hooks import TurnHook
from toolcrib.turns._binding import ObservedTurn, Table, TurnBinding, fire_event
from toolcrib.turns._stop_reason import StopReason, error_of

__all__ = ["fire_begin", "fire_end"]


async def fire_begin(turn: ObservedTurn, binding: TurnBinding, table: Table) -> None:
    """Call the hooks in `table` as a turn begins, unless they were called before it was cut off."""
    if not binding.taken_up:
        await fire_event(table, TurnHook.BEFORE_RUN, turn, ctx=binding.ctx)


async def fire_end(turn: ObservedTurn, binding: TurnBinding, table: Table, error: Exception | None) -> None:
    """Call the hooks in `table` as a turn ends, which raised `error` if it raised anything."""
    ctx, reason, outcome = binding.ctx, turn.stop_reason, turn.outcome
    if reason is StopReason.COMPLETED:
        await fire_event(table, TurnHook.AFTER_RUN, turn, ctx=ctx)
    elif reason is StopReason.TIMEOUT:
        await fire_event(table, TurnHook.ON_TIMEOUT, turn, ctx=ctx)
    elif reason is StopReason.ERROR and (error is not None or outcome is not None):
        what = error if error is not None else error_of(cast("Outcome", outcome))
        await fire_event(table, TurnHook.ON_ERROR, turn, what, ctx=ctx)
    await fire_event(table, TurnHook.ON_COMPLETE, turn, reason, ctx=ctx)

"""The moments of a turn that its hooks are told of."""

from __future__ import annotations

from typing import cast

from toolcrib.calls import Outcome
from toolcrib.hooks import TurnHook
from toolcrib.turns._binding import Table, TurnBinding, Watched, tell
from toolcrib.turns._stop_reason import StopReason, error_of

__all__ = ["tell_begin", "tell_end"]


async def tell_begin(turn: Watched, binding: TurnBinding, table: Table) -> None:
    """Tell the hooks in `table` that a turn begins, unless they were told of it before it was cut off."""
    if not binding.taken_up:
        await tell(table, TurnHook.BEFORE_RUN, turn, ctx=binding.ctx)


async def tell_end(turn: Watched, binding: TurnBinding, table: Table, error: Exception | None) -> None:
    """Tell the hooks in `table` how a turn ended, which raised `error` if it raised anything."""
    ctx, reason, outcome = binding.ctx, turn.stop_reason, turn.outcome
    if reason is StopReason.COMPLETED:
        await tell(table, TurnHook.AFTER_RUN, turn, ctx=ctx)
    elif reason is StopReason.TIMEOUT:
        await tell(table, TurnHook.ON_TIMEOUT, turn, ctx=ctx)
    elif reason is StopReason.ERROR and (error is not None or outcome is not None):
        what = error if error is not None else error_of(cast("Outcome", outcome))
        await tell(table, TurnHook.ON_ERROR, turn, what, ctx=ctx)
    await tell(table, TurnHook.ON_COMPLETE, turn, reason, ctx=ctx)

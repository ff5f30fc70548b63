"""What a stream gives of a call whose values cannot be given as they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from toolcrib.calls import Completed, Outcome
from toolcrib.pipeline._plan import Performed, Plan, Prepared
from toolcrib.pipeline._run import Run

__all__ = ["at_once"]


class Steps(Protocol):
    """The pipeline, as far as this is made of it."""

    async def perform(self, prepared: Prepared, run: Run) -> Performed | Outcome: ...
    async def finish(self, performed: Performed, run: Run) -> Outcome: ...


async def at_once(
    steps: Steps, plans: Mapping[str, Plan], prepared: Prepared | Outcome, run: Run, *, plain: bool
) -> tuple[Outcome, list[Any]]:
    """Return the outcome and the values of a call whose values cannot be given before the end, or that ended."""
    if isinstance(prepared, Prepared):
        made = await steps.perform(prepared, run)
        outcome = await steps.finish(made, run) if isinstance(made, Performed) else made
    else:
        outcome = prepared
    if not isinstance(outcome, Completed) or (outcome is prepared and not plain):
        return outcome, []
    if plans[outcome.tool].streaming:
        return outcome, _several(outcome.value)
    return outcome, [outcome.value] if plain else []


def _several(value: Any) -> list[Any]:
    """Return a stream's values after post hooks, which may have made one value of them."""
    return cast("list[Any]", value) if isinstance(value, list) else [value]

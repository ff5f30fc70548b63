"""Results as values of an outcome, of which those that are too long to be shown are kept in a result store."""

from __future__ import annotations

from typing import Any

from toolcrib import results
from toolcrib.calls import Completed, Failed, KeptResult
from toolcrib.pipeline._failures import offered
from toolcrib.pipeline._live_call import LiveCall
from toolcrib.pipeline._middleware import deliver_result
from toolcrib.pipeline._plan import Plan
from toolcrib.pipeline._run import Run
from toolcrib.toolsets import ToolEntry, Toolset

__all__ = ["completed", "kept", "most_shown", "reader_in"]


def reader_in(toolset: Toolset, entry: ToolEntry) -> ToolEntry | None:
    """Return the tool that reads the results kept of another; None where these are cut."""
    if entry.results is None or entry.max_result_chars is None:
        return None
    return next((one for one in toolset if one.tool is entry.results.reader), None)


async def kept(plan: Plan, call_id: str, value: Any, run: Run) -> KeptResult | None:
    """Keep a result that is too long; None for any other, and where the run does not offer to read it."""
    reader, store, limit = plan.reader, plan.entry.results, plan.max_result_chars
    if reader is None or store is None or limit is None or not offered(reader, run):
        return None
    return await results.keep_result(
        store, value, results.Owner(run.principal, plan.name, call_id), run.reader, limit, reader.name
    )


def most_shown(plan: Plan, run: Run) -> int | None:
    """Return the most characters that are shown of a result; None for a program where longer ones are kept."""
    whole = plan.reader is not None and run.reader.value_chars is not None
    return None if whole else plan.max_result_chars


async def completed(call: LiveCall, value: Any) -> Completed | Failed:
    """Return the outcome of a call whose result a hook, a gate or the host gives; Failed where a delivery fails."""
    failed = await deliver_result(call.set_result(value))
    if failed is not None:
        return failed
    plan, run = call.plan, call.run
    shown = await kept(plan, call.id, call.value, run)
    return Completed(plan.name, call.id, call.value, "hook", most_shown(plan, run), shown)

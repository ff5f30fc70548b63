"""Executions of calls, noted in the run's approval store: their begin, right before the tool, and their end."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

from toolcrib import approvals
from toolcrib.calls import jsonable
from toolcrib.errors import ApprovalRequired, ResultNotSerializable
from toolcrib.pipeline._live_call import LiveCall

__all__ = ["BegunBefore", "forget_begin", "note_begin", "note_end", "note_interruption"]

_log = logging.getLogger("toolcrib.pipeline")

_MOST_CHARS = 1_000_000  # of a result that is stored, as JSON


class BegunBefore(ApprovalRequired):
    """The call was begun before, in this process or in another: its tool does not run now."""

    def __init__(self, entry: approvals.ApprovalEntry) -> None:
        super().__init__()
        self.entry = entry


async def note_begin(call: LiveCall) -> None:
    """Note that the tool of a call is about to run.

    Raises:
        BegunBefore: It may not.
    """
    store, request = call.run.approvals, call.request
    if store is None or request is None:
        return
    try:
        begun = await store.begin(request, call.grant, again=call.plan.tool.options.idempotent)
    except BaseException:
        call.update_execution(noted="ended")  # it has not begun, and the error is not its result
        raise
    if begun is not None:
        raise BegunBefore(begun)
    call.update_execution(noted="begun")


async def note_end(call: LiveCall) -> None:
    """Note what an executed call came to, before anyone outside has it; also of one that the host executed itself."""
    store, request = call.run.approvals, call.request
    if store is None or request is None or call.execution.noted == "ended":
        return
    if call.execution.noted is None and (call.error is not None or await store.begin(request, call.grant) is not None):
        return  # it failed before its tool began, or began elsewhere
    call.update_execution(noted="ended")
    try:
        await store.end(request, call.grant, _result_of(call))
    except Exception:  # the store is the user's code; the call was executed, and stays in doubt there
        _log.exception("it could not be noted that the call %s of `%s` has ended", call.id, call.name)


async def note_interruption(call: LiveCall) -> None:
    """Note that a call which was begun was broken off, also where its task is cancelled meanwhile."""
    store, request = call.run.approvals, call.request
    if store is not None and request is not None and call.execution.noted == "begun":
        call.update_execution(noted="ended")
        await asyncio.shield(asyncio.ensure_future(store.break_off(request, call.grant)))


async def forget_begin(call: LiveCall) -> None:
    """Note that a call without approval has not begun: its tool asked for approval before it did anything."""
    store, request = call.run.approvals, call.request
    if store is not None and request is not None and call.execution.noted == "begun" and call.grant is None:
        call.update_execution(noted=None)
        await store.undo(request)


def _result_of(call: LiveCall) -> Mapping[str, Any] | None:
    """Return what an executed call came to, as JSON shapes; None where it has no such form, or one that is too long."""
    if call.error is not None:
        return {"error": {"type": type(call.error).__name__, "message": str(call.error)}}
    try:
        result = {"value": jsonable(call.value, call.plan.name, media=True)}
    except ResultNotSerializable:
        return None
    return result if len(json.dumps(result)) <= _MOST_CHARS else None

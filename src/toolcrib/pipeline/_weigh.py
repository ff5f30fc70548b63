"""Provenance in the pipeline: the results of a run are remembered, and a call with a value of others is asked about."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final, cast

from toolcrib._arrow import is_table, table_rows
from toolcrib.calls import DecisionNote, ToolCall, lenient
from toolcrib.pipeline._live_call import LiveCall
from toolcrib.pipeline._run import Run
from toolcrib.provenance import Source
from toolcrib.tools import ToolOptions
from toolcrib.toolsets import ToolEntry

__all__ = ["recall", "remember", "weigh"]

_MOST_ROWS: Final = 50_000  # of a table
_SMALL: Final = 20_000  # characters, about, of results that are read on the event loop


async def weigh(call: LiveCall) -> None:
    """Note what a person has to be asked because of where the arguments come from.

    Tools that do nothing but read are not asked about, and a host's own arguments neither.
    """
    policy, options = call.run.provenance, call.tool.options
    if policy is None or call.received.origin == "host" or options.effect == "none":
        return
    memory = call.run.memory
    if not memory.is_settled:
        await asyncio.to_thread(memory.settle)
    questions = memory.judge(call.name, options.effect or "write", call.canonical().values, call.plan.content)
    if not questions or tuple(questions) == call.questions:
        return
    reason = "; ".join(each.text() for each in questions)
    if memory.last_words:
        reason = f"{reason}; you wrote: {memory.last_words}"
    note = DecisionNote("provenance", "run" if policy.dry_run else "ask", reason)
    call.notes = (*call.notes, note)
    if call.trace is not None:
        call.trace.decided(note)
    if not policy.dry_run:
        call.questions, call.asks = tuple(questions), (*call.asks, reason)


def remember(call: LiveCall) -> None:
    """Keep the result of a call, or its error, with what its tool declares of it.

    A long result is read when the next call is weighed, off the event loop.
    """
    memory, options = call.run.memory, call.tool.options
    memory.expect(call.id)
    arguments = call.canonical().values if call.received.origin == "model" else {}
    value, source = (call.value, options.source) if call.error is None else (str(call.error), "untrusted")
    if source is None:
        return

    def read() -> None:
        shapes = lenient(table_rows(value, 0, _MOST_ROWS) if is_table(value) else value)
        memory.read(call.name, call.id, arguments, shapes, source, options.readers)
        if is_table(value) and len(shapes) == _MOST_ROWS:
            memory.lose()  # there may be more rows, which are not looked at

    if memory.is_settled and _size(value, _SMALL) < _SMALL:
        read()
    else:
        memory.wait(read)


def recall(
    run: Run, entry: ToolEntry | None, call: ToolCall, value: Any, *, failed: bool = False, is_text: bool = False
) -> None:
    """Have a run read a result that it did not get by a call of its own, before its next call is weighed.

    Args:
        run: The run.
        entry: The tool; the results of one that is not known are untrusted.
        call: The call that had the result.
        value: The result, as JSON shapes.
        failed: Whether it is the text of an error.
        is_text: Whether it is the text that a model was shown: labels by field hold where it is whole JSON.
    """
    options = ToolOptions() if entry is None else entry.tool.options
    source: Source | None = "untrusted" if failed else options.source
    if source is None:
        return
    found = _json_in(value) if is_text else value

    def read() -> None:
        given = _json_in(call.arguments)
        named = {} if given in ("", "null") else {"input": given}
        arguments = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else named
        labels: Source = source
        if is_text and found is value and not isinstance(source, str):
            labels = "untrusted"
        try:
            labels = labels(arguments, found) if callable(labels) else labels
        except Exception:  # a function of the host's, which may not know a result by what a model was shown of it
            labels = "untrusted"
        run.memory.read(call.name, call.id, arguments, found, labels, options.readers)

    run.memory.wait(read)


def _json_in(value: Any) -> Any:
    """Return the JSON object or list that a text is; another value as it is."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _size(value: Any, most: int) -> int:
    """Return about how many characters a value has as JSON, or more than `most`."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, int | float | bool | None):
        return 1
    if not isinstance(value, Mapping | list | tuple):
        return most + 1  # any type: what it comes to as JSON is not known
    parts = cast("Mapping[Any, Any]", value).values() if isinstance(value, Mapping) else cast("list[Any]", value)
    size = len(parts)
    for part in parts:
        if size > most:
            break
        size += _size(part, most - size)
    return size

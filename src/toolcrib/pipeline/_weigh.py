"""Provenance in the pipeline: the results of a run are remembered, and a call with a value of others is asked about."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from toolcrib import provenance
from toolcrib._arrow import is_table, table_rows
from toolcrib.calls import DecisionNote, Rejected, ToolCall, lenient
from toolcrib.pipeline._live_call import LiveCall
from toolcrib.pipeline._run import Run
from toolcrib.schema import REDACTED
from toolcrib.toolsets import ToolEntry

__all__ = ["recall", "remember", "weigh"]

_MOST_ROWS: Final = 50_000  # of a table
_MOST_ORIGINS: Final = 50  # of one call, in its record
_READING: Final = frozenset({"none", "fetch"})
_SMALL: Final = 20_000  # characters, about, of results that are read on the event loop


async def weigh(call: LiveCall) -> Rejected | None:
    """Note what a person has to be asked because of where the arguments come from; return the refusal of a rule.

    Tools that do nothing but read are not asked about, and a host's own arguments neither.
    """
    policy = call.run.provenance
    if policy is None or call.received.origin == "host":
        return None
    labels = _labels(call)
    is_program = labels.effect == "program"
    if labels.effect == "none" or (is_program and not policy.frozen):
        return None
    memory = call.run.memory
    if not memory.is_settled:
        await asyncio.to_thread(memory.settle)
    settled: list[provenance.Question] | None = None if call.trace is None else []
    found = _found(call, labels, settled)
    questions = tuple(_shown(call, each) for each in found if labels.verdict(each.kind) != "allow")
    if questions and questions == call.approval.questions:
        return None
    known = [_shown(call, each) for each in (*found, *(settled or ()))][:_MOST_ORIGINS]
    origins = [each.origin() for each in known if each.path]
    if not questions:
        if call.trace is not None and origins:
            call.add_note(DecisionNote("provenance", "run", "", origins))
        return None
    refused = [each for each in questions if labels.verdict(each.kind) == "deny"]
    reason = "; ".join(dict.fromkeys(each.text() for each in refused or questions))
    if memory.last_words:
        reason = f"{reason}; you wrote: {memory.last_words}"
    if policy.dry_run:
        would = "refuse" if refused else "ask"
        call.add_note(DecisionNote("provenance", "run", f"dry run, it would {would}: {reason}", origins))
        return None
    call.add_note(DecisionNote("provenance", "reject" if refused else "ask", reason, origins))
    if refused:
        return Rejected(call.name, call.id, f"the policy does not allow it: {reason}")
    call.update_approval(questions=questions)
    lines: dict[str, Any] = {}
    if is_program:  # an argument is shown as one line
        shown = {each.argument: call.args.for_display[each.argument] for each in questions}
        lines = {name: text for name, text in shown.items() if "\n" in str(text)}
    call.add_reason(reason, lines)
    return None


def _found(
    call: LiveCall, labels: provenance.ToolLabels, settled: list[provenance.Question] | None
) -> list[provenance.Question]:
    """Return what a person may have to be asked about the arguments, by the rules; note what the call would write.

    Args:
        call: The call.
        labels: What the policy goes by.
        settled: Gets where the other values come from that decide something.
    """
    memory, values = call.run.memory, call.args.canonical.values
    content = labels.content_of(values)
    if labels.effect == "program":
        return memory.judge_programs(values, content)
    flows, given = call.received.flows or {}, call.plan.given(values)
    found = memory.judge(call.name, labels.effect, given, content, flows, settled)
    keys = memory.judge_keys(call.name, given, labels.fields)
    found += [each for each in keys if each.argument not in content]
    memory.write(provenance.Origin("untrusted", call.name, call.id), values, content)
    return found


def _labels(call: LiveCall) -> provenance.ToolLabels:
    """Return what the policy goes by for a call."""
    return _ruled(call.run, call.plan.labels, call.name, call.plan.entry)


def _ruled(run: Run, declared: provenance.ToolLabels, name: str, entry: ToolEntry | None) -> provenance.ToolLabels:
    """Return labels of a tool with what the rules of the run's policy say of it."""
    toolsets = () if entry is None else entry.toolsets
    return declared if run.provenance is None else run.provenance.labels(declared, name, toolsets, run.principal)


def _shown(call: LiveCall, question: provenance.Question) -> provenance.Question:
    """Return a question without its value and what could be guessed from, where the argument has a secret."""
    form = call.args.canonical
    name = question.argument
    is_secret = form.shown is not form.values and form.shown.get(name) != form.values.get(name)
    return replace(question, value=REDACTED, mark="") if is_secret else question


def remember(call: LiveCall) -> None:
    """Keep the result of a call, or its error, with what its tool declares of it.

    A long result is read when the next call is weighed, off the event loop.
    """
    memory, labels = call.run.memory, _labels(call)
    memory.expect(call.id)
    arguments = call.args.for_display if call.received.origin == "model" else {}
    value, source = (call.value, labels.source) if call.error is None else ({"error": str(call.error)}, "untrusted")
    if source is None and labels.effect == "program" and memory.reads_others:
        source = "untrusted"  # it may have made something else of what it read
    if source is None:
        memory.note_others(call.name)  # it returns what was read before, and whose that is cannot be said
        return

    def read() -> None:
        shapes = lenient(table_rows(value, 0, _MOST_ROWS) if is_table(value) else value)
        flows, echoes = call.received.flows or {}, labels.effect not in _READING
        memory.read(call.name, call.id, arguments, shapes, source, labels.readers, flows, echoes=echoes)
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
        entry: The tool; the results of one that is not known are untrusted, unless a rule names it.
        call: The call that had the result.
        value: The result, as JSON shapes.
        failed: Whether it is the text of an error.
        is_text: Whether it is the text that a model was shown: labels by field hold where it is whole JSON.
    """
    declared = provenance.ToolLabels()
    if entry is not None:
        options = entry.tool.options
        declared = provenance.ToolLabels(options.effect or "write", options.source, readers=options.readers)
    ruled = _ruled(run, declared, call.name, entry)
    source: provenance.Source = "untrusted" if failed or ruled.source is None else ruled.source
    found = {"error": value} if failed else _json_in(value) if is_text else value

    def read() -> None:
        given = _json_in(call.arguments)
        named = {} if given in ("", "null") else {"input": given}
        arguments = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else named
        labels: provenance.Source = source
        if is_text and found is value and not isinstance(source, str):
            labels = "untrusted"
        try:
            labels = labels(arguments, found) if callable(labels) else labels
        except Exception:  # a function of the host's, which may not know a result by what a model was shown of it
            labels = "untrusted"
        echoes = entry is not None and ruled.effect not in _READING
        run.memory.read(call.name, call.id, arguments, found, labels, ruled.readers, echoes=echoes)

    run.memory.is_whole = False
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

"""Page of one piece of durable work, for a person."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from toolcrib._numbers import count_text
from toolcrib.cli._formatting import arguments_text, result_text

_LINES = 30  # of a program that are shown


def when(seconds: float | None) -> str:
    """Return a time as this machine writes it; empty for None."""
    if seconds is None:
        return ""
    return datetime.fromtimestamp(seconds, UTC).astimezone().isoformat(" ", "seconds")[:19]


def work_page(work: Any, more: Mapping[str, Any]) -> str:
    """Return the page of a turn or program: its input, state, questions and result.

    Args:
        work: The `Work`.
        more: The details that `show_work` returns beside it.
    """
    program: Mapping[str, Any] = more.get("result") or {}
    value = value_of(work, more)
    facts = _facts(work, more).items()
    lines = [f"{work.kind} {work.id} is {work.state}"]
    lines += [f"  {name:<11}{' '.join(text.split())}" for name, text in facts if text]
    if work.kind == "program":
        code = str(more["input"].get("code", "")).rstrip().split("\n")
        cut = [f"({count_text(len(code) - _LINES, 'more line')})"] if len(code) > _LINES else []
        lines += _part("program", [*code[:_LINES], *cut])
        lines += _part("calls", _calls(more.get("calls") or (), program.get("tool_calls") or ()))
        lines += _part("output", str(program.get("output") or "").rstrip().split("\n"))
    if value not in (None, (), []):
        lines += _part("result", result_text(value).rstrip().split("\n"))
    return "\n".join(lines) + "\n"


def printed_result(work: Any, more: Mapping[str, Any]) -> str:
    """Return the output of an ended program, and the value of ended work, in lines."""
    program: Mapping[str, Any] = more.get("result") or {}
    printed = str(program.get("output") or "") if work.kind == "program" else ""
    value = value_of(work, more)
    return "".join(f"{text.rstrip()}\n" for text in (printed, "" if value is None else result_text(value)) if text)


def value_of(work: Any, more: Mapping[str, Any]) -> Any:
    """Return the value of a program; of a turn its value, or the list of several; None before it has ended."""
    program: Mapping[str, Any] = more.get("result") or {}
    if work.kind == "program":
        return program.get("return_value")
    output = more.get("output")
    if not isinstance(output, Mapping):
        return None
    record = cast("Mapping[str, Any]", output)
    returned, values = record["outcome"].get("value"), list(record.get("values", ()))
    return returned if returned is not None else values[0] if len(values) == 1 else values


def _facts(work: Any, more: Mapping[str, Any]) -> dict[str, str]:
    record = more["input"].get("turn")
    turn: Mapping[str, Any] = cast("Mapping[str, Any]", record) if isinstance(record, Mapping) else {}
    asks = f"{', '.join(work.waits_for)}; see `toolcrib approvals show ID`" if work.waits_for else ""
    asks += " (a call is in doubt)" if work.in_doubt else ""
    return {
        "of": work.target,
        "call": f"{turn['tool_name']}({arguments_text(turn['kwargs'])})" if turn else "",
        "why": work.error or "",
        "part of": f"the conversation {work.conversation_id}" if work.conversation_id else "",
        "schedule": work.schedule or "",
        "fork of": work.forked_from or "",
        "waits for": asks if work.state == "suspended" else "",
        "queue": work.queue or "",
        "priority": str(work.priority or ""),
        "key": work.key or "",
        "partition": work.partition or "",
        "attributes": " ".join(f"{name}={text}" for name, text in work.attributes.items()),
        "worker": work.worker or "",
        "begun": count_text(work.attempts, "time") if work.attempts > 1 else "",
        "enqueued": when(work.created_at),
        "started": when(work.started_at),
        "ended": when(work.ended_at),
    }


def _part(title: str, lines: list[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {line}" for line in lines)] if any(lines) else []


def _calls(calls: Sequence[Mapping[str, Any]], summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each call of a program: as its result has it, and of one that has not ended, as the journal."""
    by_id = {call["id"]: call for call in summaries}
    return [f"{number} {_call(call, by_id.get(call['id'], {}))}" for number, call in enumerate(calls, 1)]


def _call(call: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    arguments = arguments_text(summary.get("arguments"))
    result = summary.get("error") or (json.dumps(summary["result"], ensure_ascii=False) if "result" in summary else "")
    state = summary.get("outcome") or call["state"]
    return f"{call['tool']}({arguments}): {state}" + (f", {result}" if result else "")

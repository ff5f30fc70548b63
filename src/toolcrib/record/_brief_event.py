"""Kept events in one line each: a timeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolcrib.record._event_log import KeptEvent
from toolcrib.schema import Progress

_BRIEF = 160  # characters of an event
_NAMES = 20  # arguments of a call


def brief_event(event: KeptEvent) -> dict[str, Any]:
    """Return an event in a line."""
    source = event.source if event.source == "call" else str(event.data["activity"])
    view = {"position": event.position, "source": source, "run_id": event.run_id, "id": event.id}
    return view | {"kind": event.kind, "name": event.name, "at": event.at, "text": _brief(event)}


def _brief(event: KeptEvent) -> str:
    data: Mapping[str, Any] = event.data["data"]
    match event.kind:
        case "received" | "started":
            return one_line(data.get("arguments"))
        case "decided" if "approval" in data:
            return one_line(_answer(data["approval"]))
        case "decided":
            return one_line(" ".join(str(data.get(name) or "") for name in ("hook", "decision", "reason")).strip())
        case "suspended":
            return one_line(data["request"].get("reason") or "needs approval")
        case "yielded":
            return one_line(data.get("value"))
        case "progressed":
            return one_line(str(Progress(**data)))
        case "asked":
            names = ("text", "page", "fields")
            parts = "; ".join(str(data[name]) for name in names if data.get(name))
            return one_line(
                f"{data['what']} of the {data['of']}: {parts}" if parts else f"{data['what']} of the {data['of']}"
            )
        case "answered":
            by = f" by {data['by']}" if data.get("by") else ""
            why = f" ({data['error']})" if data.get("error") else ""
            return one_line(f"{data['what']}: {data['outcome']}{by}{why} after {data['duration_ms'] / 1000:.1f} s")
        case "logged":
            return one_line(f"{data['level']} {data['logger']}: {data['data']}")
        case "ended":
            outcome = data["outcome"]
            value = outcome.get("value", outcome.get("message") or outcome.get("reason") or "")
            return one_line(f"{outcome['kind']}  {value}")
        case "closed":
            parts = (data.get("outcome"), data.get("error"), _tokens(data.get("usage")))
            return one_line(" ".join(str(part) for part in parts if part))
        case _:
            return one_line(data.get("state") or "")


def _answer(answer: Mapping[str, Any]) -> str:
    by, message = answer.get("approver", ""), answer.get("message", "")
    if answer.get("done"):
        return f"{by} says that it was done; not run again{f': {message}' if message else ''}"
    return f"{'denied' if answer.get('kind') == 'denial' else 'approved'} by {by} {message}".strip()


def _tokens(usage: Mapping[str, Any] | None) -> str:
    """Return the tokens of requests to a model; empty where they are unknown."""
    if not usage or not (usage["input_tokens"] or usage["output_tokens"]):
        return ""
    cached = f" ({usage['cached_tokens']:,} cached)" if usage["cached_tokens"] else ""
    thoughts = usage.get("reasoning_tokens")
    reasoning = f" ({thoughts:,} reasoning)" if thoughts else ""
    return f"{usage['input_tokens']:,} tokens in{cached}, {usage['output_tokens']:,} out{reasoning}"


def one_line(value: Any) -> str:
    """Return arguments or another value as one line of text, cut."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        more = ["…"] if len(fields) > _NAMES else []
        value = ", ".join([*(f"{name}={item!r}" for name, item in list(fields.items())[:_NAMES]), *more])
    full = "" if value is None else str(value)
    text = " ".join(full[: _BRIEF * 4].split())
    return text if len(text) <= _BRIEF and len(full) <= _BRIEF * 4 else text[: _BRIEF - 1] + "…"

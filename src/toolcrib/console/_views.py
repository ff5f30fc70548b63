"""Views for the page, as JSON shapes: activities, one activity in full, requests with their forms, standing grants.

In a form a person edits arguments or gives a result. A value in it is the text that JSON has for it, or, of a text
field, the text itself: a browser's own numbers would lose digits.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, cast

from toolcrib._numbers import count_text
from toolcrib.approvals import ApprovalEntry, GrantForm, answer_row
from toolcrib.calls import DOUBT_ANSWERS, ApprovalRequest, cut
from toolcrib.errors import SchemaTooLarge
from toolcrib.jsonschema import SchemaWalk, alternatives, as_one, kinds_of, properties_of, values_of, wrapped
from toolcrib.record import (
    Activity,
    ActivityFilter,
    Ancestors,
    EventLog,
    KeptEvent,
    brief_event,
    one_line,
)

_DEEPEST_FIELDS = 3  # objects in one another; what is deeper is JSON text
_MOST_FIELDS = 40
_MOST_CHOICES = 100
_LONG_TEXT = 80
_LONGEST_HELP = 500
_MOST_LEVELS = 10  # of choices of one type, and references, in one another
_LONGEST_SHOWN = 60


def bound_fields(request: ApprovalRequest) -> list[dict[str, Any]]:
    """Return a field for each argument and part of one, for what it may be in further calls; none for too many."""
    if len(request.arguments) > _MOST_FIELDS:
        return []
    numbers = GrantForm.numbers(request)
    return [
        {
            "name": name,
            "value": cut(json.dumps(value, ensure_ascii=False), _LONGEST_SHOWN),
            "is_number": name in numbers,
            "suggestion": f"<= {value}" if name in request.arguments and _is_number(value) else "",
        }
        for name, value in GrantForm.places(request).items()
    ]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _TooMany(Exception):
    """The form would have more fields than a person fills in."""


def form_fields(schema: Mapping[str, Any] | None, arguments: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the fields of a form; None for a schema without any, or with too many."""
    if schema is None:
        return None
    try:
        return _Form(schema).fields(schema, arguments, 0) or None
    except (_TooMany, SchemaTooLarge):
        return None


def result_field(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the field in which a person gives the result of a call; `json` where no other holds its values."""
    root = wrapped(schema or {}, "Result")
    try:
        (field,) = _Form(root).fields(root, {}, 0)
    except (_TooMany, SchemaTooLarge):
        return result_field(None)
    return field | ({"name": "Result, as JSON"} if field["kind"] == "json" else {})


class _Form:
    """Makes the fields of one schema, which may be a stranger's."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._walk, self._left = SchemaWalk(root), _MOST_FIELDS

    def fields(self, schema: Mapping[str, Any], values: Mapping[str, Any], depth: int) -> list[dict[str, Any]]:
        """Return a field for each property of an object, and for each further value."""
        properties, required = properties_of(schema), schema.get("required", ())
        names = [*properties, *(name for name in values if name not in properties)]
        self._left -= len(names)
        if self._left < 0:
            raise _TooMany
        return [
            {
                "name": name,
                "required": name in required,
                "given": name in values,
                "help": cut(str(_mapping(properties.get(name)).get("description", "")), _LONGEST_HELP),
                **self._kind(_mapping(properties.get(name)), name in values, values.get(name), depth),
            }
            for name in names
        ]

    def _kind(self, about: Mapping[str, Any], is_given: bool, value: Any, depth: int) -> dict[str, Any]:
        """Return the kind of a field with its value; `json` where no other shows the value."""
        about, nullable = self._resolved(about)
        shown: dict[str, Any] = {"value": _text(value) if is_given else "", "nullable": nullable}
        kind = about.get("type")
        choices = values_of(about) or ([True, False] if kind == "boolean" else [])
        if 0 < len(choices) <= _MOST_CHOICES:
            texts = [_text(choice) for choice in (*choices, *((None,) if nullable and None not in choices else ()))]
            if not is_given or shown["value"] in texts:
                return {**shown, "kind": "choice", "choices": texts}
        is_closed = bool(properties_of(about)) and not about.get("additionalProperties")
        if kind == "object" and depth < _DEEPEST_FIELDS and is_closed and (isinstance(value, Mapping) or not is_given):
            return {**shown, "kind": "group", "fields": self.fields(about, _mapping(value), depth + 1)}
        if kind == "string" and _is_of(value, (str,), is_given, nullable):
            text = value if isinstance(value, str) else ""
            long = "\n" in text or len(text) > _LONG_TEXT
            return {**shown, "kind": "text", "value": text, "long": long, "null": is_given and value is None}
        if kind in ("integer", "number") and _is_of(value, (int, float), is_given, nullable):
            return {**shown, "kind": "number", "value": "" if value is None else shown["value"]}
        return {**shown, "kind": "json"}

    def _resolved(self, about: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
        """Return a schema behind its references, and whether it takes null beside what it is."""
        nullable = False
        for _ in range(_MOST_LEVELS):
            about = as_one({"allOf": [about]}, self._walk)
            parts = [_mapping(alternative) for alternative in alternatives(about)]
            parts = parts or [{**about, "type": kind} for kind in kinds_of(about)]
            others = [part for part in parts if part.get("type") != "null"]
            if len(others) != 1 or others == [about]:
                break
            about, nullable = others[0], nullable or len(parts) > 1
        return about, nullable


def _is_of(value: Any, types: tuple[type, ...], is_given: bool, nullable: bool) -> bool:
    if not is_given or (value is None and nullable):
        return True
    return isinstance(value, types) and not isinstance(value, bool)


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_SHOWN_ELSEWHERE = ("source", "run_id", "entry", "resumed")  # of the data of an `opened` event
_LIVE = ("running", "suspended")
_CHILDREN = 200
_EVENTS = 200
_FIRST = 20  # events of a call, among them `received`
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_MOST_CHANGES, _CHANGE_CHARS = 100, 2_000  # lines of a request, and characters of each
_SHORT_FACT = 100  # characters of a value in a line


def calls_asked_about(log: EventLog, pending: Iterable[ApprovalEntry]) -> frozenset[str]:
    """Return the ids of the calls with a pending request, and of the activities that these calls are part of."""
    calls = {entry.request.call_id for entry in pending}
    found = log.by_id(calls)
    return frozenset(calls | {activity.parent_id for activity in found if activity.parent_id is not None})


def activity_view(log: EventLog, activity: Activity, asked: Container[str] = ()) -> dict[str, Any]:
    """Return an activity; one with a pending request waits, though it has not said so yet."""
    if activity.status == "running" and activity.id in asked and activity.source in ("call", "turn", "program"):
        status, quiet_since = "suspended", None
    else:
        status, quiet_since = log.state(activity)
    return asdict(activity) | {"status": status, "quiet_since": quiet_since}


def detail_view(log: EventLog, activity: Activity, pending: Mapping[str, ApprovalEntry]) -> dict[str, Any]:
    """Return one call or run in full."""
    waiting = calls_asked_about(log, pending.values())
    inside = log.activities(ActivityFilter(parent_id=activity.id), limit=_CHILDREN)
    children = [child for child in inside if (child.source, child.id) != (activity.source, activity.id)]
    events = log.events(activity, limit=_EVENTS)
    parent = log.parent_of(activity)
    requests = [
        entry.request
        for entry in pending.values()
        if activity.source in ("call", "turn")
        and entry.request.call_id == activity.id
        and activity.run_id in ("", entry.request.run_id)
    ]
    view = {
        "activity": activity_view(log, activity, waiting),
        "parent": None if parent is None else activity_view(log, parent),
        "children": [activity_view(log, child, waiting) for child in children],
        "events": [brief_event(event) for event in events],
        "more_events": len(events) == _EVENTS,
        "requests": [request.id for request in requests],
    }
    if activity.source != "call":
        return view | _run_view(log, activity, children)
    asked = min((request.created_at.isoformat() for request in requests), default=None)
    values = _call_view(log, activity, is_asked=asked is not None)
    return view | values | _wait(log, activity, asked, values["approval"] or {})


def _call_view(log: EventLog, activity: Activity, *, is_asked: bool) -> dict[str, Any]:
    """Return the values of a call, without the arguments where a pending request shows them and how they changed."""
    received, started, ended = (log.latest(activity, kind) for kind in ("received", "started", "ended"))
    values: list[dict[str, Any]] = []
    final = None if started is None else started.data["data"].get("arguments")
    if started is not None:
        values.append(_value("Arguments", started, "data", "arguments"))
    asked = None if received is None else received.data["data"].get("arguments")
    if received is not None and asked is not None and asked != final and not is_asked:
        values.append(_value("Arguments" if final is None else "As the model asked", received, "data", "arguments"))
    record: Mapping[str, Any] = (ended.data["record"] or {}) if ended is not None else {}
    if ended is not None:
        outcome: Mapping[str, Any] = ended.data["data"]["outcome"]
        name = next((name for name in ("value", "message", "reason") if outcome.get(name) is not None), None)
        if name is not None:
            label = {"value": "Result", "message": "Error", "reason": "Reason"}[name]
            values.append(_value(label, ended, "data", "outcome", name))
        if outcome.get("traceback"):
            values.append(_value("Traceback", ended, "data", "outcome", "traceback"))
    decided = log.latest(activity, "decided")
    answer = None if decided is None else decided.data["data"].get("approval")
    return {"values": values, "decisions": record.get("decisions", []), "approval": record.get("approval") or answer}


def _wait(log: EventLog, activity: Activity, asked: str | None, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return since when a call waits for a person, or how long it waited; it may have gone on in another run."""
    attempts = [activity] if activity.status == "suspended" else log.by_id([activity.id], sources=("call",))
    events = [event for attempt in attempts if (event := log.latest(attempt, "suspended")) is not None]
    requests = {request["id"]: request["created_at"] for request in (event.data["data"]["request"] for event in events)}
    if activity.status in _LIVE:
        suspended = max(requests.values(), default=None) if activity.status == "suspended" else None
        return {"waits_since": asked or suspended}
    since = requests.get(answer.get("request_id"))
    if since is None or not answer.get("at"):
        return {}
    waited = datetime.fromisoformat(answer["at"]) - datetime.fromisoformat(since)
    return {"waited_ms": waited.total_seconds() * 1000}


def _run_view(log: EventLog, activity: Activity, children: Iterable[Activity]) -> dict[str, Any]:
    opened, closed = log.latest(activity, "opened"), log.latest(activity, "closed")
    if opened is not None and closed is not None and closed.position < opened.position:
        closed = None  # it was resumed
    view: dict[str, Any] = {"values": [], "facts": []}
    opened_data: Mapping[str, Any] = {} if opened is None else opened.data["data"]
    source = opened_data.get("source")
    if isinstance(source, str):
        view["source"] = {"code": source, "lines": _lines(log, children)}
    for name, value in opened_data.items():
        if opened is not None and name not in _SHOWN_ELSEWHERE and value not in (None, "", [], {}):
            text = _joined(value)
            if isinstance(text, str | int | float) and len(str(text)) <= _SHORT_FACT:
                view["facts"].append((_label(name), str(text)))
            else:
                view["values"].append(value_view(_label(name), text, position=opened.position, path=["data", name]))
    if closed is not None:
        for name in ("error", "value", "output", "suspended"):
            if closed.data["data"].get(name):
                view["values"].append(_value(_label(name), closed, "data", name))
        view |= _artifacts(closed)
    return view


def _artifacts(closed: KeptEvent) -> dict[str, Any]:
    """Return the artifacts of a program: the pictures that a browser shows, and the other files by name and size."""
    artifacts: Mapping[str, Mapping[str, Any]] = closed.data["data"].get("artifacts") or {}
    shown = {name: facts for name, facts in artifacts.items() if facts["mime_type"] in _PICTURES and "data" in facts}
    return {
        "pictures": [
            {"name": name, "mime_type": facts["mime_type"], "at": _at(closed, "data", "artifacts", name, "data")}
            for name, facts in shown.items()
        ],
        "files": [
            f"{name}, {facts['mime_type']}, {count_text(facts.get('size', 0), 'byte')}"
            for name, facts in artifacts.items()
            if name not in shown
        ],
    }


def _joined(value: Any) -> Any:
    """Return a list of names as one text, and anything else as it is."""
    if not isinstance(value, list):
        return value
    names = [name for name in cast("list[Any]", value) if isinstance(name, str)]
    return ", ".join(names) if len(names) == len(cast("list[Any]", value)) else cast("Any", value)


def _lines(log: EventLog, children: Iterable[Activity]) -> list[dict[str, Any]]:
    """Return the lines of a program with open calls."""
    found: list[dict[str, Any]] = []
    for child in children:
        if child.source == "call" and child.status in _LIVE:
            events = log.events(child, limit=_FIRST)
            lines = [event.data["data"].get("line") for event in events if event.kind == "received"]
            about = {"id": child.id, "run_id": child.run_id, "name": child.name}
            found.append({**about, "lines": [line for line in lines if line][:1]})
    return found


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _value(label: str, event: KeptEvent, *path: str) -> dict[str, Any]:
    return value_view(label, at_path(event.data, path), **_at(event, *path))


def _at(event: KeptEvent, *path: str) -> dict[str, Any]:
    return {"position": event.position, "path": list(path)}


def ended_calls(log: EventLog, entries: Iterable[ApprovalEntry]) -> dict[tuple[str, str], str]:
    """Return the status of the calls that have ended, though their requests may be pending; by call and run."""
    calls = log.by_id((entry.request.call_id for entry in entries), sources=("call",))
    return {(call.id, call.run_id): call.status for call in calls if call.ended_at is not None}


def asked_in_lines(log: EventLog, ids: Sequence[str]) -> dict[str, str]:
    """Return the arguments of calls and the code of programs in a line each, by their ids, without very long ones."""
    begun = log.beginnings(ids)
    lines = [(id, one_line(data.get("arguments") or data.get("source"))) for id, data in begun]
    return {id: line for id, line in lines if line}


def row_view(entry: ApprovalEntry, origin: Ancestors, ended: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Return a request in a line: what is asked, by what, and the status of an ended call."""
    request = entry.request
    return {
        **entry.row(),
        "text": one_line(request.arguments),
        "origin": [
            {name: getattr(ancestor, name) for name in ("source", "id", "run_id", "name")} for ancestor in origin
        ],
        "ended": ended.get((request.call_id, request.run_id)),
    }


def entry_view(entry: ApprovalEntry, ended: Mapping[tuple[str, str], str], origin: Ancestors) -> dict[str, Any]:
    """Return a request in full: a form to edit it, the changes since the model's call, and its answer."""
    request = entry.request
    arguments = value_view("Arguments", dict(request.arguments), request=request.id, path=["arguments"])
    return {
        **row_view(entry, origin, ended),
        "form": None if arguments["cut"] else form_fields(request.parameters, request.arguments),
        "arguments": arguments,
        "bounds": [] if request.asked_by is not None or request.in_doubt else bound_fields(request),
        "requested": value_view("As the model asked", request.requested, request=request.id, path=["requested"]),
        **_changes_view(request),
        "metadata": [
            value_view(str(name), value, request=request.id, path=["metadata", name])
            for name, value in request.to_dict()["metadata"].items()
        ]
        + [value_view("rule", rule.text(), request=request.id, path=["required"]) for rule in request.required],
        "result": result_field(request.returns) if request.in_doubt else None,
        "doubt_answers": dict(DOUBT_ANSWERS) if request.in_doubt else None,
        "origins": [dict(origin) for origin in request.origins],
        "state": entry.state,
        "approvals_needed": request.approvals_needed,
        "approved_by": list(request.approved_by),
        "answerers": entry.answerers(),
        "used_at": None if entry.used_at is None else entry.used_at.isoformat(),
        "answer": None if entry.answer is None else answer_row(entry.answer),
    }


def _changes_view(request: ApprovalRequest) -> dict[str, Any]:
    """Return the changes since the model's call, and whether that is not all of them."""
    changes = request.changes()
    lines = [cut(line, _CHANGE_CHARS) for line in changes[:_MOST_CHANGES]]
    more = len(changes) - len(lines)
    lines += [f"and {more} more"] if more else []
    return {"changes": lines, "changes_cut": lines != changes}


_OF_ROW = ("source", "id", "run_id", "name", "status", "started_at", "ended_at", "duration_ms")
_MOST_ROWS = 500
_DEEPEST = 6


def waterfall(log: EventLog, root: Activity) -> dict[str, Any]:
    """Return the rows of a run's waterfall, the run itself first; of too many the latest."""
    found, more = log.inside([root], limit=_MOST_ROWS, depth=_DEEPEST)
    inside: dict[str, list[Activity]] = {}
    for activity in sorted(found, key=lambda activity: activity.first_position):
        inside.setdefault(activity.parent_id or "", []).append(activity)
    return {"rows": list(_rows(root, inside, 0, {root.key})), "more": more}


def _rows(
    activity: Activity, inside: dict[str, list[Activity]], depth: int, shown: set[tuple[str, str, str]]
) -> Iterator[dict[str, Any]]:
    yield {**{name: getattr(activity, name) for name in _OF_ROW}, "depth": depth}
    for child in inside.get(activity.id, ()):
        if child.key not in shown:  # a call and a run may have one id
            shown.add(child.key)
            yield from _rows(child, inside, depth + 1, shown)


MAX_CHARS = 6_000  # of one value that are sent at first
_MAX_ROWS = 40


def full_text(value: Any) -> str:
    """Return a value as text: a text as it is, anything else as JSON over several lines."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def value_view(label: str, value: Any, **at: Any) -> dict[str, Any]:
    """Return a value for the page: its text, cut, and the place of the whole; of a short object its rows, too.

    The page shows the text as it is: a browser's own numbers would lose digits.
    """
    text = full_text(value)
    rows = (
        _parts_of(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) and len(text) <= MAX_CHARS else None
    )
    return {
        "label": label,
        "text": text[:MAX_CHARS],
        "length": len(text),
        "cut": len(text) > MAX_CHARS,
        "rows": rows,
        "at": at,
    }


def _parts_of(value: Mapping[str, Any]) -> list[tuple[str, str, str]] | None:
    """Return name, text and kind of each part of an object; None where a table would be too long."""
    if len(value) > _MAX_ROWS:
        return None
    return [
        (
            name,
            part if isinstance(part, str) and "\n" in part else json.dumps(part, indent=2, ensure_ascii=False),
            _kind(part),
        )
        for name, part in value.items()
    ]


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return "number" if isinstance(value, int | float) else "text" if isinstance(value, str) else "deep"


def at_path(value: Any, path: Sequence[str]) -> Any:
    """Return the value at a path inside JSON objects; raises KeyError without one."""
    for name in path:
        if not isinstance(value, Mapping):
            raise KeyError(name)
        value = cast("Mapping[str, Any]", value)[name]
    return value

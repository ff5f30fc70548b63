"""JSON of an event in its row, without what the row's columns, or the event itself, say already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from toolcrib.calls import CallEvent
from toolcrib.record._batch_sink import RecordedEvent

_IN_COLUMNS = {
    "call": {"kind": "kind", "call_id": "id", "tool": "name", "run_id": "run_id", "at": "at"},
    "run": {"kind": "kind", "activity_id": "id", "name": "name", "at": "at"},
}
_IN_EVENT = ("call_id", "tool", "run_id", "entry", "parent_id")  # fields of a record, which are the event's, too


def event_text(event: RecordedEvent, data: Mapping[str, Any], columns: Mapping[str, str]) -> str:
    """Return the JSON of an event for its row.

    Args:
        event: The event.
        data: Its JSON shapes.
        columns: The values of its columns, by their names.
    """
    names = _IN_COLUMNS["call" if isinstance(event, CallEvent) else "run"]
    rest = {name: value for name, value in data.items() if name not in names or value != columns[names[name]]}
    if isinstance(event, CallEvent) and event.record is not None:
        record = cast("Mapping[str, Any]", data["record"])
        repeated = {name for name in _IN_EVENT if record[name] == data[name]}
        repeated |= {"ended_at"} if record["ended_at"] == data["at"] else set()
        repeated |= {"outcome"} if event.record.outcome is event.data.get("outcome") else set()
        rest["record"] = {name: value for name, value in record.items() if name not in repeated}
    return json.dumps(rest, default=repr, separators=(",", ":"))


def event_data(text: str, source: str, columns: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the JSON shapes of an event from its row, also of one that was written whole."""
    data: dict[str, Any] = {name: columns[column] for name, column in _IN_COLUMNS[source].items()} | json.loads(text)
    if data.get("record"):
        repeated = {name: data[name] for name in _IN_EVENT} | {"ended_at": data["at"]}
        data["record"] = repeated | {"outcome": data["data"].get("outcome")} | data["record"]
    return data

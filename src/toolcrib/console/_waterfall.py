"""Waterfall of a run: what went on inside it, and inside that, each under its parent and in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolcrib.record import Activity, EventLog

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
    one: Activity, inside: dict[str, list[Activity]], depth: int, shown: set[tuple[str, str, str]]
) -> Iterator[dict[str, Any]]:
    yield {
        "source": one.source,
        "id": one.id,
        "run_id": one.run_id,
        "name": one.name,
        "status": one.status,
        "started_at": one.started_at,
        "ended_at": one.ended_at,
        "duration_ms": one.duration_ms,
        "depth": depth,
    }
    for child in inside.get(one.id, ()):
        if child.key not in shown:  # a call and a run may have one id
            shown.add(child.key)
            yield from _rows(child, inside, depth + 1, shown)

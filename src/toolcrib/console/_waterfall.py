"""Waterfall of a run: what went on inside it, and inside that, each under its parent and in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolcrib.record import Activity, ActivityFilter, EventLog

__all__ = ["waterfall"]

_MOST_ROWS = 500
_DEEPEST = 6


def waterfall(log: EventLog, root: Activity) -> dict[str, Any]:
    """Return the rows of a run's waterfall, the run itself first; of too many the latest."""
    inside: dict[str, list[Activity]] = {}
    seen, more, left = {_key(root)}, False, _MOST_ROWS
    level: set[str] = {root.id}
    for _ in range(_DEEPEST):
        found = log.activities(ActivityFilter(parent_ids=tuple(sorted(level))), limit=left + 1) if level else []
        more = more or len(found) > left
        found = [one for one in found[:left] if _key(one) not in seen]
        for one in reversed(found):  # the oldest first
            inside.setdefault(one.parent_id or "", []).append(one)
        seen |= {_key(one) for one in found}
        level, left = {one.id for one in found}, left - len(found)
        if left <= 0:
            break
    return {"rows": list(_rows(root, inside, 0, {_key(root)})), "more": more}


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
        if _key(child) not in shown:  # a call and a run may have one id
            shown.add(_key(child))
            yield from _rows(child, inside, depth + 1, shown)


def _key(one: Activity) -> tuple[str, str, str]:
    return one.source, one.id, one.run_id

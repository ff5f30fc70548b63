"""Inbox: the pending requests, what asks each of them, and which of them fit a filter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolcrib.approvals import ApprovalEntry
from toolcrib.calls import ApprovalRequest
from toolcrib.record import Activity, ActivityFilter, EventLog

__all__ = ["SORTS", "Origin", "Wanted", "facets", "fitting", "origins"]

_AT_ONCE = 500  # ids in one query
_DEEPEST = 5  # runs and calls around one another
_SEARCHED = 4_000  # characters of a request's arguments
_MOST_CHOICES = 200

Origin: TypeAlias = tuple[Activity, ...]
"""What a call is part of, from the outside in; empty where nothing of it is recorded."""

SORTS: Mapping[str, Callable[[ApprovalRequest], Any]] = {
    "oldest": lambda request: request.created_at,
    "newest": lambda request: -request.created_at.timestamp(),
    "tool": lambda request: (request.tool, request.created_at),
    "principal": lambda request: (request.principal or "", request.created_at),
}
"""Orders of the inbox, by name."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which requests are wanted; an empty field asks nothing.

    Attributes:
        text: Words that stand anywhere in the tool, reason, arguments, ids, principal or origin.
        agent: The name of an agent, session or program that the call is part of.
        in_doubt: Those about calls in doubt.
    """

    text: str = ""
    tool: str = ""
    principal: str = ""
    agent: str = ""
    in_doubt: bool = False


def origins(log: EventLog, entries: Iterable[ApprovalEntry]) -> dict[str, Origin]:
    """Return what asks each request, by the request's id; what one level is part of is read at once."""
    requests = [entry.request for entry in entries]
    by_id: dict[str, list[Activity]] = {}
    missing = {request.call_id for request in requests}
    for _ in range(_DEEPEST):
        for one in _read(log, missing):
            by_id.setdefault(one.id, []).append(one)
        parents = {one.parent_id for several in by_id.values() for one in several if one.parent_id is not None}
        missing = parents - by_id.keys()
        if not missing:
            break
    return {request.id: _around(request.call_id, request.run_id, by_id) for request in requests}


def _read(log: EventLog, ids: Iterable[str]) -> list[Activity]:
    wanted = sorted(ids)
    chunks = [tuple(wanted[at : at + _AT_ONCE]) for at in range(0, len(wanted), _AT_ONCE)]
    return [one for chunk in chunks for one in log.activities(ActivityFilter(ids=chunk), limit=2 * _AT_ONCE)]


def _around(call_id: str, run_id: str, by_id: Mapping[str, list[Activity]]) -> Origin:
    same = by_id.get(call_id, [])
    call = next((one for one in same if one.source == "call" and one.run_id == run_id), None)
    at = call or next((one for one in same if one.source != "call"), None)
    around: list[Activity] = [] if at is None or at is call else [at]
    while at is not None and at.parent_id is not None and len(around) < _DEEPEST:
        above = [one for one in by_id.get(at.parent_id, []) if one is not at]
        at = next((one for one in above if one.source != "call"), above[0] if above else None)
        around += [] if at is None else [at]
    return tuple(reversed(around))


def fitting(
    entries: Iterable[ApprovalEntry], origins: Mapping[str, Origin], wanted: Wanted, sort: str
) -> list[ApprovalEntry]:
    """Return the requests that fit, in the order of `SORTS[sort]`."""
    words = wanted.text.lower().split()
    found = [entry for entry in entries if _fits(entry, origins.get(entry.request.id, ()), wanted, words)]
    return sorted(found, key=lambda entry: SORTS[sort](entry.request))


def _fits(entry: ApprovalEntry, origin: Origin, wanted: Wanted, words: list[str]) -> bool:
    request = entry.request
    if wanted.tool not in ("", request.tool) or wanted.principal not in ("", request.principal):
        return False
    if (wanted.in_doubt and not request.in_doubt) or (wanted.agent and wanted.agent not in _agents(request, origin)):
        return False
    if not words:
        return True
    said = [request.tool, request.reason, request.id, request.call_id, request.run_id]
    said += [text for text in (request.principal, request.agent, request.conversation_id) if text]
    said += [text for one in origin for text in (one.name, one.id)]
    said.append(json.dumps([dict(request.arguments), request.metadata], ensure_ascii=False, default=str)[:_SEARCHED])
    text = " ".join(said).lower()
    return all(word in text for word in words)


def _agents(request: ApprovalRequest, origin: Origin) -> set[str]:
    """Return the agent, session or program that asks, by name."""
    return {*(one.name for one in origin if one.source != "turn"), *((request.agent,) if request.agent else ())}


def facets(entries: Iterable[ApprovalEntry], origins: Mapping[str, Origin]) -> dict[str, Any]:
    """Return the values that filters can have: tools, principals, agents."""
    requests = [entry.request for entry in entries]
    agents = {name for request in requests for name in _agents(request, origins.get(request.id, ()))}
    principals = {request.principal for request in requests if request.principal}
    return {
        name: sorted(values)[:_MOST_CHOICES]
        for name, values in (
            ("tools", {request.tool for request in requests}),
            ("principals", principals),
            ("agents", agents),
        )
    }

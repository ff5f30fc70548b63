"""Inbox: the pending requests, what asks each of them, and which of them fit a filter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.approvals import ApprovalEntry
from toolcrib.calls import ApprovalRequest
from toolcrib.record import Ancestors, EventLog

_SEARCHED = 4_000  # characters of a request's arguments
_MOST_CHOICES = 200

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


def origins(log: EventLog, entries: Iterable[ApprovalEntry]) -> dict[str, Ancestors]:
    """Return what asks each request, by the request's id."""
    requests = [entry.request for entry in entries]
    found = log.ancestors((request.call_id, request.run_id) for request in requests)
    return {request.id: found[request.call_id, request.run_id] for request in requests}


def fitting(
    entries: Iterable[ApprovalEntry], origins: Mapping[str, Ancestors], wanted: Wanted, sort: str
) -> list[ApprovalEntry]:
    """Return the requests that fit, in the order of `SORTS[sort]`."""
    words = wanted.text.lower().split()
    found = [entry for entry in entries if _fits(entry, origins.get(entry.request.id, ()), wanted, words)]
    return sorted(found, key=lambda entry: SORTS[sort](entry.request))


def _fits(entry: ApprovalEntry, origin: Ancestors, wanted: Wanted, words: list[str]) -> bool:
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


def _agents(request: ApprovalRequest, origin: Ancestors) -> set[str]:
    """Return the agent, session or program that asks, by name."""
    return {*(one.name for one in origin if one.source != "turn"), *((request.agent,) if request.agent else ())}


def facets(entries: Iterable[ApprovalEntry], origins: Mapping[str, Ancestors]) -> dict[str, Any]:
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

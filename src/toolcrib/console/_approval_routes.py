"""Routes of the API for approval: the inbox and its filter, one request, answers, standing grants."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolcrib.approvals import ApprovalEntry, ReviewableApprovalStore, grant_row
from toolcrib.calls import IN_DOUBT, ApprovalRequest, Denial, Grant
from toolcrib.console._answer_form import AnswerError, answer_to, arguments_of
from toolcrib.console._feed import Feed
from toolcrib.console._requests import JsonReply, json_body, number, texts_of, visitor_of
from toolcrib.console._views import ended_calls, entry_view, row_view
from toolcrib.errors import ApprovalError
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
    """A filter of requests; an empty field lets all through.

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
    """Return the ancestors of each request's call, by the request's id."""
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
    texts = [request.tool, request.reason, request.id, request.call_id, request.run_id]
    texts += [text for text in (request.principal, request.agent, request.conversation_id) if text]
    texts += [text for ancestor in origin for text in (ancestor.name, ancestor.id)]
    texts.append(json.dumps([dict(request.arguments), request.metadata], ensure_ascii=False, default=str)[:_SEARCHED])
    text = " ".join(texts).lower()
    return all(word in text for word in words)


def _agents(request: ApprovalRequest, origin: Ancestors) -> set[str]:
    """Return the agent, session or program that asks, by name."""
    return {
        *(ancestor.name for ancestor in origin if ancestor.source != "turn"),
        *((request.agent,) if request.agent else ()),
    }


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


_MAX_ROWS = 200
_MOST_ANSWERS = 200  # of one request


class ApprovalRoutes:
    """The routes of the API for approval, over a log of events and an approval store."""

    def __init__(self, log: EventLog, approvals: ReviewableApprovalStore, feed: Feed) -> None:
        self._log, self._approvals, self._feed = log, approvals, feed
        self.routes = [
            Route("/api/inbox", self._inbox),
            Route("/api/request", self._request),
            Route("/api/check", self._check, methods=["POST"]),
            Route("/api/answer", self._answer, methods=["POST"]),
            Route("/api/meant", self._meant, methods=["POST"]),
            Route("/api/answers", self._answers, methods=["POST"]),
            Route("/api/standing", self._standing),
            Route("/api/revoke", self._revoke, methods=["POST"]),
        ]

    async def _inbox(self, request: Request) -> Response:
        """Answer with a page of the pending requests that fit, and the values that filters can have."""
        query = request.query_params
        wanted = Wanted(
            query.get("text", "")[:200],
            query.get("tool", ""),
            query.get("principal", ""),
            query.get("agent", ""),
            query.get("doubt") == "1",
        )
        sort = query.get("sort") or "oldest"
        if sort not in SORTS:
            raise HTTPException(400, f"sort must be one of {', '.join(SORTS)}")
        start, limit = number(request, "start") or 0, min(number(request, "limit") or 60, _MAX_ROWS)
        await self._feed.refresh()
        entries = list(self._feed.pending.values())
        return JsonReply(await asyncio.to_thread(self._inbox_page, entries, wanted, sort, slice(start, start + limit)))

    def _inbox_page(self, entries: list[ApprovalEntry], wanted: Wanted, sort: str, page: slice) -> dict[str, Any]:
        around = origins(self._log, entries)
        found = fitting(entries, around, wanted, sort)
        ended = ended_calls(self._log, found[page])
        return {
            "requests": [row_view(entry, around[entry.request.id], ended) for entry in found[page]],
            "total": len(entries),
            "found": len(found),
            "more": len(found) > page.stop,
            **facets(entries, around),
        }

    async def _entry(self, entry: ApprovalEntry) -> dict[str, Any]:
        def read() -> dict[str, Any]:
            origin = origins(self._log, [entry])[entry.request.id]
            return entry_view(entry, ended_calls(self._log, [entry]), origin)

        return await asyncio.to_thread(read)

    async def _request(self, request: Request) -> Response:
        return JsonReply(await self._entry(await self._approvals.show(request.query_params.get("id", ""))))

    async def _check(self, request: Request) -> Response:
        sent = await json_body(request)
        entry = await self._approvals.show(str(sent.get("request", "")))
        try:
            arguments_of(entry.request, sent.get("arguments"))
        except AnswerError as error:
            return JsonReply({"problems": error.problems})
        return JsonReply({"problems": []})

    async def _meant(self, request: Request) -> Response:
        """Answer with what a standing grant would cover, in words; nothing is kept."""
        sent = await json_body(request)
        entry = await self._approvals.show(str(sent.get("request", "")))
        try:
            answer = answer_to(entry, {**sent, "name": "somebody"}, visitor_of(request))
        except AnswerError as error:
            return JsonReply({"problems": error.problems})
        return JsonReply({"problems": [], "text": answer.text() if isinstance(answer, Grant) else ""})

    async def _answer(self, request: Request) -> Response:
        sent = await json_body(request)
        entry = await self._approvals.show(str(sent.get("request", "")))
        await self._approvals.answer(answer_to(entry, sent, visitor_of(request)))
        return JsonReply(await self._entry(await self._approvals.show(entry.request.id)))

    async def _answers(self, request: Request) -> Response:
        """Approve or deny several requests as they are; answer with what failed, and what needs more approvers."""
        sent = await json_body(request)
        ids = texts_of(sent, "requests", _MOST_ANSWERS)
        if sent.get("answer") not in ("approve", "deny"):
            raise AnswerError("answer", ["Several requests are approved or denied as they are."])
        if not ids:
            raise AnswerError("requests", [f"Name 1 to {_MOST_ANSWERS} requests."])
        form = {name: sent[name] for name in ("answer", "message", "name") if name in sent}
        visitor = visitor_of(request)

        def answer(entry: ApprovalEntry) -> Grant | Denial:
            if entry.request.in_doubt and sent["answer"] == "approve":
                raise ApprovalError(entry.request.tool, f"It {IN_DOUBT}: answer it alone.")
            return answer_to(entry, form, visitor)

        found = await self._approvals.answer_each(ids, answer)
        failed = {id: outcome.problem for id, outcome in found.items() if isinstance(outcome, ApprovalError)}
        pending = [
            id for id, outcome in found.items() if isinstance(outcome, ApprovalEntry) and outcome.state == "pending"
        ]
        return JsonReply({"failed": failed, "pending": pending})

    async def _standing(self, request: Request) -> Response:
        grants = await self._approvals.standing()
        used = await self._approvals.grant_uses(grants)
        return JsonReply({"grants": [grant_row(grant, use) for grant, use in zip(grants, used, strict=True)]})

    async def _revoke(self, request: Request) -> Response:
        sent: Any = (await json_body(request)).get("grant")
        shown = cast("dict[str, Any]", sent) if isinstance(sent, dict) else {}
        wanted = {name: value for name, value in shown.items() if not name.startswith("used")}  # which goes on
        found: list[Grant] = [grant for grant in await self._approvals.standing() if grant_row(grant) == wanted]
        if not found or not await self._approvals.revoke(found[0]):
            raise HTTPException(404, "this grant no longer exists")
        return JsonReply({})

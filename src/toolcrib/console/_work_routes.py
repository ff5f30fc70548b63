"""Routes of the API for durable work: workers, queues and workflows, and the actions of an operator."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolcrib.console._feed import Feed
from toolcrib.console._requests import JsonReply, choices, json_body, number, texts_of, visitor_of
from toolcrib.console._views import asked_in_lines
from toolcrib.errors import EngineError, WorkerError
from toolcrib.record import EventLog, one_line

_MAX_ROWS = 200
_MOST_COUNTED = 1_000
_log = logging.getLogger("toolcrib.console")


class DurableWork(Protocol):
    """The views and actions of the work page; `toolcrib.adapters.dbos.WorkOperator` is one."""

    @property
    def states(self) -> Collection[str]:
        """The states of workflows."""
        ...

    def workers(self) -> Sequence[Mapping[str, Any]]:
        """Return the workers."""
        ...

    def queues(self) -> Sequence[Mapping[str, Any]]:
        """Return the queues with open work."""
        ...

    def works(
        self,
        states: Collection[str] = (),
        queue: str | None = None,
        limit: int = 50,
        start: int = 0,
        text: str | None = None,
    ) -> Sequence[Mapping[str, Any]]:
        """Return work in any of these states with these words, the latest first, from a place in the list on."""
        ...

    def cancel(self, work_id: str, /) -> Mapping[str, Any]:
        """Keep a workflow from starting or going on."""
        ...

    def resume(self, work_id: str, /) -> Mapping[str, Any]:
        """Resume a workflow that was cancelled or given up."""
        ...

    def retry(self, work_id: str, /) -> Mapping[str, Any]:
        """Retry failed work."""
        ...

    def calls(self, work_id: str, /) -> Sequence[Mapping[str, Any]]:
        """Return the calls of a program, each with its `tool` and `state`; none of a turn, which is one."""
        ...

    def fork(self, work_id: str, step: int, new_id: str | None, /) -> Mapping[str, Any]:
        """Enqueue work that does again what other work did, from a call on, under an id of its own where None."""
        ...

    def recover(self, worker_id: str, /) -> Sequence[str]:
        """Hand over the work of a lost worker."""
        ...


FindWork: TypeAlias = Callable[[], DurableWork | None]
"""Returns what shows and steers durable work; None until durable work has begun."""


class WorkRoutes:
    """The routes of the API for durable work; they answer 404 until `find` finds some."""

    def __init__(self, find: FindWork, feed: Feed, log: EventLog) -> None:
        self._find: FindWork = find
        self._feed, self._log = feed, log
        self._work: DurableWork | None = None
        self.routes = [
            Route("/api/work", self._show),
            Route("/api/work/calls", self._calls),
            Route("/api/work/fork", self._fork, methods=["POST"]),
            Route("/api/work/{action}", self._act, methods=["POST"]),
        ]

    async def _show(self, request: Request) -> Response:
        """Answer with the workers, the queues, and the workflows that fit: all are counted where any are left out."""
        work, query = await self._there(), request.query_params
        states, queue, text = choices(request, "state"), query.get("queue") or None, query.get("text", "")[:200] or None
        if not set(states) <= set(work.states):
            raise HTTPException(400, f"state must be one of {', '.join(work.states)}")
        start, limit = number(request, "start") or 0, min(number(request, "limit") or 50, _MAX_ROWS)
        end = start + limit

        def read() -> dict[str, Any]:
            about = {"workers": work.workers(), "queues": work.queues(), "states": list(work.states)}
            if not states and text is None:
                rows = work.works(states, queue, limit + 1, start)
                return {**about, "work": rows[:limit], "more": len(rows) > limit, "found": None}
            rows = work.works(states, queue, max(end, _MOST_COUNTED) + 1, 0, text)
            return {**about, "work": rows[start:end], "more": len(rows) > end, "found": len(rows)}

        shown = await asyncio.to_thread(read)
        await self._know(id for row in shown["work"] for id in row.get("waits_for", ()))
        asked = await asyncio.to_thread(asked_in_lines, self._log, [row["id"] for row in shown["work"]])
        return JsonReply({**shown, "work": [self._with_arguments(row, asked) for row in shown["work"]]})

    async def _know(self, requests: Iterable[str]) -> None:
        if any(id not in self._feed.pending for id in requests):
            await self._feed.refresh()

    def _with_arguments(self, row: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, Any]:
        """Return work with the arguments of its pending requests, or else its own, and on whose behalf it is done."""
        entries = [self._feed.pending.get(id) for id in row.get("waits_for", ())]
        requests = [entry.request for entry in entries if entry is not None]
        principal = row.get("principal") or next((request.principal for request in requests if request.principal), None)
        lines = [one_line(request.arguments) for request in requests] or [asked.get(row["id"], "")]
        return {**row, "principal": principal, "arguments": [line for line in lines if line]}

    async def _act(self, request: Request) -> Response:
        """Cancel, resume or retry one workflow or several, or hand over the work of a worker."""
        work = await self._there()
        actions: dict[str, Callable[[str], Any]] = {
            "cancel": work.cancel,
            "resume": work.resume,
            "retry": work.retry,
            "recover": work.recover,
        }
        name = request.path_params["action"]
        action = actions.get(name)
        if action is None:
            raise HTTPException(404, "there is no such action")
        sent = await json_body(request)
        ids = texts_of(sent, "ids", _MAX_ROWS) if "ids" in sent else [str(sent.get("id", ""))]
        if not ids:
            raise HTTPException(400, f"ids are 1 to {_MAX_ROWS}")
        done, failed = list[Any](), dict[str, str]()
        for id in ids:
            try:
                done.append(await asyncio.to_thread(action, id))
            except (EngineError, WorkerError) as error:
                failed[id] = str(error)
            else:
                _log.info("%s: %s of %s", visitor_of(request).name or "a visitor", name, id)
        if "ids" in sent:
            return JsonReply({"done": len(done), "failed": failed})
        return JsonReply({"done": done[0]}) if done else JsonReply({"error": next(iter(failed.values()))}, 409)

    async def _calls(self, request: Request) -> Response:
        """Answer with the calls of work, from which a fork may begin."""
        work = await self._there()
        try:
            return JsonReply({"calls": await asyncio.to_thread(work.calls, request.query_params.get("id", ""))})
        except EngineError as error:
            return JsonReply({"error": str(error)}, 409)

    async def _fork(self, request: Request) -> Response:
        """Fork work from a call on."""
        work, sent = await self._there(), await json_body(request)
        work_id, step, new_id = str(sent.get("id", "")), sent.get("step", 1), str(sent.get("new_id") or "").strip()
        if type(step) is not int or step < 1:
            raise HTTPException(400, "step must be a whole number from 1 on")
        try:
            forked = await asyncio.to_thread(work.fork, work_id, step, new_id or None)
        except EngineError as error:
            return JsonReply({"error": str(error)}, 409)
        by = visitor_of(request).name or "a visitor"
        _log.info("%s: fork of %s from step %d, as %s", by, work_id, step, forked["id"])
        return JsonReply({"done": forked})

    async def found(self) -> DurableWork | None:
        """Return the durable work, which may begin later than the console; None until durable work has begun."""
        if self._work is None:
            self._work = await asyncio.to_thread(self._find)
        return self._work

    async def _there(self) -> DurableWork:
        work = await self.found()
        if work is None:
            raise HTTPException(404, "this console has no durable work")
        return work

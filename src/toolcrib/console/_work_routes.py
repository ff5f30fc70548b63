"""Routes of the API for durable work: workers, queues and workflows, and what an operator does to them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolcrib.console._requests import JsonReply, json_body, number, visitor_of
from toolcrib.errors import EngineError, WorkerError

_MAX_ROWS = 200
_log = logging.getLogger("toolcrib.console")


class DurableWork(Protocol):
    """What the work page shows and does; `toolcrib.adapters.dbos.WorkOperator` is one."""

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
        self, state: str | None = None, queue: str | None = None, limit: int = 50, start: int = 0
    ) -> Sequence[Mapping[str, Any]]:
        """Return work, the latest first, from a place in the list on."""
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

    def recover(self, worker_id: str, /) -> Sequence[str]:
        """Hand over the work of a lost worker."""
        ...


FindWork: TypeAlias = Callable[[], DurableWork | None]
"""Returns what shows and steers durable work; None until durable work has begun."""


class WorkRoutes:
    """The routes of the API for durable work; they answer 404 until `find` finds some."""

    def __init__(self, find: FindWork) -> None:
        self._find: FindWork = find
        self._work: DurableWork | None = None
        self.routes = [
            Route("/api/work", self._show),
            Route("/api/work/{action}", self._act, methods=["POST"]),
        ]

    async def _show(self, request: Request) -> Response:
        """Answer with the workers, the queues, and the workflows that fit."""
        work = await self._there()
        state, queue = request.query_params.get("state") or None, request.query_params.get("queue") or None
        if state is not None and state not in work.states:
            raise HTTPException(400, f"state is one of {', '.join(work.states)}")
        start, limit = number(request, "start") or 0, min(number(request, "limit") or 50, _MAX_ROWS)

        def read() -> dict[str, Any]:
            found = work.works(state, queue, limit + 1, start)
            about = {"workers": work.workers(), "queues": work.queues(), "states": list(work.states)}
            return {**about, "work": found[:limit], "more": len(found) > limit}

        return JsonReply(await asyncio.to_thread(read))

    async def _act(self, request: Request) -> Response:
        """Cancel, resume or retry a workflow, or hand over the work of a worker."""
        work = await self._there()
        actions: dict[str, Callable[[str], Any]] = {
            "cancel": work.cancel,
            "resume": work.resume,
            "retry": work.retry,
            "recover": work.recover,
        }
        action = actions.get(request.path_params["action"])
        if action is None:
            raise HTTPException(404, "there is no such action")
        wanted = str((await json_body(request)).get("id", ""))
        try:
            done = await asyncio.to_thread(action, wanted)
        except (EngineError, WorkerError) as error:
            return JsonReply({"error": str(error)}, 409)
        _log.info("%s: %s of %s", visitor_of(request).name or "a visitor", request.path_params["action"], wanted)
        return JsonReply({"done": done})

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

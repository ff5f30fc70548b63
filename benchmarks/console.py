"""The console's views over a thousand pending requests, fifty approvers and a hundred standing grants."""

# ruff: noqa: PLC0415 -- a contender's process imports what that contender needs, and nothing of the others

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks._measure import Contender, Measure, Metric, Sample, Target
from benchmarks._timing import async_sample, on_loop

PENDING, PEOPLE, GRANTS = 1_000, 50, 100
VIEWS = {
    "state": "/api/state",
    "inbox": "/api/inbox",
    "inbox, searched": "/api/inbox?text=ask_99&sort=newest&limit=200",
    "one request": "/api/request?id=ask_7",
    "standing grants": "/api/standing",
    "activity": "/api/activities",
    "activity, by states": "/api/activities?status=running&status=failed",
    "one call": "/api/activity?source=call&id=call_7",
    "waterfall": "/api/waterfall?source=call&id=call_7",
    "timeline": "/api/events?after=0",
}
_MOST = 300_000  # microseconds


def _new_path() -> Path:
    return Path(tempfile.mkdtemp()) / "toolcrib.db"


async def _filled(path: Path) -> Any:
    """Return a store with the requests and grants, whose file has a call for each request."""
    from toolcrib.approvals import SqliteApprovalStore
    from toolcrib.calls import ApprovalRequest, Bound, CallEvent, Identity, RequiredApprovers, now
    from toolcrib.record import SqliteSink

    store, people = SqliteApprovalStore(path), [[f"person{number}@example.org"] for number in range(PEOPLE)]
    rule = RequiredApprovers("refunds", {"finance": 2}, {"finance": people})
    with SqliteSink(path) as sink:
        for number in range(PENDING + GRANTS):
            ids, arguments = (f"ask_{number}", f"call_{number}"), {"order": number, "euros": 5.0, "note": "x" * 200}
            required = (rule,) if number < PENDING else ()
            request = ApprovalRequest(
                *ids, "refund", arguments, f"d{number}", principal="ada", run_id="run_1", required=required
            )
            sink.emit(CallEvent("received", ids[1], "refund", "run_1", "bench", now(), {"arguments": arguments}))
            await store.put(request)
            if number >= PENDING:
                within = {name: Bound.any() for name in arguments}
                await store.answer(request.always(Identity(people[number % PEOPLE][0]), within=within, uses=10))
    return store


def _from_store() -> Sample:
    store = on_loop(_filled(_new_path()))

    async def count() -> int:
        return len(await store.list(pending=True))

    return async_sample("us", count, 1, PENDING)


def _view(url: str) -> Sample:
    import httpx

    from toolcrib.console import ConsoleOptions, console_app
    from toolcrib.record import sqlite_events

    path = _new_path()
    app = console_app(sqlite_events(path), on_loop(_filled(path)), ConsoleOptions())
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1")

    async def status() -> int:
        return (await client.get(url)).status_code

    return async_sample("us", status, 1, 200)


_FROM_STORE = "toolcrib, the requests from their store"
MEASURE = Measure(
    name="console",
    title=f"a view of the console: {PENDING:,} pending requests, {PEOPLE} approvers, {GRANTS} standing grants",
    metrics=(Metric("us", "per view", "us"),),
    contenders=(
        Contender(_FROM_STORE, _from_store),
        *(Contender(f"toolcrib, {name}", partial(_view, url)) for name, url in VIEWS.items()),
    ),
    baseline=_FROM_STORE,
    targets=tuple(Target("us", f"toolcrib, {name}", "", _MOST) for name in VIEWS),
    notes=("In one process, without a network: what the server does until the answer is there.",),
)

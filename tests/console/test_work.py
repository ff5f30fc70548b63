"""Work routes: durable work is shown, cancelled, resumed and handed over by one who may."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.console.conftest import Console, serve_app
from toolcrib._run_sync import run_sync
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import ApprovalRequest, ToolCall
from toolcrib.console import ConsoleOptions, console_app
from toolcrib.errors import EngineError, WorkerError
from toolcrib.pipeline import Pipeline
from toolcrib.record import EventLog, SqliteSink, sqlite_events
from toolcrib.tools import tool


@dataclass
class Desk:
    """Durable work that is a list."""

    states: tuple[str, ...] = ("running", "failed")
    done: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    waits_for: tuple[str, ...] = ()

    def workers(self) -> list[Mapping[str, Any]]:
        return [{"id": "w1", "state": "lost", "pending": 2, "host": "h", "pid": 1, "started_at": 1.0, "seen_at": 2.0}]

    def queues(self) -> list[Mapping[str, Any]]:
        return [{"name": "mail", "waiting": 3, "running": 1, "oldest_at": 5.0}]

    def works(
        self,
        states: Collection[str] = (),
        queue: str | None = None,
        limit: int = 50,
        start: int = 0,
        text: str | None = None,
    ) -> list[Mapping[str, Any]]:
        about, state = {"queue": queue, "waits_for": self.waits_for}, list(states) or [None]
        ids = range(start, min(start + limit, 60))
        return [{"id": f"t{number}", "state": state[number % len(state)], **about} for number in ids]

    def cancel(self, work_id: str) -> Mapping[str, Any]:
        if work_id != "t1":
            raise EngineError(f"there is no workflow {work_id}")
        self.done.append(("cancel", work_id))
        return {"id": work_id, "state": "cancelled"}

    def resume(self, work_id: str) -> Mapping[str, Any]:
        self.done.append(("resume", work_id))
        return {"id": work_id, "state": "waiting"}

    def retry(self, work_id: str) -> Mapping[str, Any]:
        self.done.append(("retry", work_id))
        return {"id": work_id, "state": "waiting"}

    def calls(self, work_id: str) -> list[Mapping[str, Any]]:
        return [{"id": "c1", "tool": "look", "state": "ended"}]

    def fork(self, work_id: str, step: int, new_id: str | None) -> Mapping[str, Any]:
        if step > 1:
            raise EngineError(f"the program {work_id} has no call {step}; it made 1 call")
        self.done.append(("fork", f"{work_id} as {new_id}"))
        return {"id": new_id or "f1", "state": "waiting"}

    def recover(self, worker_id: str) -> list[str]:
        raise WorkerError(worker_id, "it lives")


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def working(tmp_path: Path, desk: Desk) -> Iterator[Console]:
    path = tmp_path / "toolcrib.db"
    app = console_app(sqlite_events(path), SqliteApprovalStore(path), ConsoleOptions(), desk)
    with serve_app(app) as port:
        yield Console(port, path)


def test_work_is_shown_by_its_state_and_queue(working: Console) -> None:
    found = working.get("/api/work?state=failed&queue=mail&limit=2").json

    assert [(one["id"], one["state"], one["queue"]) for one in found["work"]] == [
        (f"t{number}", "failed", "mail") for number in range(2)
    ]
    assert found["more"]
    assert [one["name"] for one in found["queues"]] == ["mail"]
    assert [one["id"] for one in found["workers"]] == ["w1"]
    assert working.get("/api/work?state=failed&state=odd").status == 400
    assert working.get("/api/state").json["work"]


def test_work_in_any_of_several_states_is_shown(working: Console) -> None:
    found = working.get("/api/work?state=failed&state=running&limit=2").json

    assert [one["state"] for one in found["work"]] == ["failed", "running"]


def test_work_that_is_looked_for_is_counted(working: Console) -> None:
    page = working.get("/api/work?state=failed&start=50&limit=5").json
    every = working.get("/api/work?limit=5").json

    assert ([one["id"] for one in page["work"]], page["found"], page["more"]) == (
        ["t50", "t51", "t52", "t53", "t54"],
        60,
        True,
    )
    assert every["found"] is None


def test_paused_work_has_the_arguments_and_the_principal_of_its_request(tmp_path: Path) -> None:
    path = tmp_path / "toolcrib.db"
    store = SqliteApprovalStore(path)
    run_sync(store.put(ApprovalRequest("ask_1", "c1", "refund", {"order": "A1"}, "d", principal="ann")))
    app = console_app(sqlite_events(path), store, work=Desk(waits_for=("ask_1",)))

    with serve_app(app) as port:
        first, *_ = Console(port, path).get("/api/work?limit=1").json["work"]

    assert (first["arguments"], first["principal"]) == (["order='A1'"], "ann")


def test_work_that_waits_for_nobody_has_its_arguments_in_one_query(tmp_path: Path) -> None:
    @tool
    async def refund(order: str, card: SecretStr, note: str = "") -> str:
        return order

    path, statements = tmp_path / "toolcrib.db", list[str]()
    with SqliteSink(path) as sink:
        pipeline = Pipeline([refund], sinks=(sink,))
        for number in range(3):
            note = "x" * 50_000 if number == 2 else ""
            pipeline.run_sync(ToolCall("refund", {"order": f"A{number}", "card": "4111", "note": note}, f"t{number}"))
    log = sqlite_events(path)
    counted = EventLog(lambda sql, values: statements.append(sql) or log.rows(sql, values))
    app = console_app(counted, SqliteApprovalStore(path), work=Desk())

    with serve_app(app) as port:
        found = Console(port, path).get("/api/work?limit=60").json["work"]

    shown = [row["arguments"] for row in found]
    assert shown[:3] == [["order='A0', card='**********', note=''"], ["order='A1', card='**********', note=''"], []]
    assert not any(shown[3:])
    assert len([sql for sql in statements if "'received'" in sql]) == 1


def test_several_are_changed_at_once(working: Console, desk: Desk) -> None:
    reply = working.post("/api/work/cancel", {"ids": ["t1", "t2", "t1"]}).json

    assert reply == {"done": 1, "failed": {"t2": "there is no workflow t2"}}
    assert desk.done == [("cancel", "t1")]
    assert working.post("/api/work/cancel", {"ids": []}).status == 400
    assert working.post("/api/work/cancel", {"ids": ["t1"] * 201}).status == 400


def test_work_is_read_page_by_page_to_its_end(working: Console) -> None:
    pages = [working.get(f"/api/work?start={start}&limit=50").json for start in (0, 50)]

    assert [one["id"] for page in pages for one in page["work"]] == [f"t{number}" for number in range(60)]
    assert [page["more"] for page in pages] == [True, False]


def test_work_that_begins_later_than_the_console_is_shown(tmp_path: Path, desk: Desk) -> None:
    path, begun = tmp_path / "toolcrib.db", list[Desk]()
    app = console_app(sqlite_events(path), SqliteApprovalStore(path), work=lambda: begun[0] if begun else None)

    with serve_app(app) as port:
        console = Console(port, path)
        before = console.get("/api/state").json["work"]
        begun.append(desk)
        after, shown = console.get("/api/state").json["work"], console.get("/api/work").json["workers"]

    assert (before, after, [one["id"] for one in shown]) == (False, True, ["w1"])


def test_work_is_cancelled_and_resumed(working: Console, desk: Desk) -> None:
    assert working.post("/api/work/cancel", {"id": "t1"}).json == {"done": {"id": "t1", "state": "cancelled"}}
    assert working.post("/api/work/resume", {"id": "t1"}).status == 200
    assert working.post("/api/work/retry", {"id": "t1"}).status == 200

    assert desk.done == [("cancel", "t1"), ("resume", "t1"), ("retry", "t1")]


def test_work_is_forked_from_a_call(working: Console, desk: Desk) -> None:
    calls = working.get("/api/work/calls?id=t1").json
    forked = working.post("/api/work/fork", {"id": "t1", "step": 1, "new_id": " again "}).json
    unnamed = working.post("/api/work/fork", {"id": "t1", "new_id": ""}).json
    refused = [working.post("/api/work/fork", {"id": "t1", "step": step}) for step in (2, 0, "1", True)]

    assert calls == {"calls": [{"id": "c1", "tool": "look", "state": "ended"}]}
    assert (forked["done"]["id"], unnamed["done"]["id"]) == ("again", "f1")
    assert desk.done == [("fork", "t1 as again"), ("fork", "t1 as None")]
    assert [reply.status for reply in refused] == [409, 400, 400, 400]
    assert refused[0].json["error"] == "the program t1 has no call 2; it made 1 call"


@pytest.mark.parametrize(
    ("action", "status", "said"),
    [("cancel", 409, "there is no workflow t2"), ("recover", 409, "it lives"), ("states", 404, "no such action")],
)
def test_what_cannot_be_done_is_said(working: Console, action: str, status: int, said: str) -> None:
    reply = working.post(f"/api/work/{action}", {"id": "t2"})

    assert reply.status == status
    assert said in reply.json["error"]


def test_a_console_without_durable_work_has_none(console: Console) -> None:
    assert console.get("/api/work").status == 404
    assert not console.get("/api/state").json["work"]

"""A console over a thousand pending requests, fifty approvers and a hundred standing grants: what each answer reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.console.conftest import serving
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import ApprovalRequest, Bound, Delegation, Identity, RequiredApprovers, now
from toolcrib.database._sqlite import sqlite3

OWN = 10
"""Statements of the console's own, such as a look for what has expired, which may fall into any answer."""
PEOPLE = [[f"person{number}@example.org", f"U{number}"] for number in range(50)]
RULE = RequiredApprovers(
    *("refunds", {"finance": 2}, {"finance": PEOPLE[:45], "managers": PEOPLE[40:]}, (), ("ada",)),
    escalation=((3600.0, "managers"),),
    delegations=(Delegation(PEOPLE[0][0], PEOPLE[1][0], now() + timedelta(days=1)),),
)


@dataclass
class Reads:
    """What SQLite did for an answer: statements, and hundreds of instructions, of which each row takes some."""

    statements: int = 0
    instructions: int = 0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Return the reads of all connections that are opened from now on."""
    counted, connect = Reads(), sqlite3.connect

    def count_statement(statement: str) -> None:
        counted.statements += 1

    def count_instructions() -> int:
        counted.instructions += 1
        return 0

    def connect_counted(*options: Any, **named: Any) -> Any:
        connection = connect(*options, **named)
        connection.set_trace_callback(count_statement)
        connection.set_progress_handler(count_instructions, 100)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_counted)
    return counted


def request_of(number: int, **more: Any) -> ApprovalRequest:
    arguments = {"order": number, "euros": 5.0, "note": "x" * 200}
    ids = f"ask_{number}", f"call_{number}"
    return ApprovalRequest(*ids, "refund", arguments, f"d{number}", principal="ada", run_id="run_1", **more)


async def filled(path: Path, pending: int, grants: int) -> Path:
    """Fill a file with pending requests and standing grants, and return it."""
    store = SqliteApprovalStore(path)
    for number in range(pending):
        await store.put(request_of(number, required=(RULE,)))
    for number in range(pending, pending + grants):
        request = request_of(number)
        await store.put(request)
        within = {"order": Bound.any(), "euros": Bound.between(high=50), "note": Bound.any()}
        await store.answer(request.always(Identity(PEOPLE[number % 50][0]), within=within, uses=10))
    return path


def answers_of(path: Path, reads: Reads) -> tuple[dict[str, Any], dict[str, Reads]]:
    """Return the answers of a console over a file, and what SQLite did for each."""
    answers, counts = dict[str, Any](), dict[str, Reads]()
    with serving(path) as console:

        def asked(what: str, ask: Callable[[], Any]) -> None:
            before = Reads(reads.statements, reads.instructions)
            reply = ask()
            counts[what] = Reads(reads.statements - before.statements, reads.instructions - before.instructions)
            assert reply.status == 200, what
            answers[what] = reply.json

        asked("state", lambda: console.get("/api/state"))
        asked("inbox", lambda: console.get("/api/inbox"))
        asked("search", lambda: console.get("/api/inbox?text=ask_99&sort=newest&limit=200"))
        asked("request", lambda: console.get("/api/request?id=ask_7"))
        form = {"request": "ask_7", "answer": "always", "scope": "tool", "hours": 1}
        asked("meant", lambda: console.post("/api/meant", form))
        asked("standing", lambda: console.get("/api/standing"))
        no = {"request": "ask_7", "answer": "deny", "name": "Ann"}
        asked("answer", lambda: console.post("/api/answer", no))
        some = {"requests": [f"ask_{number}" for number in range(10, 30)], "answer": "deny", "name": "Ann"}
        asked("twenty answers", lambda: console.post("/api/answers", some))
        asked("inbox again", lambda: console.get("/api/inbox"))
    return answers, counts


async def test_a_large_inbox_is_answered_in_pages_and_no_answer_reads_more_than_in_proportion(
    tmp_path: Path, reads: Reads
) -> None:
    _, few = answers_of(await filled(tmp_path / "few.db", 100, 10), reads)
    answers, many = answers_of(await filled(tmp_path / "many.db", 1000, 100), reads)

    inbox, words, shown = answers["inbox"], answers["search"], answers["request"]
    assert (inbox["total"], len(inbox["requests"]), inbox["more"]) == (1000, 60, True)
    assert {one["id"] for one in words["requests"]} == {"ask_99", *(f"ask_{number}" for number in range(990, 1000))}
    assert [len(one["people"]) for one in shown["answerers"]] == [46, 10]
    assert answers["meant"]["text"].startswith("refund: any arguments")
    assert len(answers["standing"]["grants"]) == 100
    assert answers["inbox again"]["total"] == 979

    grow = {what for what in many if many[what].statements > few[what].statements + OWN}
    assert grow <= {"inbox", "search", "inbox again"}
    assert all(many[what].statements <= 2 * few[what].statements + OWN for what in grow), many
    assert all(many[what].instructions <= 11 * few[what].instructions for what in many), (few, many)
    assert many["request"].instructions <= few["request"].instructions + 5, many

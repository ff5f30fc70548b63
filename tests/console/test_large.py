"""A console over a thousand pending requests, fifty approvers and a hundred standing grants: what each answer takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.console.conftest import serving
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import ApprovalRequest, Bound, Delegation, Identity, RequiredApprovers, now

PEOPLE = [[f"person{number}@example.org", f"U{number}"] for number in range(50)]
RULE = RequiredApprovers(
    *("refunds", {"finance": 2}, {"finance": PEOPLE[:45], "managers": PEOPLE[40:]}, (), ("ada",)),
    escalation=((3600.0, "managers"),),
    delegations=(Delegation(PEOPLE[0][0], PEOPLE[1][0], now() + timedelta(days=1)),),
)


def request_of(number: int, **more: Any) -> ApprovalRequest:
    arguments = {"order": number, "euros": 5.0, "note": "x" * 200}
    ids = f"ask_{number}", f"call_{number}"
    return ApprovalRequest(*ids, "refund", arguments, f"d{number}", principal="ada", run_id="run_1", **more)


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    store = SqliteApprovalStore(tmp_path / "toolcrib.db")
    for number in range(1000):
        await store.put(request_of(number, required=(RULE,)))
    for number in range(1000, 1100):
        request = request_of(number)
        await store.put(request)
        within = {"order": Bound.any(), "euros": Bound.between(high=50), "note": Bound.any()}
        await store.answer(request.always(Identity(PEOPLE[number % 50][0]), within=within, uses=10))
    return tmp_path / "toolcrib.db"


def test_a_large_inbox_is_answered_in_pages_and_each_answer_says_what_it_took(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    took: dict[str, float] = {}
    with serving(path) as console:

        def asked(what: str, ask: Callable[[], Any]) -> Any:
            began = time.process_time()
            reply = ask()
            took[what] = time.process_time() - began
            assert reply.status == 200, what
            return reply.json

        asked("state", lambda: console.get("/api/state"))
        inbox = asked("inbox", lambda: console.get("/api/inbox"))
        words = asked("search", lambda: console.get("/api/inbox?text=ask_99&sort=newest&limit=200"))
        shown = asked("request", lambda: console.get("/api/request?id=ask_7"))
        form = {"request": "ask_7", "answer": "always", "scope": "tool", "hours": 1}
        meant = asked("meant", lambda: console.post("/api/meant", form))
        standing = asked("standing", lambda: console.get("/api/standing"))
        no = {"request": "ask_7", "answer": "deny", "name": "Ann"}
        asked("answer", lambda: console.post("/api/answer", no))
        some = {"requests": [f"ask_{number}" for number in range(10, 30)], "answer": "deny", "name": "Ann"}
        asked("twenty answers", lambda: console.post("/api/answers", some))
        left = asked("inbox again", lambda: console.get("/api/inbox"))
    with capsys.disabled():
        print("", *(f"{what}: {1000 * seconds:.0f} ms" for what, seconds in took.items()), sep="\n  ")

    assert (inbox["total"], len(inbox["requests"]), inbox["more"]) == (1000, 60, True)
    assert {one["id"] for one in words["requests"]} == {"ask_99", *(f"ask_{number}" for number in range(990, 1000))}
    assert [len(one["people"]) for one in shown["answerers"]] == [46, 10]
    assert meant["text"].startswith("refund: any arguments")
    assert len(standing["grants"]) == 100
    assert left["total"] == 979

"""Inbox of the API: pending requests are filtered, sorted, paged, and answered several at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.console.conftest import Console, serving
from tests.console.test_api import AT, request_of
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import ActivityEvent, CallEvent, Denial, Grant, RequiredApprovers, now
from toolcrib.record import SqliteSink


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Console]:
    with serving(tmp_path / "toolcrib.db") as console:
        yield console


async def many(path: Path, size: int = 4) -> None:
    """Store requests of two agents, for two principals, a second apart."""
    store = SqliteApprovalStore(path)
    with SqliteSink(path) as sink:
        for number in range(size):
            agent, call = f"agent_{number % 2}", f"c{number}"
            if number < 2:
                sink.emit_activity(ActivityEvent("opened", "agent", agent, None, f"support {number}", AT, {}))
            sink.emit_activity(ActivityEvent("opened", "turn", f"t{number}", agent, "refund", AT, {}))
            sink.emit(CallEvent("received", call, "refund", "run_1", "turn", AT, {}, None, f"t{number}"))
            await store.put(
                request_of(
                    call,
                    run_id="run_1",
                    arguments={"cents": number, "note": f"broken lamp {number}"},
                    principal="bob" if number < 2 else "eve",
                    agent="" if number else "desk",
                    conversation_id=f"talk {number}",
                    created_at=AT + timedelta(seconds=number),
                )
            )


def ids(console: Console, query: str) -> list[str]:
    return [one["call_id"] for one in console.get(f"/api/inbox?{query}").json["requests"]]


async def test_requests_are_filtered_and_sorted(inbox: Console) -> None:
    await many(inbox.path)

    assert ids(inbox, "") == ["c0", "c1", "c2", "c3"]
    assert ids(inbox, "sort=newest") == ["c3", "c2", "c1", "c0"]
    assert ids(inbox, "principal=eve") == ["c2", "c3"]
    assert ids(inbox, "agent=support+1") == ["c1", "c3"]
    assert ids(inbox, "agent=support+1&principal=eve") == ["c3"]
    assert ids(inbox, "text=LAMP+2") == ["c2"]
    assert ids(inbox, "text=talk+2") == ["c2"]
    assert ids(inbox, "agent=desk") == ["c0"]
    assert inbox.get("/api/inbox").json["requests"][2]["conversation_id"] == "talk 2"
    assert ids(inbox, "text=agent_1") == ["c1", "c3"]
    assert ids(inbox, "tool=refund&doubt=1") == []
    assert ids(inbox, "tool=other") == []
    assert inbox.get("/api/inbox?sort=best").status == 400


async def test_a_page_says_how_many_there_are_and_what_filters_can_be(inbox: Console) -> None:
    await many(inbox.path, 7)

    found = inbox.get("/api/inbox?principal=eve&limit=2&start=1").json

    assert [one["call_id"] for one in found["requests"]] == ["c3", "c4"]
    assert (found["total"], found["found"], found["more"]) == (7, 5, True)
    assert (found["tools"], found["principals"]) == (["refund"], ["bob", "eve"])
    assert found["agents"] == ["desk", "support 0", "support 1"]


async def test_a_request_says_what_asks(inbox: Console) -> None:
    await many(inbox.path)

    shown = inbox.get("/api/request?id=ask_c1").json

    assert [(one["source"], one["name"]) for one in shown["origin"]] == [("agent", "support 1"), ("turn", "refund")]
    assert shown["run_id"] == "run_1"


async def test_a_request_of_something_unrecorded_says_nothing_of_it(inbox: Console) -> None:
    await inbox.store.put(request_of("alone"))

    assert inbox.get("/api/request?id=ask_alone").json["origin"] == []


async def test_several_are_answered_at_once(inbox: Console) -> None:
    await many(inbox.path)
    await inbox.store.answer((await inbox.store.show("ask_c1")).request.deny(message="no", by="Ben"))

    sent = {"requests": ["ask_c0", "ask_c1", "ask_c2", "ask_no"], "answer": "approve", "name": "Ann"}
    reply = inbox.post("/api/answers", sent)

    assert reply.status == 200
    assert sorted(reply.json["failed"]) == ["ask_c1", "ask_no"]
    assert "by Ben" in reply.json["failed"]["ask_c1"]
    answers = [(await inbox.store.show(f"ask_c{number}")).answer for number in range(4)]
    assert [type(one) for one in answers] == [Grant, Denial, Grant, type(None)]
    assert [one.by for one in answers if one is not None] == ["Ann (console)", "Ben", "Ann (console)"]


async def test_a_request_that_has_expired_is_not_pending_and_a_later_answer_is_refused(inbox: Console) -> None:
    rule = RequiredApprovers("within an hour", {"*": 1}, expires_after=3600.0)
    await inbox.store.put(request_of("soon", created_at=now(), required=(rule,)))
    await inbox.store.put(request_of("late", created_at=now() - timedelta(hours=2), required=(rule,)))

    listed = ids(inbox, "")
    late = inbox.post("/api/answer", {"request": "ask_late", "answer": "approve", "name": "Ann"})
    shown = inbox.get("/api/request?id=ask_late").json

    assert listed == ["soon"]
    assert late.status == 409
    assert "by the rule within an hour" in late.json["error"]
    assert (shown["status"], shown["answer"]["by"]) == ("expired", "within an hour (rule)")


async def test_several_are_denied_with_a_message(inbox: Console) -> None:
    await many(inbox.path)

    inbox.post("/api/answers", {"requests": ["ask_c0", "ask_c0"], "answer": "deny", "name": "Ann", "message": "later"})

    answer = (await inbox.store.show("ask_c0")).answer
    assert isinstance(answer, Denial)
    assert answer.message == "later"


async def test_a_call_in_doubt_is_not_approved_among_others(inbox: Console) -> None:
    await inbox.store.put(request_of("doubt", in_doubt=True))

    reply = inbox.post("/api/answers", {"requests": ["ask_doubt"], "answer": "approve", "name": "Ann"})

    assert "answer it alone" in reply.json["failed"]["ask_doubt"]
    assert (await inbox.store.show("ask_doubt")).answer is None


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"requests": ["ask_c0"], "answer": "always"}, "answer"),
        ({"requests": [], "answer": "deny"}, "requests"),
        ({"requests": "ask_c0", "answer": "deny"}, "requests"),
        ({"requests": ["x"] * 201, "answer": "deny"}, "requests"),
        ({"requests": ["ask_c0"], "answer": "deny", "name": ""}, "name"),
    ],
)
async def test_what_several_cannot_be_answered_with_is_refused(inbox: Console, sent: Any, field: str) -> None:
    await many(inbox.path)

    reply = inbox.post("/api/answers", {"name": "Ann", **sent})

    assert (reply.status, reply.json["field"]) == (422, field)
    assert (await inbox.store.show("ask_c0")).answer is None


async def test_what_needs_two_approvers_waits_for_the_second(inbox: Console) -> None:
    await inbox.store.put(request_of("two", approvals_needed=2))
    ann, ben = ({"requests": ["ask_two"], "answer": "approve", "name": name} for name in ("Ann", "Ben"))

    first = inbox.post("/api/answers", ann).json
    shown = inbox.get("/api/request?id=ask_two").json
    again = inbox.post("/api/answers", ann).json
    second = inbox.post("/api/answers", ben).json

    assert first == {"failed": {}, "pending": ["ask_two"]}
    assert (shown["state"], shown["approvals_needed"], shown["approved_by"]) == ("pending", 2, ["Ann (console)"])
    assert "another approver" in again["failed"]["ask_two"]
    assert second == {"failed": {}, "pending": []}
    assert inbox.get("/api/request?id=ask_two").json["answer"]["by"] == "Ann (console), Ben (console)"

"""Front ends: what counts of a request, that a call runs once, and that sessions outlive a process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from starlette.testclient import TestClient

from tests.adapters.front_ends import BOOK, WEATHER, Trips, who
from tests.postgres import Postgres
from toolcrib.adapters.vercel_ai import vercel_ai_app
from toolcrib.approvals import ApprovalStore, MemoryApprovalStore, PostgresApprovalStore, SqliteApprovalStore
from toolcrib.calls import Done, ToolCall
from toolcrib.database._sqlite import sqlite3
from toolcrib.errors import FrontEndError
from toolcrib.pipeline import Run
from toolcrib.rounds import Session
from toolcrib.serving import (
    ApprovalAsked,
    CallEnded,
    ExchangeEnded,
    FrontEndAnswer,
    FrontEndEvent,
    FrontEndLimits,
    FrontEndRequest,
    FrontEndSessions,
    ReplyText,
)
from toolcrib.testing import RecordingSink
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset


class FrontEnd:
    """The sessions of a front end, and a person who uses it."""

    def __init__(
        self, trips: Trips, approvals: ApprovalStore | None = None, limits: FrontEndLimits | None = None
    ) -> None:
        self.sessions = FrontEndSessions("test", trips.open, approvals, limits or FrontEndLimits())
        self._messages = 0

    async def say(self, text: str, *, by: str = "ada", message: str = "") -> list[FrontEndEvent]:
        self._messages += 1
        return await self.ask(FrontEndRequest("chat", message or f"m{self._messages}", text), by=by)

    async def answer(self, *answers: tuple[str, bool], by: str = "ada", **more: Any) -> list[FrontEndEvent]:
        said = {id: FrontEndAnswer(yes, **more) for id, yes in answers}
        return await self.ask(FrontEndRequest("chat", f"m{self._messages}", "as before", said), by=by)

    async def ask(self, request: FrontEndRequest, *, by: str = "ada") -> list[FrontEndEvent]:
        exchange = await self.sessions.open(by, request)
        return [event async for event in exchange.events()]


def asked(events: list[FrontEndEvent]) -> list[str]:
    return [event.request.id for event in events if isinstance(event, ApprovalAsked)]


def texts(events: list[FrontEndEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReplyText))


def end(events: list[FrontEndEvent]) -> ExchangeEnded:
    assert isinstance(events[-1], ExchangeEnded)
    return events[-1]


async def test_a_conversation_is_kept_here() -> None:
    trips = Trips("Hello.", "Oslo, you said.")
    front = FrontEnd(trips)

    await front.say("I like Oslo.")
    events = await front.say("Where to?")

    assert texts(events) == "Oslo, you said."
    assert [item["content"] for item in trips.model.requests[-1].messages] == ["I like Oslo.", "Hello.", "Where to?"]


async def test_text_comes_as_the_model_streams_it() -> None:
    def chunk(text: str, reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
        return {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}

    front = FrontEnd(Trips(cast("Any", [chunk("It is "), chunk("cold."), chunk("", "stop")])))

    events = await front.say("Weather?")

    assert [event.text for event in events if isinstance(event, ReplyText)] == ["It is ", "cold."]


async def test_an_approved_call_runs_once_and_no_hook_again() -> None:
    trips = Trips([WEATHER, BOOK], "Booked.")
    front = FrontEnd(trips)

    (request,) = asked(await front.say("Book."))
    assert trips.did == []
    events = await front.answer((request, True))

    assert sorted(trips.did) == ["book Oslo", "weather Oslo"]
    assert trips.asked == ["call_book"]
    assert [event.id for event in events if isinstance(event, CallEnded)] == ["call_weather", "call_book"]
    with pytest.raises(FrontEndError, match="answered before"):
        await front.answer((request, True))
    assert len(trips.did) == 2


async def test_a_denied_call_does_not_run_and_the_model_is_told_why() -> None:
    trips = Trips(BOOK, "Then not.")
    front = FrontEnd(trips)

    (request,) = asked(await front.say("Book."))
    await front.answer((request, False), reason="too far")

    assert trips.did == []
    assert "too far" in trips.model.requests[-1].messages[-1]["content"]


async def test_arguments_that_the_person_puts_in_place_are_used() -> None:
    trips = Trips(BOOK, "Booked.")
    front = FrontEnd(trips)

    (request,) = asked(await front.say("Book."))
    await front.answer((request, True), arguments={"to": "Bergen"})

    assert trips.did == ["book Bergen"]


async def test_nothing_of_a_round_runs_before_all_of_it_is_answered() -> None:
    trips = Trips([BOOK, ToolCall("book", {"to": "Bergen"}, "call_2")], "Both.")
    front = FrontEnd(trips)

    first, second = asked(await front.say("Both, please."))
    again = asked(await front.answer((first, True)))
    assert (again, trips.did) == ([first, second], [])
    await front.answer((second, True))

    assert sorted(trips.did) == ["book Bergen", "book Oslo"]


async def test_an_answer_of_another_principal_approves_nothing() -> None:
    trips = Trips(BOOK, "Booked.")
    front = FrontEnd(trips)
    (request,) = asked(await front.say("Book."))

    with pytest.raises(FrontEndError, match="no new message"):
        await front.ask(FrontEndRequest("chat", answers={request: FrontEndAnswer(True)}), by="eve")
    assert trips.did == []


async def test_an_answer_to_a_call_of_another_conversation_approves_nothing() -> None:
    trips = Trips(BOOK, BOOK)
    front = FrontEnd(trips)
    (theirs,) = asked(await front.say("Book.", by="eve"))
    (mine,) = asked(await front.say("Book."))

    events = await front.answer((theirs, True))

    assert (asked(events), trips.did) == ([mine], [])
    assert [entry.state for entry in await _list(front.sessions.approvals)] == ["pending", "pending"]


async def test_what_is_new_waits_for_the_answer() -> None:
    front = FrontEnd(Trips(BOOK))
    await front.say("Book.")

    with pytest.raises(FrontEndError, match="answer it first"):
        await front.say("Hurry!")


async def test_a_session_goes_on_in_another_process(tmp_path: Path) -> None:
    before, after = Trips([WEATHER, BOOK]), Trips("Booked.")
    path = tmp_path / "approvals.db"

    (request,) = asked(await FrontEnd(before, SqliteApprovalStore(path)).say("Book.", message="m0"))
    events = await FrontEnd(after, SqliteApprovalStore(path)).answer((request, True))

    assert (texts(events), before.did, after.asked) == ("Booked.", [], [])
    assert sorted(after.did) == ["book Oslo", "weather Oslo"]


async def test_a_session_is_kept_in_postgres(postgres: Postgres) -> None:
    with closing(PostgresApprovalStore(postgres.url("front_end"))) as before:
        (request,) = asked(await FrontEnd(Trips([BOOK]), before).say("Book."))
    trips = Trips("Booked.")
    with closing(PostgresApprovalStore(postgres.url("front_end"))) as store:
        events = await FrontEnd(trips, store).answer((request, True))

    assert trips.did == ["book Oslo"]
    assert texts(events) == "Booked."


async def test_sinks_are_told_whom_a_session_waits_for_and_how_it_ended() -> None:
    kept, trips = RecordingSink(), Trips([WEATHER, BOOK], "Booked.")
    front = FrontEnd(trips)
    front.sessions = FrontEndSessions(
        "test", lambda name: Session(trips.model, tools=trips.tools, run=Run(sinks=(kept,))), None, FrontEndLimits()
    )

    (request,) = asked(await front.say("Book."))
    told = [event for event in kept.runs if event.activity == "agent"]
    await front.answer((request, True))

    assert [(event.kind, event.data.get("state", event.data.get("outcome"))) for event in told] == [
        ("opened", None),
        ("changed", "suspended"),
        ("closed", "paused"),
    ]
    assert told[1].data["request_id"] == request
    later = [event for event in kept.runs if event.activity == "agent"][len(told) :]
    assert [(event.kind, event.data.get("outcome")) for event in later] == [("opened", None), ("closed", "completed")]
    assert {event.activity_id for event in (*told, *later)} == {told[0].activity_id}


async def test_of_two_processes_one_goes_on(tmp_path: Path) -> None:
    trips, path = Trips([WEATHER, BOOK], "Booked."), tmp_path / "approvals.db"
    fronts = [FrontEnd(trips, SqliteApprovalStore(path)) for _ in range(3)]
    (request,) = asked(await fronts[0].say("Book.", message="m0"))

    made = await asyncio.gather(*(front.answer((request, True)) for front in fronts[1:]), return_exceptions=True)

    assert sum(isinstance(one, FrontEndError) for one in made) == 1
    assert sorted(trips.did) == ["book Oslo", "weather Oslo"]


async def test_of_two_processes_that_read_one_state_one_goes_on(tmp_path: Path) -> None:
    trips, path = Trips([WEATHER, BOOK], "Booked."), tmp_path / "approvals.db"
    fronts, both_read = [FrontEnd(trips, SqliteApprovalStore(path)) for _ in range(2)], asyncio.Barrier(2)
    for front in fronts:
        front.sessions.kept = ReadTogether(front.sessions.kept, both_read)

    begun = await asyncio.gather(*(front.say("Book.", message="m0") for front in fronts), return_exceptions=True)
    (request,) = [id for events in begun if isinstance(events, list) for id in asked(events)]
    done = await asyncio.gather(*(front.answer((request, True)) for front in fronts), return_exceptions=True)

    assert [sum(isinstance(each, FrontEndError) for each in tries) for tries in (begun, done)] == [1, 1]
    assert sorted(trips.did) == ["book Oslo", "weather Oslo"]


class ReadTogether:
    """A store of conversations, of which two processes read the same state before either of them goes on."""

    def __init__(self, store: Any, both_read: asyncio.Barrier) -> None:
        self._store, self._both_read = store, both_read

    async def find(self, key: str) -> Any:
        found = await self._store.find(key)
        await self._both_read.wait()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_an_answer_that_was_given_elsewhere_counts() -> None:
    trips, store = Trips(BOOK, "Then not."), MemoryApprovalStore()
    front = FrontEnd(trips, store)
    (request,) = asked(await front.say("Book."))
    await store.answer((await store.show(request)).request.deny(message="not today", by="the boss"))

    events = await front.answer((request, True))

    assert (texts(events), trips.did) == ("Then not.", [])


async def test_a_call_that_was_begun_when_its_process_died_is_in_doubt(tmp_path: Path) -> None:
    path, kept = tmp_path / "approvals.db", asyncio.Event()

    @tool(register=False)
    async def pay() -> str:
        """Pay."""
        kept.set()
        await asyncio.Event().wait()
        return "paid"

    dying = Trips(ToolCall("pay", {}, "call_pay"))
    dying.tools = Toolset([pay])
    front = FrontEnd(dying, SqliteApprovalStore(path))
    exchange = await front.sessions.open("ada", FrontEndRequest("chat", "m0", "Pay."))
    task = asyncio.create_task(exchange.run())
    await kept.wait()
    store = SqliteApprovalStore(path)
    after = Trips("We do not know.")
    after.tools = Toolset([pay])
    later = FrontEnd(after, store)
    with pytest.raises(FrontEndError, match="elsewhere"):
        await later.answer()
    await _let_the_claim_lapse(path)

    (request,) = asked(await later.answer())

    assert (await store.show(request)).request.in_doubt
    ended = await later.answer((request, False), done=Done("paid by hand"))
    assert [event.outcome.text() for event in ended if isinstance(event, CallEnded)] == ["paid by hand"]
    task.cancel()
    await asyncio.wait([task])


async def test_one_exchange_of_a_conversation_at_a_time_and_few_at_all() -> None:
    front = FrontEnd(Trips("Hello."), limits=FrontEndLimits(exchanges=1, message_chars=10))
    exchange = await front.sessions.open("ada", FrontEndRequest("chat", "m1", "Hello!"))

    with pytest.raises(FrontEndError, match="is being answered"):
        await front.sessions.open("ada", FrontEndRequest("chat", "m2", "Hello?"))
    with pytest.raises(FrontEndError, match="too many"):
        await front.sessions.open("ada", FrontEndRequest("another", "m2", "Hello?"))
    with pytest.raises(FrontEndError, match="at most 10"):
        await front.say("Hello, hello, hello")

    assert texts([event async for event in exchange.events()]) == "Hello."


async def test_where_the_listener_leaves_calls_end_and_the_model_is_not_asked_again() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @tool(register=False)
    async def slow() -> str:
        """Take long."""
        begun.set()
        await go_on.wait()
        return "done"

    trips = Trips(ToolCall("slow", {}, "call_1"), "It is done.")
    trips.tools = Toolset([slow])
    front = FrontEnd(trips)
    exchange = await front.sessions.open("ada", FrontEndRequest("chat", "m1", "Go."))
    events = exchange.events()
    await anext(events)
    await begun.wait()
    await events.aclose()
    go_on.set()
    await asyncio.wait(front.sessions.running)

    assert len(trips.model.requests) == 1
    assert texts(await front.say("Go.", message="m1")) == "It is done."
    assert trips.model.requests[-1].messages[-1]["content"] == "done"


async def test_an_error_is_told_by_a_reference_alone(caplog: pytest.LogCaptureFixture) -> None:
    front = FrontEnd(Trips(RuntimeError("the key sk-123 is wrong"), "Hello."))

    last = end(await front.say("Hello?", message="m1"))

    assert last.reason == "error"
    assert "sk-123" not in last.problem
    assert last.problem.rpartition(" ")[2] in caplog.text
    assert texts(await front.say("Hello?", message="m1")) == "Hello."


async def test_a_model_that_asks_without_end_is_stopped() -> None:
    trips = Trips(*([WEATHER] * 2))

    last = end(await FrontEnd(trips, limits=FrontEndLimits(rounds=2)).say("Go."))

    assert (last.reason, len(trips.did)) == ("unknown", 2)
    assert "after 2 rounds" in last.problem


async def test_the_store_belongs_to_the_front_end() -> None:
    trips = Trips()
    run = Run(approvals=MemoryApprovalStore())
    sessions = FrontEndSessions("test", lambda name: Session(trips.model, run=run), None, FrontEndLimits())

    with pytest.raises(ValueError, match="to the front end"):
        await sessions.open("ada", FrontEndRequest("chat", "m1", "Hello."))


# --- over HTTP


def chat(text: str = "Hello?") -> dict[str, Any]:
    return {"id": "chat", "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}]}


@pytest.fixture
def client() -> TestClient:
    app = vercel_ai_app(Trips("Hello.").open, principal=who, limits=FrontEndLimits(request_bytes=1_000))
    return TestClient(app, headers={"x-user": "ada"})


@pytest.mark.parametrize(
    ("status", "content", "headers"),
    [
        (401, json.dumps(chat()), {"x-user": ""}),
        (413, json.dumps(chat("long" * 500)), {}),
        (415, json.dumps(chat()), {"content-type": "text/plain"}),
        (400, "{", {}),
        (400, "[" * 900, {}),
        (400, "[]", {}),
    ],
)
def test_a_request_that_is_none_is_refused(
    client: TestClient, status: int, content: str, headers: Mapping[str, str]
) -> None:
    reply = client.post("/", content=content, headers={"content-type": "application/json", **headers})

    assert reply.status_code == status
    assert reply.json()["code"] == "front_end_error"


def test_other_methods_are_refused(client: TestClient) -> None:
    assert client.get("/").status_code == 405


async def test_the_principal_may_be_found_by_async_code() -> None:
    async def find(request: Any) -> str:
        return "ada"

    transport = httpx.ASGITransport(app=vercel_ai_app(Trips("Hello.").open, principal=find))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        reply = await client.post("/", json=chat())

    assert reply.status_code == 200
    assert "Hello." in reply.text


# --- inside


async def _list(store: Any) -> list[Any]:
    return list(await store.list())


async def _let_the_claim_lapse(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE toolcrib_suspended_calls SET since = '2026-01-01T00:00:00+00:00'")


def forgetful(principal: str) -> Any:
    len(principal)


@pytest.mark.parametrize(
    ("open_session", "said"),
    [
        (forgetful, "the function open_session `forgetful` returns nothing, .*: return a session"),
        (lambda: None, r"the function open_session `<lambda>` is called with \(principal\), and takes \(\)"),
    ],
)
def test_a_function_that_opens_no_session_is_refused_where_it_is_given(open_session: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        vercel_ai_app(open_session, principal=who)


async def test_something_else_in_the_place_of_a_session_is_told() -> None:
    sessions = FrontEndSessions("test", lambda principal: principal, None, FrontEndLimits())

    with pytest.raises(TypeError, match=r"open_session returned 'ada'; return a session, as in Session\(model"):
        await sessions.open("ada", FrontEndRequest("chat", "m1", "Hello."))


async def user(request: Any) -> Any:
    return {"name": "ada"}


@pytest.mark.parametrize("principal", [user, lambda request: {"name": "ada"}])
def test_a_principal_is_a_name(principal: Any) -> None:
    client = TestClient(vercel_ai_app(Trips().open, principal=principal))

    with pytest.raises(
        TypeError, match=r"principal returned \{'name': 'ada'\}; return the name of the caller, or None"
    ):
        client.post("/", json={"id": "chat", "messages": []})


def test_a_function_that_finds_no_principal_is_refused_where_it_is_given() -> None:
    with pytest.raises(TypeError, match=r"the function principal `<lambda>` is called with \(request\), and takes"):
        vercel_ai_app(Trips().open, principal=lambda: "ada")  # pyright: ignore[reportArgumentType]

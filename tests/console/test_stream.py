"""Server-sent events: what is new reaches every browser, from where it was."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.console.conftest import Console, serving
from tests.console.test_api import answer, asked, event, request_of
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import RequiredApprovers, now
from toolcrib.console import ConsoleOptions
from toolcrib.console._feed import Feed
from toolcrib.record import SqliteSink, sqlite_events

TOKEN = "a-token-of-the-tests-0123"


@contextmanager
def stream(console: Console, **headers: str) -> Iterator[Iterator[tuple[str, int, Any]]]:
    """Listen to the console; gives kind, position and data of each message."""
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)
    connection.request("GET", "/api/stream", headers={name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()

    def messages() -> Iterator[tuple[str, int, Any]]:
        found: dict[str, str] = {}
        while line := response.readline().decode().rstrip("\n") if not response.closed else "":
            name, _, value = line.partition(": ")
            found[name] = value
            if name == "data":
                yield found["event"], int(found["id"]), json.loads(value)
                found = {}
                response.readline()
            elif name in ("retry", ""):
                response.readline()

    try:
        yield messages()
    finally:
        connection.close()


async def test_a_stream_tells_what_happens_from_where_the_browser_was(console: Console, sink: SqliteSink) -> None:
    sink.emit(event("streamed_1"))
    sink.emit(event("streamed_2"))
    before = sink.log().last() - 2

    with stream(console, last_event_id=str(before)) as messages:
        kind, position, data = next(messages)
        inbox = next(messages)
        sink.emit(event("streamed_3"))
        later = next(messages)

    assert (kind, position) == ("events", before + 2)
    assert [one["id"] for one in data["events"]] == ["streamed_1", "streamed_2"]
    assert inbox[0] == "inbox"
    assert [one["id"] for one in later[2]["events"]] == ["streamed_3"]
    assert later[1] == before + 3


async def test_a_stream_tells_of_requests_and_answers(console: Console) -> None:
    with stream(console) as messages:
        next(messages)
        request = await asked(console, "live")
        asked_now = next(messages)
        answer(console, request, "approve")
        answered = next(messages)

    assert request.id in asked_now[2]["pending"]
    assert request.id not in answered[2]["pending"]


async def test_what_a_request_finds_between_two_polls_reaches_the_streams_too(tmp_path: Path) -> None:
    store = SqliteApprovalStore(tmp_path / "toolcrib.db")
    feed = Feed(sqlite_events(tmp_path / "toolcrib.db"), store)
    messages = feed.stream(None)
    async with asyncio.timeout(60):
        await anext(messages)
        assert '"pending": []' in await anext(messages)
        waiting = asyncio.ensure_future(anext(messages))
        await asyncio.sleep(0.05)  # the stream waits for a change now, and the poll for its next turn
        await store.put(request_of("between"))
        await feed.refresh()

        assert "ask_between" in await waiting
    await messages.aclose()


async def test_a_stream_tells_of_an_escalation(tmp_path: Path) -> None:
    store = SqliteApprovalStore(tmp_path / "toolcrib.db")
    rule = RequiredApprovers("r", {"finance": 1}, escalation=((3600.0, "managers"),))
    asked_at = now() - timedelta(seconds=3599)
    await store.put(replace(request_of("late"), created_at=asked_at, required=(rule,)))
    messages = Feed(sqlite_events(tmp_path / "toolcrib.db"), store).stream(None)
    async with asyncio.timeout(60):
        await anext(messages)
        before = await anext(messages)
        after = await anext(messages)
    await messages.aclose()

    assert now() >= asked_at + timedelta(hours=1)
    assert "ask_late" in before
    assert "ask_late" in after


def test_who_missed_much_begins_anew(console: Console, sink: SqliteSink) -> None:
    for number in range(2_100):
        sink.emit(event("many", "yielded", value=number))
    last = sink.log().last()

    with stream(console, last_event_id="1") as messages:
        kind, position, _ = next(messages)

    assert kind == "reset"
    assert last - position <= 200


def test_a_page_of_another_database_begins_anew(console: Console) -> None:
    with stream(console, last_event_id="999999999") as messages:
        assert next(messages)[0] == "reset"


def test_logging_out_ends_the_streams_of_that_login(tmp_path: Path) -> None:
    with serving(tmp_path / "toolcrib.db", ConsoleOptions(tokens={"ann": TOKEN})) as console:
        cookies = [
            console.post("/api/login", {"token": TOKEN}, x_toolcrib_csrf=None).headers["set-cookie"].partition(";")[0]
            for _ in range(2)
        ]
        csrf = console.get("/api/state", cookie=cookies[0]).json["csrf"]
        with stream(console, cookie=cookies[0]) as ended, stream(console, cookie=cookies[1]) as goes_on:
            next(ended)
            next(goes_on)
            console.post("/api/logout", {}, cookie=cookies[0], x_toolcrib_csrf=csrf)

            assert list(ended) == []
            with SqliteSink(console.path) as sink:
                sink.emit(event("after"))
            assert next(goes_on)[0] == "events"

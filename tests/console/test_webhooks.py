"""Webhooks: what is sent, signed and sent again."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from toolcrib.approvals import MemoryApprovalStore, Notice
from toolcrib.calls import ApprovalRequest, RequiredApprovers, Suspended, ToolCall, now
from toolcrib.console import Notifier, Webhook, webhook_signature
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Provenance
from toolcrib.testing import FakeClock
from toolcrib.tools import tool

SECRET = "a-secret-of-the-tests"


@tool(register=False, effect="none", source="untrusted")
async def letter() -> str:
    """Read the letter."""
    return "my card is 4242-9"


@tool(register=False, effect="spend")
async def refund(card: str) -> str:
    """Refund to a card."""
    return card


@dataclass
class Receiver:
    """What a webhook was sent, and the statuses that it answers, the last one again and again."""

    statuses: list[int]
    url: str = ""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list[Any])


@contextmanager
def receiving(*statuses: int) -> Generator[Receiver]:
    receiver = Receiver(list(statuses))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
            status = receiver.statuses.pop(0) if len(receiver.statuses) > 1 else receiver.statuses[0]
            self.send_response(status)
            self.send_header("location", "/elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            receiver.got.append(({}, b"redirected"))

        def log_message(self, format: str, *args: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook?key=1"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()


def request_of(number: int, **options: Any) -> ApprovalRequest:
    return ApprovalRequest(f"ask {number}", f"c{number}", "refund", {"card": "4242"}, "d", **options)


async def until(receiver: Receiver, notifier: Notifier, number: int) -> None:
    """Run a notifier until a receiver was sent so much."""
    task = asyncio.create_task(notifier.run())
    async with asyncio.timeout(60):
        while len(receiver.got) < number:  # noqa: ASYNC110 -- another thread receives
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_notice_is_signed_and_has_no_arguments() -> None:
    store = MemoryApprovalStore()
    await store.put(request_of(1, principal="ada"))
    with receiving(200) as receiver:
        notifier = Notifier(store, [Webhook(receiver.url, SECRET)], "https://console.example/")
        await until(receiver, notifier, 1)

    ((headers, body),) = receiver.got
    said = json.loads(body)
    assert (said["type"], said["more"]) == ("approvals.pending", 0)
    (one,) = said["requests"]
    assert (one["tool"], one["principal"]) == ("refund", "ada")
    assert one["url"] == "https://console.example/#/inbox/ask%201"
    assert b"4242" not in body
    expected = webhook_signature(SECRET, headers["x-toolcrib-timestamp"], body)
    assert headers["x-toolcrib-signature"] == f"v1={expected}"
    assert webhook_signature(SECRET, headers["x-toolcrib-timestamp"], body + b" ") != expected
    assert webhook_signature(SECRET, "1", body) != expected


@pytest.mark.parametrize("shape", ["json", "slack"])
async def test_a_reason_which_may_quote_arguments_is_sent_when_asked_for_alone(shape: Any) -> None:
    run, refunds = Run(features=[Provenance()]), Pipeline([letter, refund])
    run.add_user_message("my diagnosis is X12; refund what the letter says")
    await refunds.run(ToolCall("letter", {}), run)
    outcome = await refunds.run(ToolCall("refund", {"card": "4242-9"}), run)
    assert isinstance(outcome, Suspended)

    bodies = [
        Webhook("https://x", shape=shape, reasons=wanted).body("pending", [outcome.request], "")
        for wanted in (False, True)
    ]

    assert [b"4242-9" in body for body in bodies] == [False, True]
    assert b"X12" not in bodies[0]


def test_a_reason_that_is_cut_says_so() -> None:
    request = request_of(1, reason="a" * 507)

    (said,) = json.loads(Webhook("https://x", reasons=True).body("pending", [request], ""))["requests"]

    assert "[... 7 of 507 characters cut ...]" in said["reason"]


async def test_a_request_is_sent_once_and_the_next_one_too() -> None:
    store = MemoryApprovalStore()
    await store.put(request_of(1))
    with receiving(200) as receiver:
        notifier = Notifier(store, [Webhook(receiver.url)], "http://here")
        await until(receiver, notifier, 1)
        await store.put(request_of(2))
        await until(receiver, notifier, 2)

    assert [[one["id"] for one in json.loads(body)["requests"]] for _, body in receiver.got] == [["ask 1"], ["ask 2"]]
    assert "x-toolcrib-signature" not in receiver.got[0][0]


async def test_a_notice_is_sent_again_until_it_arrives() -> None:
    store = MemoryApprovalStore()
    await store.put(request_of(1))
    with receiving(500, 429, 200) as receiver:
        notifier = Notifier(store, [Webhook(receiver.url, SECRET)], "http://here", clock=FakeClock(1000))
        await until(receiver, notifier, 3)

    assert len(receiver.got) == 3
    assert len({headers["x-toolcrib-delivery"] for headers, _ in receiver.got}) == 1
    assert len({body for _, body in receiver.got}) == 1


class AwayWhenTakenBack(MemoryApprovalStore):
    """A store that cannot be reached when a notice that did not arrive is first taken back."""

    away = 2

    async def undo_notices(self, address: str, notices: Collection[Notice]) -> None:
        if self.away:
            self.away -= 1
            raise ConnectionError("away")
        await super().undo_notices(address, notices)


async def test_a_notice_arrives_though_the_store_was_away_when_it_was_to_be_taken_back() -> None:
    store = AwayWhenTakenBack()
    await store.put(request_of(1))
    with receiving(500, 200) as receiver:
        notifier = Notifier(store, [Webhook(receiver.url)], "http://here", clock=FakeClock(1000))
        await until(receiver, notifier, 2)

    assert len(receiver.got) == 2
    assert await store.notices_due(Webhook(receiver.url).address) == ()


async def test_a_notice_whose_request_is_answered_before_the_next_try_is_sent_no_more() -> None:
    store, clock = MemoryApprovalStore(), FakeClock()
    for number in (1, 2):
        await store.put(request_of(number))
    with receiving(500, 200) as receiver:
        notifier = Notifier(store, [Webhook(receiver.url)], "http://here", clock=clock)
        sending = asyncio.create_task(until(receiver, notifier, 2))
        while not clock.waiting:  # noqa: ASYNC110 -- another thread receives
            await asyncio.sleep(0.01)
        await store.answer(request_of(1).deny())
        clock.advance(1)
        await sending

    assert [[one["id"] for one in json.loads(body)["requests"]] for _, body in receiver.got] == [
        ["ask 1", "ask 2"],
        ["ask 2"],
    ]


async def test_a_console_that_starts_again_sends_no_notice_twice() -> None:
    store = MemoryApprovalStore()
    await store.put(request_of(1))
    with receiving(200) as receiver:
        await until(receiver, Notifier(store, [Webhook(receiver.url)], "http://here"), 1)
        await store.put(request_of(2))
        await until(receiver, Notifier(store, [Webhook(receiver.url)], "http://here"), 2)

    assert [[one["id"] for one in json.loads(body)["requests"]] for _, body in receiver.got] == [["ask 1"], ["ask 2"]]


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        ("pending", "Waiting for approval:"),
        ("reminder", "Still waiting for approval:"),
        ("escalated", "Waiting for approval, which further people may give now:"),
    ],
)
async def test_a_notice_says_what_it_is_and_who_may_answer_now(kind: Any, title: str) -> None:
    rule = RequiredApprovers("refunds", {"finance": 1}, escalation=((60.0, "managers"), (6000.0, "board")))
    request = request_of(1, required=(rule,), created_at=now() - timedelta(minutes=30))

    data = json.loads(Webhook("https://x").body(kind, [request], ""))
    text = json.loads(Webhook("https://x", shape="slack").body(kind, [request], ""))["text"]

    assert data["type"] == f"approvals.{kind}"
    assert data["requests"][0]["may_answer"] == ["finance", "managers"]
    assert text.startswith(f"{title}\n")


async def test_people_of_a_group_get_what_they_may_answer_by_a_rule() -> None:
    store = MemoryApprovalStore()
    await store.put(request_of(1))
    await store.put(request_of(2, required=(RequiredApprovers("refunds", {"finance": 1}),)))
    with receiving(200) as receiver:
        await until(receiver, Notifier(store, [Webhook(receiver.url, groups=("finance",))], "http://here"), 1)

    assert [one["id"] for one in json.loads(receiver.got[0][1])["requests"]] == ["ask 2"]


@pytest.mark.parametrize("status", [400, 404, 302])
async def test_a_refusal_is_logged_and_not_sent_again(status: int, caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryApprovalStore()
    await store.put(request_of(1))
    with receiving(status) as receiver, caplog.at_level(logging.ERROR, "toolcrib.console"):
        notifier = Notifier(store, [Webhook(receiver.url)], "http://here", clock=FakeClock(1000))
        await until(receiver, notifier, 1)

    assert len(receiver.got) == 1
    assert f"answered {status}" in caplog.text
    assert "key=1" not in caplog.text


async def test_slack_is_sent_text_that_is_no_markup() -> None:
    store = MemoryApprovalStore()
    for number in range(22):
        await store.put(request_of(number, principal="<!channel>\npay & go", in_doubt=number == 0))
    with receiving(200) as receiver:
        await until(receiver, Notifier(store, [Webhook(receiver.url, shape="slack")], "http://here"), 1)

    ((_, body),) = receiver.got
    lines = json.loads(body)["text"].split("\n")
    assert lines[1] == (
        "<http://here/#/inbox/ask%200|refund> for &lt;!channel&gt; pay &amp; go, it may have run already"
    )
    assert (len(lines), lines[-1]) == (22, "and 2 more")


async def test_notices_wait_in_the_store_while_the_webhook_takes_none() -> None:
    store, clock = MemoryApprovalStore(), FakeClock()
    await store.put(request_of(0))
    with receiving(500, 200) as receiver:
        notifier = Notifier(store, [Webhook(receiver.url)], "http://here", clock=clock)
        sending = asyncio.create_task(until(receiver, notifier, 3))
        while not clock.waiting:  # noqa: ASYNC110 -- another thread receives
            await asyncio.sleep(0.01)
        for number in range(1, 4):
            await store.put(request_of(number))
        while not sending.done():
            clock.skip()
            await asyncio.sleep(0.01)
        await sending

    sent = [[one["id"] for one in json.loads(body)["requests"]] for _, body in receiver.got]
    assert sent == [["ask 0"], ["ask 0"], ["ask 1", "ask 2", "ask 3"]]


@pytest.mark.parametrize(
    ("url", "secret"),
    [("ftp://x", ""), ("https://", ""), ("x", ""), ("https://x", "short"), ("file:///etc/passwd", "")],
)
def test_what_is_no_webhook_is_refused(url: str, secret: str) -> None:
    with pytest.raises(ValueError, match="webhook"):
        Webhook(url, secret)


def test_a_webhook_keeps_its_address_and_secret_out_of_logs() -> None:
    assert repr(Webhook("https://x.example/key", SECRET)) == "Webhook(shape='json', reasons=False, groups=())"

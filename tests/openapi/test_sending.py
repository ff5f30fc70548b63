"""Sending: retries, deadlines, limits, redirects, answers and errors."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest

from tests.openapi.standin import StandIn, document, operation
from toolcrib import Completed, Failed, Media, Pipeline, Run, ToolCall
from toolcrib.calls import Outcome, now
from toolcrib.openapi import toolset
from toolcrib.openapi._sending import bound_request
from toolcrib.openapi._servers import may_reach
from toolcrib.testing import FakeClock

KEY = {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}


def server(answers: Callable[[httpx2.Request], httpx2.Response], **parts: Any) -> StandIn:
    """Return a server with an operation for each method, named by it."""
    methods = {name: operation(name) for name in ("get", "head", "put", "post", "delete")}
    return StandIn(document({"/x": methods}, **parts), answers, checks=False)


def always(*args: Any, **keywords: Any) -> Callable[[httpx2.Request], httpx2.Response]:
    return lambda request: httpx2.Response(*args, **keywords)


def secured() -> dict[str, Any]:
    return {"components": {"securitySchemes": KEY}, "security": [{"key": []}]}


# --- answers


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ({"json": {"a": [1]}}, {"a": [1]}),
        ({"text": "hello"}, "hello"),
        ({"content": "é".encode("latin-1"), "headers": {"content-type": "text/csv; charset=latin-1"}}, "é"),
        ({"content": b"<a/>", "headers": {"content-type": "application/xml"}}, "<a/>"),
        ({"content": b'{"a": 1}', "headers": {"content-type": "application/problem+json"}}, {"a": 1}),
        ({"content": b'{"a": 1}'}, {"a": 1}),
        ({"content": b""}, {"status": 200}),
        ({"content": b"", "headers": {"location": "/x/7"}}, {"status": 200, "location": "/x/7"}),
    ],
)
async def test_an_answer_is_a_value(answer: dict[str, Any], value: Any) -> None:
    outcome = await server(always(200, **answer)).call("get", {})

    assert isinstance(outcome, Completed)
    assert outcome.value == value


async def test_bytes_are_media_with_the_last_part_of_their_name() -> None:
    headers = {"content-type": "image/png", "content-disposition": 'attachment; filename="../../etc/chart.png"'}

    outcome = await server(always(200, content=b"\x89PNG", headers=headers)).call("get", {})

    assert isinstance(outcome, Completed)
    assert outcome.value == Media("image/png", b"\x89PNG", name="chart.png")


async def test_head_is_its_headers_without_cookies() -> None:
    outcome = await server(always(200, headers={"etag": "1", "set-cookie": "s=secret"})).call("head", {})

    assert isinstance(outcome, Completed)
    assert outcome.value == {"status": 200, "headers": {"etag": "1"}}


# --- errors


@pytest.mark.parametrize("status", [400, 404, 409, 422])
async def test_what_a_model_can_mend_is_said_to_it(status: int) -> None:
    outcome = await server(always(status, json={"message": "no such day", "errors": [{"field": "day"}]})).call(
        "post", {}
    )

    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert f"POST /x: the server answered {status}" in outcome.message
    assert 'no such day [{"field":"day"}]' in outcome.message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"json": {"detail": [{"loc": ["q"], "msg": "bad"}]}}, '[{"loc":["q"],"msg":"bad"}]'),
        ({"json": {"error": {"message": "deep"}}}, "deep"),
        ({"json": ["a"]}, '["a"]'),
        ({"text": "<html><b>Not</b> found</html>"}, "Not found"),
        ({"json": {"message": "x" * 5_000}}, "x" * 1_000),
    ],
)
async def test_the_message_of_an_error_is_found_and_bounded(body: dict[str, Any], said: str) -> None:
    outcome = await server(always(400, **body)).call("get", {})

    assert isinstance(outcome, Failed)
    assert outcome.message == f"GET /x: the server answered 400 Bad Request: {said}"


@pytest.mark.parametrize("status", [401, 403, 500, 501])
async def test_what_a_model_cannot_mend_is_a_failure(status: int) -> None:
    outcome = await server(always(status, json={"message": "not now"})).call("get", {})

    assert isinstance(outcome, Failed)
    assert (outcome.retryable, outcome.code) == (False, "remote_tool_error")
    assert "not now" in outcome.message


@pytest.mark.parametrize("content", [b"{", b"NaN", b"[" * 100_000, b"\xff"])
async def test_an_answer_that_is_no_json_is_a_failure(content: bytes) -> None:
    outcome = await server(always(200, content=content, headers={"content-type": "application/json"})).call("get", {})

    assert isinstance(outcome, Failed)
    assert "says that it is JSON, and cannot be read" in outcome.message


@pytest.mark.parametrize("headers", [{"content-type": "application/json"}, {}])
async def test_the_last_value_of_a_key_that_stands_twice_counts_and_is_logged(
    headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    outcome = await server(always(200, content=b'{"a": 1, "a": 2}', headers=headers)).call("get", {})

    assert isinstance(outcome, Completed)
    assert outcome.value == {"a": 2}
    assert "it sent the key `a` more than once in one object; the last value counts" in caplog.text


# --- limits


class _Long(httpx2.AsyncByteStream):
    def __init__(self) -> None:
        self.sent = 0

    async def __aiter__(self) -> Any:
        while self.sent < 1_000:
            self.sent += 1
            yield b"x" * 1_000


@pytest.mark.parametrize(("method", "retryable"), [("get", True), ("post", False)])
async def test_a_long_answer_is_not_read_to_its_end(method: str, retryable: bool) -> None:
    stream = _Long()

    outcome = await server(always(200, stream=stream)).call(method, {}, max_bytes=10_000)

    assert isinstance(outcome, Failed)
    assert "larger than 10,000 bytes" in outcome.message
    assert outcome.retryable is retryable
    assert stream.sent <= 12


@pytest.mark.parametrize(
    ("method", "late"),
    [("get", "did not answer within 0.05 s"), ("post", "within 0.05 s. The request may have taken effect")],
)
async def test_a_server_that_is_late_is_a_failure(method: str, late: str) -> None:
    found = document({"/x": {method: operation("x")}})

    async def slow(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(2)
        return httpx2.Response(200)

    made = StandIn(found, checks=False)
    made.client = httpx2.AsyncClient(transport=httpx2.MockTransport(slow))
    outcome = await made.call("x", {}, timeout=0.05)

    assert isinstance(outcome, Failed)
    assert outcome.message.endswith(late)


# --- retries


@pytest.mark.parametrize(("method", "times"), [("get", 3), ("head", 3), ("put", 3), ("delete", 3), ("post", 1)])
async def test_only_what_may_be_done_twice_is_tried_again(method: str, times: int) -> None:
    made = server(always(503, headers={"retry-after": "0"}))

    outcome = await made.call(method, {})

    assert isinstance(outcome, Failed)
    assert len(made.requests) == times


async def test_a_server_that_asks_for_a_long_pause_is_not_waited_for() -> None:
    made = server(always(429, headers={"retry-after": "3600"}))

    outcome = await made.call("get", {})

    assert outcome.text().endswith("It says to wait: 3600 s.")
    assert len(made.requests) == 1


async def test_an_answer_after_a_short_pause_is_the_result() -> None:
    answers = iter([httpx2.Response(503, headers={"retry-after": "0"}), httpx2.Response(200, json=1)])

    outcome = await server(lambda request: next(answers)).call("get", {})

    assert isinstance(outcome, Completed)
    assert outcome.value == 1


def in_seconds(seconds: float) -> str:
    """Return a time as HTTP has it."""
    return format_datetime(now() + timedelta(seconds=seconds), usegmt=True)


async def called_with_pauses(made: StandIn) -> tuple[Outcome, list[float]]:
    """Make a call, and return its outcome and the pauses between its tries."""
    clock, pauses = FakeClock(), list[float]()
    calling = asyncio.create_task(made.call("get", {}, clock=clock))
    while not calling.done():
        pauses += [until - clock.monotonic() for until in clock.waiting]
        clock.skip()
        await asyncio.sleep(0)
    return await calling, [round(pause, 3) for pause in pauses if pause > 0]


@pytest.mark.parametrize(
    ("text", "times", "said", "pauses"),
    [
        ("5", 3, "wait: 5 s", [5.0, 5.0]),
        (in_seconds(3600), 1, "wait until ", []),
        (in_seconds(-3600), 3, "wait until ", []),
        ("soon", 3, "wait until soon", [0.3, 0.6]),
        ("Fri, 31 Dec 2027", 3, "wait until Fri", [0.3, 0.6]),
    ],
    ids=["seconds", "later", "over", "word", "no time"],
)
async def test_a_request_is_made_again_after_the_pause_that_its_server_asks_for(
    text: str, times: int, said: str, pauses: list[float]
) -> None:
    made = server(always(429, headers={"retry-after": text}))

    outcome, paused = await called_with_pauses(made)

    assert (len(made.requests), said in outcome.text(), paused) == (times, True, pauses)


# --- redirects

PLACES = {"api.test": "93.184.216.34", "other.test": "93.184.216.35"}


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the addresses that names have, which a test may change."""
    known = dict(PLACES)

    def getaddrinfo(host: str, port: int, *args: Any, **options: Any) -> list[Any]:
        if host not in known:
            raise socket.gaierror("unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (known[host], port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "fd00::1", "fec0::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"],
)
async def test_a_name_that_leads_into_the_private_net_is_not_followed(address: str, places: dict[str, str]) -> None:
    made = server(leads("http://other.test/x"))
    places["other.test"] = address

    outcome = await made.call("get", {})

    assert isinstance(outcome, Failed)
    assert "is not followed" in outcome.message
    assert len(made.requests) == 1


async def test_a_private_api_may_lead_to_a_private_name(places: dict[str, str]) -> None:
    made = server(leads("http://other.test/x"))
    places.update({"api.test": "10.0.0.1", "other.test": "10.0.0.2"})

    assert isinstance(await made.call("get", {}), Completed)


async def test_a_name_is_looked_up_once_for_the_check_and_for_the_request(places: dict[str, str]) -> None:
    request = httpx2.Request("GET", "https://other.test/x")

    made = bound_request(request, "93.184.216.35")

    assert (str(made.url), made.headers["host"]) == ("https://93.184.216.35/x", "other.test")
    assert made.extensions["sni_hostname"] == "other.test"


async def sent(servers: str, own: str | None = None) -> Outcome:
    """Make a call of a document that names these servers, over the connections of each call itself."""
    parts = {} if own is None else {"servers": [{"url": own}]}
    spec = document({"/x": {"get": operation("get", **parts)}}, servers=[{"url": servers}])
    return await Pipeline(toolset(spec, retries=0)).run(ToolCall("get", {}))


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "fd00:ec2::254"])
async def test_a_server_whose_name_leads_to_secrets_of_the_machine_is_not_asked(
    address: str, places: dict[str, str]
) -> None:
    places["api.test"] = address

    outcome = await sent("http://api.test")

    assert isinstance(outcome, Failed)
    assert "is not followed; `server=`" in outcome.message


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "fd00::1"])
async def test_an_operation_is_not_led_into_the_private_net_by_a_name(address: str, places: dict[str, str]) -> None:
    places["other.test"] = address

    outcome = await sent("http://api.test", own="http://other.test")

    assert isinstance(outcome, Failed)
    assert "is not followed; `server=`" in outcome.message


async def test_a_name_that_nobody_knows_is_not_asked(places: dict[str, str]) -> None:
    del places["api.test"]

    assert "'api.test' has no address" in (await sent("http://api.test")).text()


@pytest.mark.parametrize(
    ("leaders", "found", "is_reached"),
    [
        ((), ["10.0.0.1"], True),
        (("http://api.test",), ["93.184.216.35"], True),
        (("http://api.test",), ["93.184.216.35", "10.0.0.1"], False),
        (("http://10.0.0.9",), ["10.0.0.1"], True),
        (("http://10.0.0.9", "http://api.test"), ["10.0.0.1"], False),
        (("http://10.0.0.9",), ["169.254.169.254"], False),
    ],
)
async def test_a_private_address_is_reached_from_private_ones(
    leaders: tuple[str, ...], found: list[str], is_reached: bool
) -> None:
    assert await may_reach(leaders, found) == is_reached


async def test_each_address_of_a_name_is_tried_until_one_takes_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\ntrue")
        writer.close()

    heads: list[bytes] = []
    running = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = running.sockets[0].getsockname()[1]
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in ("127.0.0.9", "127.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: found)

    outcome = await sent(f"http://api.test:{port}")

    running.close()
    assert isinstance(outcome, Completed)
    assert f"host: api.test:{port}".encode() in heads[0].lower()


def leads(to: str, status: int = 302) -> Callable[[httpx2.Request], httpx2.Response]:
    """Answer the first request with a redirect."""
    answers = iter([httpx2.Response(status, headers={"location": to})])
    return lambda request: next(answers, httpx2.Response(200, json="there"))


async def test_a_redirect_on_the_same_host_keeps_the_credentials() -> None:
    made = server(leads("/v2/x"), **secured())

    outcome = await made.call("get", {}, credentials={"key": "secret"})

    assert isinstance(outcome, Completed)
    assert str(made.last.url) == "http://api.test/v2/x"
    assert made.last.headers["x-key"] == "secret"


@pytest.mark.parametrize(
    "to", ["http://other.test/x", "//other.test/x", "http://api.test:8080/x", "https://api.test/x"]
)
async def test_another_host_is_told_no_credentials(to: str) -> None:
    made = server(leads(to), **secured())

    outcome = await made.call("get", {}, credentials={"key": "secret"}, headers={"X-Tenant": "secret"})

    assert isinstance(outcome, Completed)
    assert len(made.requests) == 2
    assert "secret" not in str(made.last.headers.raw) + str(made.last.url)


@pytest.mark.parametrize(
    "to",
    [
        "http://127.0.0.1/x",
        "http://169.254.169.254/latest",
        "http://[::1]/x",
        "http://db.internal/",
        "file:///etc/passwd",
        "http://localhost:22/",
    ],
)
async def test_a_redirect_into_the_private_net_is_not_followed(to: str) -> None:
    made = server(leads(to))

    outcome = await made.call("get", {})

    assert isinstance(outcome, Failed)
    assert "is not followed" in outcome.message
    assert len(made.requests) == 1


async def test_a_redirect_that_ends_encryption_is_not_followed() -> None:
    made = server(leads("http://api.test/x"), servers=[{"url": "https://api.test"}])

    outcome = await made.call("get", {})

    assert isinstance(outcome, Failed)
    assert len(made.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_of_what_writes_is_not_followed(status: int) -> None:
    made = server(leads("http://api.test/y", status))

    outcome = await made.call("post", {})

    assert isinstance(outcome, Failed)
    assert "followed for operations that read alone" in outcome.message
    assert len(made.requests) == 1


async def test_redirects_without_end_are_a_failure() -> None:
    made = server(always(302, headers={"location": "/v1/x"}))

    outcome = await made.call("get", {})

    assert "more than 5 times" in outcome.text()


async def test_a_cookie_of_one_answer_is_not_sent_with_the_next_request() -> None:
    made = server(always(200, json=1, headers={"set-cookie": "session=secret"}))

    await made.call("get", {}, Run(principal="ann"))
    await made.call("get", {}, Run(principal="bob"))

    assert [request.headers.get("cookie") for request in made.requests] == [None, None]


async def test_a_server_that_is_not_there_is_a_failure_that_names_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    made = server(always(200))
    made.client = None  # type: ignore[assignment]

    outcome = await made.call("get", {}, server="http://127.0.0.1:1", retries=0)

    assert isinstance(outcome, Failed)
    assert outcome.code == "server_error"
    assert "the server `Stand-in` cannot be reached" in outcome.message


@pytest.mark.parametrize(
    "options", [{"timeout": 0}, {"retries": -1}, {"max_bytes": 0}, {"pages": 0}, {"pages": "all"}, {"include": "x"}]
)
def test_an_option_that_means_nothing_is_an_error(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError if "include" in options else ValueError, match=next(iter(options))):
        toolset(document({"/x": {"get": operation("x")}}), **options)

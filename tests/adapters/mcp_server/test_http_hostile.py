"""Whatever comes in over HTTP, the process that serves answers it or hangs up, and lives on."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.adapters.mcp_server.corpus import HOSTILE, hostile_messages
from tests.adapters.mcp_server.http import command_over_http
from tests.adapters.mcp_server.test_http import ACCEPT, OPENING
from tests.effort import examples

SAMPLE = '''
from toolcrib import ez_tool


@ez_tool
async def echo(text: str = "") -> str:
    """Return the text."""
    return text
'''
NEWER = {"mcp-protocol-version": "2026-07-28"}
JSON = {"content-type": "application/json", **ACCEPT}
GARBAGE = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # somebody who expects TLS
    b"\x00" * 1000,
    b"GET /mcp\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\n" + b"x: y\r\n" * 200 + b"\r\n",
    b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 100_000,
    b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n{}",
    b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n{}",
    b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\ncontent-length: 0\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{",  # and hangs up
    b"TRACE /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET /%00%ff/../mcp HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server in a process of its own."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "tools.py").write_text(SAMPLE, "utf-8")
    with command_over_http(folder, "tools.py", "--search") as url:
        yield url


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=60) as made:
        yield made


@pytest.fixture(scope="module")
def session(server: str, client: httpx.Client) -> dict[str, str]:
    """The header of a session of the older generation."""
    return {"mcp-session-id": opened(server, client).headers["mcp-session-id"]}


def opened(server: str, client: httpx.Client) -> httpx.Response:
    return client.post(server, json=OPENING, headers=ACCEPT)


def status_of(server: str, client: httpx.Client, body: bytes, headers: dict[str, str]) -> int:
    """Return how a request is answered, without waiting for a stream to end."""
    with client.stream("POST", server, content=body, headers={**JSON, **headers}) as reply:
        return reply.status_code


def lives(server: str, client: httpx.Client) -> bool:
    headers = {"mcp-session-id": opened(server, client).headers["mcp-session-id"], **ACCEPT}
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "here"}},
    }
    with client.stream("POST", server, json=call, headers=headers) as reply:
        said = any('"here"' in line for line in reply.iter_lines())
    return said and client.delete(server, headers=headers).status_code == 200


@pytest.mark.parametrize("generation", ["none", "older", "newer"])
def test_hostile_messages_are_answered(
    server: str, client: httpx.Client, session: dict[str, str], generation: str
) -> None:
    headers = {"none": {}, "older": session, "newer": NEWER}[generation]

    statuses = {body[:60]: status_of(server, client, body, headers) for body in HOSTILE}

    assert {body: status for body, status in statuses.items() if status >= 500} == {}
    assert lives(server, client)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(hostile_messages(), max_size=4), st.booleans())
def test_any_messages_are_answered(server: str, client: httpx.Client, bodies: list[bytes], newer: bool) -> None:
    statuses = [status_of(server, client, body, NEWER if newer else {}) for body in bodies]

    assert [status for status in statuses if status >= 500] == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 400),
        ({"content-type": "multipart/form-data"}, 400),
        ({"accept": "text/html"}, 406),
        ({"content-encoding": "gzip"}, 400),
        ({"mcp-session-id": "x" * 10_000}, 404),
        ({"mcp-session-id": "../../etc/passwd"}, 404),
        ({"mcp-protocol-version": "9999-99-99"}, 400),
        ({"authorization": "Bearer " + "x" * 10_000}, 400),
    ],
)
def test_odd_headers_are_answered(server: str, client: httpx.Client, headers: dict[str, str], status: int) -> None:
    assert status_of(server, client, b"{}", headers) == status


def test_garbage_is_survived(server: str, client: httpx.Client) -> None:
    place = urlsplit(server)
    for garbage in GARBAGE:
        with socket.create_connection((place.hostname, place.port), timeout=60) as connection:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass

    assert lives(server, client)


def test_many_sessions_that_nobody_ends_are_survived(server: str, client: httpx.Client) -> None:
    statuses = {opened(server, client).status_code for _ in range(60)}

    assert statuses == {200}
    assert lives(server, client)

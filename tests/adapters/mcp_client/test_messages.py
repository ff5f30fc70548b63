"""Answers that break the protocol: repaired, or the end of the one call that they are for."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest

from tests.adapters.mcp_client.servers import asked_over_http, called, failed, serving
from tests.networks import free_port
from toolcrib.adapters.mcp_client import Progress, connect
from toolcrib.adapters.mcp_client._command import _lines  # pyright: ignore[reportPrivateUsage] -- its pipe
from toolcrib.adapters.mcp_client._messages import (
    RepeatedKeys,
    _Events,  # pyright: ignore[reportPrivateUsage] -- its chunks
    off_loop,
    read_line,
    repair,
)
from toolcrib.adapters.mcp_server import build_server
from toolcrib.calls import ToolCall, Yielded
from toolcrib.pipeline import Pipeline
from toolcrib.toolsets import Toolset

WAYS = ["stdio", "json", "sse"]
START = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}
TOOLS = {
    "tools": [{"name": "pay", "inputSchema": {"type": "object"}}, {"name": "even", "inputSchema": {"type": "object"}}]
}
SCRIPT = """
import json, sys

start, tools, answer = [json.loads(text) for text in sys.argv[1:3]] + [sys.argv[3].encode("latin-1")]
for line in sys.stdin:
    asked = json.loads(line)
    method, number = asked["method"], asked.get("id")
    odd = method == "tools/call" and asked["params"]["name"] == "pay"
    if number is None:
        continue
    even = {"content": [{"type": "text", "text": "even"}]}
    result = {"initialize": start, "tools/list": tools, "tools/call": even}.get(method, {})
    said = json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()
    sys.stdout.buffer.write((answer.replace(b"ID", str(number).encode()) if odd else said) + b"\\n")
    sys.stdout.buffer.flush()
"""


def over_http(kind: str, answer: bytes) -> Callable[..., Awaitable[None]]:
    """Return an ASGI application that answers the calls of one tool with these bytes."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked = await asked_over_http(scope, receive)
        method, number = asked.get("method"), asked.get("id")
        even = {"content": [{"type": "text", "text": "even"}]}
        result = {"initialize": START, "tools/list": TOOLS, "tools/call": even}.get(method or "", {})
        said = json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()
        if method == "tools/call" and asked["params"]["name"] == "pay":
            said = answer.replace(b"ID", str(number).encode())
        if kind == "sse":
            said = b"".join(b"data: " + line + b"\r\n" for line in said.split(b"\n")) + b"\r\n"
        status = 405 if scope["type"] == "http" and scope["method"] != "POST" else 202 if number is None else 200
        type_of = b"text/event-stream" if kind == "sse" else b"application/json"
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", type_of)]})
        await send({"type": "http.response.body", "body": said if status == 200 else b""})

    return app


@asynccontextmanager
async def odd_server(way: str, answer: bytes, folder: Path, behind: bool) -> AsyncIterator[Toolset]:
    """Open a server whose tool `pay` answers with these bytes, directly or behind a gateway."""
    async with AsyncExitStack() as stack:
        if way == "stdio":
            (folder / "odd.py").write_text(SCRIPT)
            words = [json.dumps(START), json.dumps(TOOLS), answer.decode("latin-1")]
            source: Any = [sys.executable, str(folder / "odd.py"), *words]
        else:
            port = free_port()
            await stack.enter_async_context(serving(over_http(way, answer), port))
            source = f"http://127.0.0.1:{port}/mcp"
        tools: Toolset = connect(source, name="odd", mode="legacy")
        if behind:
            tools = connect(build_server(tools), name="gateway")
        yield await stack.enter_async_context(tools.open())


def answer(text: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"%s"}]}}' % text


@pytest.mark.parametrize("behind", [False, True], ids=["direct", "gateway"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (answer(rb"x\ud83d y"), "x\ufffd y"),
        (answer(b"caf\xe9"), "caf\ufffd"),
        (answer(rb"\ud83d\ude00 \\ud83d"), "\U0001f600 \\ud83d"),
        (b"\xef\xbb\xbf" + answer(b"marked"), "marked"),
        (answer(b"x").replace(b'"result"', rb'"\ud83d":1,"result"'), "x"),
        (b'[{"jsonrpc":"2.0","method":"odd"}, %s, 7]' % answer(b"listed"), "listed"),
        (b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":5}]}}', "5"),
        (b'{"jsonrpc":"2.0","id":ID,"result":{"content":null}}', None),
        (b'{"jsonrpc":"2.0","id":ID,"result":{}}', None),
        (
            b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"hologram"}]}}',
            "[a block that cannot be read, of the type hologram]",
        ),
        (
            b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"image","data":"!!!notbase64","mimeType":"image/png"}]}}',
            "[a file that cannot be read, as it is not base64]",
        ),
        (
            b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"image","data":"AAAA","mimeType":"im"}]}}',
            "[a file that cannot be read: a MIME type comes first, as in Media('image/png', data), and this is 'im']",
        ),
        (
            b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"resource","resource":{"uri":"http://[","blob":"AAAA"}}]}}',
            "[a file that cannot be read: Invalid IPv6 URL]",
        ),
    ],
    ids=[
        "surrogate",
        "byte",
        "pair",
        "mark",
        "key",
        "list",
        "number",
        "null",
        "nothing",
        "block",
        "base64",
        "type",
        "address",
    ],
)
async def test_an_answer_is_delivered_with_what_can_be_repaired(
    way: str, behind: bool, sent: bytes, text: str | None, tmp_path: Path
) -> None:
    async with odd_server(way, sent, tmp_path, behind) as tools:
        value = await called(tools, "pay")

    assert value == text


@pytest.mark.parametrize("way", WAYS)
async def test_the_last_value_of_a_key_that_stands_twice_counts_and_is_logged_once(
    way: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    twice = answer(b"last").replace(b'"type"', b'"text":"first","type"')

    async with odd_server(way, twice, tmp_path, behind=False) as tools:
        values = [await called(tools, "pay"), await called(tools, "pay")]

    assert values == ["last", "last"]
    assert caplog.text.count("odd: it sent the key `text` more than once in one object; the last value counts") == 1


@pytest.mark.parametrize("behind", [False, True], ids=["direct", "gateway"])
@pytest.mark.parametrize("way", WAYS)
async def test_an_error_whose_code_is_a_text_ends_its_call(way: str, behind: bool, tmp_path: Path) -> None:
    sent = b'{"jsonrpc":"2.0","id":ID,"error":{"code":"EFULL","message":"the disk is full"}}'
    async with odd_server(way, sent, tmp_path, behind) as tools:
        outcome = await failed(tools, "pay")

    assert outcome.text().endswith("the disk is full")


@pytest.mark.parametrize("behind", [False, True], ids=["direct", "gateway"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "sent",
    [
        b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],}}',
        b'{"jsonrpc":"2.0","id":ID,"result":"paid"}',
        b'{"jsonrpc":"1.0","id":ID,"result":{"content":[]}}',
    ],
    ids=["comma", "text", "version"],
)
async def test_an_answer_that_cannot_be_read_ends_its_call_and_no_other(
    way: str, behind: bool, sent: bytes, tmp_path: Path
) -> None:
    async with odd_server(way, sent, tmp_path, behind) as tools:
        outcome = await failed(tools, "pay")
        other = await called(tools, "even")

    assert "the server `odd` sent an answer that cannot be read while `pay` ran" in outcome.text()
    assert ("Whether it took effect is unknown" in outcome.text(), other) == (True, "even")


@pytest.mark.parametrize("field", ["progress", "total"])
@pytest.mark.parametrize("number", [b"1" + b"0" * 400, b"-1" + b"0" * 400, b"1e400", b"NaN", b'"one"'])
async def test_progress_that_no_number_can_hold_ends_nothing(field: str, number: bytes, tmp_path: Path) -> None:
    params = {b"progress": b"1", b"total": b"2", field.encode(): number}
    given = b",".join(b'"%s":%s' % item for item in params.items())
    told = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":ID,%s}}\n' % given

    async with odd_server("stdio", told + answer(b"paid"), tmp_path, behind=False) as tools:
        call = ToolCall("pay", {})
        *reports, outcome = [item async for item in Pipeline(tools).stream(call)]

    assert outcome.text() == "paid"
    assert [item.value for item in reports if isinstance(item, Yielded)] == (
        [] if field == "progress" else [Progress(1.0, None)]
    )


async def test_the_last_line_needs_no_end() -> None:
    sent = [b"one\ntw", b"o"]

    class Pipe:
        async def receive(self, most: int = 0) -> bytes:
            if not sent:
                raise anyio.EndOfStream
            return sent.pop(0)

    assert [line async for line in _lines(Pipe(), 100)] == [b"one", b"two"]


@pytest.mark.parametrize(
    ("written", "code"),
    [("-32601", -32601), ("-32601.0", -32601), ('"-32601"', -32601), ('"+7"', 7)]
    + [(odd, -32603) for odd in ("1.5", "true", "null", '"EFULL"', "[1]", '"\u0661"', "1e400")],
)
def test_the_code_of_an_error_is_the_integer_that_it_says(written: str, code: int) -> None:
    sent = '{"jsonrpc":"2.0","id":1,"error":{"code":%s,"message":"no"}}' % written  # noqa: UP031 -- braces

    [error] = read_line(sent.encode(), RepeatedKeys("odd"))

    assert isinstance(error, types.JSONRPCError)
    assert error.error.code == code


@pytest.mark.parametrize("block", [1, {"type": "text", "text": "a"}], ids=["unreadable", "readable"])
async def test_a_result_has_so_many_blocks(block: Any, tmp_path: Path) -> None:
    sent = {"jsonrpc": "2.0", "id": 0, "result": {"content": [block] * 10_002}}
    text = json.dumps(sent).replace('"id": 0', '"id": ID').encode()

    async with odd_server("json", text, tmp_path, behind=False) as tools:
        value = await called(tools, "pay")

    assert (len(value), value[-1]) == (10_001, "[left out: 2 more blocks; a result has 10,000 at most]")


def test_a_line_that_is_no_answer_ends_no_call() -> None:
    read = [
        read_line(line, RepeatedKeys("odd"))
        for line in (b"Starting ...", b"{now}", b'{"method": "x", "id": 1, "result"}')
    ]

    assert [isinstance(one, ValueError) for [one] in read] == [True, True, True]


@pytest.mark.parametrize("sent", [b"\xef\xbb\xbf{}", rb'"\u0041\\ud83d"', rb'"\ud83d\ude00"'])
def test_what_is_right_is_left_as_it_is(sent: bytes) -> None:
    assert json.loads(repair(sent)) == json.loads(sent.decode("utf-8-sig"))


@pytest.mark.parametrize("facts", [{"version": 99}, {"version": 0}, {"url": "http://["}, {"url": "here"}])
async def test_facts_of_media_that_cannot_be_read_are_left_as_they_are(facts: dict[str, Any], tmp_path: Path) -> None:
    structured = {"kind": "media", "mime_type": "image/png", "size": 3, **facts}
    result = {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}], "structuredContent": structured}
    text = json.dumps({"jsonrpc": "2.0", "id": 0, "result": result}).replace('"id": 0', '"id": ID')

    async with odd_server("json", text.encode(), tmp_path, behind=False) as tools:
        assert await called(tools, "pay") == structured


async def test_a_byte_order_mark_costs_no_time(tmp_path: Path) -> None:
    script = tmp_path / "odd.py"
    script.write_text('import sys; sys.stdout.write("\\ufeff")\n' + SCRIPT)
    words = [sys.executable, str(script), json.dumps(START), json.dumps(TOOLS), ""]

    async with connect(words, name="odd", mode="legacy", connect_timeout=8).open() as tools:
        assert await called(tools, "even") == "even"


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","result":{"content":[],"structuredContent":{"id":7,"x":tru}},"id":3}',
        b'{"jsonrpc":"2.0","result":[{"id":7}],"id":3}',
    ],
)
def test_an_answer_that_cannot_be_read_ends_its_own_request(line: bytes) -> None:
    [error] = read_line(line, RepeatedKeys("odd"))

    assert isinstance(error, types.JSONRPCError)
    assert error.id == 3


UNREADABLE = [
    b'{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":7}',
    b'{"jsonrpc":"2.0","id":"q","method":7}',
    b'{"jsonrpc":"2.0","id":"q","method":"ping","params":{"x":}}',
]
ODD_IDS = [b"1.5", b"true", b"null", b"[7]", b'{"a":1}']
ASKING = """
import json, sys

start, tools, question = [json.loads(text) for text in sys.argv[1:3]] + [sys.argv[3]]
waiting = None
for line in sys.stdin:
    asked = json.loads(line)
    method, number = asked.get("method"), asked.get("id")
    result = {"initialize": start, "tools/list": tools}.get(method, {})
    if method == "tools/call":
        waiting = number
        print(question, flush=True)
        continue
    if method is None:
        result, number = {"content": [{"type": "text", "text": f"{asked['id']} {asked['error']['code']}"}]}, waiting
    if number is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
"""


@pytest.mark.parametrize("question", [*UNREADABLE, b"[%s]" % UNREADABLE[0]])
async def test_a_request_of_a_server_that_cannot_be_read_is_answered_with_an_error(
    question: bytes, tmp_path: Path
) -> None:
    (tmp_path / "asking.py").write_text(ASKING)
    words = [sys.executable, str(tmp_path / "asking.py"), json.dumps(START), json.dumps(TOOLS), question.decode()]

    async with connect(words, name="asking", mode="legacy").open() as tools:
        assert await called(tools, "pay") == "q -32601"


@pytest.mark.parametrize("id", ODD_IDS)
async def test_a_request_of_a_server_with_an_odd_id_is_answered_by_the_text_of_that_id(
    id: bytes, tmp_path: Path
) -> None:
    (tmp_path / "asking.py").write_text(ASKING)
    question = b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % id
    words = [sys.executable, str(tmp_path / "asking.py"), json.dumps(START), json.dumps(TOOLS), question.decode()]

    async with connect(words, name="asking", mode="legacy").open() as tools:
        assert await called(tools, "pay") == f"{json.dumps(json.loads(id))} -32601"


@pytest.mark.parametrize("id", ODD_IDS)
async def test_an_event_that_is_a_request_with_an_odd_id_is_one_that_is_answered(id: bytes) -> None:
    request = httpx2.Request("GET", "http://server")
    question = b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % id
    body = _Events(chunks(b"id: 1\ndata: " + question + b"\n\n", 7), 10_000, "", request, RepeatedKeys("odd"))

    *_, data, _ = b"".join([chunk async for chunk in body]).split(b"\n")[:-1]

    message = types.jsonrpc_message_adapter.validate_json(data.removeprefix(b"data: "))
    assert isinstance(message, types.JSONRPCRequest)
    assert message.id == json.dumps(json.loads(id))


@pytest.mark.parametrize("way", WAYS)
async def test_numbers_that_json_does_not_have_are_texts_in_a_result_through_a_gateway(
    way: str, tmp_path: Path
) -> None:
    sent = (
        b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"a":NaN,"b":[Infinity,-Infinity,1.5]}}}'
    )

    async with odd_server(way, sent, tmp_path, behind=True) as tools:
        value = await called(tools, "pay")

    assert value == {"a": "NaN", "b": ["Infinity", "-Infinity", 1.5]}


@pytest.mark.parametrize("question", UNREADABLE)
async def test_an_event_that_is_a_request_which_cannot_be_read_is_one_that_is_answered(question: bytes) -> None:
    request = httpx2.Request("GET", "http://server")
    body = _Events(chunks(b"id: 1\ndata: " + question + b"\n\n", 7), 10_000, "", request, RepeatedKeys("odd"))

    *_, data, _ = b"".join([chunk async for chunk in body]).split(b"\n")[:-1]

    message = types.jsonrpc_message_adapter.validate_json(data.removeprefix(b"data: "))
    assert isinstance(message, types.JSONRPCRequest)
    assert message.id == "q"


async def test_the_messages_of_a_list_in_an_event_are_events() -> None:
    request = httpx2.Request("POST", "http://server", json={"jsonrpc": "2.0", "id": 7, "method": "tools/call"})
    right, told = b'{"jsonrpc": "2.0", "id": 7, "result": {}}', b'{"jsonrpc": "2.0", "method": "odd"}'
    listed = b"[" + b", ".join([right, NOT_MEANT[0], told]) + b"]"
    body = _Events(chunks(b"id: 1\ndata: " + listed + b"\n\n", 7), 10_000, "", request, RepeatedKeys("odd"))

    said = b"".join([chunk async for chunk in body])

    assert said == b"".join(b"id: 1\ndata: %s\n\n" % one for one in (told, right))


async def test_a_large_message_is_read_in_a_thread() -> None:
    def is_on_loop(line: bytes) -> bool:
        return threading.current_thread() is threading.main_thread()

    assert [await off_loop(is_on_loop, b"a" * size) for size in (10, 600_000)] == [True, False]


def test_a_line_of_a_log_ends_no_request() -> None:
    line = b'{"level":"info","msg":"slow","id":3,"error":"timeout of cache"}'

    [problem] = read_line(line, RepeatedKeys("odd"))

    assert isinstance(problem, ValueError)


NOT_MEANT = [
    b'{"jsonrpc":"2.0","id":"other","result":{"content":[{"type":"text","text":"stray"}]}}',
    b'{"jsonrpc":"2.0","method":"notifications/message","params":7}',
    b"Starting ...",
]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 7, 1_000])
async def test_what_is_not_the_answer_to_a_request_does_not_take_its_place(end: bytes, size: int) -> None:
    request = httpx2.Request("POST", "http://server", json={"jsonrpc": "2.0", "id": 7, "method": "tools/call"})
    right = [b'{"jsonrpc":"2.0",', b'"id":7,"result":{}}']
    events = [[*NOT_MEANT[:1]], [*NOT_MEANT[1:2]], [*NOT_MEANT[2:]], right]
    sent = b"".join(b"".join(b"data: " + line + end for line in event) + end for event in events)
    body = _Events(chunks(sent, size), 10_000, "", request, RepeatedKeys("odd"))

    said = b"".join([chunk async for chunk in body])

    assert [line for line in said.splitlines() if line.startswith(b"data:")] == [b"data: " + line for line in right]


async def test_where_a_stream_goes_on_is_told_by_events_without_an_answer_too() -> None:
    request = httpx2.Request("POST", "http://server", json={"jsonrpc": "2.0", "id": 7, "method": "tools/call"})
    first = b"id: 1\nretry: 500\ndata: \n\n"
    body = _Events(
        chunks(first + b"id: 2\ndata: " + NOT_MEANT[0] + b"\n\n", 7), 10_000, "", request, RepeatedKeys("odd")
    )

    said = b"".join([chunk async for chunk in body])

    assert said == first + b"id: 2\n\n"


@pytest.mark.parametrize(
    ("said", "kept"), [(b"0", b"100"), (b" 500", b"500"), (b"9" * 5_000, b"60000"), (b"-1", b"100"), (b"soon", b"100")]
)
async def test_a_stream_is_opened_again_at_a_pace(said: bytes, kept: bytes) -> None:
    request = httpx2.Request("GET", "http://server")
    body = _Events(chunks(b"retry:" + said + b"\r\n\r\n", 7), 10_000, "", request, RepeatedKeys("odd"))

    found = b"".join([chunk async for chunk in body])

    assert found.removeprefix(b"retry:").strip() == kept


async def chunks(text: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(text), size):
        yield text[at : at + size]

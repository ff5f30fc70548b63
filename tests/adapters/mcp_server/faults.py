"""Faults of a server, one at a time: a correct answer to each request, and all that can be wrong with it."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from tests.adapters.mcp_client.servers import serving
from tests.networks import free_port

MOST = 100_000  # bytes of a message, as the server is connected to
_TEXT = {"type": "text", "text": "done"}
CORRECT: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
        "serverInfo": {"name": "odd", "version": "1"},
        "instructions": "Be kind.",
    },
    "tools/list": {
        "tools": [
            {
                "name": "pay",
                "title": "Pay",
                "description": "Pay.",
                "inputSchema": {"type": "object", "properties": {"cents": {"type": "integer"}}},
                "outputSchema": {"type": "object", "properties": {"paid": {"type": "boolean"}}},
                "annotations": {"readOnlyHint": False},
                "_meta": {"a": 1},
            }
        ]
    },
    "resources/list": {"resources": [{"uri": "odd://r", "name": "r", "mimeType": "text/plain"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "odd://t/{x}", "name": "t"}]},
    "prompts/list": {"prompts": [{"name": "p", "arguments": [{"name": "a", "required": False}]}]},
    "tools/call": {"content": [_TEXT], "structuredContent": {"paid": True}, "isError": False},
    "resources/read": {"contents": [{"uri": "odd://r", "mimeType": "text/plain", "text": "words"}]},
    "prompts/get": {"description": "d", "messages": [{"role": "user", "content": _TEXT}]},
    "completion/complete": {"completion": {"values": ["a"], "total": 1, "hasMore": False}},
}
_CACHED = {"ttlMs": 0, "cacheScope": "private"}
_NEWER: dict[str, dict[str, Any]] = {
    "server/discover": {
        "supportedVersions": ["2026-07-28"],
        "capabilities": CORRECT["initialize"]["capabilities"],
        "instructions": "Be kind.",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "odd", "version": "1"}},
        **_CACHED,
    },
    **{method: {**result, **_CACHED} for method, result in CORRECT.items() if method.endswith(("list", "read"))},
    **{method: result for method, result in CORRECT.items() if not method.endswith(("list", "read", "initialize"))},
}
NEWER = {method: {"resultType": "complete", **result} for method, result in _NEWER.items()}
"""The right answers of a server of the newer generation."""
_OTHERS: tuple[Any, ...] = (None, 7, "odd", [], {"odd": 7})


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        method: The request that is answered wrong; the others are answered right.
        name: What is wrong.
        answer: Returns the body of the response for a request's id; None sends none.
        status: The status of the response.
        kind: Its content type.
        newer: Whether the server is of the newer generation of the protocol.
        lines: Whether the body is several messages, a line each, of which one is the right answer.
    """

    method: str
    name: str
    answer: Callable[[Any], bytes | None]
    status: int = 200
    kind: str = "application/json"
    newer: bool = False
    lines: bool = False

    def __str__(self) -> str:
        return f"{self.method}: {self.name}"


def correct(method: str, number: Any, *, newer: bool = False) -> bytes:
    """Return the right answer to a request."""
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "result": (NEWER if newer else CORRECT).get(method, {})}
    if newer != (method in NEWER) and method in ("initialize", "server/discover"):
        answer = {"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "there is no such method"}}
    return json.dumps(answer).encode()


def faults_of(method: str, *, newer: bool = False) -> Iterator[Fault]:
    """Yield all faults of the answer to a request: of its bytes, its frame and each value, and of what is beside it."""
    result = (NEWER if newer else CORRECT)[method]
    faults = (_of_bytes(method, newer), _of_frame(method, result), _of_values(method, result), _beside(method, newer))
    return (replace(fault, newer=newer) for fault in chain(*faults))


def _of_values(method: str, result: dict[str, Any]) -> Iterator[Fault]:
    for place, value in _places(result):
        wrong = [(f"{'.'.join(map(str, place))} = {json.dumps(other)}", other) for other in _OTHERS if other != value]
        for name, other in wrong:
            yield _with_result(method, name, _replaced(result, place, other))
        if isinstance(place[-1], str):
            yield _with_result(method, f"{'.'.join(map(str, place))} is missing", _replaced(result, place))
        else:  # of a list
            yield _with_result(method, f"{'.'.join(map(str, place))} twice", _replaced(result, place[:-1], [value] * 2))


def _beside(method: str, newer: bool) -> Iterator[Fault]:
    """Yield what a server sends before its right answer, or after it: notifications, requests and other answers."""

    def lines(frames: list[bytes], number: Any) -> list[bytes]:
        return [frame.replace(b"ID", json.dumps(number).encode()) for frame in frames]

    for name, frames in _company().items():
        yield Fault(
            method,
            f"{name} before it",
            lambda number, frames=frames: b"\n".join([*lines(frames, number), correct(method, number, newer=newer)]),
            lines=True,
        )
        yield Fault(
            method,
            f"{name} after it",
            lambda number, frames=frames: b"\n".join([correct(method, number, newer=newer), *lines(frames, number)]),
            lines=True,
        )

    for name, change in _HARMLESS.items():
        yield Fault(
            method,
            name,
            lambda number, change=change: change(correct(method, number, newer=newer), json.dumps(number).encode()),
            lines=True,
        )


_HARMLESS: dict[str, Callable[[bytes, bytes], bytes]] = {  # of a right answer and its id
    "twice": lambda text, number: text + b"\n" + text,
    "a carriage return at its end": lambda text, number: text + b"\r",
    "spaces around it": lambda text, number: b" \t" + text + b" \t",
    "a byte order mark before it": lambda text, number: b"\xef\xbb\xbf" + text,
    "in a list": lambda text, number: b"[" + text + b"]",
    "error null beside the result": lambda text, number: text[:-1] + b', "error": null}',
    "a method that is null": lambda text, number: text[:-1] + b', "method": null}',
    "its id as a text": lambda text, number: text.replace(b'"id": %s' % number, b'"id": "%s"' % number, 1),
    "its id as a float": lambda text, number: text.replace(b'"id": %s' % number, b'"id": %s.0' % number, 1),
    "its id at its end": lambda text, number: (
        text.replace(b'"id": %s, ' % number, b"", 1)[:-1] + b', "id": %s}' % number
    ),
    "a key twice": lambda text, number: text[:-1] + b', "jsonrpc": "2.0", "id": %s}' % number,
    "half a character as a key": lambda text, number: text[:-1] + rb', "\ud83d": "\ud83d"}',
}


def _company() -> dict[str, list[bytes]]:
    def told(method: str, params: str) -> bytes:
        return b'{"jsonrpc":"2.0","method":"notifications/%s","params":%s}' % (
            method.encode(),
            params.encode("latin-1"),
        )

    def asked(method: str, params: str, number: str = '"q"') -> bytes:
        parts = (number.encode(), method.encode(), params.encode())
        return b'{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}' % parts

    progress = '{"progressToken":ID,"progress":%s}'
    numbers = ("1" + "0" * 400, "-1" + "0" * 400, "1e400", "NaN", '"one"', "null", "true", "[]", "1" + "0" * 5_000)
    form = '{"message":"\\ud83d","requestedSchema":{"type":"object","properties":%s}}'
    done = b'{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"stray"}]}}'
    return {
        **{
            f"progress of {number:.5}, {len(number)} characters": [told("progress", progress % number)]
            for number in numbers
        },
        "progress in half characters": [
            told("progress", '{"progressToken":"\\udc00","progress":1,"message":"\\ud83d"}')
        ],
        "much progress": [told("progress", progress % number) for number in range(300)],
        "a level that is none": [told("message", '{"level":"odd","data":"\xff"}')],
        "many lines of a log": [told("message", '{"level":"info","data":"\\ud83d"}')] * 300,
        "parameters that are none": [told("message", text) for text in ("7", "[]", '"odd"', "null", "{}")],
        "many changes": [told("tools/list_changed", "{}"), told("resources/list_changed", "{}")] * 150,
        "updates": [told("resources/updated", text) for text in ("{}", '{"uri":7}', '{"uri":"\\ud83d"}')],
        "an unknown notification": [told("\\ud83d", "{}")],
        "a cancellation of it": [told("cancelled", text) for text in ("{}", '{"requestId":[]}', '{"requestId":ID}')],
        "an odd question": [asked("elicitation/create", form % text) for text in ("7", "{}", '{"a":7}', "null")],
        "a question for a model": [asked("sampling/createMessage", text) for text in ("{}", '{"messages":7}')],
        "an unknown request": [asked("odd/odd", "7"), asked("odd/odd", "{}", "null"), asked("odd/odd", "{}", "[]")],
        "requests that cannot be read": [asked("ping", "[7]"), asked("ping", "{", "8"), b"[%s]" % asked("ping", "7")],
        "requests with odd ids": [asked("ping", "{}", number) for number in ("1.5", "true", "null", "[]", "{}")],
        "a list of messages": [b"[%s,7,[],%s]" % (asked("ping", "{}"), told("odd", "{}"))],
        "a request with its id": [asked("ping", "{}", "ID"), asked("odd/odd", "{}", "ID")],
        "progress of nothing": [told("progress", '{"progressToken":424242,"progress":1}'), told("progress", "{}")],
        "objects that are no messages": [b"{}", b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":5}', b'{"id":5}'],
        "many pings": [asked("ping", "{}", f'"q{number}"') for number in range(100)],
        "answers to others": [done % number for number in (b"1000000", b'"x"', b'"' + b"9" * 5_000 + b'"')],
        "a message too deep": [b'{"jsonrpc":"2.0","x":' + b"[" * 5_000 + b"]" * 5_000 + b"}"],
        "lines that are no messages": [b"Starting ...", b"", b"{", b"}", b"\xff\xfe", b"[]", b"null", b"7", b'"odd"'],
    }


def _of_bytes(method: str, newer: bool) -> Iterator[Fault]:
    def fault(name: str, change: Callable[[bytes], bytes], **more: Any) -> Fault:
        return Fault(method, name, lambda number: change(correct(method, number, newer=newer)), **more)

    key = b'"odd\\ud83d": "\\ud83d", "x": "caf\xe9", '
    yield fault("lone surrogates and a byte that is not UTF-8", lambda text: text.replace(b'": {', b'": {' + key, 1))
    yield fault("a byte order mark", lambda text: b"\xef\xbb\xbf" + text)
    yield fault("line breaks", lambda text: json.dumps(json.loads(text), indent=1).encode())
    yield fault("a comma too many", lambda text: text[:-1] + b",}")
    yield fault("half of it", lambda text: text[: len(text) // 2])
    yield fault("nothing", lambda text: b"")
    yield fault("a page", lambda text: b"<html>busy</html>")
    yield fault("a page, as HTML", lambda text: b"<html>busy</html>", kind="text/html")
    yield fault("too long", lambda text: text.replace(b'"2.0"', b'"2.0", "x": "' + b"x" * MOST + b'"'))
    yield fault("too deep", lambda text: text[:-1] + b', "x": ' + b"[" * 5_000 + b"]" * 5_000 + b"}")
    yield fault("NaN", lambda text: text.replace(b'": {', b'": {"odd": NaN, "more": Infinity, ', 1))
    yield fault("a list of answers", lambda text: b"[" + text + b"]")
    yield fault("as events", lambda text: b"data: " + text + b"\n\n", kind="text/event-stream")
    yield fault("as events without an end", lambda text: b": odd\n\n", kind="text/event-stream")
    for status in (202, 204, 302, 400, 404, 500, 503):
        yield fault(f"status {status}", lambda text: b"odd", status=status, kind="text/plain")
    yield Fault(method, "no answer", lambda number: None)


def _of_frame(method: str, result: dict[str, Any]) -> Iterator[Fault]:
    frames: dict[str, dict[str, Any]] = {
        "no version": {"jsonrpc": None},
        "another version": {"jsonrpc": "1.0"},
        "no id": {"id": None},
        "the id of another": {"id": 10**6},
        "a list as id": {"id": [1]},
        "result and error": {"error": {"code": 1, "message": "odd"}},
        "neither": {"result": None},
        **{f"the result {json.dumps(other)}": {"result": other} for other in _OTHERS},
        **{f"the error {json.dumps(other)}": {"result": None, "error": other} for other in _OTHERS},
        **{
            f"the code {json.dumps(code)}": {"result": None, "error": {"code": code, "message": "odd"}}
            for code in (None, "EFULL", "-32601", 1.5, True, [], 10**30, -32000, -32001, -32042, -32700)
        },
        **{
            f"the message {json.dumps(text)}": {"result": None, "error": {"code": 7, "message": text}}
            for text in (None, 7, [], {}, "x" * 50_000)
        },
        "a request": {"result": None, "method": "odd/odd", "params": {}},
    }
    for name, change in frames.items():
        frame = {"jsonrpc": "2.0", "result": result, **change}
        yield Fault(method, name, lambda number, frame=frame: _framed(frame, number))


def _framed(frame: dict[str, Any], number: Any) -> bytes:
    whole = {"id": number, **frame}
    return json.dumps({name: part for name, part in whole.items() if part is not None}).encode()


def _with_result(method: str, name: str, result: Any) -> Fault:
    return Fault(method, name, lambda number: json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode())


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield each place in a value, with what is there."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*place, key), part
        yield from _places(part, (*place, key))


def _replaced(value: Any, place: tuple[Any, ...], *other: Any) -> Any:
    """Return a value with another one at a place, or with none."""
    copy: Any = json.loads(json.dumps(value))
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    if other:
        inner[place[-1]] = other[0]
    else:
        del inner[place[-1]]
    return copy


class FaultyServers:
    """Servers over HTTP, each with one fault."""

    def __init__(self, port: int) -> None:
        self._port, self._numbers = port, count()
        self._faults: dict[str, Fault] = {}

    def url_of(self, fault: Fault) -> str:
        """Return the address of a server that has a fault."""
        path = f"/{next(self._numbers)}"
        self._faults[path] = fault
        return f"http://127.0.0.1:{self._port}{path}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request as the server at its path does; an ASGI application."""
        if scope["type"] != "http":
            return
        body = b""
        while (part := await receive())["type"] == "http.request":
            body += part.get("body", b"")
            if not part.get("more_body"):
                break
        fault, asked = self._faults[scope["path"]], json.loads(body or b"{}")
        method, number = asked.get("method"), asked.get("id")
        status, kind, said = (405 if scope["method"] != "POST" else 202, "application/json", b"")
        if number is not None:
            status, said = 200, correct(method, number, newer=fault.newer)
        if method == fault.method:
            answer = fault.answer(number)
            status, kind = fault.status, fault.kind
            if answer is None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                return
            said = answer
            if fault.lines:
                kind, said = "text/event-stream", b"".join(b"data: %s\n\n" % line for line in answer.split(b"\n"))
        where = [(b"location", b"http://127.0.0.1:1/")] if status == 302 else []
        headers = [(b"content-type", kind.encode()), *where]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if status == 204 else said})


_COMMAND = """
import json, sys

with open(sys.argv[1], encoding="latin-1") as file:
    faulty, answer, right = json.load(file)
for line in sys.stdin:
    asked = json.loads(line)
    method, number = asked.get("method"), asked.get("id")
    said = answer if method == faulty else right.get(method, right["ping"])
    if method is not None and number is not None and said is not None:
        sys.stdout.buffer.write(said.replace("987654321", json.dumps(number)).encode("latin-1") + b"\\n")
        sys.stdout.buffer.flush()
"""
_NUMBER = 987654321  # stands for the id of a request in the answers of a command


def faulty_command(fault: Fault, folder: Path) -> list[str]:
    """Return the command of a server that has a fault."""
    methods = {*CORRECT, *NEWER, "ping"}
    right = {method: correct(method, _NUMBER, newer=fault.newer).decode("latin-1") for method in methods}
    answer = fault.answer(_NUMBER)
    script, answers = folder / "faulty.py", folder / f"{len([*folder.iterdir()])}.json"
    script.write_text(_COMMAND)
    answers.write_text(
        json.dumps([fault.method, None if answer is None else answer.decode("latin-1"), right]), encoding="latin-1"
    )
    return [sys.executable, str(script), str(answers)]


@asynccontextmanager
async def faulty_servers() -> AsyncIterator[FaultyServers]:
    """Serve on a free port in this process."""
    port = free_port()
    servers = FaultyServers(port)
    async with serving(servers, port):
        yield servers

"""A message that has a key twice: it is refused over each transport in each generation, and nothing of it runs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx2 as httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.mcp_server.http import served
from tests.adapters.mcp_server.test_http import ACCEPT, OPENING
from toolcrib.adapters.mcp_server import ServerOptions, TaskOptions, build_server
from toolcrib.adapters.mcp_server._http import serve_stdio
from toolcrib.adapters.mcp_server._incoming import Checked, check_message
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.testing import RecordingSink
from toolcrib.tools import Tool, ez_tool
from toolcrib.tools.from_schema import schema_tool

Ask = Callable[[str], Coroutine[Any, Any, dict[str, Any]]]
"""Sends a message, and returns the next one of the server."""
Way = Callable[[list[Tool[..., Any]], ServerOptions], AbstractAsyncContextManager[Ask]]

INITIALIZED = '{"jsonrpc": "2.0", "method": "notifications/initialized"}'
NEWER = "2026-07-28"
META = json.dumps(
    {
        "io.modelcontextprotocol/protocolVersion": NEWER,
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
)
OPENS = json.dumps(OPENING).replace('"capabilities": {}', '"capabilities": {"elicitation": {}}')


def call(name: str, arguments: str, more: str = "", number: int = 7) -> str:
    """Return the text of a call, which both generations take."""
    params = f'"name": "{name}", "arguments": {arguments}, "_meta": {META}{more}'
    return f'{{"jsonrpc": "2.0", "id": {number}, "method": "tools/call", "params": {{{params}}}}}'


def older(text: str) -> str:
    """Return a request without what the newer generation says in each."""
    return text.replace(META[1:-1], '"a.b/c": 1')


def asking(send: Callable[[str], Awaitable[None]], receive: Callable[[], Awaitable[dict[str, Any]]]) -> Ask:
    async def ask(text: str) -> dict[str, Any]:
        await send(text)
        return await receive()

    return ask


@asynccontextmanager
async def over_stdio(tools: list[Tool[..., Any]], options: ServerOptions, newer: bool) -> AsyncGenerator[Ask]:
    (to_server, from_client), (to_client, from_server) = os.pipe(), os.pipe()
    with (
        pytest.MonkeyPatch.context() as patch,
        os.fdopen(from_client, "wb", 0) as sent,
        os.fdopen(to_client, "rb") as replies,
        os.fdopen(to_server, encoding="utf-8") as stdin,
        os.fdopen(from_server, "w", encoding="utf-8") as stdout,
    ):
        patch.setattr("sys.stdin", stdin)
        patch.setattr("sys.stdout", stdout)
        serving = asyncio.create_task(serve_stdio(build_server(tools, options)))

        async def send(text: str) -> None:
            sent.write((text if newer else older(text)).encode() + b"\n")

        async def receive() -> dict[str, Any]:
            return json.loads(await asyncio.to_thread(replies.readline))

        ask = asking(send, receive)
        try:
            if not newer:
                await ask(OPENS)
                await send(INITIALIZED)
            yield ask
        finally:
            sent.close()
            await serving


@asynccontextmanager
async def over_http(tools: list[Tool[..., Any]], options: ServerOptions, newer: bool) -> AsyncGenerator[Ask]:
    async with served(tools, options) as url, httpx.AsyncClient(timeout=60) as client:
        headers = {"content-type": "application/json", **ACCEPT}
        opened = httpx.Response(200) if newer else await client.post(url, content=OPENS, headers=headers)
        session = dict(opened.headers) if not newer else {}
        headers |= {"mcp-session-id": session["mcp-session-id"]} if session else {"mcp-protocol-version": NEWER}

        async def ask(text: str) -> dict[str, Any]:
            asked: Any = json.loads(text.removeprefix("\ufeff"))
            about = {"mcp-method": asked.get("method", ""), "mcp-name": asked.get("params", {}).get("name", "")}
            reply = await client.post(
                url, content=text if newer else older(text), headers={**headers, **(about if newer else {})}
            )
            said = [line.removeprefix("data:") for line in reply.text.splitlines() if line.startswith("data: {")]
            return json.loads(said[0] if said else reply.text)

        if not newer:
            await client.post(url, content=INITIALIZED, headers=headers)
        yield ask


WAYS: dict[str, Way] = {
    "stdio, older": lambda tools, options: over_stdio(tools, options, newer=False),
    "stdio": lambda tools, options: over_stdio(tools, options, newer=True),
    "HTTP, older": lambda tools, options: over_http(tools, options, newer=False),
    "HTTP": lambda tools, options: over_http(tools, options, newer=True),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def payments(paid: list[Any]) -> list[Tool[..., Any]]:
    """Return tools that note what they paid: of a function, and of a schema; one needs approval."""

    @ez_tool
    async def pay(cents: int, to: dict[str, Any] | None = None) -> str:
        """Pay."""
        paid.append((cents, to))
        return f"paid {cents}"

    @ez_tool(requires_approval=True)
    async def refund(cents: int) -> str:
        """Refund."""
        paid.append(cents)
        return f"refunded {cents}"

    async def give(**given: Any) -> str:
        paid.append(given)
        return "given"

    return [pay, refund, schema_tool("give", {"type": "object", "properties": {"cents": {"type": "integer"}}}, give)]


@every_way
@pytest.mark.parametrize(
    ("name", "arguments", "key"),
    [
        ("pay", '{"cents": 2, "cents": 3}', "cents"),
        ("pay", '{"cents": 2, "c\\u0065nts": 2}', "cents"),
        ("pay", '{"cents": 2, "to": {"who": [{"name": "ann", "name": "ben"}]}}', "name"),
        ("refund", '{"cents": 2, "cents": 3}', "cents"),
        ("give", '{"cents": 2, "cents": 3}', "cents"),
    ],
)
async def test_a_call_whose_arguments_have_a_key_twice_does_not_run(
    way: Way, name: str, arguments: str, key: str
) -> None:
    paid, sink = list[Any](), RecordingSink()

    async with way(payments(paid), ServerOptions(sinks=(sink,))) as ask:
        refused = await ask(call(name, arguments))
        done = await ask(call("pay", '{"cents": 5}', number=8))

    said = refused["result"]["content"][0]["text"]
    assert (refused["id"], refused["result"]["isError"]) == (7, True)
    assert f"`{name}` cannot take these arguments: {key}: sent more than once; send it once" in said
    assert [record.outcome["kind"] for record in sink.records] == ["failed", "completed"]
    assert done["result"]["content"][0]["text"] == "paid 5"
    assert paid == [(5, None)]


@every_way
@pytest.mark.parametrize(
    ("text", "key"),
    [
        (call("pay", '{"cents": 2}', ', "name": "give"'), "name"),
        (call("pay", '{"cents": 2}', ', "arguments": {}'), "arguments"),
        (call("pay", '{"cents": 2, "cents": 3}').replace('"method"', '"method": "ping", "method"'), "method"),
        (call("pay", '{"cents": 2, "cents": 3}').replace('"_meta": {', '"_meta": {"a": 1, "a": 2, '), "a"),
        (call("pay", '{"cents": 2}', ', "inputResponses": {"r": {"action": "accept", "action": "decline"}}'), "action"),
        (call("pay", '[{"cents": 2, "cents": 3}]'), "cents"),
        (call("ping", '{"x": 1, "x": 2}').replace("tools/call", "prompts/get"), "x"),
    ],
)
async def test_a_key_twice_elsewhere_is_an_error_of_the_request(way: Way, text: str, key: str) -> None:
    paid = list[Any]()

    async with way(payments(paid), ServerOptions()) as ask:
        refused = await ask(text)
        done = await ask(call("pay", '{"cents": 5}', number=8))

    assert (refused["id"], refused["error"]["code"]) == (7, -32600)
    assert f"{key}: sent more than once; send it once" in refused["error"]["message"]
    assert (done["id"], paid) == (8, [(5, None)])


@every_way
async def test_an_error_of_a_message_with_two_ids_is_no_answer_to_either(way: Way) -> None:
    async with way(payments([]), ServerOptions()) as ask:
        refused = await ask(call("pay", '{"cents": 2}').replace('"id": 7', '"id": 7, "id": 8'))

    assert (refused["id"], refused["error"]["code"]) == (None, -32600)


@every_way
async def test_an_approved_call_is_not_continued_by_one_with_a_key_twice(way: Way) -> None:
    paid, store = list[Any](), MemoryApprovalStore()

    async with way(payments(paid), ServerOptions(approvals=store)) as ask:
        asked = await ask(call("refund", '{"cents": 3}'))
        [request] = asked["result"]["structuredContent"]["requests"]
        await store.answer((await store.show(request["id"])).request.grant("ann"))
        await ask(call("refund", '{"cents": 2, "cents": 3}'))
        before = [*paid]
        await ask(call("refund", '{"cents": 3}'))

    assert (before, paid) == ([], [3])


@pytest.mark.parametrize("way", [WAYS["stdio, older"]])
@pytest.mark.parametrize(
    "answer",
    [
        '{"action": "accept", "content": {"decision": "deny", "decision": "approve"}}',
        '{"action": "decline", "action": "accept", "content": {"decision": "approve"}}',
    ],
)
async def test_an_answer_of_a_form_with_a_key_twice_is_not_taken(way: Way, answer: str) -> None:
    paid = list[Any]()

    async with way(payments(paid), ServerOptions(approve_by="elicit")) as ask:
        form = await ask(call("refund", '{"cents": 3}'))
        suspended = await ask(f'{{"jsonrpc": "2.0", "id": {json.dumps(form["id"])}, "result": {answer}}}')

    assert form["method"] == "elicitation/create"
    assert suspended["result"]["structuredContent"]["status"] == "suspended"
    assert paid == []


@pytest.mark.parametrize("way", [WAYS["stdio"], WAYS["HTTP"]])
async def test_an_answer_in_the_next_request_with_a_key_twice_is_not_taken(way: Way) -> None:
    paid = list[Any]()

    async with way(payments(paid), ServerOptions(approve_by="elicit")) as ask:
        asked = (await ask(call("refund", '{"cents": 3}')))["result"]
        [request_id] = asked["inputRequests"]
        state, keys = json.dumps(asked["requestState"]), '"decision": "approve"'
        content = f'{{"action": "accept", "content": {{"decision": "deny", {keys}}}}}'
        more = f', "requestState": {state}, "inputResponses": {{"{request_id}": {content}}}'
        refused = await ask(call("refund", '{"cents": 3}', more))
        before = [*paid]
        await ask(call("refund", '{"cents": 3}', more.replace('"decision": "deny", ', "")))

    assert refused["error"]["code"] == -32600
    assert (before, paid) == ([], [3])


@pytest.mark.parametrize("way", [WAYS["stdio, older"], WAYS["HTTP, older"]])
async def test_a_task_whose_arguments_have_a_key_twice_fails(way: Way) -> None:
    paid = list[Any]()

    async with way(payments(paid), ServerOptions(tasks=TaskOptions())) as ask:
        begun = await ask(call("pay", '{"cents": 2, "cents": 3}', ', "task": {}'))
        task = json.dumps({"taskId": begun["result"]["task"]["taskId"]})
        ended = await ask(f'{{"jsonrpc": "2.0", "id": 9, "method": "tasks/result", "params": {task}}}')

    assert "`pay` cannot take these arguments: cents: sent more" in ended["result"]["content"][0]["text"]
    assert paid == []


async def test_a_program_whose_arguments_have_a_key_twice_does_not_run() -> None:
    paid = list[Any]()

    async with WAYS["stdio"](payments(paid), ServerOptions(code_mode=True)) as ask:
        refused = await ask(call("run_python", '{"code": "1", "code": "pay(3)"}'))

    assert "`run_python` cannot take these arguments: code: sent more" in refused["result"]["content"][0]["text"]
    assert paid == []


async def test_a_notification_with_a_key_twice_is_left_out() -> None:
    begun, ending = asyncio.Event(), asyncio.Event()

    @ez_tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        await ending.wait()
        return "done"

    cancelled = '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "requestId": 7}}'
    async with WAYS["stdio, older"]([wait], ServerOptions()) as ask:
        waiting = asyncio.create_task(ask(f"{call('wait', '{}')}\n{cancelled}"))
        await begun.wait()
        ending.set()

        assert (await waiting)["result"]["content"][0]["text"] == "done"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.text(), JSON))
def test_a_message_that_has_each_key_once_passes_as_it_came(params: Any) -> None:
    text = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": params}, ensure_ascii=False).encode()

    assert check_message(text) == Checked(text)


def test_a_message_that_cannot_be_checked_is_refused() -> None:
    checked = check_message(b'{"a": 1, "a": [' + b"9" * 10_000 + b"]}")

    assert (checked.text, [refusal.id for refusal in checked.refusals]) == (None, [None])

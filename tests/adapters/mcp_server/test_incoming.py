"""Messages of clients that the SDK would not read: each request in them is answered, and nothing of them runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.adapters.mcp_server.test_repeated_keys import WAYS, Way, call, every_way, payments
from toolcrib.adapters.mcp_server import ServerOptions
from toolcrib.adapters.mcp_server._incoming import Checked, check_message

STDIO = pytest.mark.parametrize("way", [WAYS["stdio, older"], WAYS["stdio"]])
PAY = call("pay", '{"cents": 2}')
PING = '{"jsonrpc": "2.0", "id": %s, "method": "ping"}'
ODD_IDS = ("1.5", "true", "null", "[7]")
UNREAD: dict[str, tuple[str, list[Any]]] = {  # a line, and the ids that it is answered with
    "not JSON": ("Starting ...", [None]),
    "not an object": ("7", [None]),
    "an object": ("{}", [None]),
    "without a version": (PAY.replace('"jsonrpc": "2.0", ', ""), [7]),
    "another version": (PAY.replace("2.0", "1.0"), [7]),
    "a method that is a number": (PAY.replace('"tools/call"', "7"), [7]),
    "parameters that are a list": ('{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}', [7]),
    "a request that is cut off": (PAY[:-2], [7]),
    "a tab in a text": (PAY.replace("pay", "p\ty"), [7]),
    "nested too deep": (PAY.replace("2}", "[" * 10_000), [7]),
    "a number that is too long": (PAY.replace("2}", "9" * 10_000 + "}"), [7]),
    "a list of nothing": ("[]", [None]),
    "a list": (f"[{PAY}, {PING % 8}]", [7, 8]),
    "a list of notifications": ('[{"jsonrpc": "2.0", "method": "notifications/initialized"}]', [None]),
    **{f"the id {given}": (PAY.replace('"id": 7', f'"id": {given}'), [None]) for given in ODD_IDS},
    "an id of half a character": (PING % '"\\ud83d"', ["\ufffd"]),
}


@STDIO
@pytest.mark.parametrize("name", UNREAD)
async def test_each_request_that_cannot_be_read_is_answered(way: Way, name: str) -> None:
    paid, (line, ids) = list[Any](), UNREAD[name]

    async with way(payments(paid), ServerOptions()) as ask:
        [*refused, done] = [await ask("\n".join([line, PING % 99])), *[await ask("") for _ in ids]]

    assert [reply["id"] for reply in refused] == ids
    assert {reply.get("error", {}).get("code") for reply in refused} <= {-32600, -32700, None}
    assert (done["id"], paid) == (99, [])


@every_way
@pytest.mark.parametrize("text", ["\ufeff" + PAY, PAY.replace('"id": 7', '"id": 7.0')], ids=["mark", "float"])
async def test_a_byte_order_mark_and_an_id_that_is_a_float_are_read(way: Way, text: str) -> None:
    async with way(payments([]), ServerOptions()) as ask:
        done = await ask(text)

    assert done["id"] == 7
    assert done["result"]["content"][0]["text"] == "paid 2"


@every_way
@pytest.mark.parametrize("arguments", ['{"cents": 2, "to": {"\\ud83d": 1}}', '{"cents": 2, "to": {"a": "x\\udc00"}}'])
@pytest.mark.parametrize("code_mode", [False, True])
async def test_arguments_with_half_a_character_do_not_run(way: Way, arguments: str, code_mode: bool) -> None:
    paid = list[Any]()
    text = call("run_python", '{"code": "pay(2) # \\ud83d"}') if code_mode else call("pay", arguments)

    async with way(payments(paid), ServerOptions(code_mode=code_mode)) as ask:
        refused = await ask(text)

    assert (refused["id"], refused["result"]["isError"], paid) == (7, True, [])
    assert "half a character" in refused["result"]["content"][0]["text"]


@every_way
async def test_half_a_character_elsewhere_is_replaced(way: Way) -> None:
    async with way(payments([]), ServerOptions()) as ask:
        done = await ask(call("pay", '{"cents": 2}', ', "\\ud83d": "\\ud83d"'))

    assert done["result"]["content"][0]["text"] == "paid 2"


@pytest.mark.parametrize("way", [WAYS["stdio, older"]])
@pytest.mark.parametrize("answer", ['"result": 7', '"result": {"action": "accept"', '"error": 7'])
async def test_an_answer_that_cannot_be_read_ends_its_request(way: Way, answer: str) -> None:
    paid = list[Any]()

    async with way(payments(paid), ServerOptions(approve_by="elicit")) as ask:
        form = await ask(call("refund", '{"cents": 3}'))
        suspended = await ask(f'{{"jsonrpc": "2.0", "id": {json.dumps(form["id"])}, {answer}}}')

    assert (suspended["id"], suspended["result"]["structuredContent"]["status"], paid) == (7, "suspended", [])


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": 7}',
        '{"jsonrpc": "2.0", "method": "notifications/initialized", "id": null}',
        '{"jsonrpc": "2.0", "result": 7}',
        '{"jsonrpc": "2.0", "id": null, "error": {"code": 7, "message": "odd"}}',
    ],
)
def test_a_notification_and_an_answer_get_no_answer(line: str) -> None:
    assert check_message(line.encode()) in (Checked(line.encode()), Checked(None))

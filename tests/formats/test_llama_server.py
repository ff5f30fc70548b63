"""Replies of a real llama.cpp server go through, and it takes what was committed; beside those that were recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.formats.llama_server import RECORDED, ROOMS, RUNS_HERE, WAYS, Way, client_of, llama_server, replayed, request
from toolcrib.formats import PROVIDERS
from toolcrib.rounds import ToolRound, decode, decode_stream

USER = {"role": "user", "content": "A room in Oslo."}
each_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not RUNS_HERE:
        pytest.skip("there is no wheel of xllamacpp for this machine")
    with llama_server(tmp_path_factory.mktemp("llama")) as given:
        yield given


async def runs(round: ToolRound, way: Way, messages: list[Any]) -> int:
    """Run what may run, commit it, and return how many calls ran."""
    plan = await round.apply_hooks()
    results = await plan.run_pending()
    await plan.commit(messages, results)
    assert ["the reply was cut at the limit of tokens" in issue.reason for issue in plan.issues] == [True] * (
        way == "cut"
    )
    assert PROVIDERS["openai"].check(messages) == []
    assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in messages[1]["tool_calls"])
    return len(results)


@each_way
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_the_server_takes_what_was_committed(address: str, way: Way, streamed: bool) -> None:
    messages: list[Any] = [USER]
    async with client_of(address) as client:
        sent = await client.chat.completions.create(**request(way, messages), stream=streamed)
        round = await decode_stream(ROOMS, sent) if streamed else decode(ROOMS, sent)
        ran = await runs(round, way, messages)
        again = await client.chat.completions.create(**request(way, messages))

    assert (ran == 0) == (way == "cut")
    assert PROVIDERS["openai"].parse(again).calls


@each_way
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_recorded_replies_run(way: Way, streamed: bool) -> None:
    whole, *chunks = json.loads(RECORDED.read_text())[way]
    messages: list[Any] = [USER]

    round = await decode_stream(ROOMS, replayed(chunks)) if streamed else decode(ROOMS, whole)

    assert await runs(round, way, messages) == {"one call": 1, "two calls": 2, "cut": 0}[way]
    assert [call["id"] for call in messages[1]["tool_calls"]] == [message["tool_call_id"] for message in messages[2:]]


@each_way
def test_a_recorded_stream_says_what_the_whole_reply_says(way: Way) -> None:
    whole, *chunks = json.loads(RECORDED.read_text())[way]

    one, two = PROVIDERS["openai"].parse(whole), PROVIDERS["openai"].gather(chunks)

    assert one.calls
    assert [(call.name, call.arguments) for call in one.calls] == [(call.name, call.arguments) for call in two.calls]

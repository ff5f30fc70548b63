"""Texts of white space and calls of a provider's own tools: what was put out goes back in a form that is taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.formats.replies import NAMES, Asked, pieces, whole
from tests.rounds.provider_rules import refused
from toolcrib.calls import Media, render_value
from toolcrib.formats import PROVIDERS, WireCall, WireFormat, WireResult

each_provider = pytest.mark.parametrize("provider", NAMES)
blank = pytest.mark.parametrize("text", ["\n\n", " ", " \n\t"])
CALL = WireCall("aaaaaaaa1", "look", {"city": "Oslo"})
PNG = Media("image/png", b"\x89PNG")

Item = dict[str, Any]


@each_provider
@blank
@pytest.mark.parametrize("streamed", [False, True])
def test_a_blank_text_before_a_call_goes_back_only_where_it_is_taken(
    provider: WireFormat, text: str, streamed: bool
) -> None:
    format, calls = PROVIDERS[provider], [Asked("aaaaaaaa1")]
    reply = format.gather(pieces(provider, text, calls)) if streamed else format.parse(whole(provider, text, calls))

    history = [*format.user("Go."), *reply.items, *format.answer([WireResult(reply.calls[0], text)])]

    assert reply.text == text
    assert refused(provider, history, sent=["aaaaaaaa1"]) == []
    assert format.check(history) == []
    keeps = provider not in ("anthropic", "bedrock")
    assert (json.dumps(text) in json.dumps(reply.items)) is keeps


@each_provider
@blank
def test_a_blank_text_beside_media_goes_out_only_where_it_is_taken(provider: WireFormat, text: str) -> None:
    format, shown = PROVIDERS[provider], render_value([text, PNG])
    reply = format.parse(whole(provider, "", [Asked("aaaaaaaa1")]))
    [result] = format.answer([WireResult(reply.calls[0], shown.text, parts=shown.parts)])

    found = format.check([*format.user("Go."), *reply.items, result])

    assert found == []
    if provider in ("anthropic", "bedrock"):
        assert '"text"' not in json.dumps(result, default=repr)


@each_provider
@blank
def test_a_blank_turn_is_dropped_only_where_it_is_refused(provider: WireFormat, text: str) -> None:
    format = PROVIDERS[provider]
    history = [*format.user("Go."), *format.assistant(text), *format.user("And?")]

    mended, done = format.repair(history)

    assert (bool(done), bool(format.check(history))) == (bool(refused(provider, history)),) * 2
    assert bool(done) is (provider in ("anthropic", "bedrock"))
    assert refused(provider, mended) == []


@pytest.mark.parametrize("provider", ["anthropic", "bedrock"])
def test_a_blank_text_in_a_result_is_dropped_from_it(provider: WireFormat) -> None:
    format = PROVIDERS[provider]
    reply = format.parse(whole(provider, "", [Asked("aaaaaaaa1")]))
    texts = [{"text": " \n"}, {"text": "a lamp"}]
    block: Item = {"toolResult": {"toolUseId": "aaaaaaaa1", "content": texts}}
    if provider == "anthropic":
        block = {"type": "tool_result", "tool_use_id": "aaaaaaaa1", "content": [{"type": "text", **t} for t in texts]}
    history = [*format.user("Go."), *reply.items, {"role": "user", "content": [block]}]

    mended, done = format.repair(history)

    assert [problem.kind for problem in format.check(history)] == ["blank"]
    assert done == ["dropped from item 2 a text of white space alone in a result"]
    assert [result.content for result in format.results_of(mended[2])] == ["a lamp"]


# --- calls of the provider's own tools

USES: dict[str, Item] = {
    "anthropic": {"type": "server_tool_use", "id": "own", "name": "web_search", "input": {"query": "q"}},
    "bedrock": {"toolUse": {"toolUseId": "own", "name": "web_search", "type": "server_tool_use", "input": {}}},
}
RESULTS: dict[str, Item] = {
    "anthropic": {"type": "web_search_tool_result", "tool_use_id": "own", "content": []},
    "bedrock": {"toolResult": {"toolUseId": "own", "type": "nova_grounding_result", "content": []}},
}
THOUGHTS: dict[str, Item] = {
    "anthropic": {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
    "bedrock": {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
}
with_own_tools = pytest.mark.parametrize("provider", list(USES))


def reply_of(provider: WireFormat, *blocks: Item, stop: str, calls: int = 0) -> Item:
    """Return a whole reply of these blocks before its calls, with the provider's word for its end."""
    made = whole(provider, "", [Asked(f"toolu_{n}") for n in range(calls)])
    message = made if provider == "anthropic" else made["output"]["message"]
    message["content"] = [*blocks, *message["content"]]
    return {**made, "stop_reason" if provider == "anthropic" else "stopReason": stop}


@with_own_tools
@pytest.mark.parametrize("stop", ["end_turn", "max_tokens", "stop_sequence"])
def test_a_call_of_its_own_without_the_result_does_not_go_back(provider: WireFormat, stop: str) -> None:
    format = PROVIDERS[provider]
    said = format.assistant("I will search.")[0]["content"]
    text: Item = {"type": "text", "text": said} if isinstance(said, str) else said[0]

    reply = format.parse(reply_of(provider, text, THOUGHTS[provider], USES[provider], stop=stop))

    assert [item["content"] for item in reply.items] == [[text]]
    assert reply.problems[-2:] == (
        "a last thought that led to nothing was left out",
        "a call of `web_search`, the provider's own, without its result was left out",
    )


@with_own_tools
def test_a_call_of_its_own_goes_back_with_its_result_or_while_it_may_wait(provider: WireFormat) -> None:
    format, use, result = PROVIDERS[provider], USES[provider], RESULTS[provider]

    done = format.parse(reply_of(provider, use, result, stop="end_turn"))
    waits = format.parse(reply_of(provider, use, stop="tool_use", calls=1))
    goes_on = format.parse(reply_of(provider, result, stop="end_turn"))

    assert done.items[0]["content"] == [use, result]
    assert waits.items[0]["content"][0] == use
    assert goes_on.items[0]["content"] == [result]
    history = [*format.user("Go."), *waits.items, *format.answer([WireResult(waits.calls[0], "x")]), *goes_on.items]
    assert (format.check(history), refused(provider, history)) == ([], [])


def test_a_paused_call_goes_back_and_is_dropped_when_the_user_goes_on() -> None:
    format = PROVIDERS["anthropic"]
    paused = format.parse(reply_of("anthropic", USES["anthropic"], stop="pause_turn"))
    history = [*format.user("Go."), *paused.items]

    mended, done = format.repair([*history, *format.user("Never mind.")])

    assert (format.check(history), refused("anthropic", history)) == ([], [])
    assert mended == [*format.user("Go."), *format.user("Never mind.")]
    assert done == ["dropped from item 1 a call of `web_search`, the provider's own, without its result"]


@with_own_tools
def test_a_stream_that_was_cut_in_a_call_of_its_own_leaves_none_of_it(provider: WireFormat) -> None:
    begin: list[Item] = [
        {"type": "message_start", "message": {"type": "message", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {**USES["anthropic"], "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"q":"a'}},
    ]
    end: Item = {"type": "content_block_stop", "index": 0}
    if provider == "bedrock":
        use = {key: value for key, value in USES["bedrock"]["toolUse"].items() if key != "input"}
        begin = [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": use}}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": '{"q":"a'}}}},
        ]
        end = {"contentBlockStop": {"contentBlockIndex": 0}}

    assert PROVIDERS[provider].gather(begin).items == ()
    assert PROVIDERS[provider].gather([*begin, end]).items == ()


# --- programs in a provider's own sandbox


def of_program(n: int) -> tuple[Item, Item]:
    """Return a call that a program of Anthropic's made, and its result."""
    caller = {"type": "code_execution_20260120", "tool_id": "own"}
    call = {"type": "tool_use", "id": f"toolu_{n}", "name": "look", "input": {}, "caller": caller}
    return call, {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": "a lamp"}


@pytest.mark.parametrize("later", [False, True])
def test_results_of_a_programs_calls_stand_alone(later: bool) -> None:
    format, said = PROVIDERS["anthropic"], {"type": "text", "text": "And hurry."}
    program = {"type": "server_tool_use", "id": "own", "name": "code_execution", "input": {"code": "look()"}}
    (first, one), (second, other) = of_program(1), of_program(2)
    begun = [
        *format.user("Go."),
        {"role": "assistant", "content": [program, first]},
        {"role": "user", "content": [one]},
    ]
    goes_on = [*begun, {"role": "assistant", "content": [second]}, {"role": "user", "content": [other]}]
    history = [*goes_on[:-1], {"role": "user", "content": [other, said]}]
    if later:
        history = [*goes_on, {"role": "user", "content": [said]}]

    mended, done = format.repair(history)

    assert (format.check(goes_on), refused("anthropic", goes_on)) == ([], [])
    assert {problem.kind for problem in format.check(history)} == {"missing", "orphan"}
    assert ("are not alone in item 4" in done[0]) is not later
    assert (format.check(mended), refused("anthropic", mended)) == ([], [])
    assert all(word in json.dumps(mended) for word in ("toolu_1", "toolu_2", "And hurry."))
    assert "code_execution" not in json.dumps(mended)
    assert refused("anthropic", history) != []


def test_results_beside_words_leave_a_call_that_is_no_programs_alone() -> None:
    format, [call, result] = PROVIDERS["anthropic"], of_program(1)
    direct = {**call, "caller": {"type": "direct"}}
    history = [
        *format.user("Go."),
        {"role": "assistant", "content": [USES["anthropic"], direct]},
        {"role": "user", "content": [result, {"type": "text", "text": "And hurry."}]},
    ]

    assert (format.check(history), refused("anthropic", history)) == ([], [])

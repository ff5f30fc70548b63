"""What a context window leaves of a conversation is taken by its provider after repair, and no result was given away.

The rules are those of `tests.rounds.provider_rules`, which know nothing of the code under test.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.formats.cut_histories import Item, conversation, cut
from tests.formats.histories import asks
from tests.formats.replies import NAMES
from tests.rounds.provider_rules import refused
from toolcrib.formats import PROVIDERS, WireCall, WireFormat, WireResult

SEEDS = 250
each_provider = pytest.mark.parametrize("provider", NAMES)


def histories(provider: WireFormat) -> list[list[Item]]:
    return [cut(conversation(provider, seed), seed) for seed in range(SEEDS)]


@each_provider
def test_whole_conversations_are_fine(provider: WireFormat) -> None:
    for seed in range(SEEDS):
        whole = conversation(provider, seed)

        assert refused(provider, whole) == []
        assert PROVIDERS[provider].repair(whole) == (whole, [])


@each_provider
def test_the_check_finds_what_the_provider_refuses(provider: WireFormat) -> None:
    rules = PROVIDERS[provider]

    by_check = [bool(rules.check(history)) for history in histories(provider)]

    assert by_check == [bool(refused(provider, history)) for history in histories(provider)]
    assert sum(by_check) > SEEDS / 4


@each_provider
def test_what_was_cut_is_taken_after_repair(provider: WireFormat) -> None:
    for history in histories(provider):
        mended, done = PROVIDERS[provider].repair(history)

        assert refused(provider, mended) == []
        assert bool(done) == bool(refused(provider, history))


@each_provider
def test_what_was_dropped_is_listed_and_is_no_word_and_no_call_of_the_clients(provider: WireFormat) -> None:
    for history in histories(provider):
        mended, done = PROVIDERS[provider].repair(history)

        kept = _pieces(mended)
        gone = [(at, piece) for at, item in enumerate(history) for piece in _pieces([item]) if piece not in kept]
        assert all(re.search(r"result|\"reasoning|\"thinking\"|server_tool_use|\\[nt]\"", piece) for _, piece in gone)
        listed = [int(at) for text in done if "dropped" in text for at in re.findall(r"item (\d+)", text)]
        assert sorted(at for at, _ in gone) == listed


def _pieces(items: list[Item]) -> list[str]:
    """Return what items hold, each call, result, thought and text by itself, as text."""
    made: list[str] = []
    for item in items:
        inner: Any = item.get("parts", item.get("content"))
        shared = inner if isinstance(inner, list) else [item]
        made += [json.dumps(part, sort_keys=True) for part in shared]
    return made


@each_provider
def test_no_call_is_given_the_result_of_another(provider: WireFormat) -> None:
    rules = PROVIDERS[provider]
    for history in histories(provider):
        mended, _ = rules.repair(history)

        asked = {call.id: call.arguments for item in mended for call in rules.calls_of(item)}
        for result in (result for item in mended for result in rules.results_of(item)):
            if result.content.startswith("result") and result.call.id:
                sent: Any = asked[result.call.id]
                given = json.loads(sent) if isinstance(sent, str) else sent
                assert result.content == f"result {given['n']}"


NO_RESULT = "This call was not answered: the conversation went on without its result."
NAMESPACED = {"type": "function_call", "call_id": "c", "name": "f", "namespace": "crm", "arguments": "{}"}
CALLER = {"type": "program", "caller_id": "p"}
BY_PROGRAM = {"type": "function_call", "call_id": "c", "name": "f", "caller": CALLER, "arguments": "{}"}
SHELL = {"type": "shell_call", "id": "s", "call_id": "c", "action": {"commands": ["ls"]}, "caller": CALLER}
OF_A_TOOLSET = {"type": "tool_use", "id": "toolu_1", "name": "click", "toolset_name": "browser", "input": {}}
CUSTOM = {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}


@pytest.mark.parametrize(
    ("provider", "item"),
    [
        *((provider, asks(provider, "aaaaaaaa1")[0]) for provider in NAMES),
        *(("openai_responses", item) for item in (NAMESPACED, BY_PROGRAM, SHELL)),
        ("anthropic", {"role": "assistant", "content": [OF_A_TOOLSET]}),
        ("openai", {"role": "assistant", "content": None, "tool_calls": [CUSTOM]}),
    ],
)
def test_an_answer_of_repair_repeats_of_its_call_what_any_answer_does(provider: WireFormat, item: Item) -> None:
    format = PROVIDERS[provider]
    begin = format.user("Go.")

    mended, _ = format.repair([*begin, item])

    results = [WireResult(call, NO_RESULT, is_error=True) for call in format.calls_of(item)]
    assert mended == [*begin, item, *format.answer(results)]


def test_a_result_with_an_id_answers_no_call_without_one() -> None:
    call = {"role": "model", "parts": [{"functionCall": {"name": "get_balance", "args": {"who": "bob"}}}]}
    response = {"id": "a1", "name": "get_balance", "response": {"output": "ann has 900"}}
    result = {"role": "user", "parts": [{"functionResponse": response}]}
    begin = PROVIDERS["gemini"].user("and bob?")

    mended, done = PROVIDERS["gemini"].repair([*begin, call, result])

    assert "ann has 900" not in json.dumps(mended)
    assert done[-1] == "dropped the result of `a1` in item 2, which answers no call"


def test_results_without_ids_answer_as_many_calls_of_their_name() -> None:
    rules = PROVIDERS["gemini"]
    calls = [{"functionCall": {"name": name, "args": {}}} for name in ("look", "look", "book")]
    results = [{"functionResponse": {"name": name, "response": {"output": name}}} for name in ("look", "book")]
    history = [*rules.user("Go."), {"role": "model", "parts": calls}, {"role": "user", "parts": results}]

    mended, done = rules.repair(history)

    assert [result.is_error for result in rules.results_of(mended[2])] == [True, True, False]
    assert done[-1] == "dropped the result of `look` in item 2, which answers no call"


def test_reasoning_is_kept_with_what_it_led_to_and_dropped_without() -> None:
    rules = PROVIDERS["openai_responses"]
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    said = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}

    assert rules.check([thought, said]) == []
    assert rules.repair([thought, thought, *rules.user("Well?")]) == (
        rules.user("Well?"),
        [f"dropped item {at}, which stood without the item that it led to" for at in (0, 1)],
    )


@pytest.mark.parametrize("provider", ["gemini", "mistral", "bedrock"])
def test_a_missing_turn_is_added_and_says_so(provider: WireFormat) -> None:
    rules = PROVIDERS[provider]
    history = [*rules.assistant("Hi."), *rules.user("Well?")]

    mended, done = rules.repair(history)

    assert mended == [*rules.user("A part of the conversation was left out here."), *history]
    assert done == ["added a turn of the user's before item 0, which says what is missing"]
    assert [str(problem) for problem in rules.check(history)] == ["before item 0 a turn of the user's is missing"]


OPENAIS_ID = "call_7b2e"


def test_an_id_that_mistral_refuses_is_found_and_replaced_in_call_and_result() -> None:
    rules = PROVIDERS["mistral"]
    asked = WireCall(OPENAIS_ID, "look", "{}")
    call = {"id": OPENAIS_ID, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    answer = rules.answer([WireResult(asked, "a lamp")])
    once = [*rules.user("Look."), {"role": "assistant", "tool_calls": [call]}, *answer, *rules.assistant("A lamp.")]
    history = [*once, *once]

    mended, done = rules.repair(history)

    assert [(problem.kind, problem.index) for problem in rules.check(history)] == [("id", 1), ("id", 5)]
    assert (refused("mistral", mended), rules.check(mended)) == ([], [])
    assert [item["content"] for item in mended if item["role"] == "tool"] == ["a lamp", "a lamp"]
    assert len({key for item in mended for key in rules.call_keys(item)}) == 2
    assert done[0].startswith("gave the call of `look` in item 1 the id `")


def test_a_reply_with_an_id_that_mistral_refuses_gets_another() -> None:
    call = {"id": OPENAIS_ID, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    reply = PROVIDERS["mistral"].parse({"choices": [{"message": message, "finish_reason": "tool_calls"}]})

    assert re.fullmatch("[a-zA-Z0-9]{9}", reply.calls[0].id)
    assert [call["id"] for item in reply.items for call in item["tool_calls"]] == [reply.calls[0].id]
    problem = f"came with the id `{OPENAIS_ID}`, which the provider does not take, and is called"
    assert reply.problems == (f"a call of `look` {problem} `{reply.calls[0].id}`",)

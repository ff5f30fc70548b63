"""Histories that providers were seen to accept: what `check` says of them, and whether a round commits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.formats.replies import NAMES, Asked, whole
from tests.rounds.endings import begins
from toolcrib.calls import ToolCall
from toolcrib.errors import CommitError
from toolcrib.formats import PROVIDERS, WireCall, WireFormat, WireResult
from toolcrib.rounds import Transcript, decode
from toolcrib.testing import wire_reply
from toolcrib.tools import ez_tool

JOINED: tuple[WireFormat, ...] = (
    "anthropic",
    "gemini",
    "openai_responses",
    "gemini_interactions",
)  # two turns with calls, then both results
APART: tuple[WireFormat, ...] = tuple(name for name in NAMES if name not in JOINED)


@ez_tool
def look(city: str) -> str:
    """Look at a city."""
    return city


def joined(format: WireFormat, answered: tuple[int, ...] = (0, 1)) -> Transcript:
    """Return a history with a call in each of two turns of the model's that follow on each other, and their results."""
    rules = PROVIDERS[format]
    replies = [rules.parse(whole(format, "", [Asked(f"abcdefgh{at}")])) for at in range(2)]
    calls = [call for one in replies for call in one.calls]
    results = rules.answer([WireResult(calls[at], "sun") for at in answered])
    return Transcript([*begins(format), *replies[0].items, *replies[1].items, *results], format)


async def commit(history: Transcript) -> Any:
    reply = wire_reply(history.format, [ToolCall("look", {"city": "Oslo"}, "abcdefgh9")])
    return await decode([look], reply, transcript=history).run(history)


@pytest.mark.parametrize("format", JOINED)
async def test_calls_in_two_turns_may_be_answered_together(format: WireFormat) -> None:
    history = joined(format)
    before = list(history)

    assert (history.check(), history.repair()) == ([], [])
    await commit(history)

    assert (history[: len(before)], history.check()) == (before, [])


@pytest.mark.parametrize("format", APART)
async def test_calls_in_two_turns_are_refused_where_a_provider_was_not_seen_to_take_them(
    format: WireFormat,
) -> None:
    history = joined(format)

    assert history.check()
    with pytest.raises(CommitError):
        await commit(history)


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
@pytest.mark.parametrize("answered", [(), (0,), (1,)])
def test_a_result_that_is_missing_is_added_where_the_others_are(format: WireFormat, answered: tuple[int, ...]) -> None:
    history = joined(format, answered)

    found = [problem.kind for problem in history.check()]
    history.repair()

    assert found == ["missing"] * (2 - len(answered))
    assert history.check() == []
    assert len(history) == len(joined(format))
    assert len(PROVIDERS[format].results_of(history[-1])) == 2


LATER: tuple[WireFormat, ...] = ("openai_responses", "gemini_interactions")  # which know a call by its id alone


@pytest.mark.parametrize("format", NAMES)
async def test_an_id_of_an_answered_call_may_come_again_where_a_place_tells_which(format: WireFormat) -> None:
    asked = PROVIDERS[format].parse(whole(format, "", [Asked("abcdefgh1")]))
    answered = [*asked.items, *PROVIDERS[format].answer([WireResult(asked.calls[0], "sun")])]
    history = Transcript([*begins(format), *answered, *answered], format)

    assert bool(history.check()) is (format in LATER)
    if format not in LATER:
        await commit(history)
        assert history.check() == []


@pytest.mark.parametrize("format", NAMES)
def test_an_id_that_one_turn_has_twice_is_found_and_replaced(format: WireFormat) -> None:
    rules = PROVIDERS[format]
    asked = [WireCall("abcdefgh1", "look", {"city": city}) for city in ("Oslo", "Rome")]
    history = Transcript([*begins(format), *rules.asking("", asked)], format)

    found = [problem.kind for problem in history.check()]
    history.repair()

    assert "duplicate" in found
    assert history.check() == []
    ids = [id for item in history for id in rules.call_ids(item)]
    assert len(set(ids)) == 2


@pytest.mark.parametrize("format", ["anthropic", "gemini", "mistral", "bedrock"])
def test_a_first_turn_of_the_assistant_s_is_refused_where_a_provider_was_seen_to(format: WireFormat) -> None:
    rules = PROVIDERS[format]

    found = rules.check([*rules.assistant("Hi."), *rules.user("Well?")])

    assert [problem.kind for problem in found] == ([] if format == "anthropic" else ["order"])


@pytest.mark.parametrize(
    ("texts", "kept"),
    [(("Hi.", " \n"), ("Hi.", " \n")), (("Hi.", ""), ("Hi.",)), ((" \n", " "), ())],
)
def test_white_space_beside_words_is_taken_by_anthropic(texts: tuple[str, ...], kept: tuple[str, ...]) -> None:
    said = {"role": "assistant", "content": [{"type": "text", "text": text} for text in texts]}

    mended, _ = PROVIDERS["anthropic"].repair([{"role": "user", "content": "Go."}, said])

    assert tuple(block["text"] for item in mended[1:] for block in item["content"]) == kept


@pytest.mark.parametrize(("format", "takes"), [("ollama", True), ("gemini", False)])
async def test_a_result_without_the_tool_s_name_answers_the_next_call_of_ollama(
    format: WireFormat, takes: bool
) -> None:
    rules = PROVIDERS[format]
    asked = rules.parse(whole(format, "", [Asked(None)]))
    results = rules.answer([WireResult(WireCall("", "", ""), "sun")])
    history = Transcript([*begins(format), *asked.items, *results], format)

    if takes:
        assert (history.check(), history.repair()) == ([], [])
        await commit(history)
    assert (history.check() == []) is takes

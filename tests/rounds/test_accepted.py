"""Histories that providers were seen to accept: what `check` says of them, and whether a round commits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.formats.replies import NAMES, Asked, whole
from tests.rounds.endings import begins
from toolcrib.calls import ToolCall
from toolcrib.errors import CommitError
from toolcrib.formats import PROVIDERS, WireFormat, WireResult
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

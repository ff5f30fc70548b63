"""Old results that are left out of requests: valid for the provider, and whole in the transcript."""

from __future__ import annotations

import json

import pytest

from tests.rounds.replies import FORMATS
from toolcrib.calls import ToolCall
from toolcrib.formats import PROVIDERS, json_shape
from toolcrib.rounds import ChatRequest, Session, WireFormat
from toolcrib.testing import ScriptedModel
from toolcrib.tools import ez_tool

TEXT = "snow and more of it, "
LINE = "The result of `read_page` was left out here, because it is old."


@ez_tool
def read_page(number: int) -> str:
    """Read a page."""
    return f"page {number}: " + TEXT * 20


@ez_tool
def count(number: int) -> str:
    """Count to a number."""
    return f"count {number}."


def pages(number: int) -> list[ToolCall]:
    """Return the calls of a round: two pages, and what is shorter than the line."""
    return [ToolCall("read_page", {"number": number}), ToolCall("read_page", {"number": number + 50}),
            ToolCall("count", {"number": number})]  # fmt: skip


def full_pages(request: ChatRequest) -> list[int]:
    """Return the pages that a request has whole; its provider takes it, and it has the short results of each round."""
    text, rounds = json.dumps(request.messages), json.dumps(request.messages).count("count ")
    assert PROVIDERS[request.format].check(request.messages) == []
    whole = [number for number in range(200) if f"page {number}: {TEXT}" in text]
    assert text.count(LINE) == 2 * rounds - len(whole)
    return whole


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("rounds", [1, 2, 9])
async def test_results_are_sent_whole_in_so_many_rounds(format: WireFormat, rounds: int) -> None:
    steps = [*map(pages, range(4)), "Read.", pages(4), "Read."]
    model, plain_model = ScriptedModel(*steps), ScriptedModel(*steps)
    plain = Session(plain_model, format=format, tools=[read_page, count])
    session = Session(model, format=format, tools=[read_page, count], full_results=rounds)

    for text in ("Read.", "Go on."):
        await session.say(text).say("It is late.", keep=False).run()
        await plain.say(text).run()

    read = [range(done) for done in (0, 1, 2, 3, 4, 4, 5)]
    expected = [[*done[-rounds:], *(number + 50 for number in done[-rounds:])] for done in read]
    assert [full_pages(request) for request in model.requests] == expected
    assert [*session.transcript] == [*plain.transcript]


@pytest.mark.parametrize("format", FORMATS)
async def test_a_result_that_is_left_out_answers_the_same_call(format: WireFormat) -> None:
    rules, model = PROVIDERS[format], ScriptedModel(pages(1), pages(2), "Read.")
    session = Session(model, format=format, tools=[read_page, count], full_results=1)
    await session.say("Read.").run()

    sent = [result for item in model.requests[-1].messages for result in rules.results_of(item)]
    kept = [result for item in session.transcript for result in rules.results_of(json_shape(item))]
    assert [result.call for result in sent] == [result.call for result in kept]
    assert [result.content == LINE for result in sent] == [True, True, False] + [False] * 3


@pytest.mark.parametrize("added", [["user"], ["user", "assistant"], []])
@pytest.mark.parametrize("removed", [0, 6])
async def test_a_transcript_that_the_host_edits_is_read_again(added: list[str], removed: int) -> None:
    model = ScriptedModel(pages(1), "Read.", pages(2), "Read.", "Yes.")
    session = Session(model, tools=[read_page, count], full_results=1)
    await session.say("Read.").run()
    await session.say("Go on.").run()

    session.transcript[:removed] = [{"role": role, "content": "Hello."} for role in added]
    await session.say("Done?").run()

    assert full_pages(model.requests[-1]) == [2, 52]


@pytest.mark.parametrize("rounds", [0, -1])
async def test_less_than_a_round_is_an_error_before_any_request(rounds: int) -> None:
    model = ScriptedModel()

    with pytest.raises(ValueError, match="full_results must be at least 1"):
        await Session(model, full_results=rounds).say("Read.").run()

    assert model.requests == []

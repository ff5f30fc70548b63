"""A call runs only when it came whole, in a reply that was finished; else nothing runs, and the model is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.genai import types as gemini

from tests.rounds.endings import ALL, MODES, RULES, begins, reply, words_of
from toolcrib.formats import FINISHED, WireCall, WireReply
from toolcrib.pipeline import Pipeline
from toolcrib.rounds import Finished, Session, ToolRound, ToolRoundPlan, decode
from toolcrib.testing import RecordingSink
from toolcrib.tools import Tool, ez_tool

each_format = pytest.mark.parametrize("format", ALL)
each_mode = pytest.mark.parametrize("mode", MODES)


def purging(ran: list[str]) -> Tool[..., Any]:
    @ez_tool
    def purge(pattern: str = "*", dry_run: bool = False) -> str:
        """Delete files."""
        ran.append(pattern)
        return f"deleted {pattern}"

    return purge


async def told(round: ToolRound, format: str) -> str:
    """Run what may run, commit it, and return what stands in the transcript then, which is valid."""
    transcript = begins(format)
    plan = await round.apply_hooks()
    added = await plan.commit(transcript, await plan.run_pending())
    assert RULES[format].check(transcript) == []
    return json.dumps(added)


@each_mode
@each_format
async def test_a_whole_call_of_a_reply_that_was_finished_runs(format: str, mode: str) -> None:
    ran: list[str] = []
    for word in words_of(format, "finished", "tool_calls"):
        round = decode([purging(ran)], reply(format, mode, "purge", '{"pattern": "a"}', word), format=RULES[format])
        await told(round, format)

    assert ran == ["a"] * len(words_of(format, "finished", "tool_calls"))
    assert ran


@each_mode
@each_format
async def test_nothing_runs_in_a_reply_that_ended_otherwise(format: str, mode: str) -> None:
    ran: list[str] = []
    stops = [word for word, kind in RULES[format].stops.items() if kind not in ("finished", "tool_calls")]
    for word in (*stops, "a_new_word", None):
        if format == "pydantic_ai" and word == "a_new_word":
            continue  # which their library lets nobody say
        round = decode([purging(ran)], reply(format, mode, "purge", {"pattern": "a"}, word), format=RULES[format])

        [issue] = round.recoverable_issues
        assert (issue.outcome.retryable, issue.outcome.code) == (True, "invalid_arguments")
        assert "Nothing ran" in await told(round, format)

    assert ran == []


@each_format
async def test_nothing_runs_of_a_stream_that_breaks_off_anywhere(format: str) -> None:
    ran: list[str] = []
    for arguments in ("", "{}", '{"pattern": "/srv/x"}'):
        chunks = reply(format, "streamed", "purge", arguments)
        ends = {"openai": 2, "anthropic": 2}.get(format, 1)  # what comes after the word for why it ended
        for kept in range(1, len(chunks) - ends + 1):
            await told(decode([purging(ran)], chunks[:kept], format=RULES[format]), format)

    assert ran == []


CALL = {"type": "function_call", "call_id": "c", "name": "purge", "arguments": '{"pattern": "a"}'}
BEGUN = {"type": "tool_use", "id": "t", "name": "purge", "input": {"pattern": "a"}}
OPEN = {"functionCall": {"name": "purge", "args": {"pattern": "a"}, "willContinue": True}}
UNENDED: dict[str, Any] = {
    "openai_responses": {"object": "response", "status": "completed", "output": [{**CALL, "status": "incomplete"}]},
    "anthropic": [
        {"type": "content_block_start", "index": 0, "content_block": BEGUN},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ],
    "gemini": [{"candidates": [{"finishReason": "STOP", "content": {"parts": [OPEN]}}]}],
}


@pytest.mark.parametrize("format", UNENDED)
async def test_a_call_that_never_ended_does_not_run_in_a_reply_that_did(format: str) -> None:
    ran: list[str] = []

    round = decode([purging(ran)], UNENDED[format], format=RULES[format])

    assert round.stop_kind in FINISHED
    assert "its arguments were cut" in await told(round, format)
    assert ran == []


@each_mode
@each_format
@pytest.mark.parametrize("arguments", ["", "null", '["/srv/x"]', "5", '"/srv/x"', "/srv/x", '{"pattern": "a', "{}}"])
async def test_text_that_is_not_one_object_is_refused(format: str, mode: str, arguments: str) -> None:
    if mode == "streamed" and arguments == "" and format in ("anthropic", "gemini_interactions"):
        return  # so a call without arguments is streamed: the object is in the block or step
    ran: list[str] = []

    round = decode([purging(ran)], reply(format, mode, "purge", arguments), format=RULES[format])

    assert "Rejected: InvalidArguments" in await told(round, format)
    assert (ran, len(round.recoverable_issues)) == ([], 1)


@each_mode
@pytest.mark.parametrize("format", sorted(RULES.keys() - {"pydantic_ai"}))  # whose types hold text and objects alone
@pytest.mark.parametrize("arguments", [["/srv/x"], 5, True, None])
async def test_another_kind_of_json_is_refused(format: str, mode: str, arguments: Any) -> None:
    if arguments is None and (format == "gemini" or (mode == "streamed" and format != "openai_responses")):
        return  # a stream grows from nothing, and Gemini leaves out what is empty
    ran: list[str] = []

    round = decode([purging(ran)], reply(format, mode, "purge", arguments), format=RULES[format])

    assert "Rejected: InvalidArguments" in await told(round, format)
    assert ran == []


@each_mode
@pytest.mark.parametrize("kind", [dict, gemini.GenerateContentResponse.model_validate])
@pytest.mark.parametrize("call", [{"name": "purge"}, {"name": "purge", "args": None}, {"name": "purge", "args": {}}])
async def test_arguments_that_gemini_leaves_out_are_empty(call: dict[str, Any], kind: Any, mode: str) -> None:
    ran: list[str] = []
    content = {"role": "model", "parts": [{"functionCall": call}]}
    sent = kind({"candidates": [{"content": content, "finishReason": "STOP"}]})

    round = decode([purging(ran)], [sent] if mode == "streamed" else sent, format="gemini")
    await told(round, "gemini")

    assert ran == ["*"]


@each_mode
@each_format
async def test_an_object_in_the_place_of_text_is_what_it_says(format: str, mode: str) -> None:
    ran: list[str] = []

    round = decode([purging(ran)], reply(format, mode, "purge", {"pattern": "only"}), format=RULES[format])
    await told(round, format)

    assert ran == ["only"]


@each_mode
@each_format
@pytest.mark.parametrize("arguments", ["", "null", "{}"])
async def test_nothing_is_enough_for_a_tool_without_parameters(format: str, mode: str, arguments: str) -> None:
    ran: list[str] = []

    @ez_tool
    def ring() -> str:
        """Ring the bell."""
        ran.append("rang")
        return "rang"

    good = decode([ring], reply(format, mode, "ring", arguments), format=RULES[format])
    cut = decode(
        [ring], reply(format, mode, "ring", arguments, words_of(format, "length", "cut")[0]), format=RULES[format]
    )
    await told(good, format)
    await told(cut, format)

    assert ran == ["rang"]


@each_format
async def test_the_model_is_told_what_came_and_why(format: str) -> None:
    word = words_of(format, "length")[0]

    round = decode([purging([])], reply(format, "whole", "purge", '{"pattern": "/sr', word), format=RULES[format])

    [issue] = round.recoverable_issues
    assert "cut at the limit of tokens" in issue.reason
    assert '`{"pattern": "/sr`' in issue.reason


@each_mode
@each_format
async def test_the_record_has_the_text_that_came(format: str, mode: str) -> None:
    sink = RecordingSink()

    round = decode(
        Pipeline([purging([])], sinks=[sink]),
        reply(format, mode, "purge", '{"pattern": "a', words_of(format, "length")[0]),
        format=RULES[format],
    )
    await told(round, format)

    assert sink.records[0].requested == '{"pattern": "a'


@each_format
async def test_a_call_that_was_cut_stays_cut_in_another_process(format: str) -> None:
    ran: list[str] = []
    chunks = reply(format, "streamed", "purge", '{"pattern": "a"}', None)
    saved = decode([purging(ran)], chunks, format=RULES[format]).to_json()

    round = await ToolRound.from_json([purging(ran)], saved, format=RULES[format])
    plan = await ToolRoundPlan.from_json([purging(ran)], (await round.apply_hooks()).to_json(), format=RULES[format])

    assert (len(round.recoverable_issues), len(plan.issues), ran) == (1, 1, [])


async def test_a_session_tells_the_model_of_a_call_that_was_cut() -> None:
    ran: list[str] = []

    class Model:
        asked: tuple[Any, ...] = ()

        def reply(self, request: Any) -> AsyncIterator[Any]:
            self.asked, first = request.messages, not self.asked
            return self.chunks(reply("openai", "streamed", "purge", "")[:2] if first else SAID)

        async def chunks(self, chunks: list[Any]) -> AsyncIterator[Any]:
            for chunk in chunks:
                yield chunk

    model = Model()

    made = await Session(model, tools=[purging(ran)]).say("Delete a.tmp.").run()

    assert isinstance(made, Finished)
    assert (made.result, ran) == ("ok", [])
    assert "cut before its end" in model.asked[-1]["content"]


SAID = [{"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]}]


def test_a_reply_that_a_host_makes_says_itself_how_it_ended() -> None:
    call = WireCall("a", "purge", "{}")

    silent = decode([purging([])], WireReply((), "", (call,)), format="openai")
    finished = decode([purging([])], WireReply((), "", (call,), stop_kind="finished"), format="openai")

    assert (len(silent.tool_calls), len(finished.tool_calls)) == (0, 1)

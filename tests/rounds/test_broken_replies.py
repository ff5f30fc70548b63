"""Replies that are broken, joined, cut or in a server's own dialect: nothing runs that did not come whole."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from google.genai import types as gemini

from tests.rounds.endings import MODES, RULES, begins, reply, stopped, words_of
from tests.rounds.replies import FORMATS
from toolcrib.formats import Item
from toolcrib.rounds import Session, Stopped, Transcript, decode
from toolcrib.testing import ScriptedModel
from toolcrib.tools import Tool, ez_tool

BUSY = {"type": "overloaded_error", "message": "Busy."}
ENDS = dict.fromkeys(FORMATS, -1) | {"openai": -2, "anthropic": -2}  # where a stream says why it ended
each_format = pytest.mark.parametrize("format", FORMATS)
each_mode = pytest.mark.parametrize("mode", MODES)
of_chat = pytest.mark.parametrize("format", ["openai", "mistral"])


def purging(ran: list[Any]) -> list[Tool[..., Any]]:
    @ez_tool
    def purge(pattern: str = "*") -> str:
        """Delete files."""
        ran.append(pattern)
        return "deleted"

    @ez_tool
    def ring() -> str:
        """Ring the bell."""
        ran.append("rang")
        return "rang"

    return [purge, ring]


async def committed(format: str, sent: Any) -> tuple[list[Any], str, list[Any]]:
    """Return what ran of a reply, what was wrong with it, and the transcript, which is valid."""
    ran: list[Any] = []
    round = decode(purging(ran), sent, format=RULES[format])
    transcript = begins(format)
    plan = await round.apply_hooks()
    await plan.commit(transcript, await plan.run_pending())
    assert RULES[format].check(transcript) == []
    json.dumps(transcript, allow_nan=False, ensure_ascii=False).encode()
    return ran, " ".join(round.problems), transcript


# --- depth


@each_format
async def test_arguments_without_an_id_that_are_nested_too_deeply_run_nothing(format: str) -> None:
    sent = reply(format, "whole", "purge", {"pattern": "deep"})

    ran, _, _ = await committed(format, deepened(sent))

    assert ran == []


def deepened(value: Any) -> Any:
    """Return a reply without ids, with a list of many levels in its arguments."""
    if isinstance(value, dict):
        return {key: deepened(part) for key, part in value.items() if key not in ("id", "call_id", "toolUseId")}
    if value == "deep":
        for _ in range(3_000):
            value = [value]
        return value
    return [deepened(part) for part in value] if isinstance(value, list) else value


# --- a call from before there were tools


@pytest.mark.parametrize("content", ["4", ""])
@each_mode
@of_chat
async def test_an_empty_call_from_before_there_were_tools_is_none(format: str, mode: str, content: str) -> None:
    said = {"role": "assistant", "content": content, "function_call": {"name": "", "arguments": ""}, "tool_calls": None}
    ends = {"index": 0, "finish_reason": "stop"}
    sent: Any = {"choices": [{**ends, "message": said}]}
    if mode == "streamed":
        sent = [{"choices": [{"index": 0, "delta": said}]}, {"choices": [{**ends, "delta": {}}]}]

    round = decode(purging([]), sent, format=RULES[format])

    assert (round.stop_kind, round.text, round.has_calls) == ("finished", content, False)
    assert RULES[format].check([*begins(format), said]) == []


# --- errors


@each_mode
@each_format
async def test_nothing_runs_in_a_reply_with_an_error_and_the_host_reads_its_name(format: str, mode: str) -> None:
    sent = reply(format, mode, "purge", {"pattern": "a"})
    sent = (
        {**sent, "error": BUSY} if mode == "whole" else [*sent[: ENDS[format]], {"error": BUSY}, *sent[ENDS[format] :]]
    )

    ran, problems, _ = await committed(format, sent)

    assert (ran, "overloaded_error: Busy." in problems) == ([], True)


@of_chat
@each_mode
async def test_an_error_may_stand_in_a_choice(format: str, mode: str) -> None:
    sent = reply(format, mode, "purge", {"pattern": "a"})
    last = sent if mode == "whole" else sent[ENDS[format]]
    (last.get("data") or last)["choices"][0]["error"] = {"code": 502, "message": "Gone."}

    ran, problems, _ = await committed(format, sent)

    assert (ran, "502: Gone." in problems) == ([], True)


@pytest.mark.parametrize("kind", ["failed", "incomplete"])
async def test_an_event_of_failure_counts_whatever_its_response_says(kind: str) -> None:
    sent = reply("openai_responses", "streamed", "purge", {"pattern": "a"})
    sent[-1] = {**sent[-1], "type": f"response.{kind}"}

    assert (await committed("openai_responses", sent))[0] == []


@each_format
async def test_a_session_hands_an_error_to_the_host(format: Any) -> None:
    ran: list[Any] = []
    sent = {**reply(format, "whole", "purge", {"pattern": "a"}), "error": BUSY}

    made = await Session(ScriptedModel(sent), tools=purging(ran), format=format).say("Go.").run()

    assert isinstance(made, Stopped)
    assert (made.reason, ran) == ("error", [])
    assert "overloaded_error: Busy." in made.problems[0]


# --- several words for why a reply ended


@pytest.mark.parametrize("later", [False, True])
@each_format
async def test_the_worst_of_several_stops_counts(format: str, later: bool) -> None:
    sent = reply(format, "streamed", "purge", {"pattern": "a"})
    at = ENDS[format]
    for word in words_of(format, "length", "content_filter", "error", "cut"):
        [bad] = stopped(format, [sent[at]], word)
        several = [sent[at], bad] if later else [bad, sent[at]]
        end = sent[len(sent) + at + 1 :]

        assert (await committed(format, [*sent[:at], *several, *end]))[0] == []


async def test_an_incomplete_response_is_cut_whatever_reason_it_gives() -> None:
    sent = reply("openai_responses", "whole", "purge", {"pattern": "a"}, "incomplete")

    assert (await committed("openai_responses", {**sent, "incomplete_details": {"reason": "completed"}}))[0] == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_prompt_that_was_blocked_runs_nothing(mode: str) -> None:
    sent = reply("gemini", mode, "purge", {"pattern": "a"})
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}}

    ran, problems, _ = await committed("gemini", {**sent, **blocked} if mode == "whole" else [*sent, blocked])

    assert (ran, "SAFETY" in problems) == ([], True)


@each_mode
async def test_a_stop_sequence_ends_a_text_and_cuts_a_call(mode: str) -> None:
    cut = reply("anthropic", mode, "purge", {}, "stop_sequence")
    text = {"type": "message", "role": "assistant", "stop_reason": "stop_sequence", "content": [{"text": "So."}]}

    assert (await committed("anthropic", cut))[0] == []
    assert RULES["anthropic"].parse(text).stop_kind == "finished"


# --- calls that are joined, or come twice


def chunk(arguments: Any = None, stop: str | None = None, **call: Any) -> Item:
    function = {key: call.pop(key) for key in ("name",) if key in call}
    function |= {} if arguments is None else {"arguments": arguments}
    delta = {"tool_calls": [{"index": 0, **call, "function": function}]} if function or call else {}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}


BEGUN = {"id": "abcdefgh1", "name": "purge"}


@of_chat
@pytest.mark.parametrize(
    "chunks",
    [
        [chunk('{"pattern":"a', **BEGUN), chunk({}, "stop")],
        [chunk('{"pattern":"a"}', **BEGUN), chunk({"pattern": "b"}, "stop")],
        [chunk({"pattern": "a"}, **BEGUN), chunk({"pattern": "b"}, "stop")],
        [chunk({"pattern": "a"}, **BEGUN), chunk('{"pattern":"b"}', "stop")],
        [chunk('{"pattern":', id="abcdefgh1", name="ring"), chunk('"a"}', "stop", name="purge")],
        [chunk("", id="abcdefgh1", name="pur"), chunk('{"pattern":"a"}', "stop", name="ge")],
        [chunk("", name="ring"), chunk('{"pattern":"a"}', "stop", name="purge")],
    ],
)
async def test_a_call_that_changes_as_it_comes_does_not_run(format: str, chunks: list[Item]) -> None:
    ran, _, transcript = await committed(format, chunks)

    assert ran == []
    assert len(transcript[1]["tool_calls"]) == 1


@of_chat
@pytest.mark.parametrize(
    "chunks",
    [
        [chunk({}, **BEGUN), chunk('{"pattern":"a"}', "stop")],
        [chunk('{"pattern":', **BEGUN), chunk('"a"}', **BEGUN), chunk('{"pattern":"a"}', "tool_calls", **BEGUN)],
        [chunk('{"pattern":"a"}', **BEGUN), chunk({"pattern": "a"}, "stop")],
        [chunk({"pattern": "a"}, **BEGUN), chunk("", "stop")],
        [chunk({"pattern": "a"}, **BEGUN), chunk('{"pattern":"a"}', "stop")],
    ],
)
async def test_arguments_that_come_once_more_are_the_same_call(format: str, chunks: list[Item]) -> None:
    assert (await committed(format, chunks))[0] == ["a"]


@of_chat
async def test_a_whole_message_may_end_a_stream(format: str) -> None:
    message = reply(format, "whole", "purge", '{"pattern":"a"}')["choices"][0]["message"]
    last = {"choices": [{"index": 0, "message": {**message, "content": "So."}, "finish_reason": "tool_calls"}]}
    said = {"choices": [{"index": 0, "delta": {"content": "So."}}]}

    for before in ([], [said], [said, chunk('{"pattern":"a"}', id=message["tool_calls"][0]["id"], name="purge")]):
        ran, _, transcript = await committed(format, [*before, last])

        assert (ran, transcript[1]["content"]) == (["a"], "So.")


@of_chat
async def test_calls_of_one_index_without_ids_are_known_by_their_names(format: str) -> None:
    chunks = [chunk('{"pattern":"a"}', name="purge"), chunk("", name="ring"), chunk(stop="tool_calls")]

    assert (await committed(format, chunks))[0] == ["a", "rang"]


def block(id: str, *inputs: str) -> list[Item]:
    begun = {"type": "tool_use", "id": id, "name": "purge", "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": text} for text in inputs]
    return [
        {"type": "content_block_start", "index": 0, "content_block": begun},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
    ]


BEGINS: Item = {"type": "message_start", "message": {"type": "message", "role": "assistant", "content": []}}
ENDED: list[Item] = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]


async def test_a_block_with_the_index_of_another_is_a_call_of_its_own() -> None:
    ran, _, _ = await committed("anthropic", [BEGINS, *block("t1", '{"pattern":"a"}'), *block("t2", '{"x":'), *ENDED])

    assert ran == ["a"]


async def test_nothing_runs_of_two_messages_in_one_stream() -> None:
    ran, problems, _ = await committed("anthropic", [BEGINS, *block("t1", "{}"), BEGINS, *block("t2"), *ENDED])

    assert (ran, "a second message began" in problems) == ([], True)


def parts(*calls: Item, stop: str | None = "STOP") -> Item:
    content = {"role": "model", "parts": [{"functionCall": call} for call in calls]}
    return {"candidates": [{"content": content, "finishReason": stop}]}


GROWING = {"jsonPath": "$.pattern", "stringValue": "/", "willContinue": True}


@pytest.mark.parametrize(
    "sent",
    [
        parts({"name": "purge", "args": {}, "willContinue": True}),
        parts({"name": "purge", "args": {"pattern": "a"}, "willContinue": True}),
        parts({"name": "purge", "args": {}, "partialArgs": [GROWING]}),
        [parts({"name": "purge", "willContinue": True}, stop=None), parts({})],
        [parts({"name": "purge", "willContinue": True}, stop=None), parts({"partialArgs": [GROWING]})],
        [parts({"name": "purge", "partialArgs": [GROWING, {"jsonPath": "$.x", "numberValue": 1}]})],
    ],
)
async def test_partial_arguments_that_did_not_end_are_not_whole(sent: Any) -> None:
    assert (await committed("gemini", sent))[0] == []


async def test_the_first_candidate_is_the_one_of_no_index() -> None:
    good, bad = parts({"name": "purge", "args": {"pattern": "b"}}), parts({"name": "purge"}, stop="MAX_TOKENS")
    both = {"candidates": [{**good["candidates"][0], "index": 1}, bad["candidates"][0]]}

    assert (await committed("gemini", both))[0] == []
    assert (await committed("gemini", [both]))[0] == []


# --- pieces of a wrong kind


@of_chat
@pytest.mark.parametrize("index", ["x", [1], {"x": 1}, 1.5])
async def test_a_piece_that_says_by_no_number_where_it_belongs_runs_nothing(format: str, index: Any) -> None:
    lost = chunk(', "dry": true')
    lost["choices"][0]["delta"]["tool_calls"][0]["index"] = index
    ends = chunk("}", "stop")
    choice = deepcopy(ends)
    choice["choices"][0]["index"] = index

    assert (await committed(format, [chunk('{"pattern":"a"', **BEGUN), lost, ends]))[0] == []
    assert (await committed(format, [chunk('{"pattern":"a"}', **BEGUN), choice, chunk(stop="stop")]))[0] == []


@pytest.mark.parametrize("piece", [7, True, None, ["x"], {}])
async def test_a_piece_of_an_input_that_is_no_text_cuts_the_call(piece: Any) -> None:
    begun, *deltas, end = block("t1", '{"pattern":"a"', "", "}")
    deltas[1]["delta"]["partial_json"] = piece

    assert (await committed("anthropic", [BEGINS, begun, *deltas, end, *ENDED]))[0] == []


async def test_a_thought_without_its_signature_is_left_out() -> None:
    blocks = [{"type": "thinking", "thinking": "Hm.", "signature": 7}, {"type": "text", "text": "So."}]
    message = {"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": blocks}

    _, problems, transcript = await committed("anthropic", message)

    assert transcript[1]["content"] == [{"type": "text", "text": "So."}]
    assert "without its signature" in problems


# --- free text


@pytest.mark.parametrize("given", [{}, {"input": None}, {"input": {}}, {"input": {"text": "b"}}, {"input": ["b"]}])
@pytest.mark.parametrize("format", ["openai", "openai_responses"])
async def test_a_free_text_that_did_not_come_runs_nothing(format: str, given: Item) -> None:
    ran: list[str] = []

    @ez_tool
    def ask(text: str = "DROP") -> str:
        """Ask the database."""
        ran.append(text)
        return "ok"

    call = {"id": "c", "type": "custom", "custom": {"name": "ask", **given}}
    item = {"type": "custom_tool_call", "call_id": "c", "name": "ask", **given}
    chat = {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    sent = chat if format == "openai" else {"object": "response", "status": "completed", "output": [item]}
    transcript = begins(format)

    plan = await decode([ask], sent, format=RULES[format]).apply_hooks()
    await plan.commit(transcript, await plan.run_pending())

    assert ran == []
    assert "its text did not come" in json.dumps(transcript[-1])
    made = transcript[1]["tool_calls"][0]["custom"] if format == "openai" else transcript[1]
    assert made["input"] == ""


# --- ids, names and types


def renamed(value: Any, id: str) -> Any:
    """Return a reply whose call has another id."""
    if isinstance(value, dict):
        return {key: id if part == "abcdefgh1" else renamed(part, id) for key, part in value.items()}
    return [renamed(part, id) for part in value] if isinstance(value, list) else value


@each_mode
@each_format
async def test_half_a_character_in_an_id_is_found_before_anything_runs(format: str, mode: str) -> None:
    sent = reply(format, mode, "purge", {"pattern": "a"})
    if format == "gemini":
        for one in sent if mode == "streamed" else [sent]:
            for part in one["candidates"][0]["content"]["parts"]:
                part["functionCall"]["id"] = "abcdefgh1"

    ran, problems, _ = await committed(format, renamed(sent, "c\ud800"))

    assert (ran, "half a character" in problems) == (["a"], True)


@pytest.mark.parametrize("kind", ["absent", "", None, 7])
async def test_a_block_without_a_type_is_known_by_its_keys_or_left_out(kind: Any) -> None:
    typeless = {} if kind == "absent" else {"type": kind}
    blocks = [{**typeless, "text": "So."}, {**typeless, "name": "purge", "input": {}}]
    message = {"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": blocks}
    streamed = [
        BEGINS,
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "So."}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        *stopped("anthropic", ENDED, "end_turn"),
    ]

    for sent in (message, streamed):
        ran, problems, transcript = await committed("anthropic", sent)

        assert (ran, "could not be read" in problems) == ([], True)
        assert transcript[1]["content"] == [{"type": "text", "text": "So."}]


async def test_an_item_of_a_response_without_a_type_is_a_message_or_left_out() -> None:
    items = [{"role": "assistant", "content": [{"text": "So."}]}, {"name": "purge", "arguments": "{}", "call_id": "c"}]

    ran, problems, transcript = await committed(
        "openai_responses", {"object": "response", "status": "completed", "output": items}
    )

    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]}
    assert (ran, "without a type" in problems, transcript[1:]) == ([], True, [said])


# --- dialects


@of_chat
@each_mode
@pytest.mark.parametrize(
    "word",
    ["STOP", "Stop", "tool_use", "tool_call", "tool-calls", "ToolCalls", "end_turn", "eos", "eos_token", "COMPLETE"],
)
async def test_other_words_for_a_whole_reply_are_known(format: str, mode: str, word: str) -> None:
    assert (await committed(format, reply(format, mode, "purge", {"pattern": "a"}, word)))[0] == ["a"]


@of_chat
@each_mode
@pytest.mark.parametrize("word", ["MAX_TOKENS", "max_tokens", "SAFETY", "abort", "ERROR", "refusal", "paused"])
async def test_other_words_for_a_reply_that_is_not_are_known_too(format: str, mode: str, word: str) -> None:
    assert (await committed(format, reply(format, mode, "purge", {"pattern": "a"}, word)))[0] == []


@pytest.mark.parametrize("more", [{}, {"by_alias": True}])
@pytest.mark.parametrize("how", [{}, {"exclude_none": True}, {"mode": "json"}])
@each_mode
async def test_a_dump_of_geminis_sdk_is_read_as_its_object(how: Any, more: Any, mode: str) -> None:
    call = {"functionCall": {"name": "purge", "args": {"pattern": "a_b"}}, "thoughtSignature": "aGk="}
    made = gemini.GenerateContentResponse.model_validate(
        {"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [call]}}]}
    )
    dump = made.model_dump(**how, **more)

    ran, _, transcript = await committed("gemini", dump if mode == "whole" else [dump])

    assert (ran, transcript[1]) == (["a_b"], {"role": "model", "parts": [call]})


async def test_arguments_keep_their_names_in_a_dump() -> None:
    ran: list[Any] = []

    @ez_tool
    def look(city_name: str) -> str:
        """Look."""
        ran.append(city_name)
        return "ok"

    parts = [{"function_call": {"name": "look", "args": {"city_name": "Oslo"}}}]
    dump = {"candidates": [{"finish_reason": "STOP", "content": {"role": "model", "parts": parts}}]}
    plan = await decode([look], deepcopy(dump), format="gemini").apply_hooks()
    await plan.commit(Transcript([], "gemini"), await plan.run_pending())

    assert ran == ["Oslo"]

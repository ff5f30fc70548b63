"""A reply of which a piece could not be read runs nothing of what it brought, and the model reads why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rounds.endings import RULES, begins
from tests.rounds.provider_rules import refused
from tests.rounds.replies import FORMATS
from tests.rounds.streams import by_turns, moved, partial, pieces
from toolcrib.calls import ToolCall
from toolcrib.formats import WireResult
from toolcrib.rounds import Session, Stopped, ToolRound, WireFormat, decode
from toolcrib.testing import ScriptedModel, wire_reply
from toolcrib.tools import Tool, ez_tool

Item = dict[str, Any]
WHOLE = {"pattern": "/tmp/x", "dry_run": True}
CALL = ToolCall("purge", json.dumps(WHOLE), "abcdefgh1")
WRONG: tuple[Any, ...] = (7, True, "x", ["x"], {"x": 1})

each_format = pytest.mark.parametrize("format", FORMATS)


def purging(ran: list[Any]) -> Tool[..., Any]:
    @ez_tool
    def purge(pattern: str = "*", dry_run: bool = False) -> str:
        """Delete files."""
        ran.append({"pattern": pattern, "dry_run": dry_run})
        return "deleted"

    return purge


async def ran_of(format: WireFormat, made: Any) -> tuple[list[Any], ToolRound]:
    """Return what runs of a reply, which is committed, and its round."""
    ran: list[Any] = []
    round = decode([purging(ran)], made, format=format)
    plan = await round.apply_hooks()
    transcript = begins(format)
    answers = [one.refuse("no") if one.is_known else one.leave() for one in plan.unhandled]
    await plan.commit(transcript, [*await plan.run_pending(), *answers])
    assert RULES[format].check(transcript) == []
    return ran, round


def streams_of(format: WireFormat) -> list[list[Item]]:
    """Return the same call in the streams in which it may come."""
    made = pieces(format, [CALL], "Well.", thinks=False, size=1_000)
    return [made, list(in_thirds(made)), *([partial([CALL])] if format == "gemini" else [])]


def in_thirds(stream: list[Item]) -> Iterator[Item]:
    """Return a stream in which the arguments come in three pieces, of which the middle one may be missed unnoticed."""
    whole = json.dumps(json.dumps(WHOLE))[1:-1]
    for chunk in stream:
        text = json.dumps(chunk)
        is_piece = whole in text and chunk.get("type", "delta").endswith("delta")
        for part in ('{"pattern": "/tmp/x"', ', "dry_run": true', "}") if is_piece else ():
            yield json.loads(text.replace(whole, json.dumps(part)[1:-1]))
        if not is_piece:
            yield chunk


def spoilt(value: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Return a reply once for each place in it and each other kind of JSON there, with the place."""
    for path, held in _paths(value):
        for wrong in WRONG:
            if type(held) is not type(wrong):
                yield path, _put(value, path, wrong)


def _put(value: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    if not path:
        return wrong
    made = value.copy()
    made[path[0]] = _put(value[path[0]], path[1:], wrong)
    return made


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        if path or not isinstance(value, list):  # a chunk that is none raises TypeError
            yield (*path, key), part
        yield from _paths(part, (*path, key))


def runnable(format: WireFormat, made: Any) -> list[Any]:
    """Return the arguments of the calls in a stream that would run: which are whole, and fit the tool."""
    reply = RULES[format].gather(made)
    read = [_read(call.arguments) for call in reply.calls if not reply.fault_of(call)]
    return [one for one in read if isinstance(one, dict) and all(type(one[key]) is type(WHOLE.get(key)) for key in one)]


def _read(arguments: Any) -> Any:
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return None


@each_format
def test_nothing_is_whole_without_a_piece_of_another_kind(format: WireFormat) -> None:
    for stream in streams_of(format):
        assert runnable(format, stream) == [WHOLE]
        for path, made in spoilt(stream):
            assert runnable(format, made) in ([], [WHOLE]), f"{path} of {made}"


@pytest.mark.parametrize("format", ["openai", "anthropic", "bedrock"])
async def test_nothing_runs_where_a_piece_is_of_no_open_call(format: WireFormat) -> None:
    stream = streams_of(format)[1]
    [at] = [at for at, chunk in enumerate(stream) if '\\"dry_run\\"' in json.dumps(chunk)]

    early, _ = await ran_of(format, [stream[at], *stream[:at], *stream[at + 1 :]])
    ran, round = await ran_of(format, [*stream[:at], moved(stream[at]), *stream[at + 1 :]])

    assert (early, ran) == ([], [])
    [issue] = round.recoverable_issues
    assert "a part of the reply could not be read" in issue.reason


def called(call: Item) -> Item:
    return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"functionCall": call}]}}]}


@pytest.mark.parametrize(
    "piece",
    [
        {"id": "2", "partialArgs": [{"jsonPath": "$.pattern", "stringValue": "/of_two"}], "willContinue": True},
        {"id": "2"},
        {"news": {"pattern": "/tmp"}},
    ],
)
async def test_geminis_pieces_belong_to_the_call_of_their_id(piece: Item) -> None:
    stream = partial([CALL])

    assert (await ran_of("gemini", [*stream[:2], called(piece), *stream[2:]]))[0] == []
    assert (await ran_of("gemini", [*stream[:-1], called(piece), stream[-1]]))[0] == []


async def test_pieces_of_several_open_calls_without_ids_are_nobodys() -> None:
    stream = json.loads(json.dumps(partial([CALL, ToolCall("purge", '{"pattern": "/b"}', "b")])).replace('"id"', '"x"'))

    assert (await ran_of("gemini", stream))[0] == []


@pytest.mark.parametrize("format", ["openai", "openai_responses", "anthropic", "bedrock", "gemini"])
async def test_calls_whose_pieces_come_by_turns_keep_their_own(format: WireFormat) -> None:
    calls = [CALL, ToolCall("purge", '{"dry_run": false, "pattern": "/b"}', "abcdefgh2")]
    stream = partial(calls) if format == "gemini" else by_turns(pieces(format, calls, "", thinks=False, size=3))

    ran, _ = await ran_of(format, stream)

    assert ran == [WHOLE, {"pattern": "/b", "dry_run": False}]


@pytest.mark.parametrize("path", ["$.d['C:\\\\x']", '$.d["C:\\\\x"]', "$.d['C:\\u005cx']"])
def test_escapes_in_a_path_are_read(path: str) -> None:
    begun = called({"name": "put", "partialArgs": [{"jsonPath": path, "numberValue": 1}]})

    [call] = RULES["gemini"].gather([begun]).calls

    assert call.arguments == {"d": {"C:\\x": 1}}


def unnamed(value: Any, name: Any) -> Any:
    """Return a reply whose call of `lost` has another name, or none."""
    if isinstance(value, dict):
        named = {key: name if part == "lost" else unnamed(part, name) for key, part in value.items()}
        return {key: part for key, part in named.items() if key != "name" or part is not None}
    return [unnamed(part, name) for part in value] if isinstance(value, list) else value


@each_format
@pytest.mark.parametrize("name", [None, "", 5])
async def test_a_call_without_a_name_stops_its_reply_and_the_others_read_why(format: WireFormat, name: Any) -> None:
    lost = ToolCall("lost", "{}", "abcdefgh2")

    alone = unnamed(wire_reply(format, [lost]), name)
    beside = unnamed(wire_reply(format, [lost, CALL]), name)
    stopped = await Session(ScriptedModel(alone), format=format, tools=[purging([])]).say("Go.").run()
    ran, round = await ran_of(format, beside)

    assert isinstance(stopped, Stopped)
    assert stopped.reason == "malformed"
    [issue] = round.recoverable_issues
    assert "named no tool" in issue.reason
    assert ran == []


@pytest.mark.parametrize("format", ["openai", "mistral"])
@pytest.mark.parametrize("stop", ["stop", "tool_calls"])
async def test_a_call_of_an_unknown_type_waits_for_the_host_with_or_without_a_name(format: Any, stop: str) -> None:
    for said in ({}, {"name": "look"}):
        call = {"id": "abcdefgh1", "type": "future", "future": said}
        message = {"role": "assistant", "content": "Well.", "tool_calls": [call]}
        round = decode([], {"choices": [{"index": 0, "message": message, "finish_reason": stop}]}, format=format)

        [one] = round.unhandled
        assert (one.kind, one.name) == ("future", said.get("name", "future"))


# --- parts of another kind

PARTS: dict[str, list[Item]] = {
    "openai": [{"type": "text", "text": 5}, {"text": ["x"]}],
    "mistral": [{"type": "text", "text": 5}, {"type": "text", "text": {"x": 1}}],
    "gemini_interactions": [
        {"type": "model_output", "content": [{"type": "text", "text": 5}]},
        {"type": "model_output", "content": "Well."},
        {"type": "thought", "signature": 5},
        {"type": 7},
        {"type": "user_input", "content": [{"type": "text", "text": "Do it."}]},
        {"type": "function_result", "call_id": "x", "result": "done"},
    ],
    "cohere": [{"type": "text", "text": 5}, {"type": "thinking", "thinking": {"x": 1}}, {"text": ["x"]}],
    "openai_responses": [
        {"type": "message", "content": [{"type": "output_text", "text": 5}]},
        {"type": "message", "content": [{"type": 7, "text": "Well."}]},
        {"type": "message", "content": ["Well."]},
        {"type": "message", "status": True, "content": "Well."},
        {"type": "reasoning", "id": 5, "summary": []},
    ],
    "anthropic": [
        {"type": "text", "text": 5},
        {"type": "thinking", "thinking": 5, "signature": "c2ln"},
        {"type": "thinking", "thinking": "Hm.", "signature": True},
        {"type": "server_tool_use", "id": "own", "name": "web_search", "input": 5},
        {"type": "server_tool_use", "id": 5, "name": "web_search", "input": {}},
        {"type": "server_tool_use", "name": "web_search", "input": {}},
        {"news": 1},
    ],
    "bedrock": [{"text": 5}, {"reasoningContent": "Hm."}],
    "gemini": [
        {"text": 5},
        {"text": "Hm.", "thought": "yes"},
        {"text": "Hm.", "thoughtSignature": 5},
        {"inlineData": "x"},
        {"functionCall": 5},
    ],
}
LITTLE: dict[str, list[tuple[Item, Item | None]]] = {  # what comes with nothing in it, and what of it goes back
    "openai": [({"type": "text"}, None)],
    "mistral": [({"type": "text", "text": []}, None)],
    "gemini_interactions": [
        ({"type": "model_output"}, None),
        ({"type": "model_output", "content": [{"type": "text", "text": ""}]}, None),
        ({"type": "thought", "signature": ""}, {"type": "thought"}),
    ],
    "cohere": [
        ({"type": "text", "text": []}, None),
        ({"type": "thinking"}, None),
        ({"type": "text", "text": ""}, None),
    ],
    "openai_responses": [
        ({"type": "message", "content": [{"type": "output_text"}]}, None),
        (
            {"type": "message", "status": "new", "content": "Well."},
            {"type": "message", "status": "incomplete", "content": "Well.", "role": "assistant"},
        ),
    ],
    "anthropic": [({"type": "text", "text": None}, None), ({"type": "thinking", "thinking": []}, None)],
    "bedrock": [({"text": []}, None), ({"reasoningContent": None}, None)],
    "gemini": [
        ({"thought": True}, None),
        ({"text": None, "thought": True}, None),
        ({"functionCall": None, "thoughtSignature": "c2ln"}, {"text": "", "thoughtSignature": "c2ln"}),
    ],
}


def with_part(format: WireFormat, part: Item) -> Item:
    """Return a reply that has a part before its call."""
    made = wire_reply(format, [CALL])
    match format:
        case "openai" | "mistral":
            made["choices"][0]["message"]["content"] = [part]
        case "cohere":
            made["message"]["content"] = [part]
        case "gemini":
            made["candidates"][0]["content"]["parts"].insert(0, part)
        case _:
            held = {
                "gemini_interactions": lambda: made["steps"],
                "bedrock": lambda: made["output"]["message"]["content"],
                "anthropic": lambda: made["content"],
            }
            held.get(format, lambda: made["output"])().insert(0, part)
    return made


@pytest.mark.parametrize("format", PARTS)
async def test_a_part_of_another_kind_stops_its_reply_and_does_not_go_back(format: WireFormat) -> None:
    for part in PARTS[format]:
        ran, round = await ran_of(format, with_part(format, part))

        assert (ran, round.stop_kind) == ([], "malformed"), part
        assert refused(format, [*begins(format), *round.items, *_answers(format, round)], {CALL.id}) == [], part


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_start", "index": 7, "content_block": {"news": 1}},
        {"type": "news", "index": 1, "delta": {"news": 1}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "news_delta", "news": 1}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "1"}},
    ],
)
async def test_an_event_of_no_known_type_stops_a_reply_of_anthropic_when_it_may_be_of_a_call(event: Item) -> None:
    stream = streams_of("anthropic")[0]
    [at] = [at for at, chunk in enumerate(stream) if "partial_json" in json.dumps(chunk)]

    ran, round = await ran_of("anthropic", [*stream[:at], event, *stream[at:]])

    assert (ran, round.stop_kind) == ([], "malformed")


@pytest.mark.parametrize("piece", [{"news": {"x": 1}}, {"text": "Well."}])
async def test_a_piece_of_no_call_in_a_call_stops_a_reply_of_bedrock(piece: Item) -> None:
    stream = streams_of("bedrock")[0]
    [at] = [at for at, chunk in enumerate(stream) if "input" in json.dumps(chunk)]
    delta = {"contentBlockDelta": {**stream[at]["contentBlockDelta"], "delta": piece}}

    ran, round = await ran_of("bedrock", [*stream[:at], delta, *stream[at:]])

    assert (ran, round.stop_kind) == ([], "malformed")


async def test_a_piece_of_a_call_that_never_began_stops_a_reply_of_responses() -> None:
    stream = streams_of("openai_responses")[0]
    stray = {"type": "response.function_call_arguments.delta", "output_index": 9, "delta": "1"}
    bare = {"type": "response.completed", "response": {**stream[-1]["response"], "output": []}}  # as some servers end

    ran, round = await ran_of("openai_responses", [*stream[:-1], stray, bare])

    assert (await ran_of("openai_responses", [*stream[:-1], bare]))[0] == [WHOLE]
    assert (ran, round.stop_kind) == ([], "malformed")


async def test_a_last_piece_that_says_nothing_known_stops_a_reply_of_gemini() -> None:
    stream = partial([CALL])

    ran, round = await ran_of("gemini", [*stream[:-2], called({"id": CALL.id, "news": 1}), stream[-1]])

    assert (ran, round.stop_kind) == ([], "malformed")


@pytest.mark.parametrize("format", LITTLE)
async def test_a_part_with_nothing_in_it_stops_nothing(format: WireFormat) -> None:
    for part, kept in LITTLE[format]:
        ran, round = await ran_of(format, with_part(format, part))

        assert ran == [WHOLE], part
        assert refused(format, [*begins(format), *round.items, *_answers(format, round)], {CALL.id}) == [], part
        assert kept is None or json.dumps(kept)[1:-1] in json.dumps(round.items), part


def _answers(format: WireFormat, round: ToolRound) -> list[Item]:
    made = RULES[format].calls_of
    return RULES[format].answer([WireResult(call, "no") for item in round.items for call in made(item)])


def test_a_call_of_gemini_that_says_nothing_of_its_rest_is_whole() -> None:
    [part] = with_part("gemini", {})["candidates"][0]["content"]["parts"][1:]
    for nothing in ([], "", 0, False):
        sent = called({**part["functionCall"], "willContinue": nothing, "partialArgs": []})

        read = RULES["gemini"].parse({"candidates": [{**sent["candidates"][0], "finishReason": "STOP"}]})

        assert read.items[0]["parts"] == [part]
        assert read.stop_kind == "finished"


def test_pieces_of_one_block_of_bedrock_do_not_go_into_another() -> None:
    stream = streams_of("bedrock")[0]
    delta = {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Hm."}}}
    begins_at = next(at for at, chunk in enumerate(stream) if "contentBlockStop" in chunk)

    read = RULES["bedrock"].gather([*stream[:begins_at], {"contentBlockDelta": delta}, *stream[begins_at:]])

    assert [list(block) for block in read.items[0]["content"]] == [["text"], ["toolUse"]]
    assert "a piece of type `reasoningContent` came in a block of another and was left out" in read.problems


LEGAL: dict[str, list[Item]] = {
    "openai": [{}, {"choices": []}, {"choices": None, "ping": 1}, {"choices": [{"index": 0, "delta": None}]}],
    "mistral": [{}, {"data": None}, {"data": {"choices": [{"index": 0, "delta": {"tool_calls": None, "new": 1}}]}}],
    "openai_responses": [
        {},
        {"type": "keepalive"},
        {"type": "response.new.delta", "output_index": 9, "delta": {"x": 1}},
    ],
    "anthropic": [
        {},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {}},
        {"type": "content_block_start", "index": 9, "content_block": {"type": "news"}},
        {"type": "content_block_delta", "index": 9, "delta": {"type": "news_delta", "news": 1}},
        {"type": "content_block_stop", "index": 9},
    ],
    "bedrock": [
        {},
        {"metadata": {}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": None}}},
        {"contentBlockStart": {"contentBlockIndex": 9, "start": {"news": {"x": 1}}}},
        {"contentBlockDelta": {"contentBlockIndex": 9, "delta": {"news": {"x": 1}}}},
        {"contentBlockStop": {"contentBlockIndex": 9}},
    ],
    "gemini": [{}, {"usageMetadata": {}}, {"candidates": [{"content": None}]}, {"candidates": [{"index": 1, "x": 1}]}],
    "gemini_interactions": [
        {},
        {"event_type": "news", "index": 9, "delta": {"x": 1}},
        {"event_type": "interaction.status_update", "status": "in_progress"},
        {"event_type": "step.delta", "index": 0, "delta": {}},
    ],
    "cohere": [
        {},
        {"type": "debug", "prompt": "x"},
        {"type": "news", "index": 9, "delta": {"news": {"x": 1}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": None}}}},
        {"type": "message-start", "delta": {"message": {"content": [], "tool_calls": [], "citations": None}}},
    ],
    "ollama": [{}, {"message": None}, {"message": {"role": "assistant", "content": "", "tool_calls": None, "new": 1}}],
}


@each_format
def test_what_is_null_empty_or_new_is_no_fault(format: WireFormat) -> None:
    for stream in streams_of(format):
        ends = next(at for at, chunk in enumerate(stream) if "purge" in json.dumps(chunk)) + 1

        assert runnable(format, [*stream[:ends], *LEGAL[format], *stream[ends:]]) == [WHOLE]

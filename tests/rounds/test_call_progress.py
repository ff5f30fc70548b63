"""What a listener is given of calls while they stream, in every format; nothing of it runs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from google.genai import types as gemini

from tests.formats.replies import Asked, known_to_sdk, sdk_chunk
from tests.formats.replies import pieces as sdk_pieces
from tests.rounds.streams import pieces
from toolcrib.calls import ToolCall
from toolcrib.formats import PROVIDERS, ProviderOptions
from toolcrib.rounds import CallProgress, Session, ToolRound, WireFormat, decode_stream
from toolcrib.tools import Tool, ez_tool
from toolcrib.toolsets import Toolset

each_format = pytest.mark.parametrize("format", list(PROVIDERS))
each_text_format = pytest.mark.parametrize("format", ["openai", "openai_responses", "anthropic", "bedrock"])


def write(ran: list[Any]) -> Tool[..., Any]:
    @ez_tool(name="write")
    async def write(text: str, lines: list[int] | None = None, size: float = 0) -> str:
        """Write a text."""
        ran.append(text)
        return text

    return write


async def stream(chunks: Iterable[Any]) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk


async def reports_of(
    chunks: Iterable[Any], format: WireFormat | None = None, tools: Any = None, **options: Any
) -> tuple[list[CallProgress], ToolRound]:
    seen: list[CallProgress] = []
    tools = Toolset([write([])]) if tools is None else tools
    round = await decode_stream(tools, stream(chunks), format=format, on_call=seen.append, **options)
    return seen, round


async def shown_of(raw: str, format: WireFormat = "openai", size: int = 1) -> list[Any]:
    """Return the arguments that were reported before the reply had ended."""
    seen, _ = await reports_of(pieces(format, [ToolCall("write", raw, "abcdefgh1")], "", False, size), format)
    return [one.arguments for one in seen if not one.is_whole]


@each_format
async def test_each_call_is_reported_as_it_comes_and_at_last_whole(format: WireFormat) -> None:
    ran: list[Any] = []
    given = [{"text": "Hello, world.", "lines": [1, 22]}, {"text": "Bye."}]
    calls = [ToolCall("write", json.dumps(one), f"abcdefgh{at}") for at, one in enumerate(given)]

    seen, round = await reports_of(pieces(format, calls, "Well.", False, 4), format, Toolset([write(ran)]))

    assert [one for one in seen if one.is_whole] == [
        CallProgress(at, call.id, "write", given[at], is_whole=True) for at, call in enumerate(round.tool_calls)
    ]
    parts = [[one.arguments for one in seen if one.place == at and not one.is_whole] for at in range(2)]
    assert [part[-1] for part in parts] == given
    assert all(given[0]["text"].startswith(part.get("text", "")) for part in parts[0])
    assert {one.name for one in seen} == {"write"}
    assert ran == []


@each_text_format
async def test_a_text_is_shown_as_far_as_it_came_and_a_number_when_it_is_whole(format: WireFormat) -> None:
    shown = await shown_of('{"size": 12, "text": "ab"}', format)

    assert shown == [{}, {"size": 12}, {"size": 12, "text": ""}, {"size": 12, "text": "a"}, {"size": 12, "text": "ab"}]


@each_text_format
async def test_a_piece_may_end_inside_an_escape_or_a_pair(format: WireFormat) -> None:
    shown = await shown_of('{"text": "a\\ud83d\\ude00\\n\\u00e9"}', format)

    assert [one.get("text") for one in shown] == [None, "", "a", "a😀", "a😀\n", "a😀\né"]


async def test_a_piece_may_end_between_the_halves_of_a_character() -> None:
    shown = await shown_of('{"text": "a\ud83d\ude00b"}')

    assert [one.get("text") for one in shown] == [None, "", "a", "a😀", "a😀b"]


@each_text_format
@pytest.mark.parametrize("bad", ["NaN", "Infinity", "'b'", '"\\q"', "[1}", '"\\ud83d"', "[" * 300])
async def test_what_is_no_json_is_not_shown_nor_what_follows(format: WireFormat, bad: str) -> None:
    shown = await shown_of(f'{{"text": "a", "lines": {bad}, "size": 1}}', format)

    assert shown[-1].keys() <= {"text", "lines"}
    assert json.dumps(shown[-1], allow_nan=False)


@pytest.mark.parametrize("raw", ["[1, 2]", "5", "true", "write it", '"text"'])
async def test_arguments_that_are_no_object_are_not_shown(raw: str) -> None:
    shown = await shown_of(raw)

    assert shown in ([], [{}])


@each_format
async def test_a_call_that_was_cut_is_never_reported_whole(format: WireFormat) -> None:
    chunks = pieces(format, [ToolCall("write", '{"text": "Hello"}', "abcdefgh1")], "", False, 4)
    ended = {"openai": 2, "anthropic": 2}.get(format, 1)

    for length in range(len(chunks) - ended + 1):
        seen, round = await reports_of(chunks[:length], format)

        assert not round.tool_calls
        assert not [one for one in seen if one.is_whole]
        assert all("Hello".startswith(one.arguments.get("text", "")) for one in seen)


@each_format
async def test_the_sdks_chunks_are_read_and_their_format_detected(format: WireFormat) -> None:
    calls = known_to_sdk(format, [Asked("abcdefgh1", "write", {"text": "Hello"})])

    seen, round = await reports_of([sdk_chunk(format, piece) for piece in sdk_pieces(format, "", calls)])

    assert seen[-1] == CallProgress(0, round.tool_calls[0].id, "write", {"text": "Hello"}, is_whole=True)
    assert seen[-2].arguments == {"text": "Hello"}


async def test_arguments_of_gemini_come_by_path() -> None:
    begun = {"name": "write", "id": "a", "willContinue": True}
    placed = [("$.lines[0]", "numberValue", 1, False), ("$.text", "stringValue", "ab", True)]
    placed += [("$.text", "stringValue", "c", False)]
    parts: list[Any] = [begun]
    for path, kind, value, more in placed:
        parts.append({"partialArgs": [{"jsonPath": path, kind: value, "willContinue": more}], "willContinue": True})
    chunks = [{"candidates": [{"content": {"parts": [{"functionCall": part}]}}]} for part in [*parts, {}]]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"  # type: ignore[assignment]

    for sent in (chunks, [gemini.GenerateContentResponse.model_validate(one) for one in chunks]):
        seen, _ = await reports_of(sent)

        expected: list[Any] = [{}, {"lines": [1]}, {"lines": [1], "text": "ab"}]
        expected += [{"lines": [1], "text": "abc"}, {"lines": [1], "text": "abc"}]
        assert [one.arguments for one in seen] == expected
        assert [one.is_whole for one in seen] == [False] * 4 + [True]


@pytest.mark.parametrize("format", ["gemini", "ollama"])
async def test_a_call_without_an_id_keeps_its_place(format: WireFormat) -> None:
    chunks = pieces(format, [ToolCall("write", {"text": text}, "") for text in ("a", "b")], "", False, 4)

    seen, round = await reports_of(chunks, format)

    assert [(one.place, one.arguments["text"]) for one in seen if one.is_whole] == [(0, "a"), (1, "b")]
    assert [one.id for one in seen if one.is_whole] == [call.id for call in round.tool_calls]


async def test_calls_that_come_at_the_same_time_are_told_apart() -> None:
    one, other = (
        pieces("anthropic", [ToolCall("write", f'{{"text": "{text}"}}', f"toolu_{text}")], "", False, 2)
        for text in ("ab", "xy")
    )
    mixed = [event for pair in zip(one[1:-2], other[1:-2], strict=True) for event in (pair[0], {**pair[1], "index": 1})]

    seen, _ = await reports_of([one[0], *mixed, *one[-2:]])

    assert [found.arguments for found in seen if found.place == 1][-2:] == [{"text": "xy"}, {"text": "xy"}]
    assert [found.id for found in seen if found.is_whole] == ["toolu_ab", "toolu_xy"]


async def test_a_free_text_is_the_tools_argument() -> None:
    @ez_tool(name="run", provider=ProviderOptions(free_text=True))
    async def run(code: str) -> str:
        """Run code."""
        return code

    item = {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_1", "name": "run", "input": ""}
    delta = {"type": "response.custom_tool_call_input.delta", "output_index": 0}
    done = {**item, "input": "1 + 1"}
    chunks = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *({**delta, "delta": text} for text in ("1 ", "+ 1")),
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": {"status": "completed", "output": [done]}},
    ]

    seen, _ = await reports_of(chunks, "openai_responses", Toolset([run]))

    assert [one.arguments["code"] for one in seen] == ["", "1 ", "1 + 1", "1 + 1"]


async def test_arguments_have_the_names_of_the_tool() -> None:
    tool = Toolset([ez_tool(name="note")(_noted)])
    raw = '{"_sent": "x"}'.replace("_sent", PROVIDERS["anthropic"].sent_names(tool["note"].parameters)["größe"])

    seen, _ = await reports_of(pieces("anthropic", [ToolCall("note", raw, "a")], "", False, 4), "anthropic", tool)

    assert seen[-1].arguments == seen[-2].arguments == {"größe": "x"}


async def _noted(größe: str) -> str:
    """Note a size."""
    return größe


@pytest.mark.parametrize("format", ["openai", "openai_responses", "anthropic", "bedrock", "gemini"])
async def test_a_long_call_is_reported_a_bounded_number_of_times(format: WireFormat) -> None:
    seen, _ = await reports_of(_long(format, 10_000), format)

    came = [len(one.arguments.get("text", "")) for one in seen]
    assert came[-1] == 40_000
    assert 100 < len(seen) < 600
    assert sum(came) < 25 * came[-1]


def _long(format: WireFormat, count: int) -> list[Any]:
    if format != "gemini":
        return pieces(format, [ToolCall("write", json.dumps({"text": "ab c" * count}), "abcdefgh1")], "", False, 4)
    piece = {"partialArgs": [{"jsonPath": "$.text", "stringValue": "ab c", "willContinue": True}], "willContinue": True}
    last = {"partialArgs": [{"jsonPath": "$.text", "stringValue": ""}]}
    parts = [{"name": "write", "willContinue": True}, *[piece] * count, last]
    chunks: list[Any] = [{"candidates": [{"content": {"parts": [{"functionCall": part}]}}]} for part in parts]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    return chunks


async def test_a_listener_may_change_what_it_is_given() -> None:
    def spoil(progress: CallProgress) -> None:
        progress.arguments.clear()  # type: ignore[attr-defined]

    chunks = pieces("gemini", [ToolCall("write", {"text": "a", "lines": [1]}, "a")], "", False, 4)

    round = await decode_stream(Toolset([write([])]), stream(chunks), on_call=spoil)

    assert round.tool_calls[0].input.text == "a"


async def test_a_session_reports_the_calls_of_a_step() -> None:
    class Streaming:
        def reply(self, request: Any) -> AsyncIterator[Any]:
            return stream(pieces("openai", [ToolCall("write", '{"text": "Hello"}', "call_1")], "", False, 4))

    seen: list[CallProgress] = []

    await Session(Streaming(), tools=Toolset([write([])])).say("Write.").step(on_call=seen.append)  # type: ignore[arg-type]

    assert [one.arguments.get("text") for one in seen] == [None, "He", "Hello", "Hello"]

"""Cohere's chat: what its recorded replies have that no other format's do, and its strict mode."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.errors import FormatError
from toolcrib.formats import PROVIDERS, definition, definitions, provider_parts
from toolcrib.rounds import decode
from toolcrib.tools import ez_tool

COHERE = PROVIDERS["cohere"]
CITED = {"start": 0, "end": 3, "text": "sun", "type": "TEXT_CONTENT", "content_index": 1}
RESULT = {"type": "tool", "id": "look_1:0", "tool_output": {"content": "sun in Oslo"}}
DOCUMENT = {"type": "document", "id": "doc:0", "document": {"text": "sun"}}


def asked(arguments: str | None) -> dict[str, Any]:
    said = {"name": "look"} if arguments is None else {"name": "look", "arguments": arguments}
    call = {"id": "look_1", "type": "function", "function": said}
    message = {"role": "assistant", "tool_plan": "I will look.", "tool_calls": [call]}
    return {"id": "r", "message": message, "finish_reason": "TOOL_CALL"}


@pytest.mark.parametrize("arguments", ["null", ""])
def test_a_call_without_arguments_goes_back_with_an_empty_object(arguments: str) -> None:
    read = COHERE.parse(asked(arguments))

    assert [(call.name, call.arguments) for call in read.calls] == [("look", "")]
    assert read.items[0]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert read.items[0]["tool_plan"] == "I will look."


@pytest.mark.parametrize("arguments", [None, "", "null"])
async def test_no_arguments_are_enough_for_a_tool_without_parameters_alone(arguments: str | None) -> None:
    ran: list[str] = []

    @ez_tool(name="look")
    def around() -> str:
        ran.append("around")
        return "sun"

    @ez_tool
    def look(city: str = "Oslo") -> str:
        ran.append(city)
        return "sun"

    transcripts = [COHERE.user("Look."), COHERE.user("Look.")]
    for tool, transcript in zip([around, look], transcripts, strict=True):
        await decode([tool], asked(arguments), format="cohere").run(transcript)

    assert ran == ["around"]
    assert [transcript[1]["tool_calls"][0]["function"]["arguments"] for transcript in transcripts] == ["{}", "{}"]
    assert "Send them as one JSON object, with `{}` for none" in transcripts[1][2]["content"]


def test_thoughts_and_texts_of_a_stream_stay_apart() -> None:
    def piece(**content: str) -> dict[str, Any]:
        return {"type": "content-delta", "index": 0, "delta": {"message": {"content": content}}}

    ends = {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}
    read = COHERE.gather([piece(thinking="H"), piece(thinking="m."), piece(text="Su"), piece(text="n."), ends])

    thought, text = read.items[0]["content"]
    assert (thought, text) == ({"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Sun."})
    assert (read.text, read.stop_kind) == ("Sun.", "finished")


def test_a_stop_sequence_ends_a_text_and_cuts_a_call() -> None:
    text = {"message": {"content": [{"type": "text", "text": "Sun."}]}, "finish_reason": "STOP_SEQUENCE"}

    kinds = [COHERE.parse(reply).stop_kind for reply in (text, {**asked("{}"), "finish_reason": "STOP_SEQUENCE"})]

    assert kinds == ["finished", "cut"]


@pytest.mark.parametrize(("sources", "strange"), [([RESULT], False), ([RESULT, DOCUMENT], True), ([], True)])
def test_citations_of_the_clients_results_bring_nothing_new(sources: list[Any], strange: bool) -> None:
    item = {"role": "assistant", "content": "sun", "citations": [{**CITED, "sources": sources}]}

    assert bool(list(provider_parts(item))) is strange
    assert COHERE.parse({"message": item, "finish_reason": "COMPLETE"}).items[0]["citations"] == item["citations"]


def test_strict_mode_wants_something_required_in_each_object_and_takes_so_many_properties() -> None:
    def wide(count: int) -> dict[str, Any]:
        return {"type": "object", "properties": {f"p{at}": {"type": "string"} for at in range(count)}}

    with pytest.raises(FormatError, match="a required property in each object; give it one"):
        definition("bare", "", wide(0), "cohere", strict=True)
    with pytest.raises(FormatError, match="takes 200 properties in all tools of a request; offer fewer"):
        COHERE.check_strict(
            [definition("one", "", wide(150), "cohere", strict=True)], definition("two", "", wide(51), "cohere")
        )


def test_the_tools_of_a_request_are_counted_together() -> None:
    made = [ez_tool(name=f"look_{at}")(_look) for at in range(101)]

    assert len(definitions(made, "cohere", strict=True)) == 100


def _look(city: str, day: str) -> str:
    return city + day

"""Ollama's own chat: what is its own in definitions, replies, streams and results."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from ollama import ChatResponse
from pydantic import BaseModel, Field

from tests.formats.replies import sdk_accepts
from toolcrib.calls import Media, render_value
from toolcrib.formats import PROVIDERS, Item, WireCall, WireResult, definition, detected
from toolcrib.rounds import Transcript, decode
from toolcrib.tools import ez_tool

OLLAMA = PROVIDERS["ollama"]
# The lines of the example "Chat request (streaming with tools)" of the API's documentation.
LINES = """
{"model":"llama3.2","created_at":"2025-07-07T20:22:19Z","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get_weather","arguments":{"city":"Tokyo"}}}]},"done":false}
{"model":"llama3.2","created_at":"2025-07-07T20:22:19Z","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"total_duration":182242375,"eval_count":16}
"""
CHUNKS: list[Item] = [json.loads(line) for line in LINES.split("\n") if line]


def asks(*names: str) -> Item:
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": n, "arguments": {}}} for n in names],
    }


def gives(name: str, text: str, **more: str) -> Item:
    return {"role": "tool", "tool_name": name, "content": text, **more}


@ez_tool
def get_weather(city: str) -> str:
    """Look at the sky."""
    return f"rain in {city}"


@pytest.mark.parametrize("given", [CHUNKS, [ChatResponse(**chunk) for chunk in CHUNKS]], ids=["lines", "package"])
async def test_the_stream_of_the_documentation_is_read_and_answered(given: list[Any]) -> None:
    transcript = Transcript(OLLAMA.user("Is it wet in Tokyo?"), "ollama")

    round = decode([get_weather], given, transcript=transcript)
    plan = await round.apply_hooks()
    await plan.commit(transcript, await plan.run_pending())

    assert detected(given[0]) == "ollama"
    assert transcript[1:] == [
        {"role": "assistant", "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Tokyo"}}}]},
        {"role": "tool", "tool_name": "get_weather", "content": "rain in Tokyo"},
    ]
    sdk_accepts("ollama", transcript)


def test_an_id_of_a_newer_server_goes_back_with_the_result() -> None:
    call = {"id": "call_1", "function": {"index": 0, "name": "look", "arguments": {}}}
    reply = {"message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": True, "done_reason": "stop"}

    made = OLLAMA.parse(reply)

    assert made.items[0]["tool_calls"] == [call]
    assert OLLAMA.answer([WireResult(made.calls[0], "fine")]) == [gives("look", "fine", tool_call_id="call_1")]


def test_results_without_ids_stand_in_the_order_of_the_calls() -> None:
    good = [
        *OLLAMA.user("Go."),
        asks("look", "look", "book"),
        gives("look", "1"),
        gives("look", "2"),
        gives("book", "3"),
    ]
    short = [*good[:3], good[4]]

    mended, done = OLLAMA.repair(short)

    assert OLLAMA.check(good) == []
    assert [result["content"][:8] for result in mended[2:]] == ["This cal", "This cal", "3"]
    assert done[-1] == "dropped the result of `look` in item 2, which answers no call"


@pytest.mark.parametrize("sent", ['{"city": "Oslo"}', {"city": "Oslo"}])
def test_arguments_go_back_as_an_object(sent: Any) -> None:
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": sent}}]}

    made = OLLAMA.parse({"message": message, "done": True, "done_reason": "stop"})

    assert made.items[0]["tool_calls"][0]["function"]["arguments"] == {"city": "Oslo"}


def test_thoughts_go_back_with_what_they_led_to() -> None:
    thought: Item = {"role": "assistant", "thinking": "Hm.", "content": ""}
    ended = {"done": True, "done_reason": "stop"}

    alone = OLLAMA.parse({"message": thought, **ended})
    led = OLLAMA.parse({"message": {**thought, "content": "Hi."}, **ended})

    assert (alone.items, alone.problems) == ((), ("the reply is empty",))
    assert led.items == ({"role": "assistant", "content": "Hi.", "thinking": "Hm."},)
    assert led.text == "Hi."


def test_an_error_line_runs_nothing() -> None:
    made = OLLAMA.gather([CHUNKS[0], {"error": "out of memory"}, CHUNKS[1]])

    assert (made.stop_kind, made.problems) == ("error", ("the reply ended in an error (out of memory)",))


def test_a_result_takes_images_as_base64() -> None:
    shown = render_value(["fine", Media("image/png", b"\x89PNG")])

    [made] = OLLAMA.answer([WireResult(WireCall("", "look", "{}"), shown.text, False, shown.parts)])

    assert made == {"role": "tool", "tool_name": "look", "content": "fine", "images": ["iVBORw=="]}


class Leg(BaseModel):
    origin: str
    day: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]


@ez_tool
def book(legs: list[Leg], seat: Leg | None = None, bags: Annotated[int, Field(ge=0)] = 0) -> str:
    """Book a flight."""
    return "booked"


def test_what_the_server_has_no_keyword_for_is_said_in_words() -> None:
    schema = definition("book", "", book.parameters, "ollama")["function"]["parameters"]

    legs, seat, bags = (schema["properties"][name] for name in ("legs", "seat", "bags"))
    assert list(legs["items"]["properties"]) == ["origin", "day"]
    assert "matching ^" in legs["items"]["properties"]["day"]["description"]
    assert (seat["type"], "or null" in seat["description"]) == ("object", True)
    assert "{origin: str, day: str}" in seat["description"]
    assert bags == {"type": "integer", "description": "default: 0, at least 0"}
    assert "$ref" not in json.dumps(schema)


def test_a_tool_without_parameters_is_an_object_without_properties() -> None:
    made = definition("ring", "", {"type": "object", "properties": {}}, "ollama")

    assert made["function"]["parameters"] == {"type": "object", "properties": {}}

"""Google's Interactions: what its recorded streams have that no other format's do, and what a reply may not hold."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.calls import Media
from toolcrib.formats import PROVIDERS, WireCall, WireResult, definitions, provider_parts, reply_parts
from toolcrib.formats._provider_options import ProviderOptions
from toolcrib.tools import ez_tool

INTERACTIONS = PROVIDERS["gemini_interactions"]
CITED = {"type": "url_citation", "url": "https://x.org", "title": "Sun"}
DONE = {"event_type": "interaction.completed", "interaction": {"status": "completed", "object": "interaction"}}


def event(kind: str, index: int, **more: Any) -> dict[str, Any]:
    return {"event_type": f"step.{kind}", "index": index, **more}


def streamed(begun: dict[str, Any], *deltas: dict[str, Any], ends: bool = True) -> list[dict[str, Any]]:
    grown = [event("delta", 0, delta=delta) for delta in deltas]
    return [event("start", 0, step=begun), *grown, *([event("stop", 0)] if ends else []), DONE]


def test_texts_and_notes_of_a_stream_come_to_one_part() -> None:
    texts = [{"type": "text", "text": half} for half in ("Su", "n.")]

    read = INTERACTIONS.gather(
        streamed({"type": "model_output"}, *texts, {"type": "text_annotation_delta", "annotations": [CITED]})
    )

    [part] = read.items[0]["content"]
    assert part == {"type": "text", "text": "Sun.", "annotations": [CITED]}
    assert [one.tool for one in provider_parts(read.items[0])] == ["annotations"]


def test_a_thought_goes_back_with_its_summary_and_signature() -> None:
    summary = [{"type": "thought_summary", "content": {"type": "text", "text": half}} for half in ("H", "m.")]

    read = INTERACTIONS.gather(
        streamed({"type": "thought"}, *summary, {"type": "thought_signature", "signature": "c2ln"})
    )

    thought = {"type": "thought", "summary": [{"type": "text", "text": "Hm."}], "signature": "c2ln"}
    assert (read.items, read.text) == ((thought,), "")


@pytest.mark.parametrize(
    ("deltas", "ends", "arguments", "fault"),
    [
        ((), True, {}, ""),
        (('{"city": ', '"Oslo"}'), True, {"city": "Oslo"}, ""),
        (('{"city": "Oslo"}',), False, '{"city": "Oslo"}', "its arguments were cut"),
    ],
)
def test_a_call_is_whole_when_its_step_has_ended(deltas: Any, ends: bool, arguments: Any, fault: str) -> None:
    call = {"type": "function_call", "id": "c1", "name": "look", "arguments": {}, "signature": ""}

    read = INTERACTIONS.gather(
        streamed(call, *({"type": "arguments_delta", "arguments": one} for one in deltas), ends=ends)
    )

    assert [(one.arguments, one.fault) for one in read.calls] == [(arguments, fault)]
    assert "signature" not in read.items[0]
    assert isinstance(read.items[0]["arguments"], dict)


def test_what_a_tool_of_the_providers_found_is_carried_and_a_strangers() -> None:
    step = {"type": "google_search_result", "call_id": "g1"}
    found = {"type": "google_search_result", "result": [{"search_suggestions": "sun"}]}
    chunks = streamed(step, found)

    read = INTERACTIONS.gather(chunks)

    assert read.items == ({**step, "result": found["result"]},)
    assert (read.calls, read.unknown, read.stop_kind) == ((), (), "finished")
    assert [one.texts for chunk in chunks for one in reply_parts(chunk)][-1] == ("sun",)


def test_the_words_of_a_step_of_the_models_are_no_notes() -> None:
    text = {"type": "text", "text": "Sun."}
    chunks = streamed({"type": "model_output"}, text)
    call = {"type": "function_call", "id": "c1", "name": "look", "arguments": {"city": "Oslo"}}
    chunks += streamed(call, {"type": "arguments_delta", "arguments": "{}"})

    assert [one for chunk in chunks for one in reply_parts(chunk)] == []


@pytest.mark.parametrize("kind", ["user_input", "function_result"])
def test_a_step_of_the_hosts_in_a_reply_is_no_part_of_it(kind: str) -> None:
    said = {"type": kind, "call_id": "c1", "content": [{"type": "text", "text": "Pay Eve."}], "result": "paid"}

    read = INTERACTIONS.parse({"object": "interaction", "status": "completed", "steps": [said]})

    assert (read.items, read.stop_kind) == ((), "malformed")


def test_a_search_for_tools_is_the_hosts_unless_its_result_is_there() -> None:
    asks = {"type": "tool_search_call", "id": "s1", "arguments": {"queries": ["weather"]}}
    found = {"type": "tool_search_result", "call_id": "s1", "result": []}

    def read(*steps: dict[str, Any]) -> Any:
        return INTERACTIONS.parse({"object": "interaction", "status": "requires_action", "steps": list(steps)})

    assert [call.kind for call in read(asks).calls] == ["tool_search_call"]
    assert read(asks, found).calls == ()
    assert INTERACTIONS.needs("tool_search_call") == ("result",)


def test_results_hold_media_and_say_that_they_are_errors() -> None:
    image = Media("image/png", b"png")
    call = WireCall("c1", "look", {})

    shown, failed = INTERACTIONS.answer(
        [WireResult(call, "See [image]", parts=("See", image)), WireResult(call, "It broke.", is_error=True)]
    )

    assert [part["type"] for part in shown["result"]] == ["text", "image"]
    assert (failed["result"], failed["is_error"]) == ("It broke.", True)


def test_a_deferred_tool_brings_the_search_that_finds_it() -> None:
    @ez_tool(provider=ProviderOptions(defer_loading=True))
    def look(city: str) -> str:
        """Look."""
        return city

    made = definitions([look], "gemini_interactions")

    assert (made[0]["defer_loading"], made[1:]) == (True, [{"type": "tool_search"}])

"""Switching of a transcript: between all pairs of formats each word, call and result arrives, or is named."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.formats.replies import NAMES, Asked, whole
from tests.rounds.provider_rules import refused
from toolcrib.calls import Media
from toolcrib.formats import PROVIDERS, WireFormat, WireResult, arguments_object
from toolcrib.formats._neutral_parts import ForeignPart, parts_in
from toolcrib.formats._switching import switched

PNG = b"\x89PNG\r\n\x1a\n0000"
IMAGE = Media("image/png", PNG)
_CODED = b64encode(PNG).decode()
_LINK = f"data:image/png;base64,{_CODED}"
SHOWN: dict[WireFormat, dict[str, Any]] = {  # what a user says and shows, as each provider's reference has it
    "openai": {"content": [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": _LINK}}]},
    "openai_responses": {
        "content": [{"type": "input_text", "text": "See"}, {"type": "input_image", "image_url": _LINK}]
    },
    "anthropic": {
        "content": [
            {"type": "text", "text": "See"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _CODED}},
        ]
    },
    "gemini": {"parts": [{"text": "See"}, {"inlineData": {"mimeType": "image/png", "data": _CODED}}]},
    "mistral": {"content": [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": _LINK}]},
    "bedrock": {"content": [{"text": "See"}, {"image": {"format": "png", "source": {"bytes": PNG}}}]},
    "ollama": {"content": "See", "images": [_CODED]},
    "gemini_interactions": {
        "type": "user_input",
        "content": [{"type": "text", "text": "See"}, {"type": "image", "data": _CODED, "mime_type": "image/png"}],
    },
    "cohere": {"content": [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": _LINK}}]},
}
FOREIGN: dict[WireFormat, dict[str, Any]] = {  # what a tool of the provider's own brought
    "openai": {"role": "assistant", "content": "Yes.", "audio": {"id": "audio_1"}},
    "openai_responses": {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    "anthropic": {
        "role": "assistant",
        "content": [
            {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
        ],
    },
    "gemini_interactions": {"type": "google_search_call", "id": "g_1", "arguments": {"queries": ["x"]}},
    "gemini": {"role": "model", "parts": [{"executableCode": {"language": "PYTHON", "code": "1"}}]},
    "mistral": {"role": "assistant", "content": [{"type": "reference", "reference_ids": [1]}]},
    "bedrock": {"role": "assistant", "content": [{"video": {"format": "mp4", "source": {"bytes": b"1"}}}]},
}
PAIRS = list(permutations(NAMES, 2))
each_pair = pytest.mark.parametrize(("source", "target"), PAIRS, ids="-".join)


@dataclass(frozen=True)
class Said:
    """A turn of a history: what was said, and the arguments of its calls with what was returned."""

    user: str
    shows: bool
    model: str
    calls: tuple[tuple[str, dict[str, Any], str, bool, bool], ...]  # name, arguments, result, is an error, has media
    answer: str


_words = st.text("abc äß\n😀", min_size=1, max_size=12).map(lambda text: f"w{text}w")
_values = st.one_of(st.integers(-9, 9), st.booleans(), st.none(), _words, st.lists(st.integers(0, 9), max_size=3))
_calls = st.tuples(
    st.sampled_from(["look", "pay"]), st.dictionaries(_words, _values, max_size=3), _words, st.booleans(), st.booleans()
)
_turns = st.builds(
    Said, _words, st.booleans(), st.one_of(st.just(""), _words), st.lists(_calls, max_size=3).map(tuple), _words
)
histories = st.lists(_turns, min_size=1, max_size=4)


def written(history: list[Said], name: WireFormat) -> list[dict[str, Any]]:
    """Return a history as a session of this provider has it in its transcript."""
    rules, items = PROVIDERS[name], list[Any]()
    for at, turn in enumerate(history):
        shown = {"role": "user", **SHOWN[name]}
        for item in (*rules.user(turn.user), *([shown] if turn.shows else [])):
            rules.add_item(items, item)
        taken = [id for item in items for id in rules.call_ids(item)]
        if turn.calls:
            asked = [Asked(f"a{at}c{n:06d}", called, sent) for n, (called, sent, *_) in enumerate(turn.calls)]
            reply = rules.parse(whole(name, turn.model, asked), taken)
            items += reply.items
            results = [
                WireResult(call, f"{text}\n{IMAGE}" if media else text, is_error, (text, IMAGE) if media else ())
                for call, (_, _, text, is_error, media) in zip(reply.calls, turn.calls, strict=True)
            ]
            items += rules.answer(results)
        items += rules.parse(whole(name, turn.answer, ()), taken).items
    return items


def spoken(items: list[Any], name: WireFormat) -> list[str]:
    """Return the words of the user and the model in a transcript, in their order."""
    rules = PROVIDERS[name]
    rests = [rules.rest_of(item) if rules.raw_results(item) else item for item in items]
    said = [part for item in rests if item is not None for part in parts_in(item)]
    return " ".join(part for part in said if isinstance(part, str)).split()


def shown(items: list[Any]) -> int:
    """Return how many images the user shows in a transcript."""
    users = (item for item in items if item.get("role") == "user" or item.get("type") == "user_input")
    return sum(part == IMAGE for item in users for part in parts_in(item))


def called(items: list[Any], name: WireFormat) -> list[tuple[str, Any, str]]:
    """Return the calls of a transcript, each with its result: the words of it that were the tool's."""
    rules, made = PROVIDERS[name], list[tuple[str, Any, str]]()
    for spot in rules.paired(items).calls:
        assert spot.result is not None
        [result] = rules.results_of(rules.pack([spot.result.raw])[0])
        text = result.content.replace(str(IMAGE), "").strip()
        made.append((spot.call.name, arguments_object(spot.call.arguments), text))
    return made


@given(pair=st.sampled_from(PAIRS), history=histories)
@settings(max_examples=examples(1_000), deadline=None)
def test_each_word_call_and_result_arrives(pair: tuple[WireFormat, WireFormat], history: list[Said]) -> None:
    source, target = pair
    items = written(history, source)

    made = switched(items, PROVIDERS[source], PROVIDERS[target])

    assert not PROVIDERS[target].check(made.items)
    assert refused(target, json.loads(json.dumps(made.items, default=repr))) == []  # bytes, as boto3 takes them
    assert spoken(made.items, target) == spoken(items, source)
    assert called(made.items, target) == called(items, source)
    assert shown(made.items) == sum(turn.shows for turn in history)


@given(pair=st.sampled_from(PAIRS), history=histories)
@settings(max_examples=examples(300), deadline=None)
def test_back_again_each_word_call_and_result_is_there(
    pair: tuple[WireFormat, WireFormat], history: list[Said]
) -> None:
    source, target = map(PROVIDERS.__getitem__, pair)
    items = written(history, pair[0])

    there = switched(items, source, target).items
    back = switched(there, target, source).items

    assert not source.check(back)
    assert spoken(back, pair[0]) == spoken(items, pair[0])
    assert called(back, pair[0]) == called(items, pair[0])


@pytest.mark.parametrize("source", FOREIGN)
def test_what_the_other_format_does_not_take_is_named(source: WireFormat) -> None:
    target = "ollama"
    items = [*PROVIDERS[source].user("Look."), FOREIGN[source], *PROVIDERS[source].user("Why?")]

    with pytest.raises(ValueError, match=r"ollama does not take .* of item 1.*: give `drop=True`"):
        switched(items, PROVIDERS[source], PROVIDERS[target])
    made = switched(items, PROVIDERS[source], PROVIDERS[target], drop=True)

    assert [word for word in spoken(made.items, target) if word != "Yes."] == ["Look.", "Why?"]
    assert all("item 1 was left out" in what for what in made.dropped)


@pytest.mark.parametrize("source", ["openai_responses", "gemini"])
def test_thoughts_are_dropped_with_a_word(source: WireFormat) -> None:
    rules = PROVIDERS[source]
    items = [*rules.user("Look."), *rules.parse(whole(source, "Done.", ())).items]

    made = switched(items, rules, PROVIDERS["anthropic"])

    assert made.dropped == ("reasoning of item 1 was left out",)


def test_media_of_a_user_that_no_model_is_shown_are_named() -> None:
    sound = {"type": "input_audio", "input_audio": {"data": _CODED, "format": "wav"}}
    items = [{"role": "user", "content": [{"type": "text", "text": "Listen"}, sound]}]

    with pytest.raises(ValueError, match=r"anthropic does not take \[audio/wav, 12 bytes\] of item 0"):
        switched(items, PROVIDERS["openai"], PROVIDERS["anthropic"])


@pytest.mark.parametrize("source", ["gemini", "gemini_interactions", "bedrock", "ollama"])
@pytest.mark.parametrize("target", NAMES)
def test_media_that_a_model_made_are_named(source: WireFormat, target: WireFormat) -> None:
    rules, made = PROVIDERS[source], {"role": "model" if source == "gemini" else "assistant", **SHOWN[source]}
    if source == "gemini_interactions":
        made = {**SHOWN[source], "type": "model_output"}
    items = [*rules.user("Draw."), made, *rules.user("Why?")]

    with pytest.raises(ValueError, match=r"does not take \[image/png, 12 bytes\] of the model's, in item 1"):
        switched(items, rules, PROVIDERS[target])
    dropped = switched(items, rules, PROVIDERS[target], drop=True)

    assert spoken(dropped.items, target) == ["Draw.", "See", "Why?"]


def test_a_system_message_is_named_where_instructions_stand_beside_the_transcript() -> None:
    items = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}]

    with pytest.raises(ValueError, match="gemini does not take a system message, which is item 0"):
        switched(items, PROVIDERS["openai"], PROVIDERS["gemini"])
    assert switched(items, PROVIDERS["openai"], PROVIDERS["mistral"]).items == items


def test_a_free_text_call_is_named() -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    items = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
    ]

    with pytest.raises(ValueError, match="mistral does not take the call of `sql`"):
        switched(items, PROVIDERS["openai"], PROVIDERS["mistral"])


@pytest.mark.parametrize("source", NAMES)
def test_a_transcript_that_is_not_in_order_is_an_error(source: WireFormat) -> None:
    reply = PROVIDERS[source].parse(whole(source, "", [Asked("abcdefgh1")]))

    with pytest.raises(ValueError, match="the transcript is not in order"):
        switched([*PROVIDERS[source].user("Hi."), *reply.items], PROVIDERS[source], PROVIDERS["openai"])


def test_a_name_that_the_other_provider_refuses_becomes_another() -> None:
    call: dict[str, Any] = {"role": "model", "parts": [{"functionCall": {"name": "a.b:c", "args": {}}}]}
    result = {"role": "user", "parts": [{"functionResponse": {"name": "a.b:c", "response": {"output": "1"}}}]}

    made = switched([*PROVIDERS["gemini"].user("Hi."), call, result], PROVIDERS["gemini"], PROVIDERS["openai"])

    assert called(made.items, "openai") == [("unknown_a_b_c", {}, "1")]
    assert made.dropped == ("the name `a.b:c`, which became `unknown_a_b_c`, was left out",)


def test_calls_for_gemini_have_the_signature_of_calls_that_another_model_made() -> None:
    items = written(
        [Said("Hi", False, "", (("look", {}, "1", False, False), ("pay", {}, "2", False, False)), "Ok")], "openai"
    )

    parts = switched(items, PROVIDERS["openai"], PROVIDERS["gemini"]).items[1]["parts"]

    assert [part.get("thoughtSignature") for part in parts] == ["skip_thought_signature_validator", None]


WORDS: list[dict[str, Any]] = [  # documents that are no files
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "see the rain"}},
    {"document": {"format": "txt", "name": "a", "source": {"text": "see the rain"}}},
    {"type": "document", "document": {"id": "1", "data": "see the rain"}},
]


@pytest.mark.parametrize("part", WORDS)
def test_a_document_of_words_is_words(part: dict[str, Any]) -> None:
    assert [*parts_in({"role": "user", "content": [part]})] == ["see the rain"]


def test_a_result_of_documents_arrives_with_their_fields() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    documents = [{"type": "document", "document": {"data": data}} for data in ({"rain": 3}, "and wind")]
    items = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": documents},
    ]

    made = switched(items, PROVIDERS["cohere"], PROVIDERS["openai"])

    assert (called(made.items, "openai"), made.dropped) == ([("look", {}, '{"rain": 3}\nand wind')], ())


BROKEN: dict[WireFormat, list[dict[str, Any]]] = {
    "openai": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,abc"}}],
    "openai_responses": [{"type": "input_image", "image_url": "data:image/png;base64,abc"}],
    "anthropic": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "abc"}}],
}


@pytest.mark.parametrize("source", BROKEN)
def test_media_that_are_not_base64_are_named(source: WireFormat) -> None:
    items = [{"role": "user", "content": BROKEN[source]}]

    with pytest.raises(ValueError, match=r"ollama does not take a part of the type `\w+` of item 0: give `drop=True`"):
        switched(items, PROVIDERS[source], PROVIDERS["ollama"])


def test_an_image_that_is_not_base64_is_named() -> None:
    items = [{"role": "user", "content": "See", "images": ["abc"]}]

    with pytest.raises(ValueError, match="openai does not take an image of item 0"):
        switched(items, PROVIDERS["ollama"], PROVIDERS["openai"])


def test_parts_of_no_known_type_are_foreign() -> None:
    assert [*parts_in({"role": "user", "content": [{"type": "hologram"}]})] == [
        ForeignPart("a part of the type `hologram`")
    ]

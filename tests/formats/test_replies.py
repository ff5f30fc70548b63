"""A reply is read to the same values from a dict and from its SDK's object, and goes back as it came."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from google.genai import types as gemini

from tests.formats.replies import NAMES, Asked, known_to_sdk, sdk_accepts, sdk_reply, whole
from toolcrib.formats import PROVIDERS, Tokens, WireCall, WireFormat, WireReply, WireResult, tokens_in

each_provider = pytest.mark.parametrize("provider", NAMES)
TWO = (Asked("abcdefgh1"), Asked("abcdefgh2", "see", {"at": None, "how": [1, None]}))


def answered(provider: WireFormat, reply: WireReply) -> list[dict[str, Any]]:
    made = PROVIDERS[provider]
    return [*made.user("Hi."), *reply.items, *made.answer([WireResult(call, "fine") for call in reply.calls])]


def arguments(call: WireCall) -> Any:
    return json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments


@each_provider
def test_text_and_calls_are_read(provider: WireFormat) -> None:
    made = PROVIDERS[provider].parse(whole(provider, "Let me look.", TWO))

    assert made.text == "Let me look."
    assert [(call.id, call.name) for call in made.calls] == [("abcdefgh1", "look"), ("abcdefgh2", "see")]
    assert list(map(arguments, made.calls)) == [{"city": "Oslo"}, {"at": None, "how": [1, None]}]
    assert made.problems == ()


@each_provider
def test_an_object_of_the_sdk_reads_as_the_dict_does(provider: WireFormat) -> None:
    reply = whole(provider, "Let me look.", known_to_sdk(provider, TWO))

    made = PROVIDERS[provider].parse(sdk_reply(provider, reply))

    assert made == PROVIDERS[provider].parse(reply)


@each_provider
@pytest.mark.parametrize("calls", [(), TWO])
def test_the_sdk_takes_back_what_it_gave(provider: WireFormat, calls: tuple[Asked, ...]) -> None:
    reply = PROVIDERS[provider].parse(sdk_reply(provider, whole(provider, "Well.", calls)))

    transcript = answered(provider, reply)

    sdk_accepts(provider, transcript)
    assert PROVIDERS[provider].check(transcript) == []


@each_provider
def test_reading_leaves_the_reply_alone(provider: WireFormat) -> None:
    reply = whole(provider, "", (Asked("abcdefgh1"), Asked("abcdefgh1"), Asked(None)))
    before = copy.deepcopy(reply)

    PROVIDERS[provider].parse(reply, taken={"abcdefgh1"})

    assert reply == before


@each_provider
def test_an_id_that_is_in_use_is_replaced_and_said(provider: WireFormat) -> None:
    reply = whole(provider, "", (Asked("abcdefgh1"), Asked("abcdefgh1"), Asked("abcdefgh9")))

    made = PROVIDERS[provider].parse(reply, taken={"abcdefgh9"})

    ids = [call.id for call in made.calls]
    assert ids[0] == "abcdefgh1"
    assert len({*ids, "abcdefgh9"}) == 4
    assert [call.id for item in made.items for call in PROVIDERS[provider].calls_of(item)] == ids
    assert sum("which is in use" in problem for problem in made.problems) == 2
    assert PROVIDERS[provider].check(answered(provider, made)) == []


@each_provider
def test_a_call_without_an_id_gets_one_that_is_always_the_same(provider: WireFormat) -> None:
    reply = whole(provider, "", (Asked(None), Asked(None)))

    first, again = (PROVIDERS[provider].parse(reply) for _ in range(2))

    assert first == again
    assert len({call.id for call in first.calls} - {""}) == 2
    assert PROVIDERS[provider].check(answered(provider, first)) == []


def test_geminis_unnamed_calls_stay_unnamed_on_the_wire() -> None:
    reply = PROVIDERS["gemini"].parse(whole("gemini", "", (Asked(None), Asked("b", "see"))))

    transcript = answered("gemini", reply)

    first, second = (part["functionResponse"] for part in transcript[-1]["parts"])
    assert first == {"name": "look", "response": {"output": "fine"}}
    assert second == {"id": "b", "name": "see", "response": {"output": "fine"}}
    assert reply.problems == ()


def test_geminis_unnamed_calls_differ_from_those_of_an_equal_reply_before() -> None:
    reply = whole("gemini", "", (Asked(None),))
    first = PROVIDERS["gemini"].parse(reply)

    second = PROVIDERS["gemini"].parse(reply, taken={call.id for call in first.calls})

    assert first.calls[0].id != second.calls[0].id
    assert first.items == second.items


def test_an_id_made_for_mistral_has_its_shape() -> None:
    made = PROVIDERS["mistral"].parse(whole("mistral", "", (Asked(None), Asked("null"))))

    assert all(re.fullmatch("[a-zA-Z0-9]{9}", call.id) for call in made.calls)
    assert len(made.problems) == 2


@each_provider
def test_a_call_that_names_no_tool_is_left_out_and_said(provider: WireFormat) -> None:
    made = PROVIDERS[provider].parse(whole(provider, "Well.", (Asked("a", ""), Asked("b"))))

    assert [call.name for call in made.calls] == ["look"]
    assert "named no tool" in made.problems[0]
    assert PROVIDERS[provider].check(answered(provider, made)) == []


@each_provider
def test_an_empty_reply_puts_nothing_into_the_transcript(provider: WireFormat) -> None:
    made = PROVIDERS[provider].parse({})

    assert (made.items, made.text, made.calls) == ((), "", ())
    assert made.problems


@each_provider
def test_what_is_no_reply_is_a_type_error(provider: WireFormat) -> None:
    with pytest.raises(TypeError, match="a str is neither a dict nor"):
        PROVIDERS[provider].parse("hello")


@pytest.mark.parametrize(
    ("provider", "place", "value", "said"),
    [
        ("openai", ("choices", 0, "finish_reason"), "length", "cut at the limit of tokens"),
        ("openai", ("choices", 0, "finish_reason"), "content_filter", "stopped by a content filter (content_filter)"),
        ("mistral", ("choices", 0, "finish_reason"), "model_length", "cut at the limit of tokens"),
        ("mistral", ("choices", 0, "finish_reason"), "error", "ended in an error"),
        ("anthropic", ("stop_reason",), "max_tokens", "cut at the limit of tokens"),
        ("openai_responses", ("status",), "incomplete", "incomplete"),
        ("openai_responses", ("error",), {"code": "x", "message": "Broken."}, "error (x: Broken.)"),
        ("gemini", ("candidates", 0, "finishReason"), "MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"),
    ],
)
def test_a_reply_that_ended_early_says_so(provider: WireFormat, place: Any, value: Any, said: str) -> None:
    reply = inner = whole(provider, "Well", ())
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value

    made = PROVIDERS[provider].parse(reply)

    assert said in made.problems[0]


def test_a_prompt_that_gemini_blocked_says_why() -> None:
    made = PROVIDERS["gemini"].parse({"promptFeedback": {"blockReason": "SAFETY"}})

    assert made.problems == ("the reply was stopped by a content filter (SAFETY)", "the prompt was blocked")


def test_what_openai_does_not_take_back_stays_out() -> None:
    reply = whole("openai", "Well.", ())
    reply["choices"][0]["message"] |= {"annotations": [], "function_call": None, "audio": {"id": "au", "data": "…"}}

    made = PROVIDERS["openai"].parse(reply)

    assert made.items == ({"role": "assistant", "content": "Well.", "audio": {"id": "au"}},)


def test_a_refusal_is_kept() -> None:
    reply = whole("openai", "", ())
    reply["choices"][0]["message"]["refusal"] = "No."

    made = PROVIDERS["openai"].parse(reply)

    assert made.items == ({"role": "assistant", "refusal": "No."},)


def test_reasoning_goes_back_with_the_calls_it_led_to() -> None:
    reply = whole("openai_responses", "Well.", TWO)
    reply["output"][0] |= {"encrypted_content": "c2VjcmV0", "status": None}

    made = PROVIDERS["openai_responses"].parse(reply)

    assert made.items[0] == {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"}
    assert [item["type"] for item in made.items[1:]] == ["message", "function_call", "function_call"]


@pytest.mark.parametrize(
    ("provider", "reply"),
    [
        ("openai_responses", {"status": "completed", "output": [{"type": "reasoning", "id": "rs_1", "summary": []}]}),
        (
            "anthropic",
            {"stop_reason": "end_turn", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}]},
        ),
    ],
)
def test_thoughts_that_led_to_nothing_do_not_go_back(provider: WireFormat, reply: dict[str, Any]) -> None:
    made = PROVIDERS[provider].parse(reply)

    assert made.items == ()
    assert "led to nothing" in made.problems[0]
    assert made.problems[0].endswith("was left out")


@each_provider
def test_a_name_that_no_tool_can_have_is_taken_back_as_another(provider: WireFormat) -> None:
    reply = whole(provider, "", (Asked("abcdefgh1", "many.at once"),))

    made = PROVIDERS[provider].parse(reply)

    assert [call.name for call in made.calls] == ["unknown_many_at_once"]
    assert "many.at once" not in json.dumps(made.items)
    assert "which no tool can have" in made.problems[0]
    sdk_accepts(provider, answered(provider, made))


def test_arguments_of_gemini_that_are_no_object_do_not_go_back() -> None:
    call = {"functionCall": {"name": "look", "args": [7]}}

    made = PROVIDERS["gemini"].parse({"candidates": [{"content": {"role": "model", "parts": [call]}}]})

    assert made.items[0]["parts"] == [{"functionCall": {"name": "look", "args": {}}}]
    assert made.calls[0].arguments == "[7]"


def test_a_custom_call_is_answered_in_its_own_kind() -> None:
    sent = {"type": "custom_tool_call", "id": "ct", "call_id": "a", "name": "shell", "input": "ls"}

    made = PROVIDERS["openai_responses"].parse({"output": [sent]})
    [answer] = PROVIDERS["openai_responses"].answer([WireResult(made.calls[0], "…")])

    assert made.calls == (WireCall("a", "shell", "ls", "custom_tool_call", sent=sent),)
    assert answer["type"] == "custom_tool_call_output"


def test_a_custom_call_of_a_chat_is_read() -> None:
    reply = whole("openai", "", ())
    custom = {"id": "a", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    reply["choices"][0]["message"]["tool_calls"] = [custom]

    made = PROVIDERS["openai"].parse(sdk_reply("openai", reply))

    assert made.calls == (WireCall("a", "shell", "ls", "custom", sent=custom),)
    sdk_accepts("openai", made.items)


def test_thoughts_of_anthropic_go_back_and_are_no_text() -> None:
    reply = whole("anthropic", "Well.", TWO)
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}
    reply["content"].insert(0, thinking)
    reply["content"].append({"type": "text", "text": ""})

    made = PROVIDERS["anthropic"].parse(sdk_reply("anthropic", reply))

    assert made.text == "Well."
    assert made.items[0]["content"][0] == thinking
    assert len(made.items[0]["content"]) == 4


def test_an_input_of_anthropic_that_is_no_object_is_empty_on_the_wire_and_text_in_the_call() -> None:
    reply = whole("anthropic", "", (Asked("a", "look", ["Oslo"]),))

    made = PROVIDERS["anthropic"].parse(reply)

    assert made.items[0]["content"][0]["input"] == {}
    assert made.calls[0].arguments == '["Oslo"]'


def test_mistrals_thoughts_go_back_and_are_no_text() -> None:
    reply = whole("mistral", "", TWO)
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    reply["choices"][0]["message"]["content"] = [thinking, {"type": "text", "text": "Well."}]

    made = PROVIDERS["mistral"].parse(sdk_reply("mistral", reply))

    assert made.text == "Well."
    assert made.items[0]["content"][0]["thinking"] == thinking["thinking"]
    sdk_accepts("mistral", made.items)


def test_a_signature_of_gemini_comes_back_bit_by_bit() -> None:
    part = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": b"\xff\xfe\xfb"}
    reply = gemini.GenerateContentResponse.model_validate({"candidates": [{"content": {"parts": [part]}}]})

    made = PROVIDERS["gemini"].parse(reply)

    again = gemini.Content.model_validate(made.items[0])
    assert again.parts is not None
    assert again.parts[0].thought_signature == b"\xff\xfe\xfb"
    assert json.dumps(made.items)


def test_tokens_of_gemini_are_counted_in_each_shape_of_its_reply() -> None:
    counts = {"promptTokenCount": 9, "candidatesTokenCount": 4, "thoughtsTokenCount": 3, "cachedContentTokenCount": 5}
    written = {"usageMetadata": counts, "modelVersion": "flash"}
    reply = gemini.GenerateContentResponse.model_validate(written)

    found = {tokens_in(shape, "gemini") for shape in (reply, reply.model_dump())} | {tokens_in(written, "gemini")}

    assert found == {Tokens(9, 7, cached=5, reasoning=3, model="flash")}


@pytest.mark.parametrize(
    ("sent", "expected"), [("{}", "{}"), ({}, {}), ({"a": None}, {"a": None}), (None, "null"), (["x"], '["x"]')]
)
def test_mistrals_arguments_are_text_or_an_object(sent: Any, expected: Any) -> None:
    reply = whole("mistral", "", (Asked("abcdefgh1"),))
    reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = sent

    made = PROVIDERS["mistral"].parse(reply)

    assert made.calls[0].arguments == expected


def test_arguments_that_are_no_json_stay_in_the_call_alone() -> None:
    reply = whole("openai", "", (Asked("a"),))
    reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = '{"city": '

    made = PROVIDERS["openai"].parse(reply)

    assert made.calls[0].arguments == '{"city": '
    assert made.items[0]["tool_calls"][0]["function"]["arguments"] == "{}"

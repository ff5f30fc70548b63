"""Every type of item, block, part and stop in the installed SDKs is in a list of its format."""

from __future__ import annotations

import typing
from typing import Any, get_args

import pydantic_ai.messages as pydantic_ai
import pytest
from anthropic.types import ContentBlock, RawContentBlockDelta, StopReason
from anthropic.types.beta import BetaContentBlock, BetaRawContentBlockDelta, BetaStopReason
from cohere.types import AssistantMessageResponseContentItem, ChatFinishReason, ToolCallV2
from cohere.v2 import V2ChatStreamResponse
from google.genai import interactions
from google.genai import types as gemini
from mistralai.client.models import (
    ChatCompletionChoiceFinishReason,
    CompletionResponseStreamChoiceFinishReason,
    ContentChunk,
    ToolCall,
)
from openai.types.beta.beta_response_input_item import BetaResponseInputItem
from openai.types.beta.beta_response_output_item import BetaResponseOutputItem
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageToolCallUnion
from openai.types.chat.chat_completion import Choice
from openai.types.chat.chat_completion_chunk import Choice as ChunkChoice
from openai.types.responses import ResponseInputItem, ResponseOutputItem, ResponseOutputMessage, ResponseStatus
from openai.types.responses.response import IncompleteDetails

from toolcrib.adapters.pydantic_ai import MESSAGES
from toolcrib.formats import PROVIDERS, ProviderFormat

OPENAI, RESPONSES, ANTHROPIC = PROVIDERS["openai"], PROVIDERS["openai_responses"], PROVIDERS["anthropic"]
GEMINI, MISTRAL, COHERE = PROVIDERS["gemini"], PROVIDERS["mistral"], PROVIDERS["cohere"]
INTERACTIONS = PROVIDERS["gemini_interactions"]


def members(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union, and of an Annotated type what is annotated."""
    parts = get_args(kind)
    return parts[:1] if typing.get_origin(kind) is typing.Annotated else parts


def literals(kind: Any) -> set[str]:
    """Return the texts of every Literal in a type."""
    if typing.get_origin(kind) is typing.Literal:
        return {word for word in get_args(kind) if isinstance(word, str)}
    return {word for part in members(kind) for word in literals(part)}


def tags(union: Any, key: str = "type") -> set[str]:
    """Return the words by which the members of a union are told apart."""
    if hasattr(union, "model_fields"):
        return literals(union.model_fields[key].annotation) if key in union.model_fields else set()
    if hasattr(union, "__dataclass_fields__"):
        return literals(typing.get_type_hints(union, include_extras=True).get(key))
    return {word for part in members(union) for word in tags(part, key)}


def aliases(model: Any) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


LISTED: list[tuple[str, ProviderFormat, set[str]]] = [
    ("output items of Responses", RESPONSES, tags(ResponseOutputItem)),
    ("beta output items of Responses", RESPONSES, tags(BetaResponseOutputItem)),
    ("tool calls of OpenAI", OPENAI, tags(ChatCompletionMessageToolCallUnion)),
    ("blocks of Anthropic", ANTHROPIC, tags(ContentBlock)),
    ("beta blocks of Anthropic", ANTHROPIC, tags(BetaContentBlock)),
    ("parts of Gemini", GEMINI, aliases(gemini.Part)),
    ("content chunks of Mistral", MISTRAL, tags(ContentChunk) - {"UNKNOWN"}),
    ("tool calls of Mistral", MISTRAL, {str(ToolCall.model_fields["type"].default)}),
    ("steps of Interactions", INTERACTIONS, tags(interactions.Step) - {"UNKNOWN"}),
    ("parts of Cohere", COHERE, tags(AssistantMessageResponseContentItem)),
    ("tool calls of Cohere", COHERE, tags(ToolCallV2)),
    ("parts of Pydantic AI", MESSAGES, tags(pydantic_ai.ModelResponsePart, "part_kind")),
]
STOPS: list[tuple[str, ProviderFormat, set[str]]] = [
    ("OpenAI", OPENAI, literals(Choice.model_fields["finish_reason"].annotation)),
    ("OpenAI streamed", OPENAI, literals(ChunkChoice.model_fields["finish_reason"].annotation)),
    ("status of Responses", RESPONSES, literals(ResponseStatus)),
    ("incomplete responses", RESPONSES, literals(IncompleteDetails.model_fields["reason"].annotation)),
    ("Anthropic", ANTHROPIC, literals(StopReason)),
    ("Anthropic's beta", ANTHROPIC, literals(BetaStopReason)),
    ("Gemini", GEMINI, {reason.value for reason in gemini.FinishReason}),
    ("Mistral", MISTRAL, literals(ChatCompletionChoiceFinishReason)),
    ("Mistral streamed", MISTRAL, literals(CompletionResponseStreamChoiceFinishReason)),
    ("Interactions", INTERACTIONS, literals(interactions.Interaction.model_fields["status"].annotation)),
    ("Cohere", COHERE, literals(ChatFinishReason)),
    ("Pydantic AI", MESSAGES, literals(pydantic_ai.FinishReason)),
    ("states of Pydantic AI", MESSAGES, literals(pydantic_ai.ModelResponseState) - {"complete"}),
]


@pytest.mark.parametrize(("rules", "found"), [row[1:] for row in LISTED], ids=[row[0] for row in LISTED])
def test_every_type_is_answered_or_carried(rules: ProviderFormat, found: set[str]) -> None:
    assert found
    assert found - rules.asks - rules.carried == set()
    assert rules.asks & rules.carried == set()


@pytest.mark.parametrize(("rules", "found"), [row[1:] for row in STOPS], ids=[row[0] for row in STOPS])
def test_every_stop_has_a_meaning(rules: ProviderFormat, found: set[str]) -> None:
    assert found
    assert found - set(rules.stops) == set()


def test_every_event_of_cohere_is_known_by_its_type() -> None:
    found = tags(V2ChatStreamResponse)

    assert found
    assert [kind for kind in found if not COHERE.recognises({"type": kind})] == []


@pytest.mark.parametrize("union", [ResponseInputItem, BetaResponseInputItem])
def test_every_item_that_the_client_may_send_for_another_answers_it(union: Any) -> None:
    """Whatever the input takes as an output of the client's has its call among what Responses asks."""
    outputs = {type for type in tags(union) if type.endswith(("_output", "_response"))}

    answers = {type for type in RESPONSES.carried if type.endswith(("_output", "_response"))}

    assert outputs - answers == set()


def test_what_agents_at_the_provider_say_and_do_goes_back_as_it_came() -> None:
    call = {"type": "multi_agent_call", "id": "m", "call_id": "c", "action": "spawn_agent", "arguments": "{}"}
    output = {"type": "multi_agent_call_output", "id": "o", "call_id": "c", "action": "spawn_agent", "output": []}
    said = {"type": "agent_message", "id": "a", "author": "b", "recipient": "root", "content": []}

    made = RESPONSES.parse({"object": "response", "status": "completed", "output": [call, output, said]})

    assert list(made.items) == [call, output, said]
    assert (made.calls, made.unknown, RESPONSES.check(made.items)) == ((), (), [])


def test_the_parts_of_a_message_of_responses_are_text_and_refusals() -> None:
    assert tags(ResponseOutputMessage.model_fields["content"].annotation) == {"output_text", "refusal"}


def test_every_key_of_a_chat_message_is_read_or_left_out() -> None:
    read = {"content", "refusal", "role", "annotations", "audio", "function_call", "tool_calls"}

    assert set(ChatCompletionMessage.model_fields) == read


@pytest.mark.parametrize("union", [RawContentBlockDelta, BetaRawContentBlockDelta])
def test_every_delta_of_anthropic_is_gathered(union: Any) -> None:
    gathered = {"text_delta", "input_json_delta", "citations_delta", "thinking_delta", "signature_delta"}

    assert tags(union) - gathered - {"compaction_delta"} == set()


def test_a_compaction_of_anthropic_is_gathered() -> None:
    events = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", "content": "So far."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "compaction"}},
        {"type": "message_stop"},
    ]

    made = ANTHROPIC.gather(events)

    assert made.items[0]["content"] == [{"type": "compaction", "content": "So far."}]
    assert made.stop_kind == "paused"

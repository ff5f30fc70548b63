"""Types of well-formed replies: its items go into the transcript unchanged. Others are read field by field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Generic, Literal, NotRequired, TypeAlias, TypeVar

from pydantic import ConfigDict, Discriminator, Field, TypeAdapter, ValidationError, with_config
from pydantic_core import SchemaValidator, core_schema
from typing_extensions import TypedDict

T = TypeVar("T")
M = TypeVar("M")

_CLOSED = ConfigDict(extra="forbid", strict=True)  # of what goes back
_OPEN = ConfigDict(extra="ignore", strict=True)
_Text: TypeAlias = Annotated[str, Field(min_length=0)]  # a bound also refuses half of a surrogate pair
_Filled: TypeAlias = Annotated[str, Field(min_length=1)]
_Only: TypeAlias = Annotated[list[T], Field(min_length=1, max_length=1)]
_Some: TypeAlias = Annotated[list[T], Field(min_length=1)]
_OBJECTS = SchemaValidator(
    core_schema.list_schema(core_schema.json_schema(core_schema.typed_dict_schema({}, extra_behavior="ignore")))
)


def are_objects(texts: list[str]) -> bool:
    """Return whether each text is one JSON object, without NaN and infinity; no value is made of it."""
    if not texts:
        return True
    written = "".join(texts)
    if "NaN" in written or "Infinity" in written:
        return False
    try:
        _OBJECTS.validate_python(texts)
    except ValidationError:
        return False
    return True


@lru_cache
def reader_of(kind: Any) -> Callable[[Mapping[str, Any]], Any]:
    """Return a reader of replies of a type: it returns a copy of a reply, or None for any other."""
    validate = TypeAdapter(kind).validator.validate_python

    def read(reply: Mapping[str, Any]) -> Any:
        try:
            return validate(reply)
        except ValidationError:
            return None

    return read


# --- chat messages


@with_config(_CLOSED)
class _Function(TypedDict):
    name: str
    arguments: str


@with_config(_CLOSED)
class _ChatCall(TypedDict):
    id: _Filled
    type: Literal["function"]
    function: _Function
    index: NotRequired[int]


@with_config(_CLOSED)
class _ChatMessage(TypedDict):
    role: Literal["assistant"]
    content: NotRequired[_Text | None]
    tool_calls: NotRequired[_Some[_ChatCall] | None]
    refusal: NotRequired[None]
    annotations: NotRequired[list[Any] | None]
    audio: NotRequired[None]
    function_call: NotRequired[None]


@with_config(_CLOSED)
class _MistralMessage(_ChatMessage):
    prefix: NotRequired[bool | None]


@with_config(_OPEN)
class _Choice(TypedDict, Generic[M]):
    message: M
    finish_reason: str
    index: NotRequired[Literal[0]]
    error: NotRequired[None]
    type: NotRequired[None]
    object: NotRequired[None]


@with_config(_OPEN)
class ChatReply(TypedDict):
    """A reply of OpenAI's Chat Completions."""

    choices: _Only[_Choice[_ChatMessage]]


@with_config(_OPEN)
class MistralReply(TypedDict):
    """A reply of Mistral's."""

    choices: _Only[_Choice[_MistralMessage]]


@with_config(_CLOSED)
class _OllamaFunction(TypedDict):
    name: str
    arguments: dict[str, Any]
    index: NotRequired[int]


@with_config(_CLOSED)
class _OllamaCall(TypedDict):
    id: _Filled
    function: _OllamaFunction


@with_config(_CLOSED)
class _OllamaMessage(TypedDict):
    role: Literal["assistant"]
    content: NotRequired[_Text]
    thinking: NotRequired[_Text]
    tool_calls: NotRequired[_Some[_OllamaCall]]


@with_config(_OPEN)
class OllamaReply(TypedDict):
    """A reply of Ollama's own chat."""

    message: _OllamaMessage
    done: Literal[True]
    done_reason: str


@with_config(_CLOSED)
class _CohereText(TypedDict):
    type: Literal["text"]
    text: _Filled


@with_config(_CLOSED)
class _CohereThought(TypedDict):
    type: Literal["thinking"]
    thinking: _Filled


@with_config(_CLOSED)
class _CohereMessage(TypedDict):
    role: Literal["assistant"]
    content: NotRequired[_Some[Annotated[_CohereText | _CohereThought, Discriminator("type")]]]
    tool_plan: NotRequired[_Filled]
    tool_calls: NotRequired[_Some[_ChatCall]]


@with_config(_OPEN)
class CohereReply(TypedDict):
    """A reply of Cohere's chat."""

    message: _CohereMessage
    finish_reason: str


# --- items


@with_config(_CLOSED)
class _FunctionCall(TypedDict):
    type: Literal["function_call"]
    call_id: _Filled
    name: str
    arguments: str
    id: NotRequired[_Text]
    status: NotRequired[Literal["completed"]]


@with_config(_CLOSED)
class _OutputText(TypedDict):
    type: Literal["output_text"]
    text: _Text
    annotations: NotRequired[list[Any]]
    logprobs: NotRequired[list[Any]]


@with_config(_CLOSED)
class _OutputMessage(TypedDict):
    type: Literal["message"]
    role: Literal["assistant"]
    content: _Some[_OutputText]
    id: NotRequired[_Text]
    status: NotRequired[Literal["completed"]]


@with_config(_CLOSED)
class _Reasoning(TypedDict):
    type: Literal["reasoning"]
    summary: list[dict[str, Any]]
    id: NotRequired[_Text]
    encrypted_content: NotRequired[_Text]
    status: NotRequired[Literal["completed"]]


@with_config(_OPEN)
class ResponsesReply(TypedDict):
    """A response of OpenAI's."""

    status: str
    output: _Some[Annotated[_FunctionCall | _OutputMessage | _Reasoning, Discriminator("type")]]
    incomplete_details: NotRequired[None]


# --- blocks and parts


@with_config(_CLOSED)
class _TextBlock(TypedDict):
    type: Literal["text"]
    text: _Text


@with_config(_CLOSED)
class _Thinking(TypedDict):
    type: Literal["thinking"]
    thinking: _Text
    signature: _Filled


@with_config(_CLOSED)
class _Caller(TypedDict):
    type: Literal["direct"]


@with_config(_CLOSED)
class _ToolUse(TypedDict):
    type: Literal["tool_use"]
    id: _Filled
    name: str
    input: dict[str, Any]
    caller: NotRequired[_Caller]


@with_config(_OPEN)
class MessagesReply(TypedDict):
    """A message of Anthropic's."""

    content: _Some[Annotated[_TextBlock | _Thinking | _ToolUse, Discriminator("type")]]
    stop_reason: str
    container: NotRequired[None]


@with_config(_CLOSED)
class _ConverseUse(TypedDict):
    toolUseId: _Filled
    name: str
    input: dict[str, Any]


@with_config(_CLOSED)
class _ConverseBlock(TypedDict):
    text: NotRequired[_Text]
    toolUse: NotRequired[_ConverseUse]


@with_config(_OPEN)
class _ConverseMessage(TypedDict):
    content: _Some[_ConverseBlock]


@with_config(_OPEN)
class _ConverseOutput(TypedDict):
    message: _ConverseMessage


@with_config(_OPEN)
class ConverseReply(TypedDict):
    """A reply of Bedrock's Converse."""

    output: _ConverseOutput
    stopReason: str


@with_config(_CLOSED)
class _GeminiCall(TypedDict):
    id: _Filled
    name: str
    args: dict[str, Any]


@with_config(_CLOSED)
class _GeminiPart(TypedDict):
    text: NotRequired[_Text]
    functionCall: NotRequired[_GeminiCall]
    thought: NotRequired[Literal[True]]
    thoughtSignature: NotRequired[_Filled]


@with_config(_OPEN)
class _GeminiContent(TypedDict):
    parts: _Some[_GeminiPart]


@with_config(_OPEN)
class _GeminiCandidate(TypedDict):
    content: _GeminiContent
    finishReason: str
    index: NotRequired[Literal[0]]
    finishMessage: NotRequired[None]


@with_config(_OPEN)
class GeminiReply(TypedDict):
    """A reply of Gemini's."""

    candidates: _Only[_GeminiCandidate]
    promptFeedback: NotRequired[None]


# --- steps


@with_config(_CLOSED)
class _StepText(TypedDict):
    type: Literal["text"]
    text: _Filled


@with_config(_CLOSED)
class _ModelOutput(TypedDict):
    type: Literal["model_output"]
    content: _Some[_StepText]


@with_config(_CLOSED)
class _ThoughtStep(TypedDict):
    type: Literal["thought"]
    signature: NotRequired[_Filled]


@with_config(_CLOSED)
class _CallStep(TypedDict):
    type: Literal["function_call"]
    id: _Filled
    name: str
    arguments: dict[str, Any]
    signature: NotRequired[_Filled]


@with_config(_OPEN)
class InteractionReply(TypedDict):
    """An interaction of Google's."""

    status: str
    steps: _Some[Annotated[_ModelOutput | _ThoughtStep | _CallStep, Discriminator("type")]]

"""The leanest pydantic models of a reply in each wire format, and of the arguments of its calls."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class BookFlight(BaseModel):
    """The arguments of `book_flight`."""

    model_config = ConfigDict(extra="forbid")
    origin: str
    destination: str
    day: str
    seats: int = 1
    cabin: Literal["economy", "business"] = "economy"
    notes: list[str] = []


class _Function(BaseModel):
    name: str
    arguments: str


class _ChatCall(BaseModel):
    id: str
    type: Literal["function"]
    function: _Function


class _ChatMessage(BaseModel):
    role: str
    content: str | None
    tool_calls: list[_ChatCall]


class _Choice(BaseModel):
    index: int
    message: _ChatMessage
    finish_reason: str


class _Chat(BaseModel):
    choices: list[_Choice]


class _FunctionCall(BaseModel):
    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str


class _Response(BaseModel):
    status: str
    output: list[_FunctionCall]


class _ToolUse(BaseModel):
    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]


class _Message(BaseModel):
    role: str
    content: list[_ToolUse]
    stop_reason: str


class _GeminiCall(BaseModel):
    id: str
    name: str
    args: dict[str, Any]


class _Part(BaseModel):
    functionCall: _GeminiCall


class _Content(BaseModel):
    role: str
    parts: list[_Part]


class _Candidate(BaseModel):
    content: _Content
    finishReason: str


class _Generated(BaseModel):
    candidates: list[_Candidate]


class _Use(BaseModel):
    toolUseId: str
    name: str
    input: dict[str, Any]


class _Block(BaseModel):
    toolUse: _Use


class _ConverseMessage(BaseModel):
    role: str
    content: list[_Block]


class _Output(BaseModel):
    message: _ConverseMessage


class _Converse(BaseModel):
    output: _Output
    stopReason: str


class _OllamaFunction(BaseModel):
    name: str
    arguments: dict[str, Any]


class _OllamaCall(BaseModel):
    id: str
    function: _OllamaFunction


class _OllamaMessage(BaseModel):
    role: str
    content: str
    tool_calls: list[_OllamaCall]


class _Ollama(BaseModel):
    message: _OllamaMessage
    done_reason: str


class _CohereMessage(BaseModel):
    role: str
    tool_plan: str
    tool_calls: list[_ChatCall]


class _Cohere(BaseModel):
    message: _CohereMessage
    finish_reason: str


class _CallStep(BaseModel):
    type: Literal["function_call"]
    id: str
    name: str
    arguments: dict[str, Any]


class _Interaction(BaseModel):
    status: str
    steps: list[_CallStep]


def _chat(text: str) -> list[BookFlight]:
    calls = _Chat.model_validate_json(text).choices[0].message.tool_calls
    return [BookFlight.model_validate_json(call.function.arguments) for call in calls]


def _responses(text: str) -> list[BookFlight]:
    return [BookFlight.model_validate_json(call.arguments) for call in _Response.model_validate_json(text).output]


def _messages(text: str) -> list[BookFlight]:
    return [BookFlight.model_validate(block.input) for block in _Message.model_validate_json(text).content]


def _contents(text: str) -> list[BookFlight]:
    parts = _Generated.model_validate_json(text).candidates[0].content.parts
    return [BookFlight.model_validate(part.functionCall.args) for part in parts]


def _converse(text: str) -> list[BookFlight]:
    blocks = _Converse.model_validate_json(text).output.message.content
    return [BookFlight.model_validate(block.toolUse.input) for block in blocks]


def _ollama(text: str) -> list[BookFlight]:
    calls = _Ollama.model_validate_json(text).message.tool_calls
    return [BookFlight.model_validate(call.function.arguments) for call in calls]


def _cohere(text: str) -> list[BookFlight]:
    calls = _Cohere.model_validate_json(text).message.tool_calls
    return [BookFlight.model_validate_json(call.function.arguments) for call in calls]


def _interaction(text: str) -> list[BookFlight]:
    return [BookFlight.model_validate(step.arguments) for step in _Interaction.model_validate_json(text).steps]


READERS: Mapping[str, Callable[[str], list[BookFlight]]] = {
    "openai": _chat,
    "openai_responses": _responses,
    "anthropic": _messages,
    "gemini": _contents,
    "mistral": _chat,
    "bedrock": _converse,
    "ollama": _ollama,
    "cohere": _cohere,
    "gemini_interactions": _interaction,
}

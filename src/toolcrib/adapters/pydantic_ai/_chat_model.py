"""Chat model of a session, made of a model of Pydantic AI."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, cast

from pydantic import TypeAdapter
from pydantic_ai import Agent
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.instrumented import InstrumentedModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings, merge_model_settings
from pydantic_ai.tools import ToolDefinition

from toolcrib.adapters.pydantic_ai._messages import stop_of
from toolcrib.errors import explain_options
from toolcrib.formats import Item
from toolcrib.rounds import ChatRequest

_StoredParts: TypeAlias = list[ThinkingPart | ToolCallPart]
_stored_calls = TypeAdapter[_StoredParts](_StoredParts)
_EXTRA, _OURS = "extra_content", "pydantic_ai"  # where a call says what its provider wants back: signed thoughts


@explain_options()
def chat_model(model: Model | str, *, settings: ModelSettings | None = None, stream: bool = False) -> PydanticChatModel:
    """Return a `ChatModel` for `Session(model)` of any model that Pydantic AI knows: `chat_model("openai:gpt-5")`.

    The session keeps its transcript in the format `openai`, whichever provider answers.

    Args:
        model: The model, as `pydantic_ai.Agent` takes one.
        settings: The settings of every request: `{"temperature": 0}`.
        stream: Have each reply come in pieces, also where no `on_text`, `on_call` or `on_chunk` of a step listens.
    """
    return PydanticChatModel(infer_model(model) if isinstance(model, str) else model, settings, stream=stream)


class PydanticChatModel:
    """A model of Pydantic AI, as a session asks it. Made by `chat_model`.

    Attributes:
        model: The model's name.
        provider: The provider's name.
    """

    def __init__(self, model: Model, settings: ModelSettings | None, *, stream: bool = False) -> None:
        self._model, self._settings, self._stream = model, settings, stream
        self.model, self.provider = model.model_name, model.system

    @property
    def is_instrumented(self) -> bool:
        """True if Pydantic AI itself makes a span for each request."""
        default: Any = Agent._instrument_default  # pyright: ignore[reportPrivateUsage] -- it cannot be asked for
        return bool(default) or isinstance(self._model, InstrumentedModel)

    async def reply(self, request: ChatRequest) -> Item | AsyncIterator[Item]:
        """Ask the model, and return its answer as a chat completion, or as the chunks of one.

        Raises:
            ValueError: The session has another format than `openai`, or a message holds what cannot be translated.
        """
        if request.format != "openai":
            raise ValueError(f"the session's format is {request.format!r}; write Session(model, format='openai')")
        chosen: dict[str, Any] = {} if request.tool_choice is None else {"tool_choice": _choice(request)}
        chosen |= {} if request.parallel else {"parallel_tool_calls": False}
        settings = merge_model_settings(self._settings, cast("ModelSettings", chosen)) or None
        messages, parameters = list(_messages(request)), self._parameters(request)
        if self._stream or request.stream:
            return self._pieces(messages, settings, parameters)
        answer = await model_request(
            self._model, messages, model_settings=settings, model_request_parameters=parameters
        )
        return _completion(answer)

    async def _pieces(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> AsyncIterator[Item]:
        """Yield the text as it comes, and the rest at the end."""
        async with model_request_stream(
            self._model, messages, model_settings=settings, model_request_parameters=parameters
        ) as stream:
            async for event in stream:
                if text := _added_text(event):
                    yield _chunk({"content": text}, None)
            answer = _completion(stream.get())
        [choice] = answer["choices"]
        calls = [{**call, "index": place} for place, call in enumerate(choice["message"].get("tool_calls", ()))]
        last = _chunk({"tool_calls": calls} if calls else {}, choice["finish_reason"])
        yield {**last, "model": answer["model"], "usage": answer["usage"]}

    def _parameters(self, request: ChatRequest) -> ModelRequestParameters:
        functions = [tool["function"] for tool in request.tools if tool.get("type") == "function"]
        if len(functions) < len(request.tools):
            mend = "leave out `provider_tools`, and tools with a free text"
            raise ValueError(f"a model of Pydantic AI is offered functions alone here: {mend}")
        tools = [
            ToolDefinition(
                name=f["name"],
                description=f.get("description"),
                parameters_json_schema=f["parameters"],
                strict=f.get("strict"),
            )
            for f in functions
        ]
        if request.output is None:
            return ModelRequestParameters(function_tools=tools)
        is_supported = self._model.profile.get("supports_json_schema_output", False)  # else it is asked for in words
        return ModelRequestParameters(
            function_tools=tools,
            output_mode="native" if is_supported else "prompted",
            output_object=OutputObjectDefinition(json_schema=dict(request.output), name="answer"),
        )


def _choice(request: ChatRequest) -> Any:
    match request.tool_choice:
        case {"function": {"name": name}}:
            return [name]
        case {"allowed_tools": {"mode": "required", "tools": tools}}:
            return [tool["function"]["name"] for tool in tools]
        case {"allowed_tools": _}:
            mend = "offer only these: `available=ToolAvailability.only(...)`"
            raise ValueError(f"a model of Pydantic AI has no optional choice among some of the tools; {mend}")
        case choice:
            return choice


# --- the transcript


def _messages(request: ChatRequest) -> Iterator[ModelMessage]:
    """Yield the transcript as Pydantic AI's messages: what stands between two answers is one request."""
    names: dict[str, str] = {}
    asked: list[ModelRequestPart] = []
    for item in request.messages:
        if item["role"] != "assistant":
            asked.append(_request_part(item, names))
            continue
        if asked:
            yield ModelRequest(asked, instructions=request.system or None)
            asked = []
        answer = ModelResponse(list(_answered(item)))
        names.update((call.tool_call_id, call.tool_name) for call in answer.tool_calls)
        yield answer
    yield ModelRequest(asked, instructions=request.system or None)


def _request_part(item: Item, names: Mapping[str, str]) -> ModelRequestPart:
    match item["role"]:
        case "tool":
            call_id = item["tool_call_id"]
            return ToolReturnPart(names.get(call_id, ""), _text(item.get("content")), call_id)
        case "system" | "developer":
            return SystemPromptPart(_text(item.get("content")))
        case "user":
            content = item.get("content")
            return UserPromptPart([*map(_part, content)] if isinstance(content, list) else _text(content))  # pyright: ignore[reportUnknownArgumentType] -- JSON
        case role:
            raise ValueError(f"a message of the role {role!r} cannot be translated for Pydantic AI")


def _part(part: Mapping[str, Any]) -> UserContent:
    match part:
        case {"type": "text", "text": text}:
            return str(text)
        case {"type": "image_url", "image_url": {"url": url}}:
            return ImageUrl(url=url)
        case _:
            raise ValueError(f"a part of the type {part.get('type')!r} cannot be translated for Pydantic AI")


def _text(content: object) -> str:
    """Return the text of a message, from its parts when it has some."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "".join(str(part.get("text") or "") for part in cast("list[Item]", content))


def _answered(item: Item) -> Iterator[TextPart | ThinkingPart | ToolCallPart]:
    calls: list[Any] = item.get("tool_calls") or []
    stored = [_stored_calls.validate_python(call.get(_EXTRA, {}).get(_OURS, [])) for call in calls]
    yield from (part for parts in stored for part in parts if isinstance(part, ThinkingPart))
    if text := _text(item.get("content")):
        yield TextPart(text)
    for call, parts in zip(calls, stored, strict=True):
        function, before = call["function"], next((part for part in parts if isinstance(part, ToolCallPart)), None)
        plain = ToolCallPart(function["name"], function["arguments"], call["id"])
        yield plain if before is None else replace(before, args=plain.args, tool_call_id=plain.tool_call_id)


# --- the answer


def _completion(answer: ModelResponse) -> Item:
    """Return an answer as the chat completion that `decode` reads."""
    thoughts = [part for part in answer.parts if isinstance(part, ThinkingPart)]
    calls: list[Item] = []
    for call in answer.tool_calls:
        item: Item = {"id": call.tool_call_id, "type": "function"}
        # text stays as the model sent it, cut or not: theirs makes an object of what is not JSON, or nothing at all
        arguments = call.args_as_json_str() if isinstance(call.args, dict) else call.args or ""
        item["function"] = {"name": call.tool_name, "arguments": arguments}
        parts: _StoredParts = [
            *([] if calls else thoughts),
            *([call] if call.id or call.provider_name or call.provider_details else []),
        ]
        if parts:
            item[_EXTRA] = {_OURS: json.loads(_stored_calls.dump_json(parts))}
        calls.append(item)
    text = answer.text or ""
    message: Item = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    stop = stop_of(answer.finish_reason, answer.state, answer.provider_name)
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if stop == "tool_call" else stop}
    usage = {
        "prompt_tokens": answer.usage.input_tokens,
        "completion_tokens": answer.usage.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": answer.usage.cache_read_tokens,
            "cache_write_tokens": answer.usage.cache_write_tokens,
        },
        "completion_tokens_details": {
            "reasoning_tokens": getattr(answer.usage, "output_reasoning_tokens", 0),  # of newer releases
        },
    }
    return {"object": "chat.completion", "model": answer.model_name, "choices": [choice], "usage": usage}


def _added_text(event: object) -> str:
    """Return the text that an event of a stream adds to the answer."""
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""


def _chunk(delta: Item, stop: str | None) -> Item:
    choice = {"index": 0, "delta": delta, "finish_reason": stop}
    return {"object": "chat.completion.chunk", "choices": [choice]}

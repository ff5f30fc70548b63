"""Parts of an item or a reply that a tool of the provider's own brought: search results, pages, output of code, notes.

What the model writes has names that are known. What stands under another name is what it has read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from toolcrib.formats._json_reading import object_or_empty, objects_in, text_or_empty

_OURS: Final = frozenset({"user", "system", "developer", "tool", "function"})  # roles of what a host sends
_MODELS: Final = frozenset({"assistant", "model"})  # roles of what a model writes
_OWN_TYPES: Final = frozenset(
    {"", "audio", "custom_tool_call", "custom_tool_call_output", "document", "file", "function", "function_call"}
    | {"function_call_output", "image", "image_url", "input_audio", "input_file", "input_image", "input_text"}
    | {"message", "output_text", "reasoning", "reasoning_text", "redacted_thinking", "refusal", "summary_text", "text"}
    | {"thinking", "tool_use", "thought", "model_output", "tool_search_call"}
)
_OUR_STEPS: Final = frozenset({"user_input", "function_result"})  # types of what a host sends
_OWN_KINDS: Final = frozenset(
    {"file", "retry-prompt", "system-prompt", "text", "thinking", "tool-call", "tool-return", "user-prompt"}
)
_OWN_KEYS: Final = frozenset(
    {"text", "thought", "thoughtSignature", "thought_signature", "functionCall", "function_call", "functionResponse"}
    | {"function_response", "inlineData", "inline_data", "fileData", "file_data", "executableCode", "executable_code"}
    | {"toolUse", "image", "document", "video", "audio", "reasoningContent", "cachePoint", "partMetadata"}
)
_NOTES: Final = frozenset(  # of what the model has read elsewhere: there is more of it than the note shows
    {"annotations", "annotation", "citations", "citation", "citationsContent", "groundingMetadata", "search_results"}
    | {"grounding_metadata", "urlContextMetadata", "url_context_metadata"}
)
_WRITTEN: Final = frozenset(  # fields of a message that the model writes, or that say what wrote it
    {
        "arguments",
        "audio",
        "caller",
        "content",
        "function_call",
        "images",
        "kind",
        "model",
        "name",
        "namespace",
        "parsed",
        "parts",
    }
    | {"partial_json", "phase", "prefix", "refusal", "text", "toolUse", "tool_call_id", "tool_calls", "tool_plan"}
    | {"tool_name", "transcript"}
    | {"reasoning", "reasoningContent", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks"}
    | {"finish_reason", "stop_details", "stop_reason", "stop_sequence", "thoughtSignature", "thought_signature"}
    | {"canonical_system", "conversation_id", "failed_attempts", "history_digest", "instructions", "model_id"}
    | {"model_name", "provider_response_id", "provider_url", "run_id", "state", "workspace_ref"}
)
_ABOUT_REPLIES: Final = frozenset(  # objects and lists of a reply that say nothing of what the model has read
    {"ResponseMetadata", "container", "contentBlockStart", "content_block", "content_filter_result", "conversation"}
    | {"content_filter_results", "content_filter_offsets", "contentBlockStop", "context_management", "error", "input"}
    | {"incomplete_details", "item", "logprobs", "logprobsResult", "logprobs_result", "messageStart", "messageStop"}
    | {"metadata", "metrics", "moderation", "part", "performanceConfig", "promptFeedback", "prompt_feedback", "prompt"}
    | {
        "prompt_annotations",
        "prompt_filter_results",
        "prompt_logprobs",
        "safetyRatings",
        "safety_ratings",
        "sdkHttpResponse",
    }
    | {"agent_config", "continuation_ids", "environment", "generation_config", "labels", "response_format"}
    | {"response_modalities", "safety_settings", "step", "step_usage", "steps", "webhook_config"}
    | {"sdk_http_response", "tool_choice", "tools", "trace", "usage", "usageMetadata", "usage_metadata"}
)
_HOLDERS: Final = frozenset(  # fields of a reply in which there is more of it
    {"candidates", "choices", "contentBlockDelta", "data", "delta", "extra_content", "google", "interaction", "message"}
    | {"output"}
    | {"provider_details", "provider_metadata", "provider_specific_fields", "response", "x_groq"}
)
_MESSAGES: Final = frozenset({"delta", "message"})  # those of which each field is the model's, or what it has read
_CALLS: Final = ("_tool_use", "-tool-call", "server_tool_use")  # what the model wrote; the result is another part
_MORE_ELSEWHERE: Final = ("_call", "_reference")
_ABOUT: Final = frozenset(
    {"type", "id", "part_kind", "tool_use_id", "tool_call_id", "call_id", "status", "role", "signature", "timestamp"}
    | {"encrypted_content", "encrypted_index", "provider_name", "tool_kind"}
)
_HIDDEN: Final = frozenset({"encrypted_content", "encrypted_index"})
_DEEPEST: Final = 200


@dataclass(frozen=True, slots=True)
class ProviderPart:
    """A part that a tool of the provider's own brought.

    Attributes:
        tool: The provider's name of it.
        id: Names it; empty where nothing does.
        texts: The texts in it.
        is_hidden: Whether the model may have read more than these.
    """

    tool: str
    id: str
    texts: tuple[str, ...]
    is_hidden: bool


def provider_parts(item: Mapping[str, Any]) -> Iterator[ProviderPart]:
    """Yield the parts of an item that neither the user, the host nor the model wrote; of any format.

    Parts of kinds that are not known are among them, and what stands beside the content under a name that is not known;
    of a message whose role is not known, all of it.
    """
    role = item.get("role", None if not item or item.keys() & {"kind", "parts", "type"} else "")
    if role is not None and role not in (*_OURS, *_MODELS):
        yield _provider_part(text_or_empty(role) or "message", item, of_call=False)
        return
    if item.get("role") in _OURS or item.get("kind") == "request" or item.get("type") in _OUR_STEPS:
        return
    is_part = "role" not in item and "type" in item
    if is_part:  # an item that is a part itself
        yield from _of_part(item)
    for part in (*objects_in(item.get("content")), *objects_in(item.get("parts"))):
        yield from _of_part(part)
    yield from _noted_in(item) if is_part else _beside(item, is_message=True)


def reply_parts(reply: Mapping[str, Any]) -> Iterator[ProviderPart]:
    """Yield the parts of a reply or chunk, beside its items, that the model has read and not written.

    Such are the results of a search that the provider notes beside the message or beside the candidate.
    """
    for item in (*objects_in(reply.get("output")), *objects_in(reply.get("steps")), object_or_empty(reply.get("step"))):
        yield from provider_parts(item)
    yield from _beside(reply, is_message=False)


def _beside(holder: Mapping[str, Any], *, is_message: bool) -> Iterator[ProviderPart]:
    """Yield the parts of a message or reply under unknown names, and those inside them.

    Args:
        holder: The message or the reply.
        is_message: Whether a text counts as well; a text beside the messages says what the service is.
    """
    yield from _noted_in(holder)
    for name in holder.keys() - _NOTES - _ABOUT_REPLIES - _ABOUT:
        value: Any = holder[name]
        if name in _HOLDERS:
            inner = [cast("Mapping[str, Any]", value)] if isinstance(value, Mapping) else objects_in(value)
            for part in inner:
                yield from _beside(part, is_message=name in _MESSAGES)
        elif (
            name not in _WRITTEN
            and isinstance(value, str | list | Mapping)
            and (is_message or not isinstance(value, str))
        ):
            found = _provider_part(name, {name: value}, of_call=False)
            if found.texts:
                yield found


def _of_part(part: Mapping[str, Any]) -> Iterator[ProviderPart]:
    kind = text_or_empty(part.get("part_kind"))
    type_ = text_or_empty(part.get("type"))
    is_own = kind in _OWN_KINDS if kind else type_ in _OWN_TYPES if type_ else not part.keys() - _OWN_KEYS
    if is_own:
        yield from _noted_in(part)
        yield from _beside(object_or_empty(part.get("provider_details")), is_message=False)
    elif not (kind or type_).endswith(_CALLS):
        tool = text_or_empty(part.get("tool_name") or part.get("name")) or kind or type_ or next(iter(part), "part")
        yield _provider_part(tool, part, of_call=type_.endswith(_MORE_ELSEWHERE))


def _noted_in(holder: Mapping[str, Any]) -> Iterator[ProviderPart]:
    """Yield the provider's notes about a text: its sources."""
    for name in sorted(holder.keys() & _NOTES):
        if holder[name] and not _cites_results(holder[name]):
            yield _provider_part(name, {name: holder[name]}, of_call=True)


def _cites_results(note: Any) -> bool:
    """Return whether a note cites results of the client's tools alone, as Cohere's do: read in their order."""
    sources = [source for cited in objects_in(note) for source in objects_in(cited.get("sources"))]
    is_whole = isinstance(note, list) and all(cited.get("sources") for cited in objects_in(cast("list[Any]", note)))
    return is_whole and bool(sources) and all(source.get("type") == "tool" for source in sources)


def _provider_part(tool: str, part: Mapping[str, Any], *, of_call: bool) -> ProviderPart:
    texts, is_hidden = list[str](), False
    stack: list[tuple[Any, int]] = [(part, 0)]
    while stack:
        inner, depth = stack.pop()
        if isinstance(inner, str) and inner:
            texts.append(inner)
        elif isinstance(inner, Mapping):
            fields = cast("Mapping[str, Any]", inner)
            is_hidden = is_hidden or not _HIDDEN.isdisjoint(fields) or depth > _DEEPEST
            stack += [(value, depth + 1) for key, value in fields.items() if key not in _ABOUT]
        elif isinstance(inner, list):
            stack += [(value, depth + 1) for value in cast("list[Any]", inner)]
    results = [part.get(name) for name in ("output", "outputs", "result", "results")]
    is_hidden = is_hidden or not texts or (of_call and not any(results))
    id = text_or_empty(part.get("id") or part.get("tool_use_id") or part.get("tool_call_id"))
    return ProviderPart(tool, id, tuple(dict.fromkeys(reversed(texts))), is_hidden)

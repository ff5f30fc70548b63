"""Parts of an item that a tool of the provider's own brought: search results, pages, output of code, remote tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from toolcrib.formats._json_reading import objects_in, text_or_empty

__all__ = ["ProviderPart", "provider_parts"]

_OURS: Final = frozenset({"user", "system", "developer", "tool", "function"})  # roles of what a host sends
_OWN_TYPES: Final = frozenset(
    {"", "audio", "custom_tool_call", "custom_tool_call_output", "document", "file", "function", "function_call"}
    | {"function_call_output", "image", "image_url", "input_audio", "input_file", "input_image", "input_text"}
    | {"message", "output_text", "reasoning", "reasoning_text", "redacted_thinking", "refusal", "summary_text", "text"}
    | {"thinking", "tool_result", "tool_use"}
)
_OWN_KINDS: Final = frozenset(
    {"file", "retry-prompt", "system-prompt", "text", "thinking", "tool-call", "tool-return", "user-prompt"}
)
_OWN_KEYS: Final = frozenset(
    {"text", "thought", "thoughtSignature", "thought_signature", "functionCall", "function_call", "functionResponse"}
    | {"function_response", "inlineData", "inline_data", "fileData", "file_data", "executableCode", "executable_code"}
    | {"toolUse", "toolResult", "image", "document", "video", "audio", "reasoningContent", "cachePoint", "partMetadata"}
)
_NOTES: Final = ("annotations", "citations", "citationsContent", "groundingMetadata", "grounding_metadata")
_CALLS: Final = ("_tool_use", "-tool-call", "server_tool_use")  # what the model wrote; the result is another part
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
        tool: What the provider calls it.
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

    Parts of kinds that are not known are among them.
    """
    if item.get("role") in _OURS or item.get("kind") == "request":
        return
    if "role" not in item and "type" in item:  # an item that is a part itself
        yield from _of_part(item)
    for part in (*objects_in(item.get("content")), *objects_in(item.get("parts"))):
        yield from _of_part(part)
    yield from _of_notes(item)


def _of_part(part: Mapping[str, Any]) -> Iterator[ProviderPart]:
    kind = text_or_empty(part.get("part_kind"))
    type_ = text_or_empty(part.get("type"))
    is_own = kind in _OWN_KINDS if kind else type_ in _OWN_TYPES if type_ else not part.keys() - _OWN_KEYS
    if is_own:
        yield from _of_notes(part)
    elif not (kind or type_).endswith(_CALLS):
        tool = text_or_empty(part.get("tool_name") or part.get("name")) or kind or type_ or next(iter(part), "part")
        yield _made(tool, part, of_call=type_.endswith("_call"))


def _of_notes(holder: Mapping[str, Any]) -> Iterator[ProviderPart]:
    """Yield what the provider notes beside a text: where it is from."""
    for name in _NOTES:
        if holder.get(name):
            yield _made(name, {name: holder[name]}, of_call=True)


def _made(tool: str, part: Mapping[str, Any], *, of_call: bool) -> ProviderPart:
    texts, is_hidden = list[str](), False
    stack: list[tuple[Any, int]] = [(part, 0)]
    while stack:
        held, depth = stack.pop()
        if isinstance(held, str) and held:
            texts.append(held)
        elif isinstance(held, Mapping):
            fields = cast("Mapping[str, Any]", held)
            is_hidden = is_hidden or not _HIDDEN.isdisjoint(fields) or depth > _DEEPEST
            stack += [(value, depth + 1) for key, value in fields.items() if key not in _ABOUT]
        elif isinstance(held, list):
            stack += [(value, depth + 1) for value in cast("list[Any]", held)]
    results = [part.get(name) for name in ("output", "outputs", "result", "results")]
    is_hidden = is_hidden or not texts or (of_call and not any(results))
    id = text_or_empty(part.get("id") or part.get("tool_use_id") or part.get("tool_call_id"))
    return ProviderPart(tool, id, tuple(dict.fromkeys(reversed(texts))), is_hidden)

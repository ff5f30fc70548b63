"""What a model says in one chunk of a stream, for whoever shows it as it comes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from toolcrib.rounds._detect import WireFormat, detected, shape_of

__all__ = ["text_delta"]


def text_delta(chunk: object, format: WireFormat | None = None) -> str:
    """Return the text that a chunk adds to the answer; empty for one that adds none: calls, thoughts, usage.

    Args:
        chunk: A chunk or event as the provider's SDK gives it, or the same as a dict.
        format: The wire format; told from the chunk when None, empty for a chunk of no known shape.
    """
    try:
        name = format or detected(chunk)
    except ValueError:
        return ""
    shape = shape_of(chunk)
    match name:
        case "openai" | "mistral":
            return _of_chat(shape)
        case "openai_responses":
            return _word(shape.get("delta")) if shape.get("type") == "response.output_text.delta" else ""
        case "anthropic":
            delta = _table(shape.get("delta"))
            return _word(delta.get("text")) if delta.get("type") == "text_delta" else ""
        case "gemini":
            parts = _tables(_table(_first(shape.get("candidates")).get("content")).get("parts"))
            return "".join(_word(part.get("text")) for part in parts if not part.get("thought"))


def _of_chat(shape: Mapping[str, Any]) -> str:
    chunk = _table(shape.get("data")) or shape  # Mistral's SDK puts each chunk into an event
    content = _table(_first(chunk.get("choices")).get("delta")).get("content")
    if isinstance(content, str):
        return content
    return "".join(_word(part.get("text")) for part in _tables(content) if part.get("type") == "text")


def _first(value: object) -> Mapping[str, Any]:
    """Return the alternative that counts: the one of the index 0."""
    return next((one for one in _tables(value) if not one.get("index")), dict[str, Any]())


def _tables(value: object) -> Iterator[Mapping[str, Any]]:
    return (_table(one) for one in cast("list[object]", value)) if isinstance(value, list | tuple) else iter(())


def _table(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""

"""Replies of Gemini as the API writes them, also where they come as google-genai's own dump of its objects."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from enum import Enum
from typing import Any, cast

from pydantic.alias_generators import to_camel

from toolcrib.formats._json_reading import is_object, json_shape, object_or_empty, objects_in

__all__ = ["api_shape"]

_TELLING = frozenset(  # keys of a dump that has to be read: where a call is, and how a reply ended
    {"finish_reason", "prompt_feedback", "function_call", "thought_signature", "function_response", "inline_data"}
    | {"executable_code", "code_execution_result", "file_data"}
)
_OPEN = frozenset({"args", "response", "part_metadata"})  # whose keys are a tool's or a host's own


def api_shape(reply: object) -> Mapping[str, Any]:
    """Return a reply or chunk with the API's keys: `model_dump()` writes them in snake case, with enums and bytes."""
    shape = json_shape(reply)
    return cast("Mapping[str, Any]", _written(shape)) if _is_dump(shape) else shape


def _is_dump(shape: Mapping[str, Any]) -> bool:
    candidates = list(objects_in(shape.get("candidates")))
    contents = [object_or_empty(candidate.get("content")) for candidate in candidates]
    parts = [part for content in contents for part in objects_in(content.get("parts"))]
    return any(not _TELLING.isdisjoint(one) for one in (shape, *candidates, *parts))


def _written(value: object) -> Any:
    if is_object(value):
        named = ((str(key), part) for key, part in value.items() if part is not None)
        return {to_camel(key): part if key in _OPEN else _written(part) for key, part in named}
    if isinstance(value, list | tuple):
        return [_written(part) for part in cast("list[object]", value)]
    if isinstance(value, bytes):
        return urlsafe_b64encode(value).decode()
    return value.value if isinstance(value, Enum) else value

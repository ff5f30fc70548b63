"""Which provider's wire format a reply is in, told from the SDK that made it or from its shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from inspect import isawaitable
from typing import Any, TypeAlias, cast

from pydantic import BaseModel

from toolcrib.formats import ProviderName

__all__ = ["WireFormat", "detected", "shape_of"]

WireFormat: TypeAlias = ProviderName

_SDKS: dict[str, WireFormat] = {"anthropic": "anthropic", "google": "gemini", "mistralai": "mistral"}
_MISTRAL = re.compile(r"(mistral|codestral|magistral|ministral|pixtral|devstral|voxtral|open-mi)")


def detected(reply: object) -> WireFormat:
    """Return the format of a reply, or of a chunk of one.

    Mistral's replies have the shape of OpenAI's: one that is a plain dict is told by the name of the model.

    Raises:
        TypeError: It is neither an SDK's object nor a dict.
        ValueError: Its shape is nobody's.
    """
    sdk = _SDKS.get(type(reply).__module__.partition(".")[0])
    if sdk is not None:
        return sdk
    shape = shape_of(reply)
    for told in (_by_name, _by_keys):
        found = told(shape)
        if found is not None:
            return found
    keys = f"the keys {', '.join(map(str, shape))}, which are no provider's" if shape else "no keys"
    raise ValueError(f"the reply has {keys}; say which format it is in: decode(..., format='openai')")


def shape_of(item: object) -> Mapping[str, Any]:
    """Return a reply, or an item of a message list, as JSON shapes; TypeError for what has none."""
    if isinstance(item, Mapping):
        return cast("Mapping[str, Any]", item)
    if isinstance(item, BaseModel):
        return item.model_dump(mode="json", by_alias=True, exclude_none=True, warnings=False)
    hint = "; await it first" if isawaitable(item) else ""
    raise TypeError(f"a {type(item).__qualname__} is neither a dict nor an object of a provider's SDK{hint}")


def _by_name(shape: Mapping[str, Any]) -> WireFormat | None:
    kind, what = str(shape.get("type", "")), str(shape.get("object", ""))
    if what == "response" or kind.startswith("response."):
        return "openai_responses"
    if kind == "message" and shape.get("role") == "assistant" and "output" not in shape:
        return "anthropic"
    return "anthropic" if kind in ("message_start", "content_block_start", "ping") else None


def _by_keys(shape: Mapping[str, Any]) -> WireFormat | None:
    if "choices" in shape:
        return "mistral" if _MISTRAL.match(str(shape.get("model", ""))) else "openai"
    if "candidates" in shape:
        return "gemini"
    if isinstance(shape.get("output"), list):
        return "openai_responses"
    return None

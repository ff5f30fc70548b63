"""ChatModel: what a session needs of a model, and what it asks of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toolcrib.formats import Item, WireFormat

__all__ = ["ChatModel", "ChatRequest"]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request, in the session's wire format.

    Attributes:
        format: The wire format of everything in it.
        messages: The transcript.
        system: The instructions.
        tools: What the provider's `tools` parameter takes; empty when none are offered.
        tool_choice: What its parameter for the choice of a tool takes; None when no tools are offered.
        output: The JSON schema of the answer; None for text.
    """

    format: WireFormat
    messages: tuple[Item, ...]
    system: str = ""
    tools: tuple[Item, ...] = ()
    tool_choice: Any = None
    output: Mapping[str, Any] | None = None


class ChatModel(Protocol):
    """A model that a session talks to."""

    async def reply(self, request: ChatRequest) -> object:
        """Return the provider's reply as `decode` takes it, or an async iterator of a stream's chunks."""
        ...

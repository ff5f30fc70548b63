"""Chat model: what a session asks, and the request that it is given."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, Protocol, runtime_checkable

from toolcrib.formats import Item, WireFormat
from toolcrib.pipeline import Run


@runtime_checkable
class _ClosedByAclose(Protocol):
    """A stream that closes as an async generator does."""

    def aclose(self) -> Awaitable[object]: ...


@runtime_checkable
class _ClosedByClose(Protocol):
    """A stream that closes as those of the providers' clients do."""

    def close(self) -> object: ...


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request, in the session's wire format.

    Attributes:
        format: The wire format of everything in it.
        messages: The transcript: its own items, which a model leaves as they are.
        system: The instructions.
        tools: The provider's `tools` parameter, the provider's own tools last; empty when none are offered.
        tool_choice: Its parameter for the choice of a tool; None when no tools of the session's are offered.
        output: The JSON schema of the answer, an object; None for text. Where the type asked for is not an object,
            the answer stands in one, under `value`; a reply without that object is read, too.
        parallel: Whether the model may make several calls in its answer.
        container: The id of the provider's sandbox to go on in; empty for none. Anthropic's parameter `container`.
        cache: Whether the provider is to cache the instructions, too, in the form that `ProviderFormat.cached_system`
            has for them. Tools and messages have their marks already.
        stream: Whether somebody listens to the reply while it comes: a model that can stream should. The text of a
            reply that comes whole is shown as one piece.
        run: The run of the session that asks; None for a request of no session.
    """

    format: WireFormat
    messages: tuple[Item, ...]
    system: str = ""
    tools: tuple[Item, ...] = ()
    tool_choice: Any = None
    output: Mapping[str, Any] | None = None
    parallel: bool = True
    container: str = ""
    cache: bool = False
    stream: bool = False
    run: Run | None = field(default=None, repr=False, compare=False)

    def output_text(self) -> str:
        """Return the text that asks the model for `output`, where the provider cannot hold it to a schema."""
        schema = json.dumps(self.output, ensure_ascii=False)
        return "" if self.output is None else f"Answer with JSON alone, which fits this schema: {schema}"


_NAMED = ("function", "custom", "toolSpec", "systemTool")  # where a definition has its name, if not at its top


def joined_tools(tools: Iterable[Item], provider_tools: Iterable[Mapping[str, Any]]) -> tuple[Item, ...]:
    """Return definitions of tools, and after them the provider's own tools.

    A definition gives way to a provider's tool of the same name, which the model then calls by that name, and to one of
    the same type where neither has a name.
    """
    of_provider = [dict(tool) for tool in provider_tools]
    keys = [_key(tool) for tool in of_provider]
    return (*(tool for tool in tools if _key(tool) not in keys), *of_provider)


def _key(tool: Mapping[str, Any]) -> object:
    """Return the key that no two tools of a request may share; for a tool that has neither name nor type, itself."""
    named: Iterable[Mapping[str, Any]] = (tool, *(tool[key] for key in _NAMED if key in tool))
    name = next((part["name"] for part in named if part.get("name")), None)
    return ("name", name) if name else ("type", tool["type"]) if "type" in tool else tool


@asynccontextmanager
async def closed_stream(stream: object) -> AsyncGenerator[None]:
    """Close a stream of a model's chunks at the end, also where it was not read to its own: its connection is open."""
    try:
        yield
    finally:
        closes = stream.aclose() if isinstance(stream, _ClosedByAclose) else None
        if closes is None and isinstance(stream, _ClosedByClose):
            closes = stream.close()
        if isawaitable(closes):
            await closes


class ChatModel(Protocol):
    """A model that a session talks to.

    It may have an attribute `format`, the wire format that its sessions take over. For the record it may have `model`
    and `provider`, its own name and that of its provider, and `is_instrumented`: whether it makes an OpenTelemetry span
    for each request itself.
    """

    async def reply(self, request: ChatRequest) -> object:
        """Return the provider's reply as `decode` takes it, or an async iterator of a stream's chunks."""
        ...

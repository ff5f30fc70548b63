"""A model client of Microsoft Agent Framework that plays a script."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any

from agent_framework import (
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    UsageDetails,
)

_IDS = itertools.count()


class ScriptedClient(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A client that says one message after the other, and that it is done after the last.

    Attributes:
        asked: The messages of each request.
        offered: The names of the tools in each request.
        usage: What each reply says that it took; of the others, nothing is known.
    """

    def __init__(self, *steps: list[Content]) -> None:
        super().__init__()
        self.steps = [*steps]
        self.asked: list[list[Message]] = []
        self.offered: list[list[str]] = []
        self.usage: list[UsageDetails] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        self.asked.append([*messages])
        self.offered.append([getattr(tool, "name", str(tool)) for tool in options.get("tools") or ()])
        contents = self.steps.pop(0) if self.steps else [Content.from_text("done")]
        usage = self.usage.pop(0) if self.usage else None
        if stream:

            async def updates() -> AsyncIterator[ChatResponseUpdate]:
                yield ChatResponseUpdate(contents=contents, role="assistant")
                if usage is not None:
                    yield ChatResponseUpdate(contents=[Content.from_usage(usage)], role="assistant")

            return ResponseStream(updates(), finalizer=ChatResponse.from_updates)

        async def response() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message(role="assistant", contents=contents)], usage_details=usage)

        return response()


def calling(*calls: tuple[str, Any]) -> list[Content]:
    """Return a message that makes these calls."""
    return [Content.from_function_call(f"call_{next(_IDS)}", name, arguments=arguments) for name, arguments in calls]


def outputs(response: Any) -> list[str]:
    """Return what the model was given for each call."""
    return [
        "\n".join(part.text or f"<{part.type}>" for part in content.items or ()) or str(content.result)
        for message in response.messages
        for content in message.contents
        if content.type == "function_result"
    ]

"""A model of smolagents that follows a script."""

from __future__ import annotations

import itertools
import json
from typing import Any

from smolagents import LogLevel, Model
from smolagents.models import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    MessageRole,
)
from smolagents.monitoring import TokenUsage

QUIET: dict[str, Any] = {"verbosity_level": LogLevel.OFF}
_IDS = itertools.count()


class Script(Model):
    """A model that makes these calls or writes these programs, one turn after another, and then says it is done.

    Attributes:
        seen: The messages that it was given, turn by turn.
        usage: What each turn takes; of the others, nothing is known.
    """

    def __init__(self, *turns: Any) -> None:
        super().__init__()
        self._turns = [*turns]
        self.seen: list[Any] = []
        self.usage: list[TokenUsage] = []

    def generate(self, messages: Any, *args: Any, tools_to_call_from: Any = None, **options: Any) -> ChatMessage:
        self.seen.append(messages)
        last: Any = "final_answer('done')" if tools_to_call_from is None else [("final_answer", {"answer": "done"})]
        turn = self._turns.pop(0) if self._turns else last
        took = self.usage.pop(0) if self.usage else None
        if isinstance(turn, str):
            return ChatMessage(MessageRole.ASSISTANT, f"<code>\n{turn}\n</code>", token_usage=took)
        calls = [_call(name, arguments) for name, arguments in turn]
        return ChatMessage(MessageRole.ASSISTANT, "", calls, token_usage=took)

    def generate_stream(self, messages: Any, *args: Any, **options: Any) -> Any:
        made = self.generate(messages, *args, **options)
        calls = [
            ChatMessageToolCallStreamDelta(index=place, id=call.id, type="function", function=_as_text(call))
            for place, call in enumerate(made.tool_calls or ())
        ]
        yield ChatMessageStreamDelta(content=made.content, tool_calls=calls or None)


def _call(name: str, arguments: Any) -> ChatMessageToolCall:
    function = ChatMessageToolCallFunction(name=name, arguments=arguments)
    return ChatMessageToolCall(function=function, id=f"call_{next(_IDS)}", type="function")


def _as_text(call: ChatMessageToolCall) -> ChatMessageToolCallFunction:
    return ChatMessageToolCallFunction(name=call.function.name, arguments=json.dumps(call.function.arguments))

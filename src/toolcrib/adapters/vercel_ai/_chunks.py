"""Events of an exchange as chunks of the UI message stream, version 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from toolcrib.calls import DOUBT_ANSWERS, ApprovalRequest, Completed, Media, Outcome, Rejected, render
from toolcrib.serving import (
    ApprovalAsked,
    CallEnded,
    CallShown,
    ExchangeEnded,
    FrontEndEvent,
    ReplyBegan,
    ReplyText,
)

Chunk: TypeAlias = dict[str, Any]

_FINISHES = {
    "finished": "stop",
    "length": "length",
    "refusal": "content-filter",
    "content_filter": "content-filter",
    "suspended": "tool-calls",
    "error": "error",
}


_WAITS = "The result comes when the requests for approval beside this call are answered."


class ChunkWriter:
    """Writes the chunks of one stream; it knows which step, which text and which calls are open."""

    def __init__(self) -> None:
        self._texts = 0
        self._calls: dict[str, None] = {}
        self._in_step = self._in_text = False

    def write(self, event: FrontEndEvent) -> Iterator[Chunk]:
        """Return the chunks for one event."""
        if not isinstance(event, ReplyText) and self._in_text:
            self._in_text = False
            yield {"type": "text-end", "id": self._text_id}
        match event:
            case ReplyBegan():
                yield from self._end_step()
                self._in_step = True
                yield {"type": "start-step"}
            case ReplyText(text=text):
                if not self._in_text:
                    self._in_text, self._texts = True, self._texts + 1
                    yield {"type": "text-start", "id": self._text_id}
                yield {"type": "text-delta", "id": self._text_id, "delta": text}
            case CallShown(id=id, tool=tool, arguments=arguments):
                self._calls[id] = None
                yield {"type": "tool-input-available", "toolCallId": id, "toolName": tool, "input": arguments}
            case CallEnded(id=id, outcome=outcome):
                self._calls.pop(id, None)
                yield from _result(id, outcome)
            case ApprovalAsked(request=request):
                self._calls.pop(request.call_id, None)
                yield from _request(request)
            case ExchangeEnded():
                yield from self._end(event)

    @property
    def _text_id(self) -> str:
        return f"text-{self._texts}"

    def _end_step(self) -> Iterator[Chunk]:
        if self._in_step:
            self._in_step = False
            yield {"type": "finish-step"}

    def _end(self, event: ExchangeEnded) -> Iterator[Chunk]:
        if event.problem:
            yield {"type": "error", "errorText": event.problem}
        if event.reason == "stopped":
            yield {"type": "abort"}
            return
        if event.reason == "suspended":  # clients send answers when no other call of the message is open
            for id in self._calls:
                yield {"type": "tool-output-error", "toolCallId": id, "errorText": _WAITS}
        yield from self._end_step()
        took = event.usage
        usage = {"inputTokens": took.input_tokens, "outputTokens": took.output_tokens, "requests": took.requests}
        reason = _FINISHES.get(event.reason, "other")
        yield {"type": "finish", "finishReason": reason, "messageMetadata": {"usage": usage}}


def _request(request: ApprovalRequest) -> Iterator[Chunk]:
    """Yield the request; before one about a call in doubt, its title and the words of its answers."""
    if request.in_doubt:
        words = {"title": request.title, "answers": dict(DOUBT_ANSWERS)}
        yield {"type": "data-in-doubt", "id": request.id, "data": words}
    asked = {"type": "tool-approval-request", "approvalId": request.id, "toolCallId": request.call_id}
    yield {**asked, "reason": request.text()}


def _result(id: str, outcome: Outcome) -> Iterator[Chunk]:
    """Return what the model is shown of an outcome, its media as files beside it."""
    if isinstance(outcome, Rejected) and outcome.source == "user":
        yield {"type": "tool-output-denied", "toolCallId": id}
        return
    shown = render(outcome, structured=True)
    if not isinstance(outcome, Completed) or shown.is_error:
        yield {"type": "tool-output-error", "toolCallId": id, "errorText": shown.text}
        return
    yield {"type": "tool-output-available", "toolCallId": id, "output": shown.value}
    for part in shown.parts:
        if isinstance(part, Media) and part.is_sendable:
            yield {"type": "file", "url": part.link, "mediaType": part.mime_type}

"""Endpoint for the chat transports of the Vercel AI SDK."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, StrictBool
from starlette.types import ASGIApp

from toolcrib.approvals import ApprovalStore, GrantForm
from toolcrib.calls import DOUBT_ANSWERS, Completed, Done, Media, Outcome, Rejected, render
from toolcrib.errors import FrontEndError, explain_options
from toolcrib.serving import (
    ApprovalAsked,
    CallEnded,
    CallShown,
    Exchange,
    ExchangeEnded,
    FrontEndAnswer,
    FrontEndEvent,
    FrontEndLimits,
    FrontEndRequest,
    OpenSession,
    ReplyBegan,
    ReplyText,
)
from toolcrib.serving.http import FindPrincipal, front_end_app, parse_body


class _Approval(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    approved: StrictBool | None = None
    reason: str | None = None


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: str
    text: str = ""
    state: str | None = None
    approval: _Approval | None = None


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    role: str
    parts: list[_Part]


class _Chat(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    messages: list[_Message]


_SAYS_MORE = {"result", "further", "words"}


def request_in(body: Mapping[str, Any]) -> FrontEndRequest:
    """Return the person's last message and their answers; a message with more than text is refused.

    Raises:
        FrontEndError: It is not a request of a chat transport, or the message has other parts than text.
    """
    chat = parse_body(_Chat, body, "of the Vercel AI SDK's chat transport")
    # the last answer to each request, or a no that is among them
    approvals: dict[str, _Approval] = {}
    for part in (part for message in chat.messages for part in message.parts):
        approval = part.approval
        if part.state == "approval-responded" and approval is not None and approval.approved is not None:
            before = approvals.get(approval.id)
            approvals[approval.id] = approval if before is None or before.approved else before
    answers = {id: _answer(id, approval.approved is True, approval.reason or "") for id, approval in approvals.items()}
    last = next((message for message in reversed(chat.messages) if message.role == "user"), None)
    if last is None:
        return FrontEndRequest(chat.id, answers=answers)
    if any(part.type != "text" for part in last.parts):
        raise FrontEndError("a message is text here, and this has other parts", 422)
    return FrontEndRequest(chat.id, last.id, "\n".join(part.text for part in last.parts), answers)


def _answer(id: str, approved: bool, reason: str) -> FrontEndAnswer:
    """Return an answer; the reason of a yes may be JSON that says more: `result`, `further` or `words`."""
    try:
        answer: Any = json.loads(reason) if approved else None
        match answer:
            case {"result": result} if len(answer) == 1:
                return FrontEndAnswer(approved, done=Done(result))
            case {"words": str(words)} if len(answer) == 1 and words:
                return FrontEndAnswer(approved, words=words)
            case {"further": dict()} if len(answer) == 1:
                return FrontEndAnswer(approved, further=GrantForm.from_dict(answer["further"]))
            case dict() if names := _SAYS_MORE & {name.strip().casefold() for name in cast("dict[str, Any]", answer)}:
                raise ValueError(f"`{min(names)}` is not what it should be, or does not stand alone")
            case _:
                return FrontEndAnswer(approved, reason)
    except json.JSONDecodeError:
        return FrontEndAnswer(approved, reason)
    except (ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, ValueError) else "it is too deep"
        raise FrontEndError(f"the reason of the answer to {id:.100}: {why}", 422) from None


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
                yield from _request(event)
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


def _request(event: ApprovalAsked) -> Iterator[Chunk]:
    """Yield the request, after the words of the answers about a call in doubt, or the form for further calls."""
    request = event.request
    if event.further is not None:
        form = {"schema": event.further, "words": event.words, "problem": event.problem}
        yield {"type": "data-further", "id": request.id, "data": form}
    if request.in_doubt:
        words = {"title": request.title, "answers": dict(DOUBT_ANSWERS)}
        yield {"type": "data-in-doubt", "id": request.id, "data": words}
    asked = {"type": "tool-approval-request", "approvalId": request.id, "toolCallId": request.call_id}
    yield {**asked, "reason": event.text}


def _result(id: str, outcome: Outcome) -> Iterator[Chunk]:
    """Return an outcome for the model, its media as files beside it."""
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


@explain_options()
def vercel_ai_app(
    open_session: OpenSession,
    *,
    principal: FindPrincipal,
    approvals: ApprovalStore | None = None,
    limits: FrontEndLimits | None = None,
) -> ASGIApp:
    """Return an ASGI application that answers the chats of the Vercel AI SDK, such as `useChat`, at any path.

    The transcript is kept here. Of what a client sends, the person's last message and the answers to requests for
    approval count.

    Args:
        open_session: Returns a new `Session` for a principal, with its model and tools. It is asked for every request.
        principal: Returns on whose behalf a request is made, from its cookie or token; None is answered with 401.
        approvals: Where approval requests are kept, and the sessions beside them: a database, for several processes or
            across restarts. In memory when None.
        limits: Limits of what a client may send and start.
    """
    return front_end_app(_VercelAi(), open_session, principal=principal, approvals=approvals, limits=limits)


class _VercelAi:
    entry = "vercel-ai"
    headers: Mapping[str, str] = {"x-vercel-ai-ui-message-stream": "v1"}

    def read(self, body: Mapping[str, Any]) -> FrontEndRequest:
        return request_in(body)

    def write(self, body: Mapping[str, Any], exchange: Exchange) -> AsyncIterator[str]:
        return _texts(exchange)


async def _texts(exchange: Exchange) -> AsyncGenerator[str]:
    writer = ChunkWriter()
    async with aclosing(exchange.events()) as events:
        yield _text({"type": "start"})
        async for event in events:
            for chunk in writer.write(event):
                yield _text(chunk)
        yield "data: [DONE]\n\n"


def _text(chunk: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(chunk)}\n\n"

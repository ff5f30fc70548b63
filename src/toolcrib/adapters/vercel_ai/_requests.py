"""Requests of the Vercel AI SDK's chat transports, and what counts of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, StrictBool, ValidationError

from toolcrib._numbers import count_text
from toolcrib.calls import Done
from toolcrib.errors import FrontEndError
from toolcrib.serving import FrontEndAnswer, FrontEndRequest


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


def request_in(body: Mapping[str, Any]) -> FrontEndRequest:
    """Return the person's last message and their answers; a message with more than text is refused.

    Raises:
        FrontEndError: It is not a request of a chat transport, or the message has other parts than text.
    """
    try:
        chat = _Chat.model_validate(body)
    except (ValidationError, RecursionError) as error:
        is_wrong = isinstance(error, ValidationError)
        what = f"it has {count_text(error.error_count(), 'wrong field')}" if is_wrong else "it is too deep"
        raise FrontEndError(f"the request is not of the Vercel AI SDK's chat transport: {what}", 422) from None
    answers = dict(_answers(chat))
    last = next((message for message in reversed(chat.messages) if message.role == "user"), None)
    if last is None:
        return FrontEndRequest(chat.id, answers=answers)
    if any(part.type != "text" for part in last.parts):
        raise FrontEndError("a message is text here, and this has other parts", 422)
    return FrontEndRequest(chat.id, last.id, "\n".join(part.text for part in last.parts), answers)


def _answers(chat: _Chat) -> Iterator[tuple[str, FrontEndAnswer]]:
    for message in chat.messages:
        for part in message.parts:
            said = part.approval
            if part.state == "approval-responded" and said is not None and said.approved is not None:
                done = _done(said.reason) if said.approved else None
                yield said.id, FrontEndAnswer(said.approved, "" if done else said.reason or "", done=done)


def _done(reason: str | None) -> Done | None:
    """Return what a call in doubt came to, from the reason of a yes: `{"result": ...}` as JSON; None for another."""
    try:
        said: Any = json.loads(reason or "")
    except (ValueError, RecursionError):
        return None
    return Done(said["result"]) if isinstance(said, dict) and said.keys() == {"result"} else None

"""Events of an exchange as events of AG-UI."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from ag_ui.core import (
    AudioPart,
    BaseEvent,
    DataSource,
    DocumentPart,
    ImagePart,
    Interrupt,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TextPart,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UrlSource,
    VideoPart,
)

from toolcrib.adapters.ag_ui._requests import ANSWER_SCHEMA, doubt_schema
from toolcrib.calls import DOUBT_ANSWERS, ApprovalRequest, Media, Outcome, carried, render
from toolcrib.serving import (
    ApprovalAsked,
    CallEnded,
    CallShown,
    ExchangeEnded,
    FrontEndEvent,
    ReplyBegan,
    ReplyText,
)

_PARTS: dict[str, Any] = {"image": ImagePart, "audio": AudioPart, "video": VideoPart}


class EventWriter:
    """Writes the events of one run; it knows which message is open, and which interrupts end the run.

    Args:
        thread_id: The conversation.
        run_id: The run.
    """

    def __init__(self, thread_id: str, run_id: str) -> None:
        self._thread_id, self._run_id = thread_id, run_id
        self._message = ""
        self._is_open = False
        self._interrupts: list[Interrupt] = []

    def write(self, event: FrontEndEvent) -> Iterator[BaseEvent]:
        """Return the protocol's events for one event."""
        if not isinstance(event, ReplyText) and self._is_open:
            self._is_open = False
            yield TextMessageEndEvent(message_id=self._message)
        match event:
            case ReplyBegan():
                self._message = f"msg_{uuid4().hex}"
            case ReplyText(text=text):
                if not self._is_open:
                    self._is_open = True
                    yield TextMessageStartEvent(message_id=self._message, role="assistant")
                yield TextMessageContentEvent(message_id=self._message, delta=text)
            case CallShown(id=id, tool=tool, arguments=arguments):
                text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
                yield ToolCallStartEvent(tool_call_id=id, tool_call_name=tool, parent_message_id=self._message)
                yield ToolCallArgsEvent(tool_call_id=id, delta=text)
                yield ToolCallEndEvent(tool_call_id=id)
            case CallEnded(id=id, outcome=outcome):
                content = _content(outcome)
                result = {"message_id": f"result_{uuid4().hex}", "tool_call_id": id, "role": "tool"}
                yield ToolCallResultEvent.model_validate({**result, "content": content})
            case ApprovalAsked(request=request):
                self._interrupts.append(_interrupt(request))
            case ExchangeEnded():
                yield self._end(event)

    def _end(self, event: ExchangeEnded) -> BaseEvent:
        took = event.usage
        usage = [
            TokenUsage(
                input_tokens=took.input_tokens,
                output_tokens=took.output_tokens,
                reasoning_tokens=took.reasoning_tokens,
                cached_input_tokens=took.cached_tokens,
                cache_write_input_tokens=took.cache_written_tokens,
            )
        ]
        if event.problem:
            return RunErrorEvent(message=event.problem, code=event.reason, usage=usage)
        outcome = RunFinishedSuccessOutcome()
        if event.reason == "stopped":
            outcome = RunFinishedCancelledOutcome()
        elif self._interrupts:
            outcome = RunFinishedInterruptOutcome(interrupts=self._interrupts)
        return RunFinishedEvent(thread_id=self._thread_id, run_id=self._run_id, outcome=outcome, usage=usage)


def _interrupt(request: ApprovalRequest) -> Interrupt:
    doubt = {"title": request.title, "answers": dict(DOUBT_ANSWERS)} if request.in_doubt else {}
    about = {"tool": request.tool, "arguments": dict(request.arguments), "inDoubt": request.in_doubt}
    return Interrupt(
        id=request.id,
        reason="tool_call",
        message=request.text(),
        tool_call_id=request.call_id,
        response_schema=doubt_schema(request) if request.in_doubt else ANSWER_SCHEMA,
        metadata={**about, **doubt},
    )


def _content(outcome: Outcome) -> str | list[Any]:
    """Return what the model is shown of an outcome: text, or text and media in their order."""
    shown = render(outcome)
    if not any(isinstance(part, Media) and part.is_sendable for part in shown.parts):
        return shown.text
    return [_part(part) for part in carried(shown.parts, lambda media: media.is_sendable)]


def _part(part: str | Media) -> Any:
    if isinstance(part, str):
        return TextPart(text=part)
    kind = _PARTS.get(part.mime_type.partition("/")[0], DocumentPart)
    if part.data is None:
        return kind(source=UrlSource(value=part.url or "", mime_type=part.mime_type))
    return kind(source=DataSource(value=part.base64, mime_type=part.mime_type))

"""Endpoint for clients of AG-UI."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Self
from uuid import uuid4

from ag_ui.core import (
    PROTOCOL_VERSION,
    AudioPart,
    BaseEvent,
    DataSource,
    DocumentPart,
    ImagePart,
    Interrupt,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
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
    UserMessage,
    VideoPart,
)
from ag_ui.encoder import EventEncoder
from pydantic import BaseModel, ConfigDict, StrictBool, ValidationError, model_validator
from starlette.types import ASGIApp

from toolcrib.approvals import ApprovalStore, GrantForm
from toolcrib.calls import DOUBT_ANSWERS, ApprovalRequest, Done, Media, Outcome, carried, render
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

_INPUT = "a RunAgentInput of AG-UI"


class _Payload(BaseModel):
    """The payload of an answer; camelCase as the protocol's documentation has it."""

    model_config = ConfigDict(extra="forbid")

    approved: StrictBool = False
    reason: str = ""
    editedArgs: dict[str, Any] | None = None
    result: Any = None
    further: dict[str, Any] | None = None
    words: str = ""

    @model_validator(mode="after")
    def _check_one_answer(self) -> Self:
        if len({"approved", "result"} & self.model_fields_set) != 1:
            raise ValueError("it says either whether the call is approved, or its result")
        has_value = {"further": self.further is not None, "words": bool(self.words)}
        if self.approved and not all(has_value[name] for name in has_value.keys() & self.model_fields_set):
            raise ValueError("a yes for further calls says which, and a plain yes leaves that out")
        return self


ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string"},
        "editedArgs": {"type": "object"},
    },
    "required": ["approved"],
}
"""The JSON schema of the answer to an interrupt."""


def doubt_schema(request: ApprovalRequest) -> dict[str, Any]:
    """Return the schema of an answer about a call in doubt: yes, no, or the call's result."""
    answers = {"approved": {"type": "boolean"}, "reason": {"type": "string"}, "result": dict(request.returns or {})}
    return {"type": "object", "properties": answers, "oneOf": [{"required": ["approved"]}, {"required": ["result"]}]}


def request_in(sent: RunAgentInput) -> FrontEndRequest:
    """Return the person's last message and their answers; a message with more than text is refused.

    Raises:
        FrontEndError: The payload of an answer says neither yes nor no, an interrupt has two answers, or the message
            has no text.
    """
    answers = {entry.interrupt_id: _answer(entry) for entry in sent.resume or ()}
    if len(answers) < len(sent.resume or ()):
        raise FrontEndError("an interrupt is answered twice; send one answer to each", 422)
    last = next((message for message in reversed(sent.messages) if isinstance(message, UserMessage)), None)
    if last is None:
        return FrontEndRequest(sent.thread_id, answers=answers)
    return FrontEndRequest(sent.thread_id, last.id, _text(last), answers)


def _answer(entry: ResumeEntry) -> FrontEndAnswer:
    if entry.status == "cancelled":
        return FrontEndAnswer(approved=False)
    try:
        payload = _Payload.model_validate(entry.payload)
    except (ValidationError, RecursionError):
        form = '{"approved": true}, {"approved": false, "reason": "..."}, or of a call in doubt {"result": ...}'
        raise FrontEndError(f"the payload of the answer to {entry.interrupt_id:.100} must be {form}", 422) from None
    done = Done(payload.result) if "result" in payload.model_fields_set else None
    try:
        further = None if payload.further is None else GrantForm.from_dict(payload.further)
    except ValueError as error:
        raise FrontEndError(f"`further` of the answer to {entry.interrupt_id:.100}: {error}", 422) from None
    return FrontEndAnswer(payload.approved, payload.reason, payload.editedArgs, done, further, payload.words)


def _text(message: UserMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    texts = [part.text for part in message.content if isinstance(part, TextPart)]
    if len(texts) < len(message.content):
        raise FrontEndError("a message is text here, and this has other parts", 422)
    return "\n".join(texts)


_PARTS: dict[str, Any] = {"image": ImagePart, "audio": AudioPart, "video": VideoPart}


class EventWriter:
    """Writes the events of one run; it knows which message is open, and which interrupts end the run."""

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
            case ApprovalAsked():
                self._interrupts.append(_interrupt(event))
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


def _interrupt(asked: ApprovalAsked) -> Interrupt:
    request = asked.request
    doubt = {"title": request.title, "answers": dict(DOUBT_ANSWERS)} if request.in_doubt else {}
    about = {"tool": request.tool, "arguments": dict(request.arguments), "inDoubt": request.in_doubt}
    schema = doubt_schema(request) if request.in_doubt else ANSWER_SCHEMA
    if asked.further is not None:
        words = {"words": {"const": asked.words}} if asked.words else {}
        schema = {**schema, "properties": {**schema["properties"], "further": dict(asked.further), **words}}
    return Interrupt(
        id=request.id,
        reason="tool_call",
        message=asked.text,
        tool_call_id=request.call_id,
        response_schema=schema,
        metadata={**about, **doubt, **({"words": asked.words} if asked.words else {})},
    )


def _content(outcome: Outcome) -> str | list[Any]:
    """Return an outcome for the model: text, or text and media in their order."""
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


@explain_options()
def ag_ui_app(
    open_session: OpenSession,
    *,
    principal: FindPrincipal,
    approvals: ApprovalStore | None = None,
    limits: FrontEndLimits | None = None,
) -> ASGIApp:
    """Return an ASGI application that answers clients of AG-UI, such as `HttpAgent`, at any path.

    The transcript is kept here. Of what a client sends, the person's last message and the answers to interrupts count.

    Args:
        open_session: Returns a new `Session` for a principal, with its model and tools. It is asked for every request.
        principal: Returns on whose behalf a request is made, from its cookie or token; None is answered with 401.
        approvals: Where approval requests are kept, and the sessions beside them: a database, for several processes or
            across restarts. In memory when None.
        limits: Limits of what a client may send and start.
    """
    return front_end_app(_AgUi(), open_session, principal=principal, approvals=approvals, limits=limits)


class _AgUi:
    entry = "ag-ui"
    headers: Mapping[str, str] = {}

    def read(self, body: Mapping[str, Any]) -> FrontEndRequest:
        return request_in(parse_body(RunAgentInput, body, _INPUT))

    def write(self, body: Mapping[str, Any], exchange: Exchange) -> AsyncIterator[str]:
        return _texts(parse_body(RunAgentInput, body, _INPUT), exchange)


async def _texts(sent: RunAgentInput, exchange: Exchange) -> AsyncGenerator[str]:
    encoder, writer = EventEncoder(), EventWriter(sent.thread_id, sent.run_id)
    started: BaseEvent = RunStartedEvent(
        thread_id=sent.thread_id, run_id=sent.run_id, protocol_version=PROTOCOL_VERSION
    )
    async with aclosing(exchange.events()) as events:
        yield encoder.encode(started)
        async for event in events:
            for text in writer.write(event):
                yield encoder.encode(text)

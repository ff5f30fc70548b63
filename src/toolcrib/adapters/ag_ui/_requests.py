"""Requests of AG-UI, and what counts of them."""

from __future__ import annotations

from typing import Any, Self

from ag_ui.core import ResumeEntry, RunAgentInput, TextPart, UserMessage
from pydantic import BaseModel, ConfigDict, StrictBool, ValidationError, model_validator

from toolcrib.calls import ApprovalRequest, Done
from toolcrib.errors import FrontEndError
from toolcrib.serving import FrontEndAnswer, FrontEndRequest


class _Payload(BaseModel):
    """The payload of an answer; camelCase as the protocol's documentation has it."""

    model_config = ConfigDict(extra="forbid")

    approved: StrictBool = False
    reason: str = ""
    editedArgs: dict[str, Any] | None = None
    result: Any = None

    @model_validator(mode="after")
    def _check_one_answer(self) -> Self:
        if len({"approved", "result"} & self.model_fields_set) != 1:
            raise ValueError("it says either whether the call is approved, or what it came to")
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
"""What an interrupt says of its answer."""


def doubt_schema(request: ApprovalRequest) -> dict[str, Any]:
    """Return what an interrupt about a call in doubt says of its answer: yes, no, or the call's result."""
    answers = {"approved": {"type": "boolean"}, "reason": {"type": "string"}, "result": dict(request.returns or {})}
    return {"type": "object", "properties": answers, "oneOf": [{"required": ["approved"]}, {"required": ["result"]}]}


def request_in(given: RunAgentInput) -> FrontEndRequest:
    """Return the person's last message and their answers; a message with more than text is refused.

    Raises:
        FrontEndError: The payload of an answer says neither yes nor no, or the message has no text.
    """
    answers = {entry.interrupt_id: _answer(entry) for entry in given.resume or ()}
    last = next((message for message in reversed(given.messages) if isinstance(message, UserMessage)), None)
    if last is None:
        return FrontEndRequest(given.thread_id, answers=answers)
    return FrontEndRequest(given.thread_id, last.id, _text(last), answers)


def _answer(entry: ResumeEntry) -> FrontEndAnswer:
    if entry.status == "cancelled":
        return FrontEndAnswer(approved=False)
    try:
        said = _Payload.model_validate(entry.payload)
    except (ValidationError, RecursionError):
        form = '{"approved": true}, {"approved": false, "reason": "..."}, or of a call in doubt {"result": ...}'
        raise FrontEndError(f"the payload of the answer to {entry.interrupt_id:.100} must be {form}", 422) from None
    done = Done(said.result) if "result" in said.model_fields_set else None
    return FrontEndAnswer(said.approved, said.reason, said.editedArgs, done)


def _text(message: UserMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    texts = [part.text for part in message.content if isinstance(part, TextPart)]
    if len(texts) < len(message.content):
        raise FrontEndError("a message is text here, and this has other parts", 422)
    return "\n".join(texts)

"""Calls of ADK: their run, the confirmation that a suspended one asks for, and what the model is given."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast
from uuid import uuid4

from google.adk.events import Event
from google.adk.tools import ToolContext
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from toolcrib.adapters.google_adk._answers import CONFIRMATION, CONFIRMED_BY, KEY, confirmed_request
from toolcrib.calls import ApprovalRequest, Completed, Denial, Grant, Outcome, Suspended, ToolCall, new_call_id, render
from toolcrib.pipeline import Run
from toolcrib.rounds import recall_transcript
from toolcrib.serving.frameworks import (
    FrameworkTools,
    UsageNames,
    answer_of,
    is_as_seen,
    plain_grant,
    request_payload,
)

ENTRY = "google_adk"

_USAGE = UsageNames(
    "prompt_token_count tool_use_prompt_token_count",
    "candidates_token_count thoughts_token_count",
    "cached_content_token_count",
    reasoning="thoughts_token_count",
)


async def make(
    tools: FrameworkTools,
    name: str,
    arguments: dict[str, Any],
    theirs: ToolContext,
    provide: Mapping[Any, Any] = MappingProxyType({}),
) -> Outcome:
    """Make a call, or go on with the one that was confirmed; ask for a confirmation where a person has to answer."""
    call, run = ToolCall(name, arguments, theirs.function_call_id or new_call_id()), run_of(tools, theirs, provide)

    def answer(request: ApprovalRequest) -> Grant | Denial | None:
        return _confirmation_answer(theirs, request)

    def lost(request: ApprovalRequest) -> Grant | Denial | None:
        answer = _confirmation_answer(theirs, request)
        return answer if isinstance(answer, Denial) or is_as_seen(request) or _is_bound(theirs) else None

    outcome = await tools.call(call, run, answer=answer, lost=lost)
    if isinstance(outcome, Suspended) and theirs.function_call_id:
        payload = request_payload(outcome.request)
        if theirs.tool_confirmation is not None:
            payload[CONFIRMED_BY] = await _ask_again(theirs, outcome.request, payload)
        theirs.request_confirmation(hint=outcome.request.text(), payload=payload)
        theirs.actions.skip_summarization = True
    return outcome


async def _ask_again(theirs: ToolContext, request: ApprovalRequest, payload: Mapping[str, Any]) -> str:
    """Put a further confirmation of a call that was confirmed into the session, as ADK asks once; return its id."""
    about, id = theirs.get_invocation_context(), f"adk-{uuid4()}"
    calls = (call for event in theirs.session.events for call in event.get_function_calls())
    original = next(call for call in calls if call.id == theirs.function_call_id)
    confirmation = ToolConfirmation(hint=request.text(), payload=payload)
    shapes = {"originalFunctionCall": original, "toolConfirmation": confirmation}
    arguments = {name: shape.model_dump(by_alias=True, exclude_none=True) for name, shape in shapes.items()}
    part = types.Part(function_call=types.FunctionCall(id=id, name=CONFIRMATION, args=arguments))
    event = Event(
        invocation_id=about.invocation_id,
        author=theirs.agent_name,
        branch=about.branch,
        isolation_scope=about.isolation_scope,
        content=types.Content(role="model", parts=[part]),
        long_running_tool_ids={id},
    )
    await about.session_service.append_event(theirs.session, event)
    return id


def record_event(tools: FrameworkTools, event: Event, theirs: ToolContext) -> None:
    """Record the usage of the request that an event answers, where it is one."""
    usage = event.usage_metadata
    if usage is None or event.partial:
        return
    tools.record_usage(run_of(tools, theirs), [_USAGE.request(event.id, usage, event.model_version)])


def reply_to(outcome: Outcome) -> dict[str, Any]:
    """Return the reply for the model: the value of a tool, or the error."""
    if not isinstance(outcome, Completed):
        return {"error": outcome.text()}
    shown = render(outcome, structured=True)
    if shown.is_error:
        return {"error": shown.text}
    value: Any = shown.text if shown.parts else shown.value  # media are named: a function response is JSON
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"result": value}


def _confirmation_answer(theirs: ToolContext, request: ApprovalRequest) -> Grant | Denial | None:
    """Return the answer that ADK's confirmation is, with what `answers` put beside it."""
    confirmation = theirs.tool_confirmation
    if confirmation is None:
        return None
    if _is_bound(theirs):
        answer = answer_of(request, _payload(theirs))
        return answer if confirmation.confirmed or isinstance(answer, Denial) else request.deny()
    if not confirmation.confirmed:
        return request.deny()
    confirmed = confirmed_request(theirs.session.events, request.call_id)
    return request.grant() if confirmed == request.id else plain_grant(request)


def _payload(theirs: ToolContext) -> Any:
    payload: Any = None if theirs.tool_confirmation is None else theirs.tool_confirmation.payload
    return cast("dict[str, Any]", payload).get(KEY) if isinstance(payload, dict) else None


def _is_bound(theirs: ToolContext) -> bool:
    """Return whether a confirmation names the request that it answers."""
    payload = _payload(theirs)
    return isinstance(payload, dict) and "kind" in payload


def run_of(tools: FrameworkTools, theirs: ToolContext, provide: Mapping[Any, Any] = MappingProxyType({})) -> Run:
    """Return the run that a call belongs to: that of one invocation of a runner, on behalf of its user."""
    session = theirs.session
    run = tools.runs.find(
        (session.id, theirs.invocation_id),
        theirs,
        run_id=theirs.invocation_id,
        provide={ToolContext: theirs, **provide},
        principal=theirs.user_id,
        conversation_id=session.id,
    )
    if run.features:
        shapes = [event.content.model_dump(mode="json", exclude_none=True) for event in session.events if event.content]
        contents = [shape for shape in shapes if CONFIRMATION not in str(shape.get("parts"))]
        recall_transcript(run, tools.pipeline.toolset, contents, "gemini")
    return run

"""Calls of one run of an agent: the run of ours that they belong to, their requests, and what the model is given."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from agent_framework import (
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    Message,
)
from pydantic_core import to_jsonable_python

from toolcrib.adapters.agent_framework._answers import answer_in, request_content
from toolcrib.calls import ApprovalRequest, Denial, Outcome, Rejected, Suspended, ToolCall, new_call_id, render
from toolcrib.pipeline import Run
from toolcrib.record import Sink, wants_activities
from toolcrib.rounds import recall_transcript
from toolcrib.serving.frameworks import (
    FrameworkRuns,
    FrameworkTools,
    MediaForms,
    RecentValues,
    UsageNames,
    record_usage,
)
from toolcrib.toolsets import Toolset

ENTRY = "agent_framework"

_USAGE = UsageNames(
    "input_token_count",
    "output_token_count",
    "cache_read_input_token_count",
    "cache_creation_input_token_count",
    "reasoning_output_token_count",
)

_CONTENTS = MediaForms(
    text=Content.from_text,
    kinds={"": lambda media: Content.from_data(media.data or b"", media.mime_type)},
    links={"": lambda media: Content.from_uri(media.url or "", media_type=media.mime_type)},
)

_THEIR_DENIAL = "Error: Tool call invocation was rejected by user."
"""The framework's text for a model, of any call that was denied."""

Next = Callable[[], Awaitable[None]]


class CallOfAgent:
    """A call of one of the tools, as the framework makes it."""

    def __init__(self, context: FunctionInvocationContext, run: Run) -> None:
        self.arguments: dict[str, Any] = to_jsonable_python(context.arguments, fallback=str)
        self._context = context
        extras = {name: value for name, value in context.kwargs.items() if name != "session"}  # by the agent's caller
        deps = {} if run.deps is not None or not extras else {"deps": extras}
        self.run = run.view(provide={**run.provide, FunctionInvocationContext: context}, **deps)

    async def make(self, tools: FrameworkTools, provide: Mapping[Any, Any] | None = None) -> Outcome | None:
        """Make the call, or go on with it; None where the framework has to ask a person, which its result does then."""
        context, run = self._context, self.run
        if provide:
            run = run.view(provide={**run.provide, **provide})
        call_id: str = context.metadata.get("call_id") or new_call_id()
        call = ToolCall(context.function.name, self.arguments, call_id)

        outcome = await tools.call(
            call,
            run,
            answer=lambda request: answer_in(context, request, is_known=True),
            lost=lambda request: answer_in(context, request, is_known=False),
        )
        if isinstance(outcome, Suspended) and "call_id" in context.metadata:
            context.result = request_content(context, self.arguments, outcome.request)
            return None
        return outcome


class Gates(ABC):
    """The gates of one provider, as the calls of its agents meet them."""

    def __init__(self, runs: FrameworkRuns, sinks: Iterable[Sink]) -> None:
        self.runs, self.sinks = runs, tuple(sinks)
        self._denied: RecentValues[tuple[str, str], str] = RecentValues()  # by session and call: the text for the model

    @abstractmethod
    async def call(self, context: FunctionInvocationContext, run: Run, call_next: Next) -> None:
        """Make a call, and put what the model is given into the context."""

    @abstractmethod
    def known(self, context: ChatContext) -> Toolset:
        """Return the tools whose results a model may be sent."""

    @abstractmethod
    def tools_of(self, name: str) -> FrameworkTools | None:
        """Return the tools that one of a name is among."""

    def reads_requests(self, run: Run, session: AgentSession) -> bool:
        """Return whether requests of a run are read or counted; their middleware is left out if not."""
        wants_usage = wants_activities(self.sinks, run.sinks)
        return wants_usage or bool(run.features) or any(of == session.session_id for of, _ in self._denied)

    async def before_model(self, context: ChatContext, run: Run) -> None:
        """Inject the reasons of denied calls into the model's messages, and record what it is given."""
        session = "" if context.session is None else context.session.session_id
        for content in [content for message in context.messages for content in message.contents]:
            told = self._denied.get((session, content.call_id or ""))
            if told is not None and content.type == "function_result" and content.result == _THEIR_DENIAL:
                content.result, content.items = told, [Content.from_text(told)]
        if run.features:
            recall_transcript(run, self.known(context), transcript_of(context.messages))

    def run_of(self, session: AgentSession) -> Run:
        """Return a run of ours for one run of an agent."""
        provide = {AgentSession: session}
        return self.runs.find(object(), session, provide=provide, conversation_id=session.session_id)

    async def deny(self, asked: Content, request: ApprovalRequest, denial: Denial, session: AgentSession) -> bool:
        """End the call that a content asks about; False where it is not known here: the framework alone has the answer.

        Raises:
            ApprovalError: The request was answered before.
        """
        run, tools = self.run_of(session), self.tools_of(request.tool)
        found = await self.runs.find_request(request.id, run)
        is_known = tools is not None and found is not None
        outcome: Outcome = Rejected(request.tool, request.call_id, denial.message, source="user")
        if tools is not None and found is not None:
            outcome = await tools.deny(found[1], denial, run)
        if asked.function_call is not None:
            self._denied.keep((session.session_id, asked.function_call.call_id or ""), outcome.text())
        return is_known


@dataclass(frozen=True, slots=True)
class CallsThroughGates(FunctionMiddleware):
    """The part of a provider that the calls of one run of an agent pass."""

    gates: Gates
    run: Run

    async def process(self, context: FunctionInvocationContext, call_next: Next) -> None:
        await self.gates.call(context, self.run, call_next)


@dataclass(frozen=True, slots=True)
class MessagesToModel(ChatMiddleware):
    """The part of a provider that the requests to a model pass."""

    gates: Gates
    run: Run

    async def process(self, context: ChatContext, call_next: Next) -> None:
        await self.gates.before_model(context, self.run)
        request_id = context.metadata.setdefault("toolcrib_request", uuid4().hex)  # the same for several providers

        def record(response: ChatResponse[Any]) -> None:
            request = _USAGE.request(request_id, response.usage_details, response.model)
            record_usage(self.run, [request], self.gates.sinks)

        if context.stream:
            context.stream_result_hooks.append(record)
        await call_next()
        if isinstance(context.result, ChatResponse):
            record(context.result)


def contents_of(outcome: Outcome) -> list[Content]:
    """Return the contents for the model."""
    return _CONTENTS.contents(render(outcome))


def transcript_of(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages in the shapes of OpenAI's chat API, for the provenance of what they say."""
    found: list[dict[str, Any]] = []
    for message in messages:
        for content in message.contents:
            if content.type == "function_call":
                text = content.arguments if isinstance(content.arguments, str) else json.dumps(content.arguments)
                call = {
                    "type": "function",
                    "id": content.call_id,
                    "function": {"name": content.name, "arguments": text},
                }
                found.append({"role": "assistant", "content": None, "tool_calls": [call]})
            elif content.type == "function_result":
                parts = [part.text or "" for part in content.items or ()] or [str(content.result)]
                found.append({"role": "tool", "tool_call_id": content.call_id, "content": "\n".join(parts)})
            elif content.type == "text":
                found.append({"role": str(message.role), "content": content.text or ""})
    return found

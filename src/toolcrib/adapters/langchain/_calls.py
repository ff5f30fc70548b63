"""Calls of a graph: their run, the interrupt of one that is suspended, and what the model is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, HumanMessage, convert_to_openai_messages
from langchain_core.messages.content import (
    create_audio_block,
    create_file_block,
    create_image_block,
    create_text_block,
    create_video_block,
)
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from toolcrib._run_sync import run_sync
from toolcrib.calls import ApprovalRequest, Denial, Grant, Media, Outcome, Suspended, ToolCall, lenient
from toolcrib.errors import ApprovalError, register_signal
from toolcrib.pipeline import Run
from toolcrib.rounds import recall_transcript
from toolcrib.serving.frameworks import (
    Answer,
    FrameworkTools,
    MediaForms,
    UsageNames,
    answer_of,
    is_as_seen,
    is_to_earlier,
    rebound,
    request_payload,
)

ENTRY = "langchain"

register_signal(GraphBubbleUp)  # a tool that interrupts its graph has no result, and has not failed

_USAGE = UsageNames(
    "input_tokens",
    "output_tokens",
    "input_token_details.cache_read",
    "input_token_details.cache_creation",
    "output_token_details.reasoning",
)


class CallOfGraph:
    """A call of one of the tools, in one execution of a node of a graph.

    Args:
        runtime: The runtime that the graph gives its tools; None outside a graph, where nobody can be asked.
    """

    def __init__(
        self,
        tools: FrameworkTools,
        call: ToolCall,
        runtime: ToolRuntime[Any, Any] | None,
        provide: Mapping[Any, Any] = MappingProxyType({}),
    ) -> None:
        self._tools, self._call, self._runtime = tools, call, runtime
        self._run = _run_of(tools, runtime, provide)

    @property
    def has_deliveries(self) -> bool:
        """True if the result passes deliveries, which the artifact beside its value does not."""
        return self._tools.pipeline.has_deliveries(self._call.name, self._run)

    async def outcome(self) -> Outcome:
        """Make the call, or go on with it; raises the interrupt of the graph while no person has answered."""
        suspended, known = await self._begin()
        if not isinstance(suspended, Suspended) or self._runtime is None:
            return suspended
        outcome = await self._answered(self._ask(suspended.request, known))
        if isinstance(outcome, Suspended) and is_to_earlier(suspended.request, outcome.request):
            outcome = await self._answered(self._ask(outcome.request, known))
        return outcome

    def outcome_now(self) -> Outcome:
        """Return the same in a thread that runs no event loop."""
        suspended, known = run_sync(self._begin())
        if not isinstance(suspended, Suspended) or self._runtime is None:
            return suspended
        outcome = run_sync(self._answered(self._ask(suspended.request, known)))
        if isinstance(outcome, Suspended) and is_to_earlier(suspended.request, outcome.request):
            outcome = run_sync(self._answered(self._ask(outcome.request, known)))
        return outcome

    # --- inside

    async def _begin(self) -> tuple[Outcome, bool]:
        """Return the suspended call, and whether it was suspended before; or the outcome."""
        found = await self._tools.find_suspended(self._call, self._run)
        if found is not None and self._run.approvals is None:
            return found, True
        return await self._make(found is not None), found is not None  # the store may have answers

    def _ask(self, request: ApprovalRequest, known: bool) -> Grant | Denial:
        """Interrupt the graph, or return the answer that it is resumed with.

        A yes to a request that follows another one, as the tool has changed or the call is in doubt, has to name it, as
        `answers` does.
        """
        # as LangChain's own middleware has it, and the request
        value = {
            "type": "tool_approval",
            "tool_call_id": self._call.id,
            "name": request.tool,
            "args": lenient(dict(request.arguments)),
            "description": request.text(),
            **request_payload(request),
        }
        resumed, answer = _interrupt_for_answer(request, value)
        follows = request.replaces is not None or request.in_doubt
        while follows and not (_is_for(request, resumed) or isinstance(answer, Denial)):
            # a plain yes may be one from before, which LangGraph gives again
            resumed, answer = _interrupt_for_answer(request, value)
        if known:
            return answer
        fitting = rebound(answer, request, self._run)
        if fitting is None or not (isinstance(answer, Denial) or _is_bound(resumed) or is_as_seen(request)):
            return _interrupt_for_answer(request, value)[1]  # another process was asked, and for something else
        return fitting

    async def _answered(self, answer: Grant | Denial) -> Outcome:
        return await self._make(True, lambda request: answer)

    async def _make(self, goes_on: bool, answer: Answer | None = None) -> Outcome:
        """Make the call; one whose tool interrupts the graph is made anew when the graph goes on, and counted then.

        Raises:
            ApprovalError: The tool of a call that goes on with its approval interrupts the graph.
        """
        try:
            return await self._tools.call_once(self._call, self._run, answer=answer, report=self._report())
        except GraphInterrupt as error:
            name, counts = self._call.name, self._run.calls
            if goes_on:
                problem = "the tool interrupts the graph itself, and would need another one when the graph goes on"
                raise ApprovalError(name, f"{problem}; leave out the approval or the tool's interrupt()") from error
            if name in counts:
                counts[name] -= 1
            raise

    def _report(self) -> Callable[[Any], Awaitable[object]] | None:
        runtime = self._runtime
        if runtime is None:
            return None

        async def report(value: Any) -> None:
            runtime.emit_output_delta(lenient(value))

        return report


def _interrupt_for_answer(request: ApprovalRequest, value: dict[str, Any]) -> tuple[Any, Grant | Denial]:
    """Interrupt the graph until it is resumed with an answer; return what it is resumed with, and that answer.

    A reference to the answer in the approval store does not do: the store was asked before. LangGraph gives a
    value that was refused again, before the next one.

    Raises:
        ApprovalError: The last value is not an answer.
    """
    refused: ApprovalError | None = None
    while True:
        try:
            resumed = interrupt(value)
        except GraphBubbleUp:
            if refused is None:
                raise
            raise refused from None
        try:
            answer = answer_of(request, resumed)
        except ApprovalError as error:
            refused = error
        else:
            refused = None
            if answer is not None:
                return resumed, answer


def _is_for(request: ApprovalRequest, answer: Any) -> bool:
    """Return whether an answer names the request that it is for."""
    named: Any = cast("dict[str, Any]", answer).get("request_id") if isinstance(answer, dict) else None
    return named == request.id or (isinstance(answer, Grant | Denial) and answer.request_id == request.id)


def _is_bound(answer: Any) -> bool:
    """Return whether an answer names the arguments that it is for."""
    return isinstance(answer, Grant) or (isinstance(answer, dict) and "digest" in answer)


def _run_of(
    tools: FrameworkTools,
    runtime: ToolRuntime[Any, Any] | None,
    provide: Mapping[Any, Any] = MappingProxyType({}),
) -> Run:
    """Return the run that a call belongs to: that of the user's last message in the conversation."""
    if runtime is None:
        return tools.runs.find(object(), None, provide=provide)
    info, context = runtime.execution_info, runtime.context
    thread = None if info is None else info.thread_id
    messages = _messages(runtime.state)
    message_id = next((message.id for message in reversed(messages) if isinstance(message, HumanMessage)), None)
    about = (thread, message_id or (None if info is None else info.task_id), None if context is None else id(context))
    run = tools.runs.find(
        about,
        runtime,
        run_id=str(info.run_id or "") if info is not None else "",
        deps=context,
        provide={ToolRuntime: runtime, **provide},
        conversation_id=thread,
    )
    if run.features:
        shapes = cast("list[Any]", convert_to_openai_messages(messages))
        recall_transcript(run, tools.pipeline.toolset, shapes, "openai")
    return run


def run_of_step(tools: FrameworkTools, runtime: Runtime[Any], state: Any) -> Run:
    """Return the run that the calls of a step belong to, which its request to a model may ask for."""
    about: ToolRuntime[Any, Any] = ToolRuntime(
        state, runtime.context, {}, runtime.stream_writer, None, runtime.store, execution_info=runtime.execution_info
    )
    return _run_of(tools, about)


def record_answers(tools: FrameworkTools, runtime: Runtime[Any], state: Any, answers: Iterable[Any]) -> None:
    """Record the usage of the requests that these messages answer."""
    requests = [
        _USAGE.request(answer.id or uuid4().hex, answer.usage_metadata, answer.response_metadata.get("model_name"))
        for answer in answers
        if isinstance(answer, AIMessage)
    ]
    tools.record_usage(run_of_step(tools, runtime, state), requests)


def _messages(state: Any) -> list[Any]:
    if isinstance(state, list):
        return cast("list[Any]", state)
    found: Any = (
        cast("dict[str, Any]", state).get("messages", []) if isinstance(state, dict) else getattr(state, "messages", [])
    )
    return [*found] if isinstance(found, list) else []


def _block(create: Callable[..., Any]) -> Callable[[Media], Any]:
    """Return a maker of content blocks of media, by the maker of LangChain's."""

    def block(media: Media) -> Any:
        source: dict[str, Any] = {"url": media.url} if media.data is None else {"base64": media.base64}
        return create(**source, mime_type=media.mime_type)

    return block


BLOCKS = MediaForms(
    text=create_text_block,
    kinds={
        "image": _block(create_image_block),
        "audio": _block(create_audio_block),
        "video": _block(create_video_block),
        "": _block(create_file_block),
    },
)
"""Text and media as content blocks of LangChain's."""

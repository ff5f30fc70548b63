"""Ways in that need the extra `models`: an agent of Pydantic AI, with the tools in it or behind another toolset."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

from toolcrib.adapters.pydantic_ai import answers, as_tools, from_tools
from toolcrib.calls import Denial, Failed, Grant, Outcome, Suspended, ToolCall, outcome_from_dict
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Channel, Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.testing import RecordingSink
from toolcrib.testing._ways import Ability, RunWay, Way, WayRequest
from toolcrib.toolsets import Toolset

__all__ = ["NestedPydanticWay", "PydanticWay", "pydantic_ai_ways"]


class PydanticWay(Way):
    """An agent of Pydantic AI, whose model makes the call; answered in a new agent, from JSON."""

    title = "pydantic_ai"
    abilities: ClassVar[frozenset[Ability]] = RunWay.abilities

    def __init__(self) -> None:
        self._stopped: dict[str, tuple[bytes, dict[str, Any]]] = {}  # by request: the history, and what was deferred

    async def carry(self, request: WayRequest) -> Outcome:
        watch = RecordingSink()
        inner = request.run.with_sinks(watch)
        toolset = as_tools(request.toolset, run=lambda ctx: inner)
        made = request.call
        model = FunctionModel(_calling(request) if isinstance(made, ToolCall) else _silent)
        agent = Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests], deps_type=object)
        if isinstance(made, ToolCall):
            run = await agent.run("call it", deps=request.run.deps)
        else:
            history, deferred = self._stopped[made.request.id]
            deferred = {**deferred, "suspended": made.to_dict()}
            messages = ModelMessagesTypeAdapter.validate_json(history)
            metadata = {made.call_id: {"toolcrib": deferred}}
            asked = DeferredToolRequests(approvals=[_last_call(messages)], metadata=metadata)
            try:
                results = await _results(asked, request.answer, toolset, inner)
            except ApprovalError as error:
                return Failed(made.tool, made.call_id, error.code, str(error), "ApprovalError", exception=error)
            run = await agent.run(message_history=messages, deferred_tool_results=results, deps=request.run.deps)
        if isinstance(run.output, DeferredToolRequests):
            (metadata,) = run.output.metadata.values()
            deferred = json.loads(json.dumps(metadata["toolcrib"]))
            suspended = outcome_from_dict(deferred["suspended"])
            if isinstance(suspended, Suspended):
                self._stopped[suspended.request.id] = (run.all_messages_json(), deferred)
            return suspended
        request.shown.append(run.all_messages_json().decode())
        if watch.records:
            return outcome_from_dict(watch.records[-1].outcome)
        return _not_offered(request, run.all_messages())


async def _results(asked: DeferredToolRequests, answer: Grant | Denial | None, toolset: Any, run: Run) -> Any:
    match answer:
        case Grant():
            return await answers(asked, answer)
        case Denial():
            return await answers(asked, answer, toolset=toolset, run=run)
        case None:  # an approver who knows nothing of our metadata
            return DeferredToolResults(approvals={call.tool_call_id: True for call in asked.approvals})


class NestedPydanticWay(Way):
    """A toolset of ours, with a toolset of Pydantic AI in it, in which are the tools as a toolset of ours."""

    title = "toolcrib in pydantic_ai in toolcrib"
    abilities: ClassVar[frozenset[Ability]] = frozenset({"model", "json", "run", "concurrent", "cancel", "media"})

    def __init__(self) -> None:
        self._outside: dict[str, Run] = {}  # by the run inside

    async def carry(self, request: WayRequest) -> Outcome:
        watch = RecordingSink()
        theirs_run = request.run.with_sinks(watch)
        outer = RecordingSink()
        outside = self._outside.setdefault(
            theirs_run.id, Run(deps=theirs_run.deps, channel=Channel(hook_errors=theirs_run.channel.hook_errors))
        )
        outside = outside.view(sinks=(outer,))
        theirs = from_tools(as_tools(request.toolset, run=lambda ctx: theirs_run))[0]
        async with Toolset([theirs]).open(_about(request)) as opened:
            outcome = request.ended(await Pipeline(opened).run(request.new, outside))
        if not watch.records:  # the outer pipeline refused it
            request.records.extend(record.to_dict() for record in outer.records)
            unknown = isinstance(outcome, Failed) and outcome.code == "unknown_tool"
            return _not_offered(request, []) if unknown else outcome
        inner = outcome_from_dict(watch.records[-1].outcome)
        if isinstance(inner, Suspended) and not isinstance(outcome, Suspended):
            raise AssertionError(f"the inner call waits, and the outer one does not: {outcome}")
        return inner


def _calling(request: WayRequest) -> Any:
    call, raw = request.new, request.new.arguments
    given = request.json_arguments if isinstance(raw, Mapping) else raw if isinstance(raw, str) else raw.decode()

    async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if any(isinstance(message, ModelResponse) for message in messages):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(call.name, given, call.id)])

    return model


async def _silent(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[TextPart("done")])


def _not_offered(request: WayRequest, messages: list[ModelMessage]) -> Failed:
    """Return what the agent itself said of a tool that it does not offer."""
    name = request.call.tool if isinstance(request.call, Suspended) else request.call.name
    call_id = request.call.call_id if isinstance(request.call, Suspended) else request.call.id
    said = [str(part.content) for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    text = said[-1] if said else f"there is no tool `{name}`"
    return Failed(name, call_id, "not_available" if name in request.toolset else "unknown_tool", text)


def _about(request: WayRequest) -> RunContext[Any]:
    return RunContext(request.run.deps, "", "", request.run.id)


def _last_call(messages: list[ModelMessage]) -> ToolCallPart:
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolCallPart)]
    return parts[-1]


pydantic_ai_ways: tuple[Way, ...] = (PydanticWay(), NestedPydanticWay())

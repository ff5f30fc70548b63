"""The conversations as a model's JSON tool calls, through the pipeline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from benchmarks.bfcl._calls import Call
from benchmarks.bfcl._data import Conversation, build_apis
from benchmarks.bfcl._runs import Answer, Raised, Replay, Returned, function_named, states_of
from benchmarks.bfcl._snapshots import snapshot
from toolcrib import Completed, Failed, Outcome, Pipeline, Run, ToolCall, Toolset
from toolcrib.calls import render_value
from toolcrib.errors import ResultNotSerializable

__all__ = ["answer_of", "as_json", "run_as_calls", "toolset_of"]


def toolset_of(apis: Mapping[str, Any]) -> Toolset:
    """Return one toolset of every public method of the objects, by the methods' own names."""
    return Toolset([Toolset.from_object(api) for api in apis.values()])


async def run_as_calls(conversation: Conversation, *, as_published: bool = False) -> Replay:
    """Return what the calls do as a model's: a name and JSON text each, through the pipeline."""
    apis = build_apis(conversation, as_published=as_published)
    pipeline, scope = Pipeline(toolset_of(apis)), Run(id=conversation.id)
    answers = [
        tuple([answer_of(await pipeline.run(as_json(call, apis), scope)) for call in turn])
        for turn in conversation.turns
    ]
    return Replay(tuple(answers), states_of(apis))


def as_json(call: Call, apis: Mapping[str, Any]) -> ToolCall:
    """Return a call as a model makes it: a name, and the arguments by name as JSON text."""
    return ToolCall(call.name, json.dumps(call.bound_to(function_named(call.name, apis))))


def answer_of(outcome: Outcome) -> Answer:
    """Return what an outcome says, as the call made directly would."""
    match outcome:
        case Completed():
            return _shown(outcome)
        case Failed(exception=BaseException() as error):
            return Raised(type(error).__name__, str(error))
        case _:
            return Raised(type(outcome).__name__, outcome.text())


def _shown(outcome: Completed) -> Answer:
    try:
        return Returned(snapshot(render_value(outcome.value, outcome.tool, structured=True).value))
    except ResultNotSerializable as error:
        return Raised(type(error).__name__, str(error))

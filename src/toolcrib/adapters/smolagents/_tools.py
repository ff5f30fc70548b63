"""Tools of smolagents, made of a toolset and given to an agent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from smolagents import MultiStepAgent, Tool

from toolcrib.adapters.smolagents._calls import ENTRY, AgentCalls, tools_of
from toolcrib.approvals import SuspendedCallStore
from toolcrib.errors import explain_options
from toolcrib.jsonschema import (
    CHOICES,
    SchemaWalk,
    alternatives,
    kind_of,
    kinds_of,
    properties_of,
    values_of,
    written_out,
)
from toolcrib.pipeline import Run
from toolcrib.record import Sink
from toolcrib.serving.frameworks import FrameworkRuns, FrameworkTools, OpenFrameworkRun
from toolcrib.toolsets import ToolsetLike

A = TypeVar("A", bound=MultiStepAgent)


@explain_options()
def as_tools(
    tools: ToolsetLike,
    agent: A,
    *,
    run: Run | OpenFrameworkRun | None = None,
    sinks: Iterable[Sink] = (),
    suspended: SuspendedCallStore | None = None,
) -> A:
    """Add tools to an agent, and return it; every call goes over the pipeline.

    A call that needs approval, and has no approver, ends the run of the agent after the step, with smolagents' own
    `AgentError`: `approval_requests` says what a person is asked, and `answers` makes the task that the agent goes on
    with.

    Args:
        tools: The tools; members that list themselves have to be known: `async with toolset.open() as opened`.
        agent: The agent: tools of smolagents know nothing of theirs by themselves.
        run: The run of the calls, or a function that opens one for each task, given the agent; without it, the run of
            the tool that the agent runs in, or a new one. `deps` are the agent's `state`, which holds
            `additional_args`, where the run has none.
        sinks: Where the events of calls go.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.

    Raises:
        ValueError: The agent has a tool of that name, or runs its programs where the tools cannot be.
    """
    bridge = FrameworkTools(tools, FrameworkRuns(ENTRY, run, suspended), sinks)
    calls = AgentCalls(agent, bridge.runs)
    known = next((name for name in bridge.entries if name in tools_of(agent)), None)
    if known is not None:
        raise ValueError(f"the agent has a tool `{known}` already; give one of them another name: toolset.renamed(...)")
    for entry in bridge.entries.values():
        returns = entry.return_schema
        AgentTool(
            calls,
            bridge,
            entry.name,
            description=entry.description,
            inputs=inputs_of(entry.parameters),
            output_type=output_type_of(returns),
            output_schema=dict(returns) if returns is not None and returns.get("type") == "object" else None,
        )
    return agent


class AgentTool(Tool):
    """One tool as an agent calls it."""

    skip_forward_signature_validation = True  # its parameters are those of the schema

    def __init__(self, calls: AgentCalls, tools: FrameworkTools, name: str, **described: Any) -> None:
        self.is_initialized = True
        self.calls, self.tools, self.name = calls, tools, name
        self.description, self.inputs = described["description"], described["inputs"]
        self.output_type, self.output_schema = described["output_type"], described["output_schema"]
        calls.tools[name] = tools_of(calls.agent)[name] = self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.calls.loop.run(self.call(dict(zip(self.inputs, args, strict=False)) | kwargs))

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        return await self.calls.make(self.tools, self.name, arguments)


_TYPES = frozenset({"string", "boolean", "integer", "number", "array", "object", "null"})


def inputs_of(parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the `inputs` of a tool whose parameters are this JSON schema."""
    required, walk = parameters.get("required", ()), SchemaWalk(parameters)
    return {
        name: _input(written_out(schema, walk) if isinstance(schema, Mapping) else {}, name in required)
        for name, schema in properties_of(parameters).items()
    }


def parameters_of(inputs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON schema of the parameters of one of their tools."""
    properties: dict[str, Any] = {}
    for name, parameter in inputs.items():
        types = [parameter["type"]] if isinstance(parameter["type"], str) else list(parameter["type"])
        known = [kind for kind in types if kind in _TYPES]
        schema = {key: value for key, value in parameter.items() if key not in ("type", "nullable")}
        if parameter.get("nullable") and "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
        if len(known) == len(types):
            schema["type"] = [*dict.fromkeys([*known, *(["null"] if parameter.get("nullable") else [])])]
        properties[name] = schema
    required = [name for name, parameter in inputs.items() if not parameter.get("nullable")]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def output_type_of(schema: Mapping[str, Any] | None) -> str:
    """Return the `output_type` of a tool whose results are as this JSON schema says."""
    kind = None if schema is None else schema.get("type")
    return kind if isinstance(kind, str) and kind in _TYPES else "any"


def _input(schema: dict[str, Any], required: bool) -> dict[str, Any]:
    several: list[dict[str, Any]] = [part if isinstance(part, dict) else {} for part in alternatives(schema)]
    schema = {key: value for key, value in schema.items() if key not in CHOICES}
    kinds = [kind for part in (schema, *several) for kind in _kinds(part)]
    types = [*dict.fromkeys(kinds)] if all(map(_kinds, several)) else []
    text = str(schema.get("description", ""))
    if any(not part.keys() <= {"type", "description"} for part in several):
        text = f"{text} JSON schema: {json.dumps({'anyOf': several})}".strip()
    others = [kind for kind in types if kind != "null"]
    shown = {**schema, "type": others[0] if len(others) == 1 else others or "any", "description": text}
    return shown if required and "null" not in types else {**shown, "nullable": True}


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    return kinds_of(schema) or [*dict.fromkeys(kind_of(value) for value in values_of(schema) or ())]

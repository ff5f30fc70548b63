"""Examples of the OpenAI Agents SDK, as its source distribution has them, each of their agents guarded.

    python -m tests.world.openai_agents_examples FOLDER

The folder is the unpacked source distribution. The model is the framework's own `ScriptedModel`, which calls each tool
of an agent once; `human_in_the_loop` has a tool that asks by the SDK's own `needs_approval`, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from agents import Agent, FunctionTool, Runner, ToolOutputGuardrailTripwireTriggered
from agents.testing import ScriptedModel, assistant_message, function_call

from toolcrib.adapters.openai_agents import answers, approval_requests, guard
from toolcrib.serving import GuardPolicy

__all__ = ["main"]

MODULES = (
    "agent_patterns.agents_as_tools_conditional",
    "agent_patterns.human_in_the_loop",
    "basic.agent_lifecycle_example",
    "basic.lifecycle_example",
    "basic.tool_guardrails",
    "basic.tools",
    "customer_service.main",
    "handoffs.message_filter",
)


class _Context:
    """What the examples' tools look at and note in."""

    language_preference, passenger_name, seat_number, flight_number = "spanish", None, None, "FLT-1"
    confirmation_number = None


_STOPPED = "basic.tool_guardrails.agent"
_VALUES: Mapping[str, Any] = {"string": "Oakland", "integer": 7, "number": 7.5, "boolean": True, "array": []}
"""An argument of each type."""


def guardable_agents() -> Iterator[tuple[str, Agent[Any]]]:
    """Yield the agents of the modules that have tools of their own, and where each is."""
    for name in MODULES:
        for attribute, value in vars(import_module(f"examples.{name}")).items():
            if isinstance(value, Agent) and own_tools(value):
                yield f"{name}.{attribute}", value


def own_tools(agent: Agent[Any]) -> list[FunctionTool]:
    """Return the tools of an agent that are functions, without those that are agents."""
    return [tool for tool in agent.tools if isinstance(tool, FunctionTool) and tool.is_enabled is True]


async def guarded_run(agent: Agent[Any]) -> None:
    """Run an agent whose tools need approval, and approve; AssertionError where a tool is not asked about."""
    tools = own_tools(agent)
    calls = [function_call(tool.name, arguments_of(tool), call_id=f"c{at}") for at, tool in enumerate(tools)]
    script = ScriptedModel([[*calls], [assistant_message("Done.")]])
    guarded = guard(agent.clone(model=script, output_type=None), GuardPolicy(approve=True))
    context = _Context()
    run = await Runner.run(guarded, "go", context=context)
    asked = {request.tool for request in await approval_requests(run.to_state())}
    assert asked == {tool.name for tool in tools}, f"asked about {sorted(asked)}"
    while run.interruptions:
        state = run.to_state()
        requests = await approval_requests(state)
        run = await Runner.run(guarded, await answers(state, *[request.grant("ann") for request in requests]))
    assert run.final_output == "Done.", run.final_output


def arguments_of(tool: FunctionTool) -> dict[str, Any]:
    """Return an argument for each parameter of a tool that has to be given."""
    schema = tool.params_json_schema
    return {name: _VALUES[part.get("type", "string")] for name, part in schema.get("properties", {}).items()}


@contextlib.contextmanager
def ends_as_shown(name: str) -> Iterator[None]:
    """Expect the error of the example that shows how a guardrail of the SDK stops a run, and none of the others."""
    try:
        yield
    except ToolOutputGuardrailTripwireTriggered:
        if name != _STOPPED:
            raise
    else:
        assert name != _STOPPED, "the guardrail of the example let the run go on"


async def run_examples() -> int:
    """Run all agents; print which fails, and a line with the count, as pytest does."""
    logging.disable(logging.CRITICAL)
    failed = count = 0
    for name, agent in guardable_agents():
        count += 1
        try:
            with contextlib.redirect_stdout(io.StringIO()), ends_as_shown(name):
                await guarded_run(agent)
        except Exception as error:
            failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}"[:300])
    print(f"{count - failed} passed" + (f", {failed} failed" if failed else ""))
    return 1 if failed or not count else 0


def main(words: list[str]) -> int:
    """Run all agents; return 1 where one fails."""
    sys.path.insert(0, *words)
    os.environ.update(OPENAI_API_KEY="none", OPENAI_AGENTS_DISABLE_TRACING="1")
    return asyncio.run(run_examples())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Mistakes of a host with a guard and with answers: each error says what to write."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from agents import Agent, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from toolcrib.adapters import agent_framework, google_adk, langchain, openai_agents
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import Denial
from toolcrib.pipeline import Run
from toolcrib.record import ListSink
from toolcrib.serving import GuardPolicy

ADAPTERS = (
    "openai_agents",
    "langchain",
    "pydantic_ai",
    "google_adk",
    "agent_framework",
    "claude_agent_sdk",
    "smolagents",
)
GUARDS: list[Any] = [import_module(f"toolcrib.adapters.{name}").guard for name in ADAPTERS]
CLASSES: list[Any] = [langchain.GuardMiddleware, google_adk.GuardPlugin, agent_framework.GuardProvider]


@pytest.mark.parametrize("options", [{}, {"approve": ["delete"]}], ids=["nothing", "gates of its own"])
@pytest.mark.parametrize("guard", [*GUARDS, *CLASSES], ids=lambda guard: f"{guard.__module__}.{guard.__name__}")
def test_a_guard_without_a_policy_says_where_its_gates_are_given(guard: Any, options: dict[str, Any]) -> None:
    given = () if guard in CLASSES else (object(),)

    with pytest.raises(TypeError, match=r"its gates are those of a policy: \w+\(.*GuardPolicy\(approve=\[...\]\)\)"):
        guard(*given, **options)


@pytest.mark.parametrize(
    ("options", "mend"),
    [
        ({"sinks": ListSink()}, r"sinks=\[ListSink\(...\)\]"),
        ({"run": lambda: Run()}, r"run=lambda ctx: Run\(...\)"),
        ({"approve": lambda name, args: name == "delete"}, r"approve=lambda arguments, ctx: ctx.tool_name == ..."),
        ({"interrupt_on": ["delete"]}, "Did you mean `approve`"),
    ],
)
def test_a_policy_says_how_an_option_is_given(options: dict[str, Any], mend: str) -> None:
    with pytest.raises(TypeError, match=mend):
        GuardPolicy(**options)


@function_tool
def delete(path: str) -> str:
    """Delete a file."""
    return path


def test_one_tool_is_given_in_a_list() -> None:
    tool: Any = delete

    with pytest.raises(TypeError, match=r"guard\(\[delete\], policy\)"):
        openai_agents.guard(tool, GuardPolicy(approve=True))


async def stopped(**options: Any) -> tuple[Agent[Any], Any]:
    """Return an agent, and its run that stopped at a call."""
    model = ScriptedModel([[function_call("delete", {"path": "a"}, call_id="c1")], [assistant_message("done")]])
    policy = GuardPolicy(approve=["delete"], **options)
    agent = openai_agents.guard(Agent(name="desk", tools=[delete], model=model), policy)
    return agent, await Runner.run(agent, "go")


async def test_requests_and_answers_say_what_they_take() -> None:
    _, result = await stopped()
    state = result.to_state()
    requests = await openai_agents.approval_requests(state)
    several: Any = [request.grant("ann") for request in requests]

    for other in (result, result.interruptions):
        with pytest.raises(TypeError, match=r"`result.to_state\(\)`"):
            await openai_agents.approval_requests(other)
    with pytest.raises(TypeError, match=r"answers\(..., \*given\)"):
        await openai_agents.answers(state, several)


async def test_their_own_no_closes_the_request_in_the_store() -> None:
    store = MemoryApprovalStore()
    agent, result = await stopped(run=lambda ctx: Run(approvals=store))
    state = result.to_state()

    state.reject(state.get_interruptions()[0], rejection_message="not that one")
    await Runner.run(agent, state)

    [entry] = await store.list()
    assert isinstance(entry.answer, Denial)
    assert (entry.state, entry.answer.message) == ("used", "not that one")

"""What holds in every framework: one tool in all of them, and a suspended call that another process goes on with."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import framework_pages
from tests.docs.running import PageError, run_page
from tests.frameworks.adapters import ADAPTERS
from tests.frameworks.chats import CHATS
from tests.frameworks.forked import output_of
from tests.ways import WAYS
from toolcrib.budgets import Budgets, Limit
from toolcrib.calls import Completed, Failed, Rejected, Suspended, ToolCall
from toolcrib.errors import ApprovalError, ToolConstraintError
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.serving import GuardPolicy
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

FRAMEWORKS = tuple(name for name in ADAPTERS if name != "pydantic_ai")
ALL = [way for way in WAYS if way.title in FRAMEWORKS]


def test_every_framework_is_a_way_in() -> None:
    assert {way.title for way in ALL} == {*FRAMEWORKS}


async def test_the_same_tool_is_denied_approved_and_limited_and_fails_in_all_of_them() -> None:
    ran: list[str] = []

    @ez_tool(requires_approval=lambda args, ctx: args["city"] != "Bonn")
    async def book(city: str) -> str:
        """Book a room."""
        ran.append(city)
        if city == "Bonn":
            raise RuntimeError("no rooms")
        return f"booked {city}"

    said: dict[str, list[Any]] = {}
    for way in ALL:
        caller = way([book], limits=CallLimits(total=3))
        denied, granted = [await caller.call("book", {"city": city}) for city in ("Oslo", "Rome")]
        assert isinstance(denied, Suspended)
        assert isinstance(granted, Suspended)
        said[way.title] = [
            await caller.answer(denied, denied.request.deny(message="too far")),
            await caller.answer(granted, granted.request.grant("ann")),
            await caller.call("book", {"city": "Bonn"}),
            await caller.call("book", {"city": "Nice"}),
        ]

    assert ran == ["Rome", "Bonn"] * len(ALL)
    for outcomes in said.values():
        assert [type(outcome) for outcome in outcomes] == [Rejected, Completed, Failed, Rejected]
        assert [outcome.text() for outcome in outcomes[:3]] == [
            "Rejected: too far",
            "booked Rome",
            "RuntimeError: no rooms",
        ]


def guards() -> dict[str, Callable[[GuardPolicy], Any]]:
    """Return what puts the gates of a policy around a tool `refund`, by framework."""
    agents, langchain, smolagents = (import_module(name) for name in ("agents", "langchain_core.tools", "smolagents"))
    pydantic, adk, microsoft = (import_module(name) for name in ("pydantic_ai", "google.adk.agents", "agent_framework"))
    options = import_module("claude_agent_sdk").ClaudeAgentOptions(allowed_tools=["refund"])

    def refund(euros: int) -> int:
        """Pay money back.

        Args:
            euros: The amount.
        """
        return euros

    theirs, inner = agents.function_tool(refund), agents.Agent(name="Inner", tools=[agents.function_tool(refund)])
    outer = agents.Agent(name="Outer", tools=[inner.as_tool("ask_inner", "Ask.")], handoffs=[])
    agents_guard = import_module("toolcrib.adapters.openai_agents").guard
    langchain_guard = import_module("toolcrib.adapters.langchain").guard
    smolagents_guard = import_module("toolcrib.adapters.smolagents").guard
    pydantic_guard = import_module("toolcrib.adapters.pydantic_ai").guard
    adk_guard = import_module("toolcrib.adapters.google_adk").guard
    microsoft_guard = import_module("toolcrib.adapters.agent_framework").guard
    claude_guard = import_module("toolcrib.adapters.claude_agent_sdk").guard
    client = import_module("tests.frameworks.scripted_agent_framework").ScriptedClient
    below = adk.LlmAgent(name="Top", sub_agents=[adk.LlmAgent(name="Below", tools=[refund])])
    return {
        "openai_agents": lambda policy: agents_guard([theirs], policy),
        "openai_agents_agent": lambda policy: agents_guard(inner, policy),
        "openai_agents_handoff": lambda policy: agents_guard(agents.Agent(name="A", handoffs=[inner]), policy),
        "langchain": lambda policy: langchain_guard([langchain.tool(refund)], policy),
        "smolagents": lambda policy: smolagents_guard(
            smolagents.ToolCallingAgent(tools=[smolagents.tool(refund)], model=smolagents.Model()), policy
        ),
        "pydantic_ai": lambda policy: pydantic_guard(pydantic.Agent(tools=[refund]), policy),
        "pydantic_ai_toolset": lambda policy: pydantic_guard(pydantic.FunctionToolset([refund]), policy),
        "google_adk": lambda policy: adk_guard(adk.LlmAgent(name="Desk", tools=[refund]), policy),
        "google_adk_below": lambda policy: adk_guard(below.clone(), policy),
        "agent_framework": lambda policy: microsoft_guard(microsoft.Agent(client([]), tools=[refund]), policy),
        "claude_agent_sdk": lambda policy: claude_guard(options, policy),
        "inside_a_tool": lambda policy: agents_guard(outer, policy),
    }


@pytest.mark.parametrize("option", ["approve", "leave", "limits", "run"])
@pytest.mark.parametrize("place", [*guards()])
@pytest.mark.parametrize("wrong", ["refnd", "Refund", "pay"])
def test_a_policy_about_no_tool_is_refused_by_the_guard(place: str, option: str, wrong: str) -> None:
    right = "ask_inner" if place == "inside_a_tool" else "refund"
    wrong = "refund" if place == "inside_a_tool" else wrong  # which is guarded where its agent is

    who = "the gate `budgets` of the run" if option == "run" else rf"GuardPolicy\({option}=...\)"
    with pytest.raises(ToolConstraintError, match=rf"`{wrong}`: {who} is about it, .*(The|Did)"):
        guards()[place](policy_about(wrong, option))
    guards()[place](policy_about(right, option))


def policy_about(name: str, option: str) -> GuardPolicy:
    """Return a policy that has the name of a tool in one of its options."""
    if option == "run":
        return GuardPolicy(run=Run(gates=[Budgets([Limit(calls=1, tools=[name])])]))
    return GuardPolicy(**{option: CallLimits(per_tool={name: 1}) if option == "limits" else [name]})


def counted_refund() -> tuple[Callable[[int], str], list[int]]:
    """Return a function that pays money back, and the amounts that it paid."""
    ran: list[int] = []

    def refund(euros: int) -> str:
        """Pay money back.

        Args:
            euros: The amount.
        """
        ran.append(euros)
        return "paid"

    return refund, ran


@pytest.mark.parametrize("name", ["refnd", "Refund"])
@pytest.mark.parametrize("framework", [*CHATS])
async def test_a_gate_about_no_tool_of_a_run_that_is_opened_later_is_an_error_before_a_call(
    framework: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    refund, ran = counted_refund()
    opened = Run(gates=[Budgets([Limit(calls=1, tools=[name])])])
    chat = CHATS[framework]([("refund", {"euros": 3})], theirs=[refund], policy=GuardPolicy(run=lambda ctx: opened))

    try:
        said = await chat.say()
    except Exception as error:
        said = str(error)

    assert f"`{name}`: the gate `budgets` of the run is about it" in said + caplog.text
    assert framework not in ("claude_agent_sdk", "smolagents") or caplog.text  # whose model alone is told
    assert not ran


@pytest.mark.parametrize("framework", [*CHATS])
async def test_a_function_that_opens_no_run_is_an_error_before_a_call(
    framework: str, caplog: pytest.LogCaptureFixture
) -> None:
    refund, ran = counted_refund()
    opens: Any = lambda ctx: None  # noqa: E731 -- of a host who forgot the `return`
    chat = CHATS[framework]([("refund", {"euros": 3})], theirs=[refund], policy=GuardPolicy(run=opens))

    try:
        said = await chat.say()
    except Exception as error:
        said = str(error)

    assert "which returned None, and not a Run" in said + caplog.text
    assert not ran


@pytest.mark.parametrize("framework", ["agent_framework", "langchain", "pydantic_ai"])
async def test_nobody_is_asked_about_arguments_of_a_wrong_type_and_the_log_has_no_traceback(
    framework: str, caplog: pytest.LogCaptureFixture
) -> None:
    refund, ran = counted_refund()
    policy = GuardPolicy(approve=True)
    chat = CHATS[framework]([("refund", {"euros": "a lot"})], theirs=[refund], policy=policy)
    said = await chat.say()

    assert "euros: must be an integer" in said
    assert (ran, chat.asked, [record for record in caplog.records if record.exc_info]) == ([], [], [])


@pytest.mark.parametrize("framework", ["google_adk", "langchain", "openai_agents", "pydantic_ai", "smolagents"])
async def test_nobody_is_asked_about_an_argument_that_a_tool_of_theirs_does_not_take(framework: str) -> None:
    paid: list[int] = []

    def pay(order: str, cents: int = 100) -> str:
        """Pay an order.

        Args:
            order: The order.
            cents: The amount.
        """
        paid.append(cents)
        return f"paid {cents}"

    chat = CHATS[framework]([("pay", {"order": "a", "cent": 5})], theirs=[pay], policy=GuardPolicy(approve=True))
    said = await chat.say()

    assert (paid, chat.asked) == ([], [])
    assert framework == "smolagents" or "did you mean cents?" in said  # whose agent itself refuses it


def takes_others(order: str, **others: Any) -> str:
    """Note an order.

    Args:
        order: The order.
    """
    return f"{order} {others}"


async def test_a_tool_of_theirs_that_takes_any_argument_still_does() -> None:
    policy = GuardPolicy()
    chat = CHATS["pydantic_ai"]([("takes_others", {"order": "a", "cent": 5})], theirs=[takes_others], policy=policy)

    assert "a {'cent': 5}" in await chat.say()


MAKERS = {
    "openai_agents": "agents:function_tool",
    "langchain": "langchain_core.tools:tool",
    "google_adk": "google.adk.tools:FunctionTool",
    "agent_framework": "agent_framework:tool",
    "smolagents": "smolagents:tool",
    "pydantic_ai": "pydantic_ai:Tool",
}
"""What makes a tool of a function, by framework."""


@pytest.mark.parametrize("framework", [*MAKERS])
async def test_a_timeout_does_not_say_that_a_tool_of_theirs_was_stopped(framework: str) -> None:
    module, _, name = MAKERS[framework].partition(":")
    ended = threading.Event()

    def wait(so: str) -> str:
        """Wait.

        Args:
            so: How.
        """
        ended.wait(60)
        return so

    async def wait_in_loop(so: str) -> str:
        """Wait."""
        return await asyncio.to_thread(wait, so)

    wait_in_loop.__name__ = "wait"
    makes = getattr(import_module(module), name)
    theirs = makes(wait_in_loop if framework == "google_adk" else wait)  # which runs functions in the loop
    members = import_module(f"toolcrib.adapters.{framework}").from_tools([theirs])
    async with Toolset(members).open() as tools:
        outcome = await Pipeline(tools.with_timeout(0.2)).run(ToolCall("wait", {"so": "long"}))
        ended.set()

    assert "may go on in the background" in outcome.text()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_another_process_goes_on_with_a_suspended_call_and_a_third_has_its_result(
    framework: str, tmp_path: Path
) -> None:
    asked = resumed(framework, "ask", tmp_path)
    kept = {file: file.read_bytes() for file in tmp_path.glob("state*")}
    answered = resumed(framework, "answer", tmp_path)
    for file, content in kept.items():
        file.write_bytes(content)
    again = resumed(framework, "answer", tmp_path)

    assert asked == "[{'city': 'Oslo'}]\n"
    assert "booked Oslo" in answered
    assert "booked Oslo" in again
    assert (tmp_path / "booked").read_text() == "Oslo\n"


def resumed(framework: str, step: str, folder: Path) -> str:
    """Return what a process of its own prints."""
    main = import_module(f"tests.frameworks.resumed.{framework}").main
    return output_of(main, step, folder, folder=folder)


@pytest.mark.parametrize("page", framework_pages(), ids=lambda page: page.name)
def test_page_of_a_framework_does_what_it_says(page: Any, tmp_path: Path) -> None:
    try:
        run_page(page, tmp_path)
    except PageError as error:
        pytest.fail(str(error), pytrace=error.__cause__ is not None)


@pytest.mark.parametrize("framework", [name for name in CHATS if name != "claude_agent_sdk"])
async def test_an_edit_that_does_not_fit_uses_no_answer_up(framework: str) -> None:
    refund, ran = counted_refund()
    chat = CHATS[framework]([("refund", {"euros": 3})], theirs=[refund], policy=GuardPolicy(approve=True))
    await chat.say()
    [request] = chat.asked

    for arguments in ({"euros": "a lot"}, {}, {"euros": 3, "euro": 4}):
        with pytest.raises(ApprovalError, match="the edit does not fit the tool: euro"):
            await chat.answer(request.grant("ann", override_args=arguments))

    assert ran == []
    await chat.answer(request.grant("ann", override_args={"euros": 4}))
    assert ran == [4]

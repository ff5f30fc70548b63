"""Claude Agent SDK with the program that it brings, and a stand-in of the API on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, query

from tests.frameworks.claude_api import ScriptedApi, scripted_api
from toolcrib.adapters.claude_agent_sdk import answers, approval_requests, as_tools, guard, record_usage
from toolcrib.calls import RunNormally
from toolcrib.hooks import HookSet
from toolcrib.record import SqliteSink, list_runs
from toolcrib.serving import GuardPolicy
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool

pytestmark = [
    pytest.mark.skipif(
        not (Path(claude_agent_sdk.__file__).parent / "_bundled/claude").exists(),
        reason="the SDK came without Claude Code",
    ),
    pytest.mark.filterwarnings("ignore:can_use_tool will not be invoked"),  # the guard's rule makes it so
]


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    with scripted_api() as api:
        yield api


def options_in(folder: Path, api: ScriptedApi, **more: Any) -> ClaudeAgentOptions:
    """Return options of sessions that talk to nobody else."""
    return ClaudeAgentOptions(cwd=folder, env=api.environment(folder), setting_sources=[], **more)


async def said(options: ClaudeAgentOptions) -> ResultMessage:
    """Return the result of one prompt, the last one of the session."""
    found = [message async for message in query(prompt="go", options=options) if isinstance(message, ResultMessage)]
    return found[-1]


async def test_our_tools_wait_and_go_on_in_claude_code(api: ScriptedApi, tmp_path: Path) -> None:
    ran: list[str] = []

    @ez_tool(requires_approval=lambda args, ctx: args["city"] != "Rome")
    async def book(city: str) -> str:
        """Book a room."""
        ran.append(city)
        return f"booked {city}"

    api.steps = [[(id, "mcp__toolcrib__book", {"city": city}) for id, city in (("a", "Rome"), ("b", "Oslo"))]]
    options = as_tools([book], options_in(tmp_path, api, tools=[]))
    first = await said(options)
    assert (first.stop_reason, ran) == ("tool_deferred", ["Rome"])
    [request] = approval_requests(options, first.session_id)

    options = await answers(options, first.session_id, request.grant("ben", override_args={"city": "Nice"}))
    await said(options)

    assert (ran, "booked Nice" in str(api.results["b"])) == (["Rome", "Nice"], True)


@pytest.mark.parametrize("answered", ["grant", "nothing"])
async def test_a_guard_holds_where_a_session_goes_on(answered: str, api: ScriptedApi, tmp_path: Path) -> None:
    sink, made = RecordingSink(), tmp_path / "made"
    policy = GuardPolicy(approve=["Bash"], sinks=(sink,))
    api.steps = [[("c", "Bash", {"command": "touch made", "description": "Make it."})]]
    options: Any = guard(options_in(tmp_path, api, permission_mode="bypassPermissions"), policy)
    first = await said(options)
    assert (first.stop_reason, made.exists()) == ("tool_deferred", False)
    [request] = approval_requests(options, first.session_id)

    if answered == "nothing":
        options = guard(options_in(tmp_path, api, permission_mode="bypassPermissions", resume=first.session_id), policy)
    else:
        options = await answers(options, first.session_id, request.grant("ben"))
    await said(options)

    assert made.exists() == (answered == "grant")
    assert sink.records[-1].outcome["kind"] == {"grant": "completed", "nothing": "suspended"}[answered]


async def test_a_guard_gives_claude_code_the_arguments_that_a_hook_made(api: ScriptedApi, tmp_path: Path) -> None:
    hooks = HookSet()

    @hooks.on("Bash")
    async def move(call: Any, input: Any) -> Any:
        return RunNormally(input.model_copy(update={"command": "touch other"}))

    api.steps = [[("c", "Bash", {"command": "touch made", "description": "Make it."})]]
    options = options_in(tmp_path, api, permission_mode="bypassPermissions")

    await said(guard(options, GuardPolicy(hooks=hooks)))

    assert [name.exists() for name in (tmp_path / "made", tmp_path / "other")] == [False, True]


async def test_an_interrupt_stops_the_tool_and_closes_the_record(api: ScriptedApi, tmp_path: Path) -> None:
    begun, stopped, sink = asyncio.Event(), asyncio.Event(), RecordingSink()

    @ez_tool
    async def work() -> None:
        """Work."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    api.steps = [[("a", "mcp__toolcrib__work", {})]]
    options = as_tools([work], options_in(tmp_path, api, tools=[]), sinks=[sink])
    async with ClaudeSDKClient(options) as client:
        await client.query("go")
        await begun.wait()
        await client.interrupt()
        await stopped.wait()
        async for _ in client.receive_response():
            pass

    assert [record.outcome["kind"] for record in sink.records] == ["cancelled"]


async def test_the_usage_of_each_prompt_is_on_the_record_once(api: ScriptedApi, tmp_path: Path) -> None:
    @ez_tool
    async def book(city: str) -> str:
        """Book a room."""
        return f"booked {city}"

    database = tmp_path / "runs.db"
    with SqliteSink(database) as sink:
        options = as_tools([book], options_in(tmp_path, api, tools=[]), sinks=[sink])
        async with ClaudeSDKClient(options) as client:
            for id in ("a", "b"):
                api.steps = [[(id, "mcp__toolcrib__book", {"city": "Oslo"})]]
                await client.query("go")
                async for message in client.receive_response():
                    record_usage(options, message)

    usages = [run.usage or {} for run in list_runs(SqliteSink(database).log())]
    assert [(usage["input_tokens"], usage["output_tokens"]) for usage in usages] == [(2, 2), (2, 2)]

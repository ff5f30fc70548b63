"""Cancelling an agent of a framework in the middle of a call, by a task and by the framework's own means.

The interrupt of a session of Claude Code is in `test_claude_code.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent as FrameworkAgent
from agents import Agent, Runner
from agents.testing import ScriptedModel, function_call
from google.adk.agents import LlmAgent
from google.adk.runners import Runner as ADKRunner
from google.adk.sessions import InMemorySessionService

from tests.frameworks.adapters import ADAPTERS
from tests.frameworks.scripted_adk import ScriptedLlm, calling, saying
from tests.frameworks.scripted_agent_framework import ScriptedClient
from tests.frameworks.scripted_agent_framework import calling as framework_calling
from tests.ways import WAYS
from toolcrib.adapters import agent_framework, google_adk, openai_agents
from toolcrib.record import SqliteSink, list_runs
from toolcrib.tools import ez_tool

BY_A_TASK = [way for way in WAYS if way.title.split()[0] in ADAPTERS]


class Work:
    """A tool that works on a file until it is stopped, and the database that its calls are recorded in."""

    def __init__(self, folder: Path) -> None:
        self.file, self.database = folder / "work", folder / "runs.db"
        self.sink = SqliteSink(self.database)
        self.begun = asyncio.Event()

        @ez_tool
        async def work() -> None:
            """Work."""
            self.begun.set()
            try:
                while True:
                    self._note("working")
                    await asyncio.sleep(0.01)
            finally:
                self._note("stopped")

        self.tool = work

    async def cancel(self, running: Awaitable[Any]) -> None:
        """Cancel what makes the call, once the tool has begun, and wait until it has ended."""
        task = asyncio.ensure_future(running)
        await self.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def check(self) -> None:
        """Check that the tool was stopped, that nothing goes on, and what the record says of it."""
        lines = self._lines()
        await asyncio.sleep(0.05)

        assert lines[0] == "working"
        assert [lines.index("stopped"), *self._lines()[len(lines) :]] == [len(lines) - 1]
        self.sink.close()
        [run] = list_runs(SqliteSink(self.database).log())
        assert dict(run.calls) == {"cancelled": 1}
        assert run.ended_at is not None

    def _note(self, line: str) -> None:
        with self.file.open("a") as file:
            file.write(f"{line}\n")

    def _lines(self) -> list[str]:
        return self.file.read_text().splitlines()


@pytest.mark.parametrize("way", BY_A_TASK, ids=repr)
async def test_the_task_of_an_agent_is_cancelled(way: Any, tmp_path: Path) -> None:
    work = Work(tmp_path)
    before = asyncio.all_tasks()

    await work.cancel(way([work.tool], sinks=(work.sink,)).call("work"))

    await work.check()
    assert {task for task in asyncio.all_tasks() - before if not task.done()} == set()


async def by_the_stream_of_openai_agents(work: Work) -> None:
    model = ScriptedModel([[function_call("work", {}, call_id="c1")]])
    agent = Agent("a", tools=[*openai_agents.as_tools([work.tool], sinks=[work.sink])], model=model)
    result = Runner.run_streamed(agent, "go")

    async def stop() -> None:
        await work.begun.wait()
        result.cancel()

    stopping = asyncio.create_task(stop())
    async for _ in result.stream_events():
        pass
    await stopping


async def by_the_stream_of_agent_framework(work: Work) -> None:
    provider = agent_framework.as_tools([work.tool], sinks=[work.sink])
    agent = FrameworkAgent(ScriptedClient(framework_calling(("work", {}))), context_providers=[provider])
    await work.cancel(agent.run("go", stream=True).get_final_response())


async def by_the_events_of_google_adk(work: Work) -> None:
    tools: Any = google_adk.as_tools([work.tool], sinks=[work.sink])
    sessions = InMemorySessionService()
    await sessions.create_session(app_name="a", user_id="ann", session_id="s")
    agent = LlmAgent(name="a", model=ScriptedLlm(steps=[calling(("work", {}))]), tools=tools)
    runner = ADKRunner(app_name="a", agent=agent, session_service=sessions)

    async def listen() -> None:
        async with aclosing(runner.run_async(user_id="ann", session_id="s", new_message=saying("go"))) as events:
            async for _ in events:
                pass

    await work.cancel(listen())


@pytest.mark.parametrize(
    "cancel",
    [
        by_the_stream_of_openai_agents,
        by_the_stream_of_agent_framework,
        by_the_events_of_google_adk,
    ],
)
async def test_an_agent_is_cancelled_by_its_framework(
    cancel: Callable[[Work], Awaitable[None]], tmp_path: Path
) -> None:
    work = Work(tmp_path)

    await cancel(work)

    await work.check()

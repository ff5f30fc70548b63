"""Agents, turns and programs as spans, with their calls inside of them."""

import asyncio
import json
import sys
from typing import Any

import pytest
from opentelemetry.trace import StatusCode

from tests.telemetry.conftest import Watch
from toolcrib.adapters.pydantic_ai import as_tools
from toolcrib.calls import ToolCall
from toolcrib.code import PausedProgram, Toolkit
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import trace_activity
from toolcrib.testing import FakeSandbox
from toolcrib.tools import ez_tool
from toolcrib.turns import Agent, Turn


@ez_tool
async def double(n: int) -> int:
    await asyncio.sleep(0)
    return n * 2


@ez_tool
async def count(to: int) -> Any:
    for n in range(to):
        yield n


@ez_tool(requires_approval=True)
async def refund(order: int) -> int:
    return order


async def drained(agent: Agent, **options: Any) -> list[Any]:
    return [value async for _, value in agent.run(**options)]


@pytest.mark.parametrize("at_a_time", [1, 3])
async def test_turns_are_inside_of_their_agent_and_calls_inside_of_their_turns(watch: Watch, at_a_time: int) -> None:
    agent = Agent("trips", "Plans trips", [double, count], sinks=[watch.sink()])
    await agent.put(Turn(double, kwargs={"n": 2}))
    await agent.put(Turn(count, kwargs={"to": 2}))

    with watch.tracers.get_tracer("web").start_as_current_span("POST /trips"):
        await drained(agent, max_concurrency=at_a_time)

    turns: dict[str, Any] = {"turn double": {"execute_tool double": {}}, "turn count": {"execute_tool count": {}}}
    assert watch.tree() == {"POST /trips": {"invoke_agent trips": turns}}
    span = watch.span("invoke_agent trips")
    assert (span.attributes or {})["gen_ai.operation.name"] == "invoke_agent"
    assert (span.attributes or {})["gen_ai.agent.name"] == "trips"
    assert (span.attributes or {})["gen_ai.agent.description"] == "Plans trips"


async def test_a_turn_that_fails_is_an_error_and_one_that_waits_is_none(watch: Watch) -> None:
    @ez_tool
    async def fail_now() -> None:
        raise ValueError("private")

    agent = Agent("a", "Fails", [refund, fail_now], sinks=[watch.sink()])
    await agent.put(Turn(refund, kwargs={"order": 1}))
    await agent.put(Turn(fail_now))

    with pytest.raises(ValueError, match="private"):
        await drained(agent)

    waits, failed = watch.span("turn refund"), watch.span("turn fail_now")
    assert (waits.status.status_code, (waits.attributes or {})["toolcrib.outcome"]) == (StatusCode.UNSET, "suspended")
    assert failed.status.status_code is watch.span("invoke_agent a").status.status_code is StatusCode.ERROR
    assert not any("private" in span.to_json() for span in watch.spans)


async def test_a_program_that_a_tool_runs_is_inside_of_its_call(watch: Watch) -> None:
    sink = watch.sink()
    toolkit = Toolkit([double], sinks=[sink], sandbox=FakeSandbox(("double", {"n": 2})))

    @ez_tool
    async def run_python(code: str) -> str:
        return (await toolkit.execute_async(code)).output

    await Pipeline([run_python], sinks=[sink]).run(ToolCall("run_python", {"code": "double(n=2)"}))

    assert watch.tree() == {"execute_tool run_python": {"program": {"execute_tool double": {}}}}
    assert "double(n=2)" not in watch.span("program").to_json()


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="the processes of ProcessSandbox need Linux")
async def test_the_calls_of_programs_in_a_sandbox_and_a_session_are_inside_of_them(watch: Watch) -> None:
    tracer = watch.tracers.get_tracer("tool")

    @ez_tool
    async def look_up(n: int) -> int:
        with tracer.start_as_current_span("query"):
            return n

    toolkit = Toolkit([look_up], sinks=[watch.sink(arguments=True)], sandbox="process")
    await toolkit.execute_async("look_up(1)")
    async with toolkit.session(Run()) as session:
        await session.execute_async("look_up(2)")

    program: dict[str, Any] = {"program": {"execute_tool look_up": {"query": {}}}}
    assert watch.tree() == {**program, "session": program}
    programs = [span for span in watch.spans if span.name == "program"]
    assert [(s.attributes or {})["toolcrib.program.source"] for s in programs] == ["look_up(1)", "look_up(2)"]


@pytest.mark.processes
async def test_a_program_that_goes_on_elsewhere_is_linked_to_where_it_paused(watch: Watch) -> None:
    def toolkit() -> Toolkit:
        return Toolkit([refund], sinks=[watch.sink()], sandbox=FakeSandbox(("refund", {"order": 1})))

    result = await toolkit().execute_async("refund(order=1)")
    assert result.paused is not None
    paused = PausedProgram.from_dict(json.loads(json.dumps(result.paused.to_dict())))
    await toolkit().resume_async(paused, grants=[result.suspended_calls[0].grant("ada")])

    first, second = [span for span in watch.spans if span.name == "program"]
    assert watch.linked(second) == [watch.place(first).span_id]
    calls = [span for span in watch.spans if span.name == "execute_tool refund"]
    assert watch.linked(calls[1]) == [watch.place(calls[0]).span_id]
    assert [event.name for event in first.events] == ["toolcrib.changed"]
    assert (first.attributes or {})["toolcrib.program.id"] == (second.attributes or {})["toolcrib.program.id"]


async def test_calls_of_a_pydantic_ai_agent_are_told(watch: Watch) -> None:
    from pydantic_ai import Agent as PydanticAgent  # noqa: PLC0415 -- slow to import, for one test
    from pydantic_ai.models.test import TestModel  # noqa: PLC0415 -- as above

    agent: Any = PydanticAgent(TestModel(), toolsets=[as_tools([double], sinks=[watch.sink()])])
    await agent.run("double it")

    assert "execute_tool double" in watch.tree()


async def test_a_request_adds_what_it_knows_to_the_span_around_it(watch: Watch) -> None:
    scope = Run(sinks=(watch.sink(),))
    with watch.tracers.get_tracer("mcp").start_as_current_span("tools/call add"):
        run = trace_activity("request", "tools/call", scope, about=lambda: {"session_id": "s1", "method": "tools/call"})
        assert run is not None
        run.closed("completed", method="tools/call")

    span = watch.span("tools/call add")
    assert span.attributes == {"mcp.session.id": "s1", "mcp.method.name": "tools/call"}
    points = watch.points("mcp.server.operation.duration")
    assert [dict(point.attributes) for point in points] == [{"mcp.method.name": "tools/call"}]

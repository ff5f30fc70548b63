"""A server's tools over every way in: turns, an agent, rounds, a program that is sealed off, one of Pydantic AI's."""

from __future__ import annotations

import sys

import pytest

from tests.adapters.mcp_client.servers import EVERYTHING
from tests.adapters.mcp_client.small_server import small_server
from tests.adapters.pydantic_ai.scripted import agent as pydantic_agent
from tests.adapters.pydantic_ai.scripted import results, scripted
from tests.npm.programs import command
from toolcrib import Agent, Turn
from toolcrib.adapters.mcp_client import Progress, connect
from toolcrib.adapters.pydantic_ai import as_tools
from toolcrib.approvals import deny_all
from toolcrib.calls import ToolCall
from toolcrib.code import Toolkit
from toolcrib.errors import ApprovalDenied
from toolcrib.pipeline import Run
from toolcrib.rounds import decode
from toolcrib.sandbox import SandboxName
from toolcrib.testing import wire_reply
from toolcrib.turns import StopReason

PROGRAM = """
total = add(a=1, b=2)["result"]
try:
    fail(word="tea")
except Exception as error:
    print(error)
print(total, query_month(year="2026", month="11"))
"""


async def test_a_turn() -> None:
    async with connect(small_server()).open() as tools:
        add = tools["add"].tool

        assert await Turn(add, kwargs={"a": 1, "b": 2}).returning() == {"result": 3}
        with pytest.raises(Exception, match="no tea here"):
            await Turn(tools["fail"].tool, kwargs={"word": "tea"}).returning()


async def test_an_agent_with_a_gate() -> None:
    async with connect(small_server(), approval=["facts"]).open() as tools:
        agent = Agent("sums", "Adds", tools, approver=deny_all)
        sums, facts = Turn(tools["add"].tool, kwargs={"a": 1, "b": 2}), Turn(tools["facts"].tool)
        await agent.put(sums)
        await agent.put(facts)
        values = [value async for _, value in agent.run()]

    assert values == [{"result": 3}]
    assert facts.stop_reason is not StopReason.COMPLETED


@pytest.mark.parametrize("most", [1, 2])
async def test_an_agent_gives_progress_before_the_result(most: int) -> None:
    async with connect(small_server()).open() as tools:
        agent = Agent("sums", "Counts", tools)
        turn = Turn(tools["count"].tool, kwargs={"up_to": 2})
        await agent.put(turn)
        values = [value async for _, value in agent.run(max_concurrency=most)]

    assert values == [Progress(1, 2), Progress(2, 2), {"result": "counted"}]
    assert turn.output == {"result": "counted"}


async def test_a_turn_that_is_refused_never_reaches_the_server() -> None:
    async with connect(small_server(), approval=True).open() as tools:
        with pytest.raises(ApprovalDenied):
            await Turn(tools["add"].tool, kwargs={"a": 1, "b": 2}).returning(run=Run(approver=deny_all))


@pytest.mark.parametrize("format", ["openai", "anthropic", "gemini"])
async def test_a_round(format: str) -> None:
    calls = [ToolCall("add", {"a": 1, "b": 2}, "c1"), ToolCall("add", {"a": 1}, "c2"), ToolCall("facts", {}, "c3")]
    async with connect(small_server()).open() as tools:
        plan = await decode(tools, wire_reply(format, calls), format=format).apply_hooks()
        messages: list[object] = []
        await plan.commit(messages, await plan.run_pending())

    assert [issue.outcome.problems[0].field for issue in plan.issues] == ["b"]
    assert "height" in str(messages)


async def test_a_program_in_the_sandbox_sees_stubs_and_values() -> None:
    async with connect(small_server()).open() as tools:
        result = await Toolkit(tools).execute_async(PROGRAM)

    assert result.output.splitlines() == ["Error executing tool fail: no tea here", "3 2026, 11"]


@pytest.mark.parametrize("sandbox", ["process", "monty"])
@pytest.mark.parametrize("call", ["add(1, 2)", "add(1, b=2)", "add(b=2, a=1)"])
async def test_a_program_gives_arguments_by_position_as_the_stub_shows_them(sandbox: SandboxName, call: str) -> None:
    async with connect(small_server()).open() as tools:
        toolkit = Toolkit(tools, sandbox=sandbox)
        result = await toolkit.execute_async(f"print({call}['result'])")

    assert "def add(a: int, b: int)" in toolkit.prompt()
    assert result.output == "3\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own sandbox")
async def test_a_program_calls_tools_with_names_that_are_no_python() -> None:
    async with connect(command(EVERYTHING), include_resources=False).open() as tools:
        toolkit = Toolkit(tools)
        result = await toolkit.execute_async(
            'print(get_sum(a=1, b=2), get_tiny_image()[1]["mime_type"], get_structured_content(location="Chicago"))'
        )

    assert "def get_sum(" in toolkit.prompt()
    assert result.output.startswith("The sum of 1 and 2 is 3. image/png {'temperature': 36, ")


async def test_an_agent_of_pydantic_ai_opens_the_server_itself() -> None:
    crib = connect(small_server(), prefix="s_", tool_names=["add", "fail"])
    model = scripted([("s_add", {"a": 1, "b": 2}, "c1")], [("s_fail", {"word": "tea"}, "c2")])

    run = await pydantic_agent(model, as_tools(crib)).run("add")

    told = results(run.all_messages())
    assert told[0][2] == {"result": 3}
    assert "no tea here" in str(told[1][2])
    assert run.output == "done"

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import Any

import pytest

from toolcrib.approvals import MemoryApprovalStore, SqliteApprovalStore
from toolcrib.calls import Completed, Media, Suspended, ToolCall
from toolcrib.code import ExecutionResult, Toolkit
from toolcrib.pipeline import Pipeline, Run
from toolcrib.results import MemoryResultStore
from toolcrib.rounds import Session
from toolcrib.sandbox import MontySandbox, Sandbox
from toolcrib.testing import ScriptedModel
from toolcrib.tools import as_tool, ez_tool, tool
from toolcrib.toolsets import Toolset


@ez_tool
def get_weather(city: str) -> dict[str, int]:
    """Say what the weather is like.

    Args:
        city: City and country.
    """
    return {"temp": 3}


@ez_tool(requires_approval=True)
def book(city: str) -> str:
    """Book a trip."""
    return f"booked {city}"


@pytest.fixture
def kit(engine: Sandbox) -> Toolkit:
    return Toolkit([get_weather, book], sandbox=engine)


async def test_a_program_may_come_as_a_block(kit: Toolkit) -> None:
    run = kit.as_tool()

    assert await run("```python\nprint(get_weather('Oslo')['temp'])\n```") == "3"
    assert await run("text = '''\n```\nprint(1)\n```\n'''\nprint(len(text))") == "18"


async def test_it_runs_a_program_and_returns_what_a_model_is_shown(kit: Toolkit) -> None:
    run = kit.as_tool()

    assert await run("print(get_weather('Oslo')['temp'])") == "3"
    assert (await run("1/0")).endswith("Correct the program and send all of it again.")


@pytest.mark.parametrize(("limit", "most"), [({}, 20_100), ({"max_result_chars": 50}, 150)])
async def test_a_long_result_is_cut_for_the_model_and_whole_for_the_host(kit: Toolkit, limit: Any, most: int) -> None:
    results: list[ExecutionResult] = []

    text = await kit.as_tool(on_result=results.append, **limit)("print('x' * 50_000)")

    assert "characters cut" in text
    assert len(text) < most
    assert len(results[0].output) > 50_000


def test_a_plain_one_is_there_for_who_wants_it(kit: Toolkit) -> None:
    run = kit.as_tool(sync=True)

    assert run("get_weather('Oslo')") == "{'temp': 3}"
    assert not inspect.iscoroutinefunction(run)


def test_its_name_and_annotations_are_those_of_a_function(kit: Toolkit) -> None:
    run = kit.as_tool(name="run_code")

    assert (run.__name__, inspect.iscoroutinefunction(run)) == ("run_code", True)
    returned = str if isinstance(kit.sandbox, MontySandbox) else str | list[str | Media]  # with artifacts
    assert run.__annotations__ == {"code": str, "return": returned}
    assert str(inspect.signature(run)).startswith("(code: str) -> str")


async def test_a_paused_program_says_what_waits(kit: Toolkit) -> None:
    results: list[ExecutionResult] = []

    text = await kit.as_tool(on_result=results.append)("book('Oslo')")

    assert text == (
        'The program is paused, and goes on when a person has decided on:\n- book needs approval\n    city = "Oslo"'
    )
    assert results[0].is_paused


@pytest.mark.parametrize("way", ["function", "pipeline", "session"])
async def test_nobody_is_asked_for_a_program_that_nobody_resumes(kit: Toolkit, way: str, tmp_path: Path) -> None:
    store, code = SqliteApprovalStore(tmp_path / "app.db"), 'print(book("Oslo"))'
    if way == "function":
        text = await kit.as_tool()(code)
    elif way == "pipeline":
        outcome = await Pipeline([kit.as_tool()]).run(ToolCall("run_python", {"code": code}), Run(approvals=store))
        assert isinstance(outcome, Completed), outcome
        text = outcome.value
    else:
        model = ScriptedModel(ToolCall("run_python", {"code": code}), "I cannot.")
        session = Session(model, tools=[kit.as_tool(), book], store=tmp_path / "app.db", id="one")
        assert (await session.say("Book").run()).result == "I cannot."
        text = str(session.transcript)

    assert "approval, which a program cannot wait for here: call the tool `book` itself" in text
    assert await store.list(pending=True) == ()


async def test_a_yes_from_before_counts_in_a_program(kit: Toolkit) -> None:
    run = Run(approvals=MemoryApprovalStore())
    asked = await Pipeline([book]).run(ToolCall("book", {"city": "Oslo"}), run)
    assert isinstance(asked, Suspended)
    await Pipeline([book]).run(asked, run, grant=asked.request.always("ann"))

    outcome = await Pipeline([kit.as_tool()]).run(ToolCall("run_python", {"code": 'print(book("Oslo"))'}), run)

    assert isinstance(outcome, Completed), outcome
    assert "booked Oslo" in outcome.value


async def test_it_is_a_tool_of_a_toolset(kit: Toolkit) -> None:
    made = ez_tool(kit.as_tool())

    outcome = await Pipeline(Toolset([made])).run(ToolCall("run_python", {"code": "1 + 1"}), Run())

    assert isinstance(outcome, Completed)
    assert outcome.value == "2"
    assert made.description.startswith("Run a Python program that calls the functions below")
    assert "def get_weather(city: str)" in made.description
    assert made.parameters == kit.tool_schema("raw")["parameters"]


def test_it_is_a_tool_of_pydantic_ai(kit: Toolkit) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")

    made = pydantic_ai.Tool(kit.as_tool())

    assert made.name == "run_python"
    assert made.description == kit.tool_schema("raw")["description"]
    assert made.function_schema.json_schema == kit.tool_schema("raw")["parameters"]


@pytest.mark.parametrize(
    ("make", "sync"),
    [
        (as_tool, False),
        (as_tool, True),
        (ez_tool, False),
        (ez_tool, True),
        (ez_tool(tags=["code"]), False),
        (tool(register=False), False),
    ],
)
async def test_a_long_text_is_kept_whole_however_the_tool_is_made_of_it(kit: Toolkit, make: Any, sync: bool) -> None:
    tools = Toolset([make(kit.as_tool(sync=sync))], results=MemoryResultStore())
    pipeline, run = Pipeline(tools), Run(principal="ann")

    outcome = await pipeline.run(ToolCall("run_python", {"code": "print('x' * 50_000 + 'end')"}), run)

    assert isinstance(outcome, Completed)
    assert outcome.kept is not None
    assert outcome.kept.chars == 50_003
    found = await pipeline.run(ToolCall("read_result", {"handle": outcome.kept.handle, "offset": 49_999}), run)
    assert found.text() == "[characters 49999:50003 of 50003]\nxend"


async def test_a_tool_that_is_made_of_it_may_show_less(kit: Toolkit) -> None:
    made = ez_tool(max_result_chars=100)(kit.as_tool())

    outcome = await Pipeline(Toolset([made])).run(ToolCall("run_python", {"code": "print('x' * 5_000)"}), Run())

    assert "4900 of 5000 characters cut" in outcome.text()


async def test_a_function_around_it_runs(kit: Toolkit) -> None:
    run = kit.as_tool()

    @functools.wraps(run)
    async def refusing(code: str) -> str:
        return "not today"

    outcome = await Pipeline(Toolset([refusing])).run(ToolCall("run_python", {"code": "print(1)"}), Run())

    assert outcome.text() == "not today"

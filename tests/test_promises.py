"""What the README promises and takes a process, once each: `make test` has a test of every promise that it can."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.adapters.mcp_client import small_server
from tests.adapters.mcp_client.servers import called
from tests.docs.pages import manual_pages
from tests.docs.running import run_page
from toolcrib.adapters.dbos import DurableAgent, Engine
from toolcrib.adapters.mcp_client import connect
from toolcrib.calls import Completed, Suspended
from toolcrib.code import Toolkit
from toolcrib.pipeline import Run
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, Turn

pytestmark = pytest.mark.smoke


@ez_tool
async def add(a: int, b: int = 1) -> int:
    return a + b


@ez_tool(requires_approval=True)
async def pay(amount: int) -> str:
    return f"paid {amount}"


def test_the_readme_does_what_it_says(tmp_path: Path) -> None:
    (readme,) = (page for page in manual_pages() if page.name == "README.md")

    run_page(readme, tmp_path)


async def test_a_program_calls_tools_from_the_default_sandbox() -> None:
    result = await Toolkit([add]).execute_async("[add(n) for n in range(3)]")

    assert result.return_value == [1, 2, 3]


@pytest.mark.parametrize(
    "attack",
    ["open('/etc/passwd').read()", "import subprocess\nsubprocess.run(['id'])", "import socket\nsocket.socket()"],
)
async def test_a_hostile_program_gets_nowhere(attack: str) -> None:
    result = await Toolkit([add]).execute_async(attack)

    assert not result.success
    assert "Error" in (result.error or "")


async def test_a_paused_program_goes_on_when_a_person_has_answered() -> None:
    toolkit, run = Toolkit([pay]), Run()

    paused = await toolkit.execute_async("pay(3)", run=run)
    (call,) = paused.suspended_calls
    assert paused.paused is not None
    done = await toolkit.resume_async(paused.paused, run, grants=[call.request.grant(by="ann")])

    assert done.return_value == "paid 3"


async def test_a_server_over_stdio_is_called(tmp_path: Path) -> None:
    async with connect([sys.executable, str(small_server.__file__), str(tmp_path / "notes")]).open() as tools:
        assert await called(tools, "add", a=1, b=2) == {"result": 3}


async def test_a_durable_turn_waits_in_a_file_and_is_answered(tmp_path: Path) -> None:
    durable = DurableAgent(Agent("shop", "Sells things", Toolset([pay])))

    async with Engine(str(tmp_path / "work.db"), queues=[durable.queue]):
        handle = await durable.put(Turn(pay, kwargs={"amount": 3}))
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        await durable.approve(asked.request, "ann")
        done = await handle.outcome(through=True)

    assert isinstance(done, Completed)
    assert done.value == "paid 3"

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import pytest

from toolcrib.code import ProgramDone, Toolkit
from toolcrib.errors import SandboxError
from toolcrib.pipeline import CallLimits, Run
from toolcrib.sandbox import MontySandbox, ProcessSandbox
from toolcrib.tools import ez_tool, tool
from toolcrib.toolsets.search import searchable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the processes of ProcessSandbox need Linux")


@ez_tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


@ez_tool(requires_approval=True)
def book(city: str) -> str:
    """Book a trip."""
    return f"booked {city}"


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessSandbox]:
    with ProcessSandbox() as made:
        yield made


@pytest.fixture
def kit(process: ProcessSandbox) -> Toolkit:
    return Toolkit([add, book], sandbox=process)


async def test_names_stay_from_one_program_to_the_next(kit: Toolkit) -> None:
    async with kit.session() as session:
        await session.execute_async("import math\ntotal = add(1, b=2)\ndef twice(n): return add(n, b=n)")
        result = await session.execute_async("math.floor(twice(total))")

    assert (result.return_value, [call["name"] for call in result.tool_calls]) == (6, ["add"])


def test_a_session_is_for_plain_code_too(kit: Toolkit) -> None:
    with kit.session() as session:
        session.execute("x = 1")
        assert session.execute("x + 1").return_value == 2


async def test_a_failed_program_leaves_what_it_had(kit: Toolkit) -> None:
    async with kit.session() as session:
        failed = await session.execute_async("kept = 1\n1/0")
        result = await session.execute_async("kept", retry_handler=None)

    assert (failed.success, result.return_value) == (False, 1)


async def test_programs_are_checked_with_what_the_earlier_ones_left(kit: Toolkit) -> None:
    async with kit.session() as session:
        await session.execute_async("def add_all(*n): return sum(n)")
        unknown = await session.execute_async("add_al(1)")
        await session.execute_async("exec('made = 1')")
        made = await session.execute_async("made")

    assert "Did you mean" in str(unknown.error)
    assert made.return_value == 1


async def test_programs_are_mended_and_streamed_as_elsewhere(kit: Toolkit) -> None:
    async with kit.session() as session:
        mended = await session.execute_async("x = 1\nfoo", retry_handler=lambda text, code, result: "x = 2")
        events = [event async for event in session.stream("print(x)")]

    assert (mended.success, len(mended.earlier)) == (True, 1)
    assert isinstance(events[-1], ProgramDone)
    assert events[-1].result.output == "2\n"


async def test_all_programs_of_a_session_are_one_run(kit: Toolkit) -> None:
    async with kit.session(Run(limits=CallLimits(total=1))) as session:
        await session.execute_async("add(1)")
        second = await session.execute_async("add(2)")

    assert "may make 1 call " in str(second.error)


async def test_calls_of_all_its_programs_have_ids_of_their_own(kit: Toolkit) -> None:
    async with kit.session() as session:
        results = [await session.execute_async("add(1)\nadd(1)") for _ in range(2)]

    assert len({call["id"] for result in results for call in result.tool_calls}) == 4


async def test_what_one_program_found_the_next_may_call(process: ProcessSandbox) -> None:
    kit = Toolkit(searchable([add]), sandbox=process)

    async with kit.session() as session:
        await session.execute_async("search_tools('add numbers')")
        result = await session.execute_async("add(1, b=1)")

    assert result.return_value == 2


async def test_a_guarded_tool_is_guarded_in_a_session(kit: Toolkit) -> None:
    async with kit.session() as session:
        await session.execute_async("mine = book")
        result = await session.execute_async("mine('Oslo')")
        with pytest.raises(SandboxError, match="this session is over"):
            await session.execute_async("1")

    assert (result.is_paused, result.paused) == (True, None)
    assert "has ended at calls that have not run" in result.text()


async def test_one_program_runs_at_a_time(process: ProcessSandbox) -> None:
    begun, rested = asyncio.Event(), asyncio.Event()

    @tool()
    async def rest_a_while() -> None:
        """Rest."""
        begun.set()
        await rested.wait()

    async with Toolkit([rest_a_while], sandbox=process).session() as session:
        first = asyncio.create_task(session.execute_async("rest_a_while()"))
        await begun.wait()
        with pytest.raises(SandboxError, match="runs a program already"):
            await session.execute_async("1")
        rested.set()
        assert (await first).success


async def test_a_closed_session_says_so(kit: Toolkit) -> None:
    session = kit.session()
    session.close()
    session.close()

    with pytest.raises(SandboxError, match="is closed"):
        await session.execute_async("1")


def test_a_sandbox_that_keeps_nothing_is_named_with_one_that_does(sandbox: MontySandbox) -> None:
    with pytest.raises(SandboxError, match=r"MontySandbox keeps nothing .* ProcessSandbox does"):
        Toolkit([add], sandbox=sandbox).session()

"""Programs of a session find what the last one left."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import pytest

from tests.code.hosts import TableHost
from toolcrib.errors import SandboxError
from toolcrib.sandbox import HasSessions, ProcessSandbox, Program, SandboxLimits, SandboxSession

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")
TOOLS = ("add", "slow", "stop", "fail")


@pytest.fixture
def session(process_sandbox: ProcessSandbox) -> Iterator[SandboxSession]:
    keeps: HasSessions = process_sandbox
    made = keeps.session()
    yield made
    made.close()


def program(code: str, limits: SandboxLimits | None = None, *, may_block: bool = False) -> Program:
    return Program(code, TOOLS, limits or SandboxLimits(), may_block=may_block)


@pytest.mark.parametrize("may_block", [False, True])
async def test_names_live_on(session: SandboxSession, may_block: bool) -> None:
    await session.run(
        program("import math\nrows = [1, 2]\ndef total(): return add(*rows)", may_block=may_block), TableHost()
    )
    await session.run(program("rows.append(3)", may_block=may_block), TableHost())

    result = await session.run(program("[total(), math.floor(2.5)]", may_block=may_block), TableHost())

    assert result.value == [6, 2]
    assert result.calls == 1


async def test_each_program_has_its_own_host_output_and_count_of_calls(session: SandboxSession) -> None:
    first, second = TableHost(), TableHost()
    await session.run(program("print('one')\nadd(1)"), first)

    result = await session.run(program("print('two')", SandboxLimits(calls=1)), second)

    assert (result.output, result.calls) == ("two\n", 0)
    assert (len(first.calls), len(second.calls)) == (1, 0)


async def test_a_program_that_fails_leaves_the_session(session: SandboxSession) -> None:
    await session.run(program("kept = 1\n1 / 0"), TableHost())
    await session.run(program("kept ="), TableHost())

    result = await session.run(program("kept"), TableHost())

    assert result.value == 1


async def test_two_sessions_share_nothing(process_sandbox: ProcessSandbox, session: SandboxSession) -> None:
    other = process_sandbox.session()
    await session.run(program("secret = 1"), TableHost())

    result = await other.run(program("secret"), TableHost())
    other.close()

    assert "NameError" in str(result.error)


async def test_one_program_runs_at_a_time(session: SandboxSession) -> None:
    gate = asyncio.Event()
    host = TableHost(slow=gate.wait)
    first = asyncio.create_task(session.run(program("slow()\n'first'"), host))
    await host.called.wait()

    with pytest.raises(SandboxError, match="one at a time"):
        await session.run(program("1"), TableHost())
    gate.set()

    assert (await first).value == "first"


@pytest.mark.parametrize(
    ("code", "why"),
    [("while True: pass", "TimeoutError"), ("stop()", "Paused"), ("while True: print('x' * 99_999)", "OutputLimit")],
)
async def test_a_program_that_is_ended_takes_the_session_with_it(session: SandboxSession, code: str, why: str) -> None:
    limits = SandboxLimits(program_time=0.2, output_killed_at=1_000_000)

    result = await session.run(program(code, limits), TableHost())

    assert why in str(result.error)
    assert result.state is None
    with pytest.raises(SandboxError, match=rf"session is over: its last program was ended \({why}"):
        await session.run(program("1"), TableHost())


async def test_time_is_counted_for_each_program_alone(session: SandboxSession) -> None:
    code = "import time\nuntil = time.process_time() + 0.1\nwhile time.process_time() < until: pass"
    limits = SandboxLimits(program_time=2)

    results = [await session.run(program(code, limits), TableHost()) for _ in range(3)]

    assert [result.error for result in results] == [None] * 3


async def test_a_cancelled_program_ends_the_session(session: SandboxSession) -> None:
    host = TableHost()
    task = asyncio.create_task(session.run(program("slow(60)"), host))
    await host.called.wait()

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    with pytest.raises(SandboxError, match="session is over: a program of it was ended from outside"):
        await session.run(program("1"), TableHost())


async def test_a_closed_session_says_so(session: SandboxSession) -> None:
    await session.run(program("1"), TableHost())

    session.close()

    with pytest.raises(SandboxError, match="it was closed"):
        await session.run(program("1"), TableHost())

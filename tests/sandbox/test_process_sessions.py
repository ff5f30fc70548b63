"""Programs of a session find what the last one left."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

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


async def test_threads_of_a_session_stand_still_between_its_programs(session: SandboxSession) -> None:
    count = """
import threading
counted = [0]
def count():
    while True:
        counted[0] += 1
threading.Thread(target=count, daemon=True).start()
"""
    await session.run(program(f"{count}\ncounted[0]"), TableHost())
    await until_one_is_stopped()
    pids = stopped_workers()

    assert (await session.run(program("add(1)\ncounted[0] > 0"), TableHost())).value is True
    await until_one_is_stopped()
    assert stopped_workers() == pids


@pytest.mark.parametrize("wait", ["slow()", "import asyncio\nawait asyncio.sleep(20)"])
async def test_what_threads_compute_while_a_program_waits_is_time_of_the_program(
    session: SandboxSession, wait: str
) -> None:
    await session.run(program("import threading\ndef count():\n    while True: pass"), TableHost())
    host = TableHost(slow=asyncio.Event().wait)
    limits = SandboxLimits(program_time=0.3, wall_time=15)

    ended = await session.run(program(f"threading.Thread(target=count, daemon=True).start()\n{wait}", limits), host)

    assert "computed for 0.3 s" in str(ended.error)


async def test_what_the_programs_before_computed_is_not_charged(session: SandboxSession) -> None:
    compute = "import time\nuntil = time.monotonic() + 0.4\nwhile time.monotonic() < until: pass"
    await session.run(program(compute), TableHost())

    result = await session.run(program("slow(1.2)\n'done'", SandboxLimits(program_time=0.2)), TableHost())

    assert result.value == "done"


async def until_one_is_stopped() -> None:
    """Return when one worker stands still; the test is ended where none ever does."""
    while len(stopped_workers()) != 1:  # noqa: ASYNC110 -- a signal takes a moment
        await asyncio.sleep(0.01)


def stopped_workers() -> list[str]:
    """Return the processes below this one that are stopped."""
    parents = {pid: stat for pid in os.listdir("/proc") if pid.isdigit() and (stat := stat_of(pid))}
    mine = {str(os.getpid())}
    while found := {pid for pid, (_, parent) in parents.items() if parent in mine} - mine:
        mine |= found
    return sorted(pid for pid in mine if pid in parents and parents[pid][0] == "T")


def oom_score(pid: str) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def stat_of(pid: str) -> tuple[str, str] | None:
    """Return the state of a process and its parent; None when it has ended."""
    try:
        state, parent, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return state, parent


async def test_a_session_that_is_idle_for_too_long_ends() -> None:
    with ProcessSandbox(session_idle=0.05) as sandbox:
        session = sandbox.session()
        await session.run(program("1"), TableHost())
        await asyncio.sleep(0.1)
        while stopped_workers():  # noqa: ASYNC110 -- a killed one takes a moment
            await asyncio.sleep(0.01)

        with pytest.raises(SandboxError, match=r"it was idle for 0.05 s \(session_idle\)"):
            await session.run(program("1"), TableHost())


async def test_a_session_that_nothing_refers_to_gives_its_worker_back(process_sandbox: ProcessSandbox) -> None:
    session = process_sandbox.session()
    await session.run(program("1"), TableHost())
    await until_one_is_stopped()

    del session
    gc.collect()

    while stopped_workers():  # noqa: ASYNC110 -- the test is ended where it is kept
        await asyncio.sleep(0.01)


async def test_a_program_that_loses_all_of_its_session_says_so(session: SandboxSession) -> None:
    await session.run(program("kept = 1"), TableHost())

    ended = await session.run(program("while True: pass", SandboxLimits(program_time=0.2)), TableHost())

    assert "The session ended with it: all that its programs left is gone." in str(ended.error)


async def test_plain_values_outlive_the_worker_of_a_session() -> None:
    limits = SandboxLimits(program_time=0.3, value_size=10_000)
    left = """
import math
rows, texts, deep = [1, {"a": 2.5, "b": None}], "é", [[]]
for _ in range(30): deep = [deep, deep]
same, pair, far, big = rows, (1, 2), float("inf"), "x" * 20_000
def total(): return 1
add = 5
"""
    with ProcessSandbox(keep_values=True) as sandbox:
        session = sandbox.session()
        await session.run(program(left, limits), TableHost())
        again = await session.run(program("same.append(3)\nrows is same", limits), TableHost())
        lost = await session.run(program("rows.clear()\nwhile True: pass", limits), TableHost())
        names = (
            "sorted(n for n in globals() if not n.startswith('_') and n not in ('slow', 'stop', 'fail', 'parallel'))"
        )
        there = await session.run(program(f"[rows, texts, {names}, add(1, 1)]", limits), TableHost())
        session.close()

    assert again.value is True
    assert "only plain values are there as they were before this program (rows, texts, same, pair, far)" in str(
        lost.error
    )
    assert ". Of what the programs" in str(lost.error)
    assert there.value == [[1, {"a": 2.5, "b": None}, 3], "é", ["add", "far", "pair", "rows", "same", "texts"], 2]


async def test_a_program_has_so_many_threads_at_a_time(process_sandbox: ProcessSandbox) -> None:
    code = """
import threading
until, started = threading.Event(), []
threading.stack_size(65_536)
try:
    while True:
        started.append(threading.Thread(target=until.wait))
        started[-1].start()
except RuntimeError as error:
    print(error)
until.set()
for thread in started[:-1]: thread.join()
threading.Thread(target=print).start()
len(started) - 1
"""
    ended = await process_sandbox.run(program(code), TableHost())

    assert ended.value == 128
    assert "a program may have 128 at a time" in ended.output


async def test_workers_are_ended_before_the_host_when_memory_runs_out(session: SandboxSession) -> None:
    await session.run(program("1"), TableHost())

    await until_one_is_stopped()
    (worker,) = stopped_workers()

    assert oom_score(worker) == 1000

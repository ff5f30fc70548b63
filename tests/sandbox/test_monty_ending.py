from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.code.hosts import TableHost
from toolcrib.errors import SandboxError
from toolcrib.sandbox import MontySandbox, Program, SandboxLimits, SandboxResult

HERE = Path(__file__).parents[2]
ON_LINUX = pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds its workers in /proc")


def workers() -> list[int]:
    """Return this process's children that run Monty."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
            if name == "monty" and int(rest.split()[1]) == os.getpid() and rest.split()[0] != "Z":
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def program(code: str) -> Program:
    return Program(code, ("add", "slow"), SandboxLimits(program_time=20))


@pytest.mark.parametrize("code", ["add()\nwhile True: pass", "slow(60)", "import time\nadd()\ntime.sleep(20)"])
async def test_cancelling_stops_the_program_and_its_calls(code: str) -> None:
    with MontySandbox(workers=1) as sandbox:
        host = TableHost()
        task = asyncio.create_task(sandbox.run(program(code), host))
        await host.called.wait()

        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        again = await sandbox.run(program("add(1, 2)"), host)

    assert isinstance(ended, asyncio.CancelledError)
    assert host.cancelled == (["slow"] if "slow" in code else [])
    assert again.value == 3


@ON_LINUX
@pytest.mark.parametrize("code", ["add()\nwhile True: pass", "slow(0.5)\n1"])
async def test_a_worker_that_dies_is_said_and_the_next_program_runs(code: str) -> None:
    with MontySandbox(workers=1) as sandbox:
        before = set(workers())
        host = TableHost()
        task = asyncio.create_task(sandbox.run(program(code), host))
        await host.called.wait()

        for pid in set(workers()) - before:
            os.kill(pid, signal.SIGKILL)
        result = await task
        again = await sandbox.run(program("add(1, 2)"), TableHost())

    assert result.error is not None
    assert (result.error.kind, result.error.type) == ("sandbox", "SandboxLost")
    assert "the worker process died, and the program with it: it was killed from outside" in result.error.message
    assert again.value == 3


@ON_LINUX
async def test_a_program_whose_worker_gets_no_processor_was_out_of_time() -> None:
    code = Program("add()\nwhile True: pass", ("add",), SandboxLimits(program_time=0.5))
    with MontySandbox(workers=1) as sandbox:
        before = set(workers())
        host = TableHost()
        task = asyncio.create_task(sandbox.run(code, host))
        await host.called.wait()

        for pid in set(workers()) - before:
            os.kill(pid, signal.SIGSTOP)  # its own clock says nothing; Monty's watchdog ends it
        result = await task

    assert result.error is not None
    assert (result.error.kind, result.error.type) == ("time", "TimeoutError")


@ON_LINUX
async def test_a_type_check_whose_worker_gets_no_processor_for_a_while_is_finished() -> None:
    lines = [f"x{n}: list[dict[str, int]] = [{{'a': {n}}} for _ in range({n})]" for n in range(500)]
    with MontySandbox(workers=1) as sandbox:
        before = set(workers())
        await sandbox.type_check("1", "")
        [worker] = set(workers()) - before
        used = ticks(worker)

        checking = asyncio.create_task(sandbox.type_check("\n".join([*lines, "x: int = ''"]), ""))
        while ticks(worker) < used + 3 and not checking.done():  # noqa: ASYNC110 -- until it checks
            await asyncio.sleep(0.001)
        os.kill(worker, signal.SIGSTOP)
        await asyncio.sleep(1.5)  # Monty's watchdog adds a second to a limit
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGCONT)
        problems = await checking

    assert [(problem.line, problem.rule) for problem in problems] == [(501, "invalid-assignment")]


def ticks(process: int) -> int:
    """Return how much a process has computed, in the kernel's ticks."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@ON_LINUX
async def test_a_worker_that_died_while_idle_is_replaced() -> None:
    before = set(workers())
    with MontySandbox(workers=1) as sandbox:
        await sandbox.run(program("1"), TableHost())
        for pid in set(workers()) - before:
            os.kill(pid, signal.SIGKILL)
        while set(workers()) - before:  # noqa: ASYNC110 -- a killed one takes a moment
            await asyncio.sleep(0.01)

        result = await sandbox.run(program("add(1, 2)"), TableHost())

    assert result.value == 3


async def test_programs_wait_for_a_worker_and_not_for_ever() -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        began.set()
        await go_on.wait()
        return "first"

    with MontySandbox(workers=1, checkout_timeout=0.2) as sandbox:
        first = asyncio.create_task(sandbox.run(program("slow()"), TableHost(slow=slow)))
        await began.wait()

        with pytest.raises(SandboxError, match="every worker was busy"):
            await sandbox.run(program("1"), TableHost())

        go_on.set()
        assert (await first).value == "first"


async def test_programs_run_at_a_time() -> None:
    with MontySandbox(workers=3) as sandbox:
        runs = [sandbox.run(program(f"slow(0.01)\nadd({n}, 1)"), TableHost()) for n in range(9)]

        results = await asyncio.gather(*runs)

    assert [result.value for result in results] == list(range(1, 10))


def test_one_sandbox_serves_several_threads_and_loops() -> None:
    values: list[object] = []

    def work(sandbox: MontySandbox, number: int) -> None:
        values.append(asyncio.run(sandbox.run(program(f"add({number}, 1)"), TableHost())).value)

    with MontySandbox() as sandbox:
        threads = [threading.Thread(target=work, args=(sandbox, n)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sorted(values, key=repr) == [1, 2, 3, 4]


@ON_LINUX
async def test_closing_ends_what_runs_and_leaves_no_process() -> None:
    before = len(workers())
    sandbox = MontySandbox()
    hosts = {"add()\nwhile True: pass": TableHost(), "slow(60)": TableHost()}
    tasks = [asyncio.create_task(sandbox.run(program(code), host)) for code, host in hosts.items()]
    await asyncio.gather(*(host.called.wait() for host in hosts.values()))

    await asyncio.to_thread(sandbox.close)
    results: list[SandboxResult] = await asyncio.gather(*tasks)

    assert {r.error.message for r in results if r.error} == {"the sandbox was closed while the program ran"}
    async with asyncio.timeout(60):
        while len(workers()) > before:  # noqa: ASYNC110 -- a killed one takes a moment
            await asyncio.sleep(0.02)
    with pytest.raises(SandboxError, match="was closed"):
        await sandbox.run(program("1"), TableHost())


SCRIPT = """
import asyncio, logging, os, sys, threading, time
from toolcrib.sandbox import MontySandbox, Program, Value
logging.getLogger("asyncio").setLevel(logging.ERROR)  # a busy machine is slow
class Host:
    async def call(self, name, args, kwargs):
        return Value(sum(args))
    def output(self, text, stream): pass
sandbox = MontySandbox()
def run(code):
    return asyncio.run(sandbox.run(Program(code, ("add",)), Host())).value
print(run("add(1, 2)"), flush=True)
"""


def script(more: str) -> subprocess.CompletedProcess[str]:
    """Run Python of its own, warnings shown; raises when it does not end."""
    return subprocess.run([sys.executable, "-X", "dev", "-c", SCRIPT + more], capture_output=True, text=True, cwd=HERE)


def test_an_interpreter_ends_with_its_workers_without_a_word() -> None:
    done = script("")

    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


def test_an_interpreter_ends_while_a_program_computes() -> None:
    done = script("threading.Thread(target=run, args=('while True: pass',), daemon=True).start()\ntime.sleep(0.3)")

    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_says_why_it_cannot_and_leaves_the_parent_its_workers() -> None:
    done = script(
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    try: run('1')\n"
        "    except Exception as error: print(type(error).__name__, 'forked' in str(error), flush=True)\n"
        "    sys.exit()\n"
        "os.waitpid(pid, 0)\n"
        "print(run('add(3, 4)'))\n"
    )

    assert done.stdout == "3\nSandboxError True\n7\n"
    assert done.returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_forked_before_the_first_program_runs_its_own() -> None:
    code = SCRIPT.replace("print(run(", "pid = os.fork()\nprint(run(").replace("flush=True)", "flush=True)\n")

    done = subprocess.run(
        [sys.executable, "-c", code + "if pid: os.waitpid(pid, 0)"],
        capture_output=True,
        text=True,
        cwd=HERE,
    )

    assert (done.returncode, sorted(done.stdout)) == (0, sorted("3\n3\n"))  # the two write when they please

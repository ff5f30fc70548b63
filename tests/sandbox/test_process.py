"""How programs in processes end: by themselves, from outside, with their worker, with their sandbox."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.code.hosts import Run, TableHost
from toolcrib.errors import SandboxError
from toolcrib.sandbox import (
    HasDialect,
    ProcessSandbox,
    Program,
    Resumable,
    SandboxLimits,
    SandboxResult,
    SubprocessSandbox,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")
HERE = Path(__file__).parents[2]


def program(code: str, *, may_block: bool = False) -> Program:
    return Program(code, ("add", "slow", "stop"), SandboxLimits(program_time=20), may_block=may_block)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_it_says_what_it_is(process_sandbox: ProcessSandbox) -> None:
    sandbox: Resumable = process_sandbox

    result = await process_sandbox.run(program("1"), TableHost())

    assert sandbox.engine == f"process-{sys.version_info.major}.{sys.version_info.minor}"
    assert sandbox.replays
    assert isinstance(process_sandbox, HasDialect)
    assert result.isolation[0] == sandbox.engine
    assert {"no_new_privs", "seccomp", "rlimits"} <= set(process_sandbox.layers) <= set(result.isolation)


async def test_no_module_says_where_the_files_of_the_host_lie(process_sandbox: ProcessSandbox) -> None:
    code = """
import gc, json, types, typing
known = [*typing.sys.path, json.__file__, json.__spec__.origin, json.loads.__code__.co_filename]
known += [each.__code__.co_filename for each in gc.get_objects() if isinstance(each, types.FunctionType)]
for module in list(typing.sys.modules.values()):
    for value in list(vars(module).values()):
        known += [value] if type(value) is str else [*map(str, value.values())] if type(value) is dict else []
sorted({text[:200] for text in known if ROOT in text and "ROOT" not in text and text != ROOT})
"""
    seen = program(f"ROOT = {str(Path(json.__file__).parents[1])!r}\n{code}")

    with SubprocessSandbox() as unsealed:
        assert (await unsealed.run(seen, TableHost())).value
    assert (await process_sandbox.run(seen, TableHost())).value == []


@pytest.mark.parametrize(
    "code", ["add()\nwhile True: pass", "slow(60)", "import time\nadd()\ntime.sleep(20)", "parallel((slow, 60))"]
)
async def test_cancelling_stops_the_program_and_its_calls(process_sandbox: ProcessSandbox, code: str) -> None:
    host = TableHost()
    task = asyncio.create_task(process_sandbox.run(program(code), host))
    await host.called.wait()

    task.cancel()
    (ended,) = await asyncio.gather(task, return_exceptions=True)

    assert isinstance(ended, asyncio.CancelledError)
    assert host.cancelled == (["slow"] if "slow" in code else [])
    assert (await process_sandbox.run(program("add(1, 2)"), TableHost())).value == 3


@pytest.mark.parametrize(
    "crash",
    [
        "import ctypes",
        "a = ()\nfor i in range(1_000_000): a = (a,)\nhash(a)",
        "import os\nos._exit(3)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    ],
)
async def test_a_program_that_breaks_its_interpreter_harms_no_one(process_sandbox: ProcessSandbox, crash: str) -> None:
    result = await process_sandbox.run(program(crash), TableHost())

    assert result.error is not None
    assert result.error.kind in ("sandbox", "exception", "memory")
    assert (await process_sandbox.run(program("add(1, 2)"), TableHost())).value == 3


@pytest.mark.parametrize("may_block", [False, True])
async def test_programs_run_at_a_time(process_sandbox: ProcessSandbox, may_block: bool) -> None:
    runs = [
        process_sandbox.run(program(f"slow(0.01)\nadd({n}, 1)", may_block=may_block), TableHost()) for n in range(9)
    ]

    results = await asyncio.gather(*runs)

    assert [result.value for result in results] == list(range(1, 10))


def test_one_sandbox_serves_several_threads_and_loops(process_sandbox: ProcessSandbox) -> None:
    values: list[object] = []

    def work(number: int) -> None:
        for may_block in (False, True):
            result = asyncio.run(process_sandbox.run(program(f"add({number}, 1)", may_block=may_block), TableHost()))
            values.append(result.value)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(values, key=repr) == [1, 1, 2, 2, 3, 3, 4, 4]


async def test_no_descriptor_is_left(process_sandbox: ProcessSandbox) -> None:
    codes = ["1", "1 / 0", "stop()", "import os\nos._exit(1)", "parallel((add, 1), (add, 2))"]
    await process_sandbox.run(program("1"), TableHost())
    before = descriptors()

    for code in codes * 3:
        await process_sandbox.run(program(code), TableHost())

    assert descriptors() <= before + 4  # spares come and go


async def test_a_blocking_program_leaves_the_loop_its_turns(process_sandbox: ProcessSandbox) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.01)
            turns += 1

    counting = asyncio.create_task(count())
    result = await process_sandbox.run(
        program("for _ in range(300): add(sum(range(50_000)) * 0)", may_block=True),
        TableHost(),
    )
    counting.cancel()
    await asyncio.gather(counting, return_exceptions=True)

    assert result.error is None
    assert turns


async def test_a_host_that_is_late_takes_no_time_from_its_program(process_run: Run) -> None:
    async def others() -> None:
        while True:
            time.sleep(0.1)  # noqa: ASYNC251 -- as a host that computes for many others
            await asyncio.sleep(0)

    busy = asyncio.create_task(others())
    result = await process_run("sum(add(n) for n in range(25))", program_time=1.0)
    busy.cancel()

    assert result.error is None
    assert result.value == sum(range(25))


async def test_a_large_reply_arrives(process_sandbox: ProcessSandbox) -> None:
    host = TableHost(big=lambda: ["x" * 1_000] * 5_000)

    result = await process_sandbox.run(Program("[len(big()), len(big()[0])]", ("big",)), host)

    assert result.value == [5_000, 1_000]


@pytest.mark.parametrize("text", ["\ud800", "\x00", "é漢😀", "\u2028"])
async def test_any_text_can_be_a_reply(process_sandbox: ProcessSandbox, text: str) -> None:
    host = TableHost(get=lambda: text)

    result = await process_sandbox.run(Program("[ord(c) for c in get()]", ("get",)), host)

    assert result.value == [ord(c) for c in text]


async def test_closing_ends_what_runs() -> None:
    sandbox = ProcessSandbox()
    codes = ["add()\nwhile True: pass", "slow(60)", "import time\nadd()\ntime.sleep(20)"]
    hosts = {code: TableHost() for code in codes}
    await sandbox.run(program("1"), TableHost())
    tasks = [asyncio.create_task(sandbox.run(program(code), host)) for code, host in hosts.items()]
    await asyncio.gather(*(host.called.wait() for host in hosts.values()))

    await asyncio.to_thread(sandbox.close)
    results: list[SandboxResult] = await asyncio.gather(*tasks)

    assert {r.error.message for r in results if r.error} == {"the sandbox was closed while the program ran"}
    with pytest.raises(SandboxError, match="was closed"):
        await sandbox.run(program("1"), TableHost())


def test_an_interpreter_ends_while_a_program_computes() -> None:
    code = """
import asyncio, logging, threading, time
from toolcrib.sandbox import ProcessSandbox, Program, Value
logging.getLogger("asyncio").setLevel(logging.ERROR)  # a busy machine is slow
class Host:
    async def call(self, name, args, kwargs, emit=None): return Value(sum(args))
    def output(self, text, stream): pass
sandbox = ProcessSandbox()
def run(code): return asyncio.run(sandbox.run(Program(code, ("add",)), Host())).value
print(run("add(1, 2)"), flush=True)
threading.Thread(target=run, args=("while True: pass",), daemon=True).start()
time.sleep(0.2)
"""

    done = subprocess.run([sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, cwd=HERE)

    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


async def test_output_is_passed_on_while_the_program_computes_and_kept_when_it_is_ended(
    process_sandbox: ProcessSandbox,
) -> None:
    host = TableHost()
    endless = Program("print('here')\nwhile True: pass", limits=SandboxLimits(program_time=0.5))

    result = await process_sandbox.run(endless, host)

    assert result.output == "here\n"
    assert host.printed == [("stdout", "here\n")]
    assert result.error is not None
    assert result.error.kind == "time"


async def test_a_recursion_ends_however_deep_a_program_lets_it_be(process_run: Run) -> None:
    code = "import sys\nsys.setrecursionlimit({})\ndef f(n): return n if n == {} else f(n + 1)\nf(0)"

    endless = [await process_run(code.format(limit, -1)) for limit in (10**9, 10**12)]
    deep = await process_run(code.format(10**9, 50_000))

    assert [str(each.error).partition(" ")[0] for each in endless] == ["RecursionError"] * 2
    assert (deep.error, deep.value) == (None, 50_000)


@pytest.mark.parametrize(("function", "value"), [("len, 'abc'", 3), ("add, 3", 3)])
async def test_a_thread_that_ends_while_a_loop_waits_for_calls(function: str, value: int, process_run: Run) -> None:
    code = f"""
import asyncio
async def main():
    return await asyncio.gather(add(1), slow(0.01, 2), asyncio.to_thread({function}))
asyncio.run(main())
"""

    for _ in range(20):  # which of them is first is chance
        assert (await process_run(code)).value == [1, 2, value]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"spares": -1}, ValueError, "a sandbox: spares must be at least 0, and is -1"),
        ({"spares": 1.5}, TypeError, "a sandbox: spares must be a whole number, and is 1.5"),
        ({"session_idle": -1}, ValueError, "a sandbox: session_idle must be more than 0 seconds, and is -1"),
        (
            {"queue": 5},
            TypeError,
            r"`queue` of a sandbox must be a ProgramQueue, as ProgramQueue\(most_programs=8\), and not 5",
        ),
    ],
)
def test_an_option_that_does_not_fit_is_refused(options: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        ProcessSandbox(**options)

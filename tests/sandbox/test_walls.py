"""What holds for a program behind each wall: calls, streams, pauses, limits and sessions."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from tests.code.hosts import Answer, TableHost
from toolcrib.sandbox import Emit, Program, Reply, SandboxLimits, SandboxResult, Value, WorkerSandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the walls are those of Linux")

PROGRAM = """
import asyncio
async def main():
    return await asyncio.gather(add(1), slow(0.01, "two"), asyncio.to_thread(add, 3))
print("out")
parallel((add, 1), (add, 2, 3)) + asyncio.run(main())
"""


async def run(wall: WorkerSandbox, code: str, host: TableHost | None = None, **limits: Any) -> SandboxResult:
    host = host or TableHost()
    return await wall.run(Program(code, tuple(host.table), limits=SandboxLimits(**limits)), host)


async def test_calls_at_once_from_tasks_and_threads(wall: WorkerSandbox) -> None:
    result = await run(wall, PROGRAM)

    assert (result.value, result.output, result.error) == ([1, 5, 1, "two", 3], "out\n", None)


async def test_the_result_names_the_wall_and_the_layers_that_hold(wall: WorkerSandbox) -> None:
    result = await run(wall, "1")

    assert result.isolation[0] == wall.engine
    assert result.isolation[1 : len(wall.layers) + 1] == wall.layers
    assert {"seccomp", "rlimits", "no_new_privs"} <= set(wall.layers)


@pytest.mark.parametrize(
    ("code", "limits", "kind"),
    [
        ("while True: pass", {"program_time": 0.5}, "time"),
        ("slow(60)", {"wall_time": 1.0}, "time"),
        ("x = 'a' * 10**9", {"memory": 128 << 20}, "memory"),
        ("while True: print('x' * 10_000)", {"output_killed_at": 1_000_000}, "output"),
        ("while True: add(1)", {"calls": 10}, "calls"),
        ("import os\nos._exit(3)", {}, "sandbox"),
    ],
    ids=["computing", "waiting", "memory", "output", "calls", "crash"],
)
async def test_limits(wall: WorkerSandbox, code: str, limits: dict[str, Any], kind: str) -> None:
    result = await run(wall, code, **limits)

    assert result.error is not None
    assert result.error.kind == kind
    assert (await run(wall, "add(20, 1)")).value == 21


FILES = """
import ctypes, socket
found = []
for attempt in (
    lambda: ctypes.CDLL(None).open(b"/etc/passwd", 0) >= 0 and found.append("file"),
    lambda: socket.create_connection(("127.0.0.1", {port}), 1) and found.append("network"),
):
    try:
        attempt()
    except Exception:
        pass
found
"""


async def test_no_file_and_no_network(wall: WorkerSandbox) -> None:
    knocked = asyncio.Event()
    ear = await asyncio.start_server(lambda *_: knocked.set(), "127.0.0.1")
    port = ear.sockets[0].getsockname()[1]

    result = await run(wall, FILES.format(port=port))

    ear.close()
    assert result.value in ([], None)
    assert not knocked.is_set()


class Streams(TableHost):
    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any], emit: Emit | None = None) -> Reply:
        assert emit is not None
        for number in range(args[0]):
            await emit(number)
        return Value(None)


async def test_values_of_a_stream_are_taken_one_by_one(wall: WorkerSandbox) -> None:
    program = Program("[value * 2 for value in numbers(4)]", ("numbers",), streams=frozenset({"numbers"}))

    result = await wall.run(program, Streams())

    assert result.value == [0, 2, 4, 6]


async def test_a_paused_program_goes_on(wall: WorkerSandbox) -> None:
    program = Program("import random\ndrawn = random.random()\nadd(1)\n[stop(), drawn]", ("add", "stop"))
    table: dict[str, Answer] = {"add": lambda number: number, "stop": lambda: "said yes"}

    paused = await wall.run(program, TableHost())
    resumed = await wall.resume(program, json.loads(json.dumps(paused.state)), TableHost(**table))

    assert paused.error is not None
    assert paused.error.kind == "paused"
    assert resumed.value[0] == "said yes"


async def test_a_session_keeps_names_in_one_worker(wall: WorkerSandbox) -> None:
    session = wall.session()
    host = TableHost()

    for code in ("x = add(1)", "x += add(10)"):
        await session.run(Program(code, ("add",)), host)
    result = await session.run(Program("x", ("add",)), host)

    session.close()
    assert result.value == 11


async def test_programs_run_at_once_and_share_nothing(wall: WorkerSandbox) -> None:
    met = asyncio.Barrier(3)

    async def meet() -> int:
        return await met.wait()

    code = "import builtins\nseen = hasattr(builtins, 'mine')\nbuiltins.mine = 1\nmeet()\nseen"
    results = await asyncio.gather(*(run(wall, code, TableHost(meet=meet)) for _ in range(3)))

    assert [result.value for result in results] == [False] * 3


async def test_a_cancelled_program_ends_and_the_next_one_runs(wall: WorkerSandbox) -> None:
    host = TableHost()
    running = asyncio.create_task(run(wall, "add(1)\nwhile True: pass", host))
    await host.called.wait()

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert (await run(wall, "add(2)")).value == 2


async def test_files_go_in_and_artifacts_come_out(wall: WorkerSandbox) -> None:
    code = "data = open('sales.csv', 'rb').read()\nopen('artifacts/twice.bin', 'wb').write(data * 2)\nlen(data)"

    result = await wall.run(Program(code, files={"sales.csv": bytes(range(256)) * 1_000}), TableHost())

    assert (result.value, result.error) == (256_000, None)
    assert [media.data for media in result.artifacts] == [bytes(range(256)) * 2_000]

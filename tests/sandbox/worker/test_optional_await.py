from __future__ import annotations

import pytest

from tests.sandbox.worker.unsealed import UnsealedWorker

MIXED = """
import asyncio
async def main():
    one = await add(1)
    two, three = await asyncio.gather(add(2), add(3))
    later = [echo(i) for i in range(5)]
    return [one, two, three, await asyncio.gather(*later), add(7)]
asyncio.run(main())
"""


def test_awaited_and_plain_calls_may_be_mixed(worker: UnsealedWorker) -> None:
    assert worker.run(MIXED).value == [1, 2, 3, [0, 1, 2, 3, 4], 7]


AT_ONCE = [
    "await asyncio.gather(add(1), add(2))",
    "await asyncio.gather(*[add(i) for i in (1, 2)])",
    "await asyncio.gather(*map(add, [1, 2]))",
    "asyncio.run(asyncio.wait_for(asyncio.gather(add(1), add(2)), 5))",
    "async def main():\n    return await asyncio.gather(add(1), add(2))\nasyncio.run(main())",
    "async def main():\n    return await asyncio.gather(add(1), add(2))\nmain()",
    "async def main():\n    a, b = asyncio.create_task(add(1)), asyncio.create_task(add(2))\n"
    "    return [await a, await b]\nawait main()",
    "async with asyncio.TaskGroup() as group:\n    tasks = [group.create_task(add(i)) for i in (1, 2)]\n"
    "[task.result() for task in tasks]",
    "async def one(i):\n    return await add(i)\nawait asyncio.gather(*(one(i) for i in (1, 2)))",
    "def one(i):\n    return add(i)\nawait asyncio.gather(one(1), one(2))",
    "f = add\nawait asyncio.gather(f(1), f(2))",
    "import functools\nf = functools.partial(add)\nawait asyncio.gather(f(1), f(2))",
    "tools = {'a': add}\nawait asyncio.gather(*(tools['a'](i) for i in (1, 2)))",
    "asyncio.run(asyncio.gather(add(1), add(2)))",
    "asyncio.new_event_loop().run_until_complete(asyncio.gather(add(1), add(2)))",
    "async def main():\n    return [await f for f in [asyncio.ensure_future(add(1)), asyncio.ensure_future(add(2))]]\n"
    "asyncio.run(main())",
]


@pytest.mark.parametrize("code", AT_ONCE)
def test_gathered_calls_are_sent_before_the_first_answer(worker: UnsealedWorker, code: str) -> None:
    ran = worker.run(f"import asyncio\n{code}")

    assert ran.value == [1, 2]
    assert ran.kinds("call", "wait") == ["call", "call", "wait"]


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("x = add(1)\nawait x", 1),
        ("async def f():\n    return add(1)\nawait f()", 1),
        ("async def f():\n    x = add(1)\n    return x + await add(2)\nawait f()", 3),
        ("import asyncio\nv = [add(1)][0]\nawait asyncio.gather(7, add(v))", [7, 1]),
        ("import asyncio\nasync def f():\n    return asyncio.run(add(1))\nawait f()", 1),
        ("import asyncio\nawait asyncio.to_thread(add, 1)", 1),
        ("import asyncio\nasyncio.get_event_loop_policy().new_event_loop().run_until_complete(add(1))", 1),
        ("import asyncio\nawait asyncio.shield(add(1))", 1),
        ("import asyncio\n[await x for x in asyncio.as_completed([add(1), add(1)])]", [1, 1]),
        (
            "import asyncio\nasync def f(i):\n    try:\n"
            "        return await (add(i) if i else fail('ValueError', 'zero'))\n"
            "    except ValueError as error:\n        return str(error)\nawait asyncio.gather(*map(f, range(3)))",
            ["zero", 1, 2],
        ),
        (
            "import asyncio\nx = await asyncio.gather(add(1), fail('KeyError', 'k'), return_exceptions=True)\n"
            "[x[0], type(x[1]).__name__]",
            [1, "KeyError"],
        ),
    ],
)
def test_a_call_may_be_awaited_or_not(worker: UnsealedWorker, code: str, value: object) -> None:
    assert worker.run(code).value == value


def test_a_call_that_is_never_awaited_does_not_run(worker: UnsealedWorker) -> None:
    ran = worker.run("async def main():\n    t = add(1)\n    if False:\n        await t\nawait main()")

    assert ran.calls == []
    assert ran.error_output == "`add` (line 2): never awaited, so it did not run\n"


def test_sleeping_is_the_hosts_to_do(worker: UnsealedWorker) -> None:
    ran = worker.run(
        "import asyncio, time\nt = time.monotonic()\nawait asyncio.sleep(30)\ntime.sleep(20)\ntime.monotonic() - t"
    )

    assert [round(frame["for"]) for frame in ran.frames if frame["t"] == "wait"] == [30, 20]
    assert 50 <= ran.value < 51


def test_a_deadline_ends_what_sleeps(worker: UnsealedWorker) -> None:
    ran = worker.run(
        "import asyncio\ntry:\n    async with asyncio.timeout(1):\n"
        "        await asyncio.sleep(9)\nexcept TimeoutError:\n    print('late')"
    )

    assert ran.output == "late\n"


def test_waiting_for_nothing_is_an_error(worker: UnsealedWorker) -> None:
    ran = worker.run("import asyncio\nasync def f():\n    await asyncio.Event().wait()\nawait asyncio.gather(f(), f())")

    assert "waits for something that never comes" in ran.error["message"]
    assert ran.error["line"] == 3


@pytest.mark.parametrize(
    "code",
    [
        "asyncio.open_connection('localhost', 1)",
        "asyncio.create_subprocess_exec('true')",
        "asyncio.create_subprocess_shell('true')",
        "asyncio.start_server(print, 'localhost', 0)",
    ],
)
def test_loops_have_no_network_and_no_processes(worker: UnsealedWorker, code: str) -> None:
    ran = worker.run(f"import asyncio\nawait {code}")

    assert ran.error["type"] == "PermissionError"


THREADS = [
    "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(8) as pool:\n"
    "    found = list(pool.map(add, range(20)))\nfound",
    "import asyncio\nawait asyncio.gather(*(asyncio.to_thread(add, i) for i in range(19)), add(19))",
    "import threading, time\nfound = []\n"
    "def late(i):\n    time.sleep(0.001)\n    found.append(add(i))\n"
    "ts = [threading.Thread(target=late, args=(i,)) for i in range(20)]\n"
    "[t.start() for t in ts]\ntime.sleep(0.01)\n[t.join() for t in ts]\nsorted(found)",
    "import threading\nfound = []\n"
    "ts = [threading.Thread(target=lambda i=i: found.append(add(i))) for i in range(20)]\n"
    "[t.start() for t in ts]\n[t.join() for t in ts]\nsorted(found)",
]


@pytest.mark.parametrize("code", THREADS)
def test_calls_of_threads_come_back_to_the_thread_that_made_them(worker: UnsealedWorker, code: str) -> None:
    ran = worker.run(code)

    assert ran.value == list(range(20))
    assert not any(frame["wait"] for frame in ran.frames if frame["t"] == "call")

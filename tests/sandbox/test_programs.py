"""What holds for a program wherever it runs."""

from __future__ import annotations

import asyncio

import pytest

from tests.code.hosts import Run, TableHost


async def test_the_last_expression_is_the_value(run: Run) -> None:
    result = await run("x = 20\nx * 2 + 2")

    assert result.value == 42
    assert result.error is None


async def test_what_is_printed_comes_back_and_is_heard_at_once(run: Run) -> None:
    host = TableHost()

    result = await run("import sys\nprint('one')\nadd(1)\nprint('two', file=sys.stderr)", host)

    assert (result.output, result.error_output) == ("one\n", "two\n")
    assert host.printed == [("stdout", "one\n"), ("stderr", "two\n")]


async def test_tools_are_called_without_await(run: Run) -> None:
    host = TableHost()

    result = await run("[add(1, add(2, more=3)) for i in range(2)]", host)

    assert result.value == [6, 6]
    assert host.calls[0] == ("add", [2], {"more": 3})
    assert result.calls == 4


AWAITING = """
import asyncio
async def main():
    one = await add(1)
    two, three = await asyncio.gather(add(2), add(3))
    later = [slow(0.001, i) for i in range(5)]
    return [one, two, three, await asyncio.gather(*later), add(7)]
asyncio.run(main())
"""


async def test_awaited_and_plain_calls_may_be_mixed(run: Run) -> None:
    result = await run(AWAITING)

    assert result.error is None
    assert result.value == [1, 2, 3, [0, 1, 2, 3, 4], 7]


async def test_gathered_calls_run_at_once_and_begin_in_order(run: Run) -> None:
    host, log = TableHost(), []

    async def meet(name: str) -> str:
        log.append(name)
        while len(log) < 3:
            await host.table["slow"](0.001)
        return name.upper()

    host.table["meet"] = meet
    result = await run("import asyncio\nawait asyncio.gather(meet('a'), meet('b'), meet('c'))", host)

    assert result.value == ["A", "B", "C"]
    assert log == ["a", "b", "c"]


async def test_no_more_calls_run_at_a_time_than_are_allowed(run: Run) -> None:
    running = most = 0

    async def meet() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1

    result = await run(
        "import asyncio\nlen(await asyncio.gather(*[meet() for _ in range(7)]))",
        TableHost(meet=meet),
        calls_in_flight=2,
    )

    assert (result.value, most) == (7, 2)


async def test_calls_that_wait_for_their_turn_are_no_tasks_yet(run: Run) -> None:
    most = 0

    async def meet(number: int) -> int:
        nonlocal most
        most = max(most, len(asyncio.all_tasks()))
        await asyncio.sleep(0)
        return number

    result = await run(
        "import asyncio\nsum(await asyncio.gather(*[meet(n) for n in range(400)]))",
        TableHost(meet=meet),
        calls_in_flight=5,
    )

    assert result.value == sum(range(400))
    assert most < 100


async def test_a_call_that_is_never_awaited_does_not_run(run: Run) -> None:
    host = TableHost()

    result = await run("async def main():\n    t = add(1)\n    if False:\n        await t\nawait main()", host)

    assert host.calls == []
    assert result.error_output == "`add` (line 2): never awaited, so it did not run\n"


async def test_a_tool_is_a_value_like_any_function(run: Run) -> None:
    result = await run("tools = {'plus': add}\nf = add\n[f(1), tools['plus'](2)]")

    assert result.value == [1, 2]


async def test_a_subtool_is_called_by_either_name(run: Run) -> None:
    host = TableHost(orders=lambda: "all", orders__lines=lambda number: [number])

    result = await run("[orders(), orders.lines(1), orders__lines(2)]", host)

    assert result.value == ["all", [1], [2]]


async def test_results_are_copies(run: Run) -> None:
    shared = {"admin": False}

    result = await run("c = config()\nc['admin'] = True\nc", TableHost(config=lambda: shared))

    assert result.value == {"admin": True}
    assert shared == {"admin": False}


async def test_arguments_arrive_as_json_shapes(run: Run) -> None:
    host = TableHost(take=lambda *args, **kwargs: None)
    code = """
import datetime
from dataclasses import dataclass
@dataclass
class Point:
    x: int
take((1, 2), {3}, datetime.date(2026, 1, 2), Point(4), at=b'b')
"""

    await run(code, host)

    assert host.calls == [("take", [[1, 2], [3], "2026-01-02", {"x": 4}], {"at": "b"})]


@pytest.mark.parametrize(
    ("raised", "caught"),
    [
        ("ValueError", "ValueError"),
        ("KeyError", "LookupError"),
        ("TimeoutError", "OSError"),
        ("PermissionError", "PermissionError"),
        ("ConnectionError", "ConnectionError"),
        ("UnicodeDecodeError", "ValueError"),
        ("ExceptionGroup", "Exception"),
        ("Mine", "RuntimeError"),
        ("SystemExit", "RuntimeError"),
        ("print", "RuntimeError"),
    ],
)
async def test_a_failure_can_be_caught_as_what_it_is(run: Run, raised: str, caught: str) -> None:
    result = await run(f"try:\n    fail('{raised}', 'why')\nexcept {caught} as error:\n    print(error.args[0])")

    assert result.error is None
    assert result.output == "why\n"


async def test_a_failure_of_one_of_several_calls_can_be_caught(run: Run) -> None:
    code = """
import asyncio
async def one(i):
    try:
        return await (add(i) if i else fail('ValueError', 'zero'))
    except ValueError as error:
        return str(error)
await asyncio.gather(*[one(i) for i in range(3)])
"""

    result = await run(code)

    assert result.value == ["zero", 1, 2]


async def test_an_uncaught_failure_points_at_the_program_and_nothing_else(run: Run) -> None:
    result = await run("def outer(x):\n    return fail(\n        'ValueError', x)\n\nouter('no such city')")

    assert result.error is not None
    assert (result.error.kind, result.error.type, result.error.line) == ("exception", "ValueError", 2)
    assert result.error.traceback == (
        "Traceback (most recent call last):\n"
        '  File "program.py", line 5, in <module>\n'
        "    outer('no such city')\n"
        '  File "program.py", line 2, in outer\n'
        "    return fail(\n"
        "ValueError: no such city"
    )


async def test_the_shown_line_is_the_one_that_was_written(run: Run) -> None:
    result = await run("x = 1\nraise ValueError(x)")

    assert result.error is not None
    assert "    raise ValueError(x)\n" in result.error.traceback
    assert str(result.error) == "ValueError (line 2): 1"


async def test_a_long_recursion_is_shown_in_a_few_lines(run: Run) -> None:
    result = await run("def f(n):\n    return f(n + 1)\nf(0)")

    assert result.error is not None
    assert len(result.error.traceback.splitlines()) < 15
    assert "[the same line again and again]" in result.error.traceback


async def test_a_stop_ends_the_program_and_cannot_be_caught(run: Run) -> None:
    host = TableHost()

    result = await run("try:\n    stop()\nexcept BaseException:\n    add(1)\nadd(2)", host)

    assert result.error is not None
    assert (result.error.kind, result.error.line) == ("paused", 2)
    assert str(result.error) == "Paused (line 2): it waits for a person"
    assert host.names == ["stop"]


async def test_calls_beside_a_stop_come_to_their_end(run: Run) -> None:
    host = TableHost()

    result = await run("import asyncio\nawait asyncio.gather(stop(), slow(0.02), stop('another'))\nadd(1)", host)

    assert host.names == ["stop", "slow", "stop"]
    assert host.cancelled == []
    assert result.error is not None
    assert result.error.message == "it waits for a person"


async def test_what_the_host_raises_is_raised_by_the_run(run: Run) -> None:
    def broken() -> None:
        raise ZeroDivisionError("a bug of the host's")

    with pytest.raises(ZeroDivisionError, match="a bug of the host's"):
        await run("try:\n    broken()\nexcept BaseException:\n    pass", TableHost(broken=broken))


async def test_nothing_is_kept_for_the_next_program(run: Run) -> None:
    await run("kept = 1\nimport json\ntry:\n    json.kept = 1\nexcept Exception:\n    pass")

    result = await run("import json\n[hasattr(json, 'kept'), 'kept' in locals()]")

    assert result.value == [False, False]


async def test_a_name_that_is_not_offered_cannot_be_called(run: Run) -> None:
    host = TableHost(add=lambda *numbers: sum(numbers))

    result = await run("add(1)\nstop()", host)

    assert host.names == ["add"]
    assert "name 'stop' is not defined" in str(result.error)


async def test_the_result_says_which_limits_held(run: Run) -> None:
    result = await run("1")

    assert {"limit:memory", "limit:program_time", "limit:calls"} <= set(result.isolation)
    assert result.isolation[0].rpartition("-")[0] in {"monty", "process", "bubblewrap", "remote", "gvisor"}

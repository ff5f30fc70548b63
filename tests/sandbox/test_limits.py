"""The limits of a program, wherever it runs."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.code.hosts import Run, TableHost
from toolcrib.sandbox import SandboxLimits


@pytest.mark.parametrize(
    "code",
    ["while True: pass", "while True:\n    try:\n        while True: pass\n    except BaseException: pass"],
)
async def test_an_endless_loop_ends(run: Run, code: str) -> None:
    result = await run(code, program_time=0.2)

    assert result.error is not None
    assert result.error.kind == "time"
    assert "computed for 0.2 s" in result.error.message
    assert "a loop without an end" in result.error.message


async def test_the_time_between_calls_is_counted_together(run: Run) -> None:
    result = await run("while True:\n    for i in range(50_000): pass\n    add(1)", program_time=0.3)

    assert result.error is not None
    assert result.error.kind == "time"


async def test_the_time_of_tools_does_not_count(run: Run) -> None:
    await run("'the sandbox is warm'")

    result = await run("for i in range(3):\n    slow(0.5)\n'done'", program_time=1.2)

    assert result.value == "done"


async def test_the_time_on_the_wall_counts_everything(run: Run) -> None:
    called_at: list[float] = []

    async def slow() -> None:
        called_at.append(time.monotonic())
        await asyncio.Event().wait()

    def begins() -> float:
        return called_at[0] if called_at else time.monotonic()

    host = TableHost(slow=slow)

    result = await run("print('begun')\nslow()", host, begins, wall_time=0.2)

    assert result.error is not None
    assert result.error.kind == "time"
    assert result.error.message == "the program was not done after 0.2 s (wall_time), its tool calls included"
    assert result.output == "begun\n"
    assert host.cancelled == ["slow"]


@pytest.mark.parametrize("code", ["import time\ntime.sleep(600)", "import asyncio\nawait asyncio.sleep(600)"])
async def test_a_long_sleep_is_refused_before_it_begins(run: Run, code: str) -> None:
    result = await run(code, sleep_time=1)

    assert result.error is not None
    assert (result.error.kind, result.error.type) == ("time", "TimeoutError")
    assert result.error.message == "the program wants to sleep 600 s more, and may sleep 1 s in all"


async def test_ten_gigabytes_of_text_are_refused(run: Run) -> None:
    result = await run("x = 'a' * (10 * 1024 ** 3)")

    assert result.error is not None
    assert (result.error.kind, result.error.type) == ("memory", "MemoryError")
    assert "more than the 256 MB" in result.error.message


async def test_a_million_prints_keep_head_and_tail(run: Run) -> None:
    result = await run("for i in range(1_000_000):\n    print(i)", output_kept=3_000, program_time=250)

    assert result.error is None
    assert result.output.startswith("0\n1\n2\n")
    assert result.output.endswith("999998\n999999\n")
    assert "characters cut ...]" in result.output
    assert len(result.output) < 3_100


async def test_endless_printing_ends(run: Run) -> None:
    result = await run("while True:\n    print('x' * 1000)", output_killed_at=100_000, output_kept=300)

    assert result.error is not None
    assert (result.error.kind, result.error.type) == ("output", "OutputLimit")
    assert result.error.message.startswith("the program printed more than 100000 characters")


async def test_too_much_is_too_much_in_the_last_line_as_well(run: Run) -> None:
    result = await run("print('x' * 1_000)\n1", output_killed_at=100, output_kept=50)

    assert result.error is not None
    assert (result.error.type, result.value) == ("OutputLimit", None)


async def test_ten_thousand_calls_are_stopped_at_the_limit(run: Run) -> None:
    host = TableHost()

    result = await run(
        "for i in range(10_000):\n    try:\n        add(i)\n    except BaseException:\n        pass", host, calls=50
    )

    assert len(host.calls) == 50
    assert result.error is not None
    assert (result.error.kind, result.error.line) == ("calls", 3)
    assert "`add` was not called: the program may make 50 calls" in result.error.message


async def test_names_that_are_asked_for_again_and_again_come_to_an_end(run: Run) -> None:
    code = "while True:\n    try:\n        nothing\n    except NameError:\n        pass"

    result = await run(code, program_time=0.5, calls=1)

    assert result.error is not None
    assert result.error.kind in ("time", "calls")


async def test_a_tool_result_of_100_mb_is_an_exception_that_names_the_tool(run: Run) -> None:
    result = await run(
        "try:\n    big()\nexcept ValueError as error:\n    print(error)", TableHost(big=lambda: "x" * 100_000_000)
    )

    assert result.error is None
    assert result.output.startswith("`big` returned about 100000000 characters, and 32000000 is the most")
    assert "Ask it for less" in result.output


async def test_a_large_tool_result_can_be_worked_on(run: Run) -> None:
    rows = [{"id": i, "name": f"row {i}"} for i in range(50_000)]

    result = await run("sum(row['id'] for row in rows())", TableHost(rows=lambda: rows))

    assert result.value == sum(range(50_000))


async def test_a_value_of_100_mb_stays_where_it_is(run: Run) -> None:
    result = await run("'x' * 100_000_000")

    assert result.error is not None
    assert "the program's last value cannot leave it: it is larger than 1000000 characters" in result.error.message


BOMB = "a = []\nfor i in range(40):\n    a = [a] * 10\n"


async def test_a_value_that_unfolds_without_end_stays_where_it_is(run: Run) -> None:
    host = TableHost()

    result = await run(f"{BOMB}try:\n    add(a)\nexcept ValueError as error:\n    print(error)\na", host)

    assert host.calls == []
    assert result.output.startswith("argument 1 of `add` cannot be passed to it: it is larger than")
    assert "last value cannot leave it" in str(result.error)


async def test_a_deep_value_stays_where_it_is(run: Run) -> None:
    result = await run("a = []\nfor i in range(100_000):\n    a = [a]\na")

    assert "nested more than 100 deep" in str(result.error)


async def test_a_long_message_is_cut(run: Run) -> None:
    result = await run("raise ValueError('x' * 10_000_000)")

    assert result.error is not None
    assert len(result.error.message) < 5_000


async def test_a_program_that_is_too_long_does_not_run(run: Run) -> None:
    result = await run("x = 1\n" * 1_000, source_size=1_000)

    assert result.error is not None
    assert result.error.kind == "syntax"
    assert "6000 characters long, and may have 1000" in result.error.message


@pytest.mark.parametrize(
    "bad", [{"program_time": 0}, {"memory": -1}, {"calls": -1}, {"sleep_time": -1}, {"wall_time": 0}], ids=str
)
def test_a_limit_that_makes_no_sense_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"the limit {next(iter(bad))} must be more than 0"):
        SandboxLimits(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"memory": "1GB"}, "memory must be a whole number, and not '1GB'"),
        ({"calls": 1.5}, "calls must be a whole number, and not 1.5"),
        ({"calls": None}, "calls must be a whole number, and not None"),
        ({"program_time": "5"}, "program_time must be a number of seconds, and not '5'"),
        ({"sleep_time": True}, "sleep_time must be a number of seconds, and not True"),
    ],
    ids=str,
)
def test_a_limit_of_another_type_is_refused(bad: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        SandboxLimits(**bad)


def test_a_time_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="the limit program_time must be more than 0, and is nan"):
        SandboxLimits(program_time=float("nan"))


def test_no_calls_and_no_sleep_are_limits_like_others() -> None:
    limits = SandboxLimits(calls=0, sleep_time=0, wall_time=None)

    assert (limits.calls, limits.sleep_time, limits.wall_time) == (0, 0, None)

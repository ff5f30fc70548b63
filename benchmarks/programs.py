"""Programs of a kind: tools that wait at once, arithmetic without tools, one that went on after a person's yes."""

# ruff: noqa: PLC0415 -- a contender's process imports what that contender needs, and nothing of the others

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from benchmarks._measure import Contender, Measure, Metric, Sample, Target
from benchmarks._timing import MILLISECONDS, check, seconds
from benchmarks.code_mode import printed_by

WAITS, WAIT = 100, 0.01
TOGETHER = f"""
import asyncio

async def main():
    return await asyncio.gather(*[pause({WAIT}) for _ in range({WAITS})])

print(len(asyncio.run(main())))
"""
TOGETHER_MONTY = f"""
import asyncio

async def main():
    return await asyncio.gather(*[pause({WAIT}) for _ in range({WAITS})])

print(len(await main()))
"""
TOGETHER_EZ = f"print(len(parallel(*[(pause_blocking, {WAIT}) for _ in range({WAITS})])))"
FIB = """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

print(fib(24))
"""
FIB_SAYS = "46368"
MADE = 300
LONG = f"""
total = 0
for number in range({MADE}):
    total = add(total, number)
print(confirm(total))
"""


async def pause(seconds: float) -> float:
    """Wait."""
    await asyncio.sleep(seconds)
    return seconds


def pause_blocking(seconds: float) -> float:
    """Wait."""
    time.sleep(seconds)
    return seconds


def _printing(execute: Callable[[str], str], code: str, says: str) -> Sample:
    check(execute(code).strip(), says)

    def sample() -> dict[str, float]:
        return {"run": seconds(lambda: execute(code)) * MILLISECONDS}

    return sample


# --- a hundred tools at once


def _together(sandbox: str, code: str) -> Callable[[], Sample]:
    def setup() -> Sample:
        from toolcrib.code import Toolkit
        from toolcrib.tools import tool

        return _printing(printed_by(Toolkit([tool(pause)], sandbox=sandbox).execute), code, f"{WAITS}")

    return setup


def bare_wait() -> Sample:
    async def waits() -> str:
        return f"{len(await asyncio.gather(*[pause(WAIT) for _ in range(WAITS)]))}"

    return _printing(lambda _: asyncio.run(waits()), "", f"{WAITS}")


def ez_together() -> Sample:
    from ez_ptc import Toolkit, ez_tool

    return _printing(printed_by(Toolkit([ez_tool(pause_blocking)]).execute_sync), TOGETHER_EZ, f"{WAITS}")


# --- arithmetic


def plain_fib() -> Sample:
    from contextlib import redirect_stdout
    from io import StringIO

    def execute(code: str) -> str:
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(code, "program", "exec"), {})
        return printed.getvalue()

    return _printing(execute, FIB, FIB_SAYS)


def _fib(sandbox: str) -> Callable[[], Sample]:
    def setup() -> Sample:
        from toolcrib.code import Toolkit
        from toolcrib.tools import tool

        return _printing(printed_by(Toolkit([tool(pause)], sandbox=sandbox).execute), FIB, FIB_SAYS)

    return setup


def session_fib() -> Sample:
    from toolcrib.code import Toolkit
    from toolcrib.tools import tool

    return _printing(printed_by(Toolkit([tool(pause)], sandbox="process").session().execute), FIB, FIB_SAYS)


def ez_fib() -> Sample:
    from ez_ptc import Toolkit, ez_tool

    return _printing(printed_by(Toolkit([ez_tool(pause_blocking)]).execute_sync), FIB, FIB_SAYS)


def smolagents_fib() -> Sample:
    from smolagents import LocalPythonExecutor

    executor = LocalPythonExecutor([])
    executor.send_tools({})
    return _printing(lambda code: executor(code).logs, FIB, FIB_SAYS)


def restricted_fib() -> Sample:
    from RestrictedPython import PrintCollector, compile_restricted, safe_builtins

    def execute(code: str) -> str:
        scope = {"__builtins__": safe_builtins, "_print_": PrintCollector}
        exec(compile_restricted(code, "program", "exec"), scope)
        return scope["_print"]()

    return _printing(execute, FIB, FIB_SAYS)


# --- paused and resumed


def _paused(sandbox: str) -> Callable[[], Sample]:
    def setup() -> Sample:
        from toolcrib.code import PausedProgram, Toolkit
        from toolcrib.tools import ez_tool

        made: list[int] = []

        @ez_tool(thread=False)
        def add(a: int, b: int) -> int:
            """Add."""
            made.append(b)
            return a + b

        @ez_tool(thread=False, requires_approval=True)
        def confirm(total: int) -> int:
            """Confirm."""
            return total

        toolkit = Toolkit([add, confirm], sandbox=sandbox)
        key = b"k" * 32

        def sample() -> dict[str, float]:
            made.clear()
            result = toolkit.execute(LONG)
            check(result.is_paused and result.paused is not None, True)
            state = result.paused.to_bytes(key)
            grants = [call.request.grant("ann") for call in result.suspended_calls]
            began = time.perf_counter()
            ended = toolkit.resume(PausedProgram.from_bytes(state, key), grants=grants)
            took = time.perf_counter() - began
            check((ended.output.strip(), len(made)), (f"{sum(range(MADE))}", MADE))
            return {"run": took * MILLISECONDS, "size": len(state) / 1000}

        sample()
        return sample

    return setup


MEASURES = (
    Measure(
        name="together",
        title=f"{WAITS} tools of {WAIT * 1000:g} ms at once, in one program",
        metrics=(Metric("run", "the program", "ms"),),
        contenders=(
            Contender("bare wait", bare_wait),
            Contender("toolcrib process", _together("process", TOGETHER)),
            Contender("toolcrib monty", _together("monty", TOGETHER_MONTY)),
            Contender("ez-ptc", ez_together),
        ),
        baseline="bare wait",
        targets=(Target("run", "toolcrib process", "bare wait", 2.5),),
        often=3,
    ),
    Measure(
        name="fib",
        title="arithmetic without tools: fib(24)",
        metrics=(Metric("run", "the program", "ms"),),
        contenders=(
            Contender("plain CPython", plain_fib),
            Contender("toolcrib process", _fib("process")),
            Contender("toolcrib process, kept session", session_fib),
            Contender("toolcrib monty", _fib("monty")),
            Contender("ez-ptc", ez_fib),
            Contender("smolagents LocalPythonExecutor", smolagents_fib),
            Contender("RestrictedPython", restricted_fib),
        ),
        baseline="plain CPython",
        targets=(Target("run", "toolcrib process", "plain CPython", 1.2),),
        notes=("a program in a sandbox has its start in the figure, about a millisecond",),
    ),
    Measure(
        name="resume",
        title=f"a program that paused at its {MADE + 1}st call, read from bytes and taken to its end",
        metrics=(Metric("run", "until its end", "ms"), Metric("size", "its state", "kB")),
        contenders=(
            Contender("toolcrib process, by its journal", _paused("process")),
            Contender("toolcrib monty, by its snapshot", _paused("monty")),
        ),
        baseline="toolcrib process, by its journal",
        targets=(Target("run", "toolcrib process, by its journal", "", 20),),
        often=3,
    ),
)

"""Model-written Python: a warm `print(1+1)`, and a program that calls a tool a thousand times."""

# ruff: noqa: PLC0415 -- a contender's process imports what that contender needs, and nothing of the others

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks._measure import Contender, Measure, Metric, Sample, Target
from benchmarks._timing import MICROSECONDS, MILLISECONDS, check, seconds
from benchmarks._tools import add, add_soon

CALLS = 1_000
HELLO = "print(1+1)"
LOOP = f"""
total = 0
for number in range({CALLS}):
    total = add(total, number)
print(total)
"""
HELLO_SAYS, LOOP_SAYS = "2", str(sum(range(CALLS)))


def _sample(execute: Callable[[str], str]) -> Sample:
    """Return the sample of both programs, for `execute` that runs code and returns what it printed."""
    check(execute(HELLO).strip(), HELLO_SAYS)
    check(execute(LOOP).strip(), LOOP_SAYS)

    def sample() -> dict[str, float]:
        return {
            "run": seconds(lambda: execute(HELLO)) * MILLISECONDS,
            "call": seconds(lambda: execute(LOOP), once=True) / CALLS * MICROSECONDS,
        }

    return sample


def monty_suspended() -> Sample:
    from pydantic_monty import CollectString, FunctionSnapshot, Monty, NameLookupSnapshot

    pool = Monty()
    pool.__enter__()  # kept warm until the process ends, as a toolkit keeps its own

    def execute(code: str) -> str:
        printed = CollectString()
        with pool.checkout(limits={"max_suspensions": 10 * CALLS}) as session:
            snapshot = session.feed_start(code, external_lookup={"add": add}, print_callback=printed)
            while isinstance(snapshot, FunctionSnapshot | NameLookupSnapshot):
                if isinstance(snapshot, NameLookupSnapshot):
                    snapshot = snapshot.resume_auto()
                else:
                    snapshot = snapshot.resume({"return_value": add(*snapshot.args, **snapshot.kwargs)})
        return printed.output

    return _sample(execute)


def monty_callback() -> Sample:
    from pydantic_monty import CollectString, Monty

    pool = Monty()
    pool.__enter__()

    def execute(code: str) -> str:
        printed = CollectString()
        with pool.checkout(limits={"max_suspensions": 10 * CALLS}) as session:
            session.feed_run(code, external_lookup={"add": add}, print_callback=printed)
        return printed.output

    return _sample(execute)


def _toolcrib(tool: Any) -> Sample:
    from toolcrib.code import Toolkit

    toolkit = Toolkit([tool])

    def execute(code: str) -> str:
        result = toolkit.execute(code)
        if not result.success:
            raise RuntimeError(result.error)
        return result.output

    return _sample(execute)


def toolcrib_async() -> Sample:
    from toolcrib.tools import tool

    return _toolcrib(tool(name="add")(add_soon))


def toolcrib_sync() -> Sample:
    from toolcrib.tools import ez_tool

    return _toolcrib(ez_tool(thread=False)(add))


def toolcrib_thread() -> Sample:
    from toolcrib.tools import ez_tool

    return _toolcrib(ez_tool(add))


def ez_ptc() -> Sample:
    from ez_ptc import Toolkit, ez_tool

    toolkit = Toolkit([ez_tool(add)])

    def execute(code: str) -> str:
        result = toolkit.execute_sync(code)
        if not result.success:
            raise RuntimeError(result.error)
        return result.output

    return _sample(execute)


def smolagents() -> Sample:
    from smolagents import LocalPythonExecutor

    executor = LocalPythonExecutor([], additional_functions={"add": add})
    executor.send_tools({})

    def execute(code: str) -> str:
        return executor(code).logs

    return _sample(execute)


MEASURE = Measure(
    name="code",
    title="model-written Python, warm: print(1+1), and 1,000 tool calls in one program",
    metrics=(Metric("run", "print(1+1)", "ms"), Metric("call", "per tool call", "us")),
    contenders=(
        Contender("monty, suspended calls", monty_suspended),
        Contender("monty, callbacks", monty_callback),
        Contender("toolcrib Toolkit, async tool", toolcrib_async),
        Contender("toolcrib Toolkit, sync tool on the loop", toolcrib_sync),
        Contender("toolcrib Toolkit, sync tool in a thread", toolcrib_thread),
        Contender("ez-ptc", ez_ptc),
        Contender("smolagents LocalPythonExecutor", smolagents),
    ),
    baseline="monty, suspended calls",
    often=3,
    targets=(
        Target("run", "toolcrib Toolkit, async tool", "monty, suspended calls", 4),
        Target("call", "toolcrib Toolkit, async tool", "monty, suspended calls", 3),
    ),
    notes=(
        "monty and toolcrib run the program in a worker process; ez-ptc and smolagents run it in this one.",
        "monty alone validates, approves and records nothing; its limits are at their defaults.",
    ),
)

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


def _toolcrib(tool: Any, sandbox: str) -> Sample:
    from toolcrib.code import Toolkit

    return _sample(printed_by(Toolkit([tool], sandbox=sandbox).execute))


def printed_by(execute: Callable[[str], Any]) -> Callable[[str], str]:
    """Return `execute`, told to give what was printed and to raise when the program fails."""

    def run(code: str) -> str:
        result = execute(code)
        if not result.success:
            raise RuntimeError(result.error)
        return result.output

    return run


def _in(sandbox: str) -> Callable[[], Sample]:
    def setup() -> Sample:
        from toolcrib.tools import tool

        return _toolcrib(tool(name="add")(add_soon), sandbox)

    return setup


def toolcrib_sync() -> Sample:
    from toolcrib.tools import ez_tool

    return _toolcrib(ez_tool(thread=False)(add), "process")


def toolcrib_thread() -> Sample:
    from toolcrib.tools import ez_tool

    return _toolcrib(ez_tool(add), "process")


def toolcrib_session() -> Sample:
    from toolcrib.code import Toolkit
    from toolcrib.tools import tool

    session = Toolkit([tool(name="add")(add_soon)], sandbox="process").session()
    return _sample(printed_by(session.execute))  # kept until the process ends


def ez_ptc() -> Sample:
    from ez_ptc import Toolkit, ez_tool

    return _sample(printed_by(Toolkit([ez_tool(add)]).execute_sync))


def smolagents() -> Sample:
    from smolagents import LocalPythonExecutor

    executor = LocalPythonExecutor([], additional_functions={"add": add})
    executor.send_tools({})

    def execute(code: str) -> str:
        return executor(code).logs

    return _sample(execute)


def restricted_python() -> Sample:
    from RestrictedPython import Eval, Guards, PrintCollector, compile_restricted, safe_builtins

    names = {
        "__builtins__": {**safe_builtins, "range": range, "sum": sum},
        "_print_": PrintCollector,
        "_getattr_": Guards.safer_getattr,
        "_getitem_": Eval.default_guarded_getitem,
        "_getiter_": Eval.default_guarded_getiter,
        "add": add,
    }

    def execute(code: str) -> str:
        scope = {**names}
        exec(compile_restricted(code, "program", "exec"), scope)
        return scope["_print"]()

    return _sample(execute)


MEASURE = Measure(
    name="code",
    title="model-written Python, warm: print(1+1), and 1,000 tool calls in one program",
    metrics=(Metric("run", "print(1+1)", "ms"), Metric("call", "per tool call", "us")),
    contenders=(
        Contender("monty, suspended calls", monty_suspended),
        Contender("monty, callbacks", monty_callback),
        Contender("toolcrib process, async tool", _in("process")),
        Contender("toolcrib process, sync tool on the loop", toolcrib_sync),
        Contender("toolcrib process, sync tool in a thread", toolcrib_thread),
        Contender("toolcrib process, kept session", toolcrib_session),
        Contender("toolcrib monty, async tool", _in("monty")),
        Contender("ez-ptc", ez_ptc),
        Contender("smolagents LocalPythonExecutor", smolagents),
        Contender("RestrictedPython", restricted_python),
    ),
    baseline="ez-ptc",
    often=3,
    targets=(
        Target("run", "toolcrib process, async tool", "ez-ptc", 2),
        Target("run", "toolcrib monty, async tool", "monty, suspended calls", 4),
        Target("call", "toolcrib process, async tool", "monty, suspended calls", 2),
        Target("call", "toolcrib process, sync tool in a thread", "monty, suspended calls", 2),
        Target("call", "toolcrib monty, async tool", "monty, suspended calls", 2),
    ),
    notes=(
        "monty and toolcrib run the program in a worker process; ez-ptc, smolagents and RestrictedPython in this one.",
        "monty alone validates, approves and records nothing; its limits are at their defaults.",
    ),
)

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.code.hosts import Run, TableHost
from tests.sandbox.acting import descendants
from tests.sandbox.conftest import ON_LINUX, runs_in
from toolcrib.calls import charged
from toolcrib.errors import SandboxUnavailable
from toolcrib.sandbox import MontySandbox, Value


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("ad(1)", "NameError (line 1): name 'ad' is not defined. Did you mean `add`?"),
        ("x = nothing", "neither a name of the program nor a tool"),
        ("input('?')", "`input` is not available in this Python"),
        ("{'a': 1}['b']", "KeyError (line 1): 'b'"),
        ("class A:\n    def __iter__(self): add(1)\nlist(A())", "cannot be called from inside map, filter"),
        ("async def f():\n    x = {0: add(1)}\n    for k in x: await x[k]\nf = f\nawait f()", None),
        ("y = (lambda: add(1))()\nasync def f(): await y\nawait f()", "asyncio.gather(tool(a), tool(b))"),
        ("x = [1, 2]\nraise ValueError(*x)", "an exception takes one text here"),
        ("open('/etc/passwd')", "PermissionError (line 1)"),
        ("exec('1/0')", "ZeroDivisionError (line 1)"),
        ("def f(n): return f(n + 1)\nf(0)", "RecursionError (line 1)"),
    ],
)
async def test_errors_say_what_to_write_instead(monty_run: Run, code: str, says: str | None) -> None:
    result = await monty_run(code)

    assert (result.error is None) == (says is None)
    assert says is None or says in str(result.error)


async def test_the_result_says_what_kept_the_program_in(monty_run: Run) -> None:
    result = await monty_run("1")

    assert {"worker-process", "interpreter:no-files", "interpreter:no-network", "limit:memory"} <= set(result.isolation)
    assert result.isolation[0].startswith("monty-")


def status_of(process: int) -> dict[str, str]:
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())


@ON_LINUX
async def test_the_worker_is_under_the_layers_of_the_kernel_that_the_result_names() -> None:
    before = set(descendants(os.getpid()))

    with MontySandbox() as sandbox:
        result = await runs_in(sandbox, may_block=True)("1")

        [worker] = set(descendants(os.getpid())) - before
        status = status_of(worker)
        assert set(sandbox.layers) <= set(result.isolation)
        assert {"no_new_privs", "seccomp", "no_capabilities", "dropped_root", "rlimits"} <= set(sandbox.layers)
        assert (status["NoNewPrivs"], status["Seccomp"], int(status["CapEff"], 16)) == ("1", "2", 0)
        assert "0" not in status["Uid"].split()
        assert sorted(os.listdir(f"/proc/{worker}/fd")) == ["0", "1", "2"]
        assert os.readlink(f"/proc/{worker}/fd/2") == "/dev/null"


def test_layers_can_be_required() -> None:
    with (
        MontySandbox(require="all", skip={"landlock"}) as sandbox,
        pytest.raises(SandboxUnavailable, match="landlock is skipped"),
    ):
        _ = sandbox.layers


async def test_what_the_host_computes_to_read_calls_is_time_of_the_program(monty_run: Run) -> None:
    """Each call costs the host a tenth of a second, of which there are three."""
    read: list[int] = []

    def compute() -> None:
        began = time.thread_time()
        while time.thread_time() < began + 0.1:
            pass

    async def costly(*args: int) -> Value:
        charged(compute)
        read.append(len(read))
        return Value(None)

    result = await monty_run("for n in range(99): add(n)", TableHost(add=costly), program_time=0.3)

    assert result.error is not None
    assert (result.error.kind, result.error.type) == ("time", "TimeoutError")
    assert len(read) <= 3

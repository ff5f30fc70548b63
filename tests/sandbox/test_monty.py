from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from pydantic_monty._binary import find_monty_binary

from tests.code.hosts import Run, TableHost, costly
from tests.sandbox.conftest import ON_LINUX
from toolcrib.errors import SandboxUnavailable
from toolcrib.sandbox import MontySandbox
from toolcrib.sandbox._monty import monty_binary

ROOT = Path(__file__).parents[2]


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


LOOKING = """
import asyncio, json, os
from pathlib import Path
from tests.code.hosts import TableHost
from tests.sandbox.acting import descendants
from toolcrib.sandbox import MontySandbox, Program
os.set_inheritable(os.open("/dev/null", os.O_RDONLY), True)
with MontySandbox() as sandbox:
    result = asyncio.run(sandbox.run(Program("1"), TableHost()))
    [worker] = descendants(os.getpid())
    status = dict(line.split(":\\t", 1) for line in Path(f"/proc/{worker}/status").read_text().splitlines())
    seen = {name: status[name] for name in ("NoNewPrivs", "Seccomp", "CapEff", "Uid")}
    seen |= {"open": sorted(os.listdir(f"/proc/{worker}/fd")), "errors": os.readlink(f"/proc/{worker}/fd/2")}
    print(json.dumps({**seen, "layers": sandbox.layers, "isolation": result.isolation}))
"""


@ON_LINUX
def test_the_worker_is_under_the_layers_of_the_kernel_that_the_result_names() -> None:
    """The host is a process of its own: workers of other sandboxes come and go below this one."""
    ran = subprocess.run([sys.executable, "-c", LOOKING], cwd=ROOT, capture_output=True, text=True)

    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    assert set(seen["layers"]) <= set(seen["isolation"])
    assert {"no_new_privs", "seccomp", "no_capabilities", "dropped_root", "rlimits"} <= set(seen["layers"])
    assert (seen["NoNewPrivs"], seen["Seccomp"], int(seen["CapEff"], 16)) == ("1", "2", 0)
    assert "0" not in seen["Uid"].split()
    assert (seen["open"], seen["errors"]) == (["0", "1", "2"], "/dev/null")


def test_layers_can_be_required() -> None:
    with (
        MontySandbox(require="all", skip={"landlock"}) as sandbox,
        pytest.raises(SandboxUnavailable, match="landlock is skipped"),
    ):
        _ = sandbox.layers


async def test_what_the_host_computes_to_read_calls_is_time_of_the_program(monty_run: Run) -> None:
    host = TableHost(add=costly)

    result = await monty_run("for n in range(99): add(n)", host, program_time=0.3)

    assert result.error is not None
    assert (result.error.kind, result.error.type) == ("time", "TimeoutError")
    assert len(host.calls) <= 4  # the last of which has begun


def test_the_program_of_its_workers_is_the_one_that_monty_would_take(monkeypatch: pytest.MonkeyPatch) -> None:
    installed, expected = monty_binary(), find_monty_binary()
    monkeypatch.setenv("MONTY_BIN", "/opt/monty")

    assert installed == expected
    assert monty_binary() == "/opt/monty"


def test_a_program_of_its_workers_that_is_not_there_is_said_with_the_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MONTY_BIN", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sysconfig, "get_path", lambda *_: "/nowhere")

    with pytest.raises(SandboxUnavailable, match=r"the program `monty` is not there. Install it: pip install"):
        monty_binary()

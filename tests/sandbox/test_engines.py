from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from tests.code.hosts import TableHost
from toolcrib.sandbox import (
    MontySandbox,
    ProcessSandbox,
    Program,
    Sandbox,
    SandboxLimits,
    SubprocessSandbox,
    UnsafeInlineSandbox,
    default_sandbox,
    sandbox_named,
)

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")


def test_the_process_has_one_sandbox_of_its_own() -> None:
    sandbox: Sandbox = default_sandbox()

    assert isinstance(sandbox, ProcessSandbox if sys.platform == "linux" else MontySandbox)
    assert default_sandbox() is sandbox


def test_a_sandbox_of_each_name_is_made_once() -> None:
    kinds = {"process": ProcessSandbox, "subprocess": SubprocessSandbox} if sys.platform == "linux" else {}

    for name, kind in {**kinds, "monty": MontySandbox, "unsafe_inline": UnsafeInlineSandbox}.items():
        assert isinstance(sandbox_named(name), kind)
        assert sandbox_named(name) is sandbox_named(name)


def test_a_name_that_is_none_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no sandbox called 'proces'\. Did you mean `process`"):
        sandbox_named("proces")


OPEN = """
import os
print(os.path.exists("/proc/self/status"))
add(1, 2)
"""


@pytest.mark.parametrize("name", [pytest.param("subprocess", marks=ON_LINUX), "unsafe_inline"])
async def test_what_does_not_isolate_says_so_in_each_result(name: str) -> None:
    host = TableHost()

    result = await sandbox_named(name).run(Program(OPEN, tuple(host.table), SandboxLimits()), host)

    assert (result.value, result.output, result.error) == (3, "True\n", None)
    assert any(word.startswith("no-isolation") for word in result.isolation)


async def test_inline_a_call_is_stopped_when_the_time_of_its_program_is_over() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    host = TableHost(wait=wait)

    program = Program("try:\n    wait()\nexcept BaseException:\n    wait()", ("wait",), SandboxLimits(wall_time=0.1))
    result = await sandbox_named("unsafe_inline").run(program, host)

    assert result.error is not None
    assert (result.error.kind, result.error.type) == ("time", "TimeoutError")
    assert host.cancelled == ["wait"]


WITHOUT = """
import sys
sys.modules["pydantic_monty"] = None  # as if it were not installed
import toolcrib.code
from toolcrib.code import Toolkit
sys.platform = "darwin"  # as if it were not Linux
toolkit = Toolkit([])
print(len(toolkit.prompt()) > 0)
try: toolkit.execute("1")
except RuntimeError as error: print(error)
try: toolcrib.sandbox.MontySandbox
except ImportError as error: print(error)
"""


def test_without_an_engine_it_is_said_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)

    told, unavailable, missing = done.stdout.splitlines()
    assert told == "True"
    assert unavailable.endswith("Install Monty: pip install 'toolcrib[monty]'")
    assert missing == "MontySandbox needs an optional dependency. Install it with: pip install 'toolcrib[monty]'"

"""Both engines, each on its two ways between the loop and the program."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.code.conftest import engine, no_task_is_left, sandbox
from tests.code.hosts import Run, TableHost
from toolcrib.sandbox import MontySandbox, ProcessSandbox, Program, Sandbox, SandboxLimits, SandboxResult

__all__ = ["engine", "no_task_is_left", "sandbox"]  # fixtures that programs in a toolkit take too

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")


@pytest.fixture(scope="session")
def process_sandbox() -> Iterator[ProcessSandbox]:
    with ProcessSandbox() as made:
        yield made


@pytest.fixture(params=[False, True], ids=["thread", "inline"])
def monty_run(request: pytest.FixtureRequest, sandbox: MontySandbox) -> Run:
    """Run code in Monty."""
    return runs_in(sandbox, may_block=request.param)


@pytest.fixture(params=[False, True], ids=["loop", "blocking"])
def process_run(request: pytest.FixtureRequest, process_sandbox: ProcessSandbox) -> Run:
    """Run code in a confined process."""
    return runs_in(process_sandbox, may_block=request.param)


@pytest.fixture(
    params=[
        ("sandbox", False),
        ("sandbox", True),
        pytest.param(("process_sandbox", False), marks=ON_LINUX),
        pytest.param(("process_sandbox", True), marks=ON_LINUX),
    ],
    ids=["monty-thread", "monty-inline", "process-loop", "process-blocking"],
)
def run(request: pytest.FixtureRequest) -> Run:
    """Run code in each engine."""
    engine, may_block = request.param
    return runs_in(request.getfixturevalue(engine), may_block=may_block)


def runs_in(sandbox: Sandbox, *, may_block: bool) -> Run:
    """Return what runs code in a sandbox against a host, with limits by name."""

    async def run(code: str, host: TableHost | None = None, **limits: float | None) -> SandboxResult:
        host = host or TableHost()
        program = Program(code, tuple(host.table), SandboxLimits(**limits), may_block=may_block)  # type: ignore[arg-type]
        return await sandbox.run(program, host)

    return run

"""All engines: those of this machine on their two ways between the loop and the program, and the other walls."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

import pytest

from tests.code.conftest import engine, no_task_is_left, sandbox
from tests.code.hosts import Run, runs_in
from tests.effort import EFFORT
from tests.sandbox.guests import guest, remote
from toolcrib.errors import SandboxUnavailable
from toolcrib.sandbox import (
    MontySandbox,
    ProcessSandbox,
    WorkerSandbox,
    bubblewrap,
    gvisor,
)

__all__ = ["engine", "no_task_is_left", "sandbox"]  # fixtures that programs in a toolkit take too

# A program behind gVisor takes a second or two to start: `run` has it with TOOLCRIB_EFFORT=2, and `wall` always.
OTHER_WALLS = [f"{name}_sandbox" for name in ("bubblewrap", "remote", *(["gvisor"] if EFFORT > 1 else []))]
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")


@pytest.fixture(scope="session")
def process_sandbox() -> Iterator[ProcessSandbox]:
    with ProcessSandbox() as made:
        yield made


@pytest.fixture(scope="session")
def bubblewrap_sandbox() -> Iterator[WorkerSandbox]:
    yield from _where_it_runs(bubblewrap())


@pytest.fixture(scope="session")
def gvisor_sandbox() -> Iterator[WorkerSandbox]:
    yield from _where_it_runs(gvisor())


@pytest.fixture(scope="session")
def remote_sandbox() -> Iterator[WorkerSandbox]:
    """Return a sandbox whose guests are at an address of this machine."""
    if shutil.which("socat") is None:
        pytest.skip("the guest is reached through socat")
    with guest() as address, remote(address) as sandbox:
        yield sandbox


def _where_it_runs(made: WorkerSandbox) -> Iterator[WorkerSandbox]:
    with made:
        try:
            assert made.layers
        except SandboxUnavailable as why:
            pytest.skip(f"this wall cannot be put up here: {why}")
        yield made


WALLS = ["process_sandbox", "bubblewrap_sandbox", "gvisor_sandbox", "remote_sandbox"]


@pytest.fixture(params=WALLS, ids=lambda name: name.removesuffix("_sandbox"))
def wall(request: pytest.FixtureRequest) -> WorkerSandbox:
    """Return a sandbox behind each wall."""
    return request.getfixturevalue(request.param)


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
        *(pytest.param((name, False), marks=ON_LINUX) for name in OTHER_WALLS),
    ],
    ids=["monty-thread", "monty-inline", "process-loop", "process-blocking", *OTHER_WALLS],
)
def run(request: pytest.FixtureRequest) -> Run:
    """Run code in each engine."""
    engine, may_block = request.param
    return runs_in(request.getfixturevalue(engine), may_block=may_block)

"""One sandbox for all tests, so that its workers are started once; and a host that answers by a table."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import pytest

from tests.code.hosts import Run, runs_in
from toolcrib.sandbox import MontySandbox, Sandbox, sandbox_named


@pytest.fixture(scope="session")
def sandbox() -> Iterator[MontySandbox]:
    with MontySandbox(workers=8) as made:
        yield made


@pytest.fixture(params=["monty", "process"])
def engine(request: pytest.FixtureRequest) -> Sandbox:
    """Return each sandbox that keeps programs in, warm."""
    if request.param == "process" and sys.platform != "linux":
        pytest.skip("its processes need Linux")
    return sandbox_named(request.param)


@pytest.fixture(params=[False, True], ids=["thread", "inline"])
def run(request: pytest.FixtureRequest, sandbox: MontySandbox) -> Run:
    """Run code against a host, on either way between the loop and the program."""

    return runs_in(sandbox, may_block=request.param)


@pytest.fixture(autouse=True)
def no_task_is_left() -> Iterator[None]:
    """Fail a test that leaves a task of its own running."""
    yield
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    assert asyncio.all_tasks(loop) == set()

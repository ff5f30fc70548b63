"""Workers behind walls that a program puts up: what holds, how they end, and what is said when they cannot start."""

from __future__ import annotations

import sys

import pytest

from tests.code.hosts import TableHost
from toolcrib.errors import SandboxUnavailable
from toolcrib.sandbox import CommandWorkers, Program, WorkerSandbox, guest_command

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its commands are those of Linux")


def bare(*, spares: int = 1) -> CommandWorkers:
    """Return workers that any command may start: here one that puts up no wall."""
    return CommandWorkers(["env", *guest_command()], spares=spares)


async def test_any_command_that_keeps_its_standard_input_is_a_wall() -> None:
    with WorkerSandbox(bare(), "env") as sandbox:
        result = await sandbox.run(Program("add(1, 2)", ("add",)), TableHost())

    assert result.value == 3
    assert result.isolation[0].startswith("env-3.")
    assert {"rlimits", "seccomp"} <= set(result.isolation)
    assert "namespaces" not in result.isolation


async def test_a_command_that_is_not_there_is_named_with_the_remedy() -> None:
    with (
        WorkerSandbox(CommandWorkers(["no-such-wall"], remedy="Build it"), "none") as sandbox,
        pytest.raises(SandboxUnavailable, match=r"there is no program `no-such-wall` here\. Build it"),
    ):
        await sandbox.run(Program("1"), TableHost())


async def test_what_a_command_said_that_started_no_worker_is_in_the_error() -> None:
    command = ["sh", "-c", "echo this machine has no walls >&2"]

    with (
        WorkerSandbox(CommandWorkers(command), "none") as sandbox,
        pytest.raises(SandboxUnavailable, match=r"ended at once.*`sh` said: this machine has no walls"),
    ):
        await sandbox.run(Program("1"), TableHost())

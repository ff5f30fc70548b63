"""Control groups: those of version 1 where a test may make one, those of version 2 as folders of files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.code.hosts import TableHost
from tests.sandbox.acting import descendants, until
from toolcrib.sandbox import ProcessSandbox, Program, ProgramQueue
from toolcrib.sandbox._control_group import ControlGroup, handing_down, own_group
from toolcrib.sandbox._worker.messages import THREADS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="control groups are Linux's")
MEMORY = 300 << 20
HOST = """
import asyncio, os
from tests.code.hosts import TableHost
from toolcrib.sandbox import ProcessSandbox, Program, ProgramQueue
sandbox = ProcessSandbox(queue=ProgramQueue(most_memory=300 << 20))
asyncio.run(sandbox.run(Program("1"), TableHost()))
print(*sandbox.queue.group().folders, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def queue() -> Iterator[ProgramQueue]:
    """Return a queue whose programs have a control group."""
    made = ProgramQueue(most_memory=MEMORY)
    if made.group().problem:
        pytest.skip(made.group().problem)
    yield made
    assert until(lambda: not any(map(os.path.exists, made.group().folders)))


def members(group: ControlGroup) -> set[int]:
    return {int(line) for folder in group.folders for line in Path(folder, "cgroup.procs").read_text().split()}


def limits_of(group: ControlGroup) -> set[str]:
    return {Path(folder, file).read_text() for folder, files in group.folders.items() for file in files}


async def test_programs_of_a_queue_belong_to_a_group_with_its_memory(queue: ProgramQueue) -> None:
    group = queue.group()
    with ProcessSandbox(queue=queue, spares=0) as sandbox, ProcessSandbox(queue=queue, spares=0) as other:
        results = [await each.run(Program("1"), TableHost()) for each in (sandbox, other)]

        limits, inside, below = limits_of(group), members(group), set(descendants(os.getpid()))

    assert all("cgroup" in result.isolation for result in results)
    assert limits == {f"{MEMORY * 5 // 4 + (256 << 20)}\n", f"{THREADS}\n"}
    assert os.getpid() not in inside
    assert len(inside & below) >= 2


async def test_a_group_is_made_again_for_the_next_sandbox(queue: ProgramQueue) -> None:
    for _ in range(2):
        with ProcessSandbox(queue=queue) as sandbox:
            result = await sandbox.run(Program("1"), TableHost())
            assert "cgroup" in result.isolation


def test_the_group_of_a_host_that_was_killed_is_removed(queue: ProgramQueue) -> None:
    ended = subprocess.run([sys.executable, "-c", HOST], capture_output=True, text=True, check=False)

    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert ended.stdout.split()
    assert until(lambda: not any(map(os.path.exists, ended.stdout.split())))


async def test_without_a_limit_or_when_it_is_skipped_there_is_no_group() -> None:
    limited = ProgramQueue(most_memory=MEMORY)
    with ProcessSandbox() as sandbox, ProcessSandbox(queue=limited, skip={"cgroup"}) as skipping:
        results = [await each.run(Program("1"), TableHost()) for each in (sandbox, skipping)]

    assert not any("cgroup" in result.isolation for result in results)


def test_a_group_that_may_hand_down_limits_is_the_one_above(tmp_path: Path) -> None:
    own = group_of_version_2(tmp_path, "cpu memory pids")

    assert handing_down(own) == own


def test_a_group_hands_down_limits_when_it_can(tmp_path: Path) -> None:
    own = group_of_version_2(tmp_path, "cpu")

    assert handing_down(own) == own
    assert (own / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_a_group_above_that_is_handed_to_this_process_is_taken(tmp_path: Path) -> None:
    own = group_of_version_2(tmp_path, "")
    try:
        os.setxattr(own.parent, "user.delegate", b"1")
    except OSError:
        pytest.skip("this file system keeps no attributes of users")

    assert handing_down(own) == own.parent
    assert (own.parent / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_where_no_group_can_be_made_the_reason_is_kept(tmp_path: Path) -> None:
    own = group_of_version_2(tmp_path, None)

    with pytest.raises(OSError, match="DelegateSubgroup"):
        handing_down(own)


def group_of_version_2(folder: Path, hands_down: str | None) -> Path:
    """Return a folder like a control group; None for one that gives its children nothing."""
    own = folder / "service" / "host"
    own.mkdir(parents=True)
    (own.parent / "cgroup.subtree_control").write_text("")
    control = own / "cgroup.subtree_control"
    if hands_down is None:
        os.symlink("/proc/version", control)
    else:
        control.write_text(hands_down)
    return own


def test_a_group_that_cannot_be_had_says_why() -> None:
    if os.geteuid() == 0:
        pytest.skip("root may make one")

    assert own_group(MEMORY).problem.startswith("unavailable: ")

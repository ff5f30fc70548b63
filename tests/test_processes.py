"""Identity of a process, and whether the process of an identity still runs."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolcrib._processes import is_running, this_process

_SAY = "from toolcrib._processes import this_process; print(this_process(), flush=True); input()"


def test_this_process_runs() -> None:
    assert is_running(this_process()) is True


@pytest.mark.processes
@pytest.mark.parametrize("reaped", [True, False])
def test_a_child_runs_until_it_is_killed(reaped: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", _SAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        identity = child.stdout.readline().decode().strip()
        before = is_running(identity)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        if reaped:
            child.wait()

        after = is_running(identity)

    assert (before, after) == (True, False)


@pytest.mark.processes
def test_a_forked_child_has_an_identity_of_its_own() -> None:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=lambda: theirs.send(this_process()))
    child.start()
    identity = ours.recv()
    child.join()

    assert identity != this_process()
    assert is_running(identity) is False


def test_of_a_process_on_another_machine_nothing_is_known() -> None:
    _, number, started = this_process().rsplit(":", 2)

    assert is_running(f"another:{number}:{started}") is None


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no time of a start is known here")
def test_a_number_that_another_process_has_now_is_of_one_that_is_gone() -> None:
    machine, number, _ = this_process().rsplit(":", 2)

    assert is_running(f"{machine}:{number}:1") is False


@pytest.mark.parametrize("text", ["", "x", "a:b", "a:b:c"])
def test_of_what_is_no_identity_nothing_is_known(text: str) -> None:
    assert is_running(text) is None

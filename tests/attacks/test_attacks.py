"""No hostile program gets through the sandbox that a user has by default; and the detectors do fire."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Literal

import pytest

from tests.attacks.harness import NOBODY, Finding, attacks, run_attacks
from tests.effort import share
from toolcrib.errors import SandboxUnavailable
from toolcrib.sandbox import bubblewrap, gvisor


def _can_contain() -> bool:
    """Return whether what the control's programs leave behind can be ended with a namespace."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    tried = subprocess.run(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "true"], capture_output=True)
    return tried.returncode == 0


def _through(found: list[Finding], *but: str) -> dict[str, tuple[set[str], str]]:
    return {finding.name: (finding.traces, finding.said) for finding in found if finding.traces - {*but}}


def test_no_program_gets_through_the_default_sandbox() -> None:
    chosen = attacks()

    found = run_attacks("process", chosen)

    assert len(chosen) == 123
    assert _through(found) == {}
    assert all(finding.secs for finding in found)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be a user without rights")
def test_no_hog_gets_through_as_a_user_without_rights() -> None:
    found = run_attacks("process", share(attacks("h*")), user=NOBODY)

    assert _through(found) == {}
    assert all(finding.secs for finding in found)


def test_no_program_gets_through_with_packages() -> None:
    chosen = [attack for kind in ("b*", "h*", "p*", "t*") for attack in attacks(kind)]

    found = run_attacks("packages", share(chosen))

    assert _through(found) == {}
    assert all(finding.secs for finding in found)


@pytest.mark.parametrize(("wall", "kinds"), [("bubblewrap", ["*"]), ("gvisor", ["b*", "c*", "e1*", "f*", "g*"])])
def test_no_program_gets_through_another_wall(wall: Literal["bubblewrap", "gvisor"], kinds: list[str]) -> None:
    """Behind gVisor a program takes seconds to start, and these are a third of them: `make attacks` tries all.

    What it takes to end a wall's own processes is no program's doing.
    """
    try:
        with {"bubblewrap": bubblewrap, "gvisor": gvisor}[wall](spares=0) as tried:
            assert tried.layers
    except SandboxUnavailable as why:
        pytest.skip(f"this wall cannot be put up here: {why}")

    chosen = [attack for kind in kinds for attack in attacks(kind)]
    if os.geteuid() == 0:  # whose threads the kernel does not count, whatever the container says of its user
        chosen = [attack for attack in chosen if attack.name != "h04_raw_threads"]

    found = run_attacks(wall, share(chosen))

    assert _through(found, "cpu") == {}
    assert all(finding.secs for finding in found if finding.name != "(host)")


def test_no_program_gets_through_monty() -> None:
    found = run_attacks("monty", attacks())

    assert _through(found) == {}


@pytest.mark.skipif(not _can_contain(), reason="needs root and a process namespace of its own")
@pytest.mark.parametrize(
    ("name", "trace"),
    [
        ("a03_random_os", "leak_file"),
        ("b02_write_file", "write"),
        ("c01_tcp", "net_tcp"),
        ("c02_udp", "net_udp"),
        ("e02_exit_host", "dead"),
        ("e04_patch_host", "tamper"),
        ("e08_unoffered_tool", "unoffered"),
        ("e20_next_run_state", "persist"),
        ("h02_host_paths", "kernel"),
        ("h03_thread_hog", "kernel"),
        ("h04_raw_threads", "kernel"),
        ("h05_survive_others", "kernel"),
        ("h06_control_groups", "kernel"),
        ("h12_errors_flood", "flood"),
        ("p02_numpy_files", "leak_file"),
        ("p08_sqlite", "write"),
    ],
)
def test_the_detectors_see_what_gets_through_without_a_sandbox(name: str, trace: str) -> None:
    [found, *_] = run_attacks("control", attacks(name), linger=0.0)

    assert trace in found.traces

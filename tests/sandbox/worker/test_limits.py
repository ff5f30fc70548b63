"""Limits of the kernel, tried in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolcrib.sandbox._worker.messages import THREADS_IN_KERNEL

pytest.importorskip("resource")

WORKER = Path(__file__).parents[3] / "src/toolcrib/sandbox/_worker"
LIMITED = """
import os, resource, sys
from _worker._limits import Limits, Mapped, limit
mapped = Mapped().read()
assert mapped > 1 << 20, mapped
limit(Limits(cpu=3, memory=16 << 20), mapped, counts_apart={own})
{then}
"""


def limited(then: str, own: bool = False) -> str:
    code = LIMITED.format(own=own, then=then)
    environment = {"PYTHONPATH": str(WORKER.parent)}  # as the package of its own that it is for a worker
    ran = subprocess.run([sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True)
    return ran.stdout + ran.stderr.rpartition("\n")[0].rpartition("\n")[2]


@pytest.mark.skipif(sys.platform != "linux", reason="what is mapped is read from /proc")
def test_memory_counts_from_what_is_mapped() -> None:
    assert limited("print(len(bytes(8 << 20)))") == f"{8 << 20}\n"
    assert limited("bytes(32 << 20)") == "MemoryError"


def test_no_file_has_a_size(tmp_path: Path) -> None:
    file = str(tmp_path / "file")

    assert "File too large" in limited(f"open({file!r}, 'wb', 0).write(b'x')")


def test_limits_cannot_be_raised_again() -> None:
    got = limited("print([resource.getrlimit(which) for which in (resource.RLIMIT_CPU, resource.RLIMIT_CORE)])")

    assert got == "[(3, 4), (0, 0)]\n"


@pytest.mark.skipif(sys.platform != "linux", reason="counted so on Linux")
@pytest.mark.parametrize("own", [True, False])
def test_threads_are_limited_only_where_they_are_counted_apart(own: bool) -> None:
    inherited = limited("print(resource.getrlimit(resource.RLIMIT_NPROC)[0])")

    got = limited("print(resource.getrlimit(resource.RLIMIT_NPROC)[0])", own=own)

    assert got == (f"{THREADS_IN_KERNEL}\n" if own else inherited)

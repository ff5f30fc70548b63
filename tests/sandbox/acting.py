"""Workers that do what a test says, and what can be seen of processes from outside."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path

from toolcrib.sandbox._worker_pool import WorkerPool, WorkerProcess

ENTRY = Path(__file__).parent / "acting_entry.py"
CPU, MEMORY = 5, 64 << 20
NOTHING_REQUIRED: frozenset[str] = frozenset()


def acting_pool(*skip: str, spares: int = 1) -> WorkerPool:
    """Return a pool of workers that evaluate what they are sent, with nothing required of their seal."""
    return WorkerPool(require=NOTHING_REQUIRED, skip=frozenset(skip), spares=spares, entry=ENTRY)


def ask(worker: WorkerProcess, source: str) -> str:
    """Return what the worker answers; empty when it died of it."""
    worker.socket.settimeout(60)
    try:
        worker.socket.sendall(source.encode() + b"\0")
        data = b""
        while not data.endswith(b"\0"):
            more = worker.socket.recv(1 << 16)
            if not more:
                return ""
            data += more
    except ConnectionError:
        return ""
    return data[:-1].decode()


def act(pool: WorkerPool, source: str) -> str:
    """Return what a worker of its own answers."""
    worker = pool.take(CPU, MEMORY)
    try:
        return ask(worker, source)
    finally:
        worker.close()


def until(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait for something that another process brings about."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


FORKS = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c"]
"""A command for a host that forks: from 3.12 on Python warns of threads, of which one may be about to end."""


def descendants(of: int, besides: Collection[int] = ()) -> dict[int, str]:
    """Return the living processes below one, each with its state's letter.

    Args:
        besides: Processes that are left out, with all that is below them now.
    """
    parents: dict[int, tuple[int, str]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                state, parent = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            parents[int(name)] = int(parent), state
    found: dict[int, str] = {}
    wanted = {of}
    while wanted:
        below = {pid: state for pid, (parent, state) in parents.items() if parent in wanted and pid not in besides}
        found |= below
        wanted = set(below)
    return found


def gone(process: int) -> bool:
    """Tell whether a process has ended, be it that nobody has asked for its end yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True

"""Workers that do what a test says, and what can be seen of processes from outside."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
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


class Victims:
    """The processes that are started below this one from now on, to be killed as from outside."""

    def __init__(self) -> None:
        self._before = descendants(os.getpid())

    def kill_newest(self) -> None:
        """Kill the one that was started last: the worker of the program that runs."""
        os.kill(max(self._living()), signal.SIGKILL)

    def kill_all(self) -> None:
        """Kill all of them, as the kernel may when memory runs out."""
        for process in self._living():
            with suppress(ProcessLookupError):  # the end of another may have ended it
                os.kill(process, signal.SIGKILL)

    def _living(self) -> list[int]:
        found = descendants(os.getpid(), self._before)
        return [process for process in found if not gone(process) and _ends_first(process)]


def _ends_first(process: int) -> bool:
    """Tell whether a process is a sandbox's: a database server is none."""
    try:
        return (
            Path(f"/proc/{process}/oom_score_adj").read_text() == "1000\n"
            or b"monty" in Path(f"/proc/{process}/cmdline").read_bytes()
        )
    except OSError:
        return False


def gone(process: int) -> bool:
    """Tell whether a process has ended, be it that nobody has asked for its end yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True

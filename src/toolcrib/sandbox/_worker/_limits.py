"""Limits of a worker that the kernel enforces: time, memory, descriptors, and no files at all."""

from __future__ import annotations

import _thread
import os
import resource
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Final

from .messages import THREADS, THREADS_IN_KERNEL, THREADS_OF_WORKER

DESCRIPTORS: Final = 64
_RECURSION: Final = 100_000  # calls inside calls; with some more Python runs out of memory where it cannot say so
_STARTS: Final = ("start_new_thread", "start_new", "start_joinable_thread")

_UNKNOWN_TO_GVISOR: Final = ("RLIMIT_MSGQUEUE",)  # for calls that the filter does not let through
_MAPPED_WHERE_UNKNOWN: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one worker.

    Attributes:
        cpu: Seconds of computing.
        memory: Bytes on top of what is mapped when the worker begins.
    """

    cpu: int
    memory: int


def end_first() -> None:
    """Ask the kernel to end this process, or one that it forks, before any other when memory runs out."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def limit_threads() -> None:
    """Limit the threads that Python starts at a time in this process.

    It gives a program an error that says so. What goes round Python is held back by the kernel where it can count the
    threads of one worker, and seen by the host elsewhere.
    """
    for module in (_thread, threading):
        for name, start in list(vars(module).items()):
            if name.lstrip("_") in _STARTS:
                setattr(module, name, _limited(start))


def _limited(start: Callable[..., Any]) -> Callable[..., Any]:
    count: Callable[[], int] = vars(_thread)["_count"]

    def start_limited(*args: Any, **kwargs: Any) -> Any:
        if count() >= THREADS_OF_WORKER:
            raise RuntimeError(f"can't start new thread: a program may have {THREADS_OF_WORKER} at a time")
        return start(*args, **kwargs)

    return start_limited


def limit_recursion() -> None:
    """Limit the recursion that a program may set to the highest that there is room for."""
    real = sys.setrecursionlimit

    def setrecursionlimit(limit: int, /) -> None:
        real(min(limit, _RECURSION))

    sys.setrecursionlimit = setrecursionlimit


class Mapped:
    """Reads how much memory this process has, also when its file in /proc can no longer be opened."""

    __slots__ = ("_file", "_page")

    def __init__(self) -> None:
        self._page = resource.getpagesize()
        try:
            self._file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = -1

    def read(self) -> int:
        """Return the bytes mapped."""
        try:
            return int(os.pread(self._file, 64, 0).split(maxsplit=1)[0]) * self._page
        except OSError:
            return _MAPPED_WHERE_UNKNOWN


def limit_all_threads() -> None:
    """Limit the threads of this process and of all others of its user and namespace together."""
    _lower(resource.RLIMIT_NPROC, THREADS)


def limit(limits: Limits, mapped: int, *, counts_apart: bool) -> None:
    """Limit this process for good.

    Args:
        limits: The limits.
        mapped: Bytes it has mapped now.
        counts_apart: Whether its threads are counted apart from all others.

    Raises:
        OSError: One of them could not be set.
    """
    wanted = {
        "RLIMIT_CPU": limits.cpu,
        "RLIMIT_AS": mapped + limits.memory,
        "RLIMIT_NOFILE": DESCRIPTORS,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_CORE": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        **({"RLIMIT_NPROC": THREADS_IN_KERNEL} if counts_apart else {}),
    }
    for name, value in wanted.items():
        which: int | None = getattr(resource, name, None)  # some are Linux's only
        if which is not None:
            with suppress(OSError) if name in _UNKNOWN_TO_GVISOR else nullcontext():
                _lower(which, value)


def _lower(which: int, value: int) -> None:
    hard = value + 1 if which == resource.RLIMIT_CPU else value  # a second between the warning and the end
    _, most = resource.getrlimit(which)
    if most != resource.RLIM_INFINITY:
        hard = min(hard, most)
    try:
        resource.setrlimit(which, (min(value, hard), hard))
    except ValueError as error:
        if sys.platform == "linux":  # on other systems some can be read and not set
            raise OSError(f"a limit of {value} was refused: {error}") from error

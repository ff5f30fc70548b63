"""The seal: the layers that keep a worker in, their order, and which of them are in force."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from . import _landlock, _namespaces
from ._limits import Limits, Mapped, limit, limit_all_threads
from ._seccomp import Filter
from ._syscalls import prctl
from .messages import LAYERS

ON: Final = "on"
SKIPPED: Final = "skipped"

CHANNEL: Final = 3
"""The one descriptor a worker has."""

_ALL_DESCRIPTORS: Final = 1024
"""Far above what a zygote ever has; where there is no call to close many, each is a call."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class NextProgram:
    """The program that a sealed process becomes: its open file, and the libraries that it loads, by path."""

    file: int
    libraries: tuple[str, ...]


class Seal:
    """Puts the layers on: some around the zygote with all its workers, the others around each worker.

    Args:
        becomes: The program that this process becomes, for one that forks no workers. The files of that program are all
            there is inside; it may load them and not write them. It is in the process namespace of the host, since
            the process that started it has to end it.

    Attributes:
        report: Each layer with `on`, `skipped`, or `unavailable: why`.
    """

    def __init__(self, skip: frozenset[str], becomes: NextProgram | None = None) -> None:
        self.becomes = becomes
        self.report = {name: SKIPPED if name in skip else ON for name in LAYERS}
        self.mapped = Mapped()
        self._own_users = self._counts_apart = False
        self._ruleset: int | None = None
        self._filter: Filter | None = None

    def on(self, layer: str) -> bool:
        """Return whether a layer is in force."""
        return self.report[layer] == ON

    # --- around the zygote ----------------------------------------------------------------------------------------

    def separate(self) -> bool:
        """Leave the host's namespaces; True when the next child, and not this process, is inside."""
        self._layer("no_new_privs", lambda: prctl(38, 1))
        processes = self.becomes is None
        self._layer("namespaces", lambda: _namespaces.try_to_separate(processes=processes))
        self._own_users = bool(self._layer("namespaces", lambda: _namespaces.separate(processes=processes)))
        return self.on("namespaces")

    def surround(self) -> None:
        """Put on the layers that a zygote shares with its workers; no file can be read any more."""
        self.mapped = Mapped()  # of this process, and while there is a /proc
        if not self.on("namespaces") and self.on("empty_root"):
            self.report["empty_root"] = "unavailable: it needs the namespaces"
        libraries = () if self.becomes is None else self.becomes.libraries
        self._layer("empty_root", lambda: _namespaces.empty_root(libraries))
        self._layer("dropped_root", _namespaces.become_nobody)
        self._layer("no_capabilities", _namespaces.drop_capabilities)
        self._ruleset = self._layer("landlock", self._make_ruleset)
        self._filter = self._layer(
            "seccomp", lambda: Filter.for_machine(os.uname().machine, loads=self.becomes is not None)
        )
        if self.on("empty_environment"):
            os.environ.clear()
        with contextlib.suppress(OSError):
            _namespaces.set_dumpable(False)

    def _make_ruleset(self) -> int:
        if self.becomes is None:
            return _landlock.make_ruleset()
        return _landlock.make_ruleset([self.becomes.file, *map(_opened, self.becomes.libraries)])

    def _layer(self, name: str, put_on: Callable[[], _T]) -> _T | None:
        if not self.on(name):
            return None
        try:
            return put_on()
        except (OSError, AttributeError) as error:  # a system without it may lack the function, too
            self.report[name] = f"unavailable: {error}"
            return None

    # --- around each worker, in this order ------------------------------------------------------------------------

    def detach(self, zygote: int) -> None:
        """Leave a fresh fork with no tie but the zygote, with which it dies."""
        if self._own_users:
            limit_all_threads()
            self.count_threads_apart()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        with contextlib.suppress(OSError):  # not Linux: there the zygote ends its workers itself
            prctl(1, signal.SIGKILL)
        if os.getppid() != zygote:
            os._exit(1)

    def count_threads_apart(self) -> None:
        """Ask the kernel to count the threads of this process apart from all others, where it can."""
        with contextlib.suppress(OSError):
            _namespaces.count_threads_apart()
            self._counts_apart = True

    def restrict(self, channel: int) -> None:
        """Remove files, ports and signals, and every descriptor but the channel, which becomes number 3."""
        if channel != CHANNEL:
            os.dup2(channel, CHANNEL)
        self.restrict_to(CHANNEL)

    def restrict_to(self, *descriptors: int) -> None:
        """Remove files, ports and signals, and every descriptor but those kept, in order."""
        if self._ruleset is not None:
            _landlock.restrict(self._ruleset)
        if self.on("closed_descriptors"):
            first = 0
            for descriptor in (*descriptors, _ALL_DESCRIPTORS):
                if first < descriptor:  # of nothing, it closes all
                    os.closerange(first, descriptor)
                first = descriptor + 1

    def limit(self, limits: Limits, mapped: int) -> None:
        """Limit this worker; `mapped` is the memory that it has already."""
        if self.on("rlimits"):
            limit(limits, mapped, counts_apart=self._counts_apart)

    def filter(self) -> None:
        """Forbid system calls; the last layer, since it forbids to put on any other."""
        if self._filter is not None:
            self._filter.load()


def _opened(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

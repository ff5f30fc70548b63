"""The pool of workers: a zygote that is checked when it starts, spare workers, and a new zygote when it died."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

from toolcrib.errors import SandboxError, SandboxUnavailable
from toolcrib.sandbox._packages import Packages
from toolcrib.sandbox._worker.messages import LAYERS
from toolcrib.sandbox._zygote import Ready, WorkerProcess, Zygote

__all__ = ["LAYERS", "REQUIRED", "WorkerPool"]

REQUIRED: Final = frozenset({"no_new_privs", "seccomp", "rlimits", "landlock|empty_root"})
"""The layers without which nothing runs by default; `a|b` is either."""

_REMEDIES: Final[Mapping[str, str]] = {
    "no_new_privs": "It needs Linux",
    "namespaces": "Allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces > 0)",
    "empty_root": "Allow user namespaces, or start as root with the right to mount",
    "dropped_root": "Start as a user who is not root, or give the container CAP_SETUID and CAP_SETGID",
    "no_capabilities": "It needs Linux",
    "landlock": "It needs Linux 5.13 or newer with `landlock` among the security modules (kernel option lsm=)",
    "seccomp": "It needs Linux on x86_64 or aarch64, in a container whose own filter allows seccomp()",
    "rlimits": "Raise the hard limits that this process was started with",
    "closed_descriptors": "It needs a POSIX system",
    "empty_environment": "It needs a POSIX system",
}
_ALTERNATIVE: Final = (
    "Or choose by name a sandbox that needs no such layer: MontySandbox(), from pip install 'toolcrib[monty]'"
)


_log = logging.getLogger("toolcrib.sandbox")


class WorkerPool:
    """Confined workers, one for each program; synchronous, and safe to use from any thread.

    To take a worker is a matter of microseconds when there is a spare one, of milliseconds when it must be forked. To
    start takes longer, a tenth of a second or two: do it, and the first `take`, outside of an event loop. A process
    forked off the host has none of the pool's workers and starts its own.

    Attributes:
        layers: The layers in force, in the order of `LAYERS`; empty before the start.
        report: Every layer with `on`, `skipped`, or `unavailable: why`.
    """

    def __init__(
        self,
        *,
        require: frozenset[str] | None = None,
        skip: frozenset[str] = frozenset(),
        spares: int = 2,
        entry: Path | None = None,
        warn: bool = False,
        cgroup: Path | None = None,
        packages: Packages | None = None,
    ) -> None:
        """Make a pool; nothing is started yet.

        Args:
            require: Layers without which `start` refuses; `a|b` is either of them. None for `REQUIRED`.
            skip: Layers not to put on, for tests and for a sandbox that does not isolate.
            spares: How many workers are forked ahead, for the limits that were used last.
            cgroup: The folder of a control group to which the workers belong.
            warn: Whether a layer that is lacking is a warning in the log, once for each pool.
            packages: The packages that workers have loaded.
            entry: A Python file with `warm_up()` and `serve(descriptor)`, for the workers in place of `_worker._entry`.

        Raises:
            ValueError: There is no layer of that name.
        """
        self._require = REQUIRED if require is None else require
        self._skip = skip
        unknown = (skip | {name for each in self._require for name in each.split("|")}) - set(LAYERS)
        if unknown:
            raise ValueError(f"there is no layer {', '.join(sorted(unknown))}; there are {', '.join(LAYERS)}")
        self._entry, self._warns, self._cgroup = entry, warn, cgroup
        self._packages, self._stock = packages, spares
        self.layers: tuple[str, ...] = ()
        self.report: Mapping[str, str] = MappingProxyType({})
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._zygote: Zygote | None = None
        self._spares: deque[WorkerProcess] = deque()
        self._limits: tuple[int, int] | None = None
        self._died_unused = 0
        self._closed = False

    def start(self) -> None:
        """Start, unless that was done.

        Raises:
            SandboxUnavailable: A required layer cannot be had, or one in force does not hold; the message names the
                remedy.
        """
        with self._lock:
            if self._zygote is None:
                self._closed = False
                self._zygote = self._checked(Zygote(self._skip, self._entry, self._cgroup, self._packages))

    def take(self, cpu: int, memory: int) -> WorkerProcess:
        """Return a worker, ready for its first frame; `WorkerProcess.close()` ends it.

        Args:
            cpu: Seconds it may compute.
            memory: Bytes it may take on top of what it has at its start.

        Raises:
            SandboxError: The pool was closed, or its zygote dies whenever it is started.
            SandboxUnavailable: The pool could not be started.
        """
        with self._lock:
            for _ in range(2):
                zygote = self._current_zygote()
                worker = self._spare((cpu, memory))
                try:
                    worker = worker or zygote.fork(cpu, memory)
                except ConnectionError:  # it died just now
                    continue
                worker.on_close = self._restock
                return worker
            raise SandboxError("the sandbox's zygote dies as soon as it is started")

    def close(self) -> None:
        """End all workers, those that were taken included."""
        with self._lock:
            self._closed = True
            self._drop_spares()
            if self._zygote is not None:
                self._zygote.end()
            self._zygote = None

    def forget(self) -> None:
        """Leave all workers to the process this one was forked from, and begin anew."""
        spares, zygote, closed = self._spares, self._zygote, self._closed
        self._reset()
        self._closed = closed
        for each in (*spares, zygote):
            if each is not None:
                each.forget()

    # --- zygotes ----------------------------------------------------------------------------------------------------

    def _current_zygote(self) -> Zygote:
        if self._closed:
            raise SandboxError("this sandbox was closed. Make another one")
        zygote = self._zygote
        if zygote is not None:
            zygote.read_answers()
            if zygote.alive:
                return zygote
            self._drop_zygote(zygote)
        self.start()
        if self._zygote is None:
            raise SandboxError("the sandbox's zygote dies as soon as it is started")
        return self._zygote

    def _drop_zygote(self, zygote: Zygote) -> None:
        self._died_unused = 0 if zygote.served else self._died_unused + 1
        self._drop_spares()
        zygote.end()
        self._zygote = None
        if self._died_unused > 1:
            self._died_unused = 0
            raise SandboxError("the sandbox's zygote was started twice, and died each time before its first worker")

    def _checked(self, zygote: Zygote) -> Zygote:
        ready = zygote.ready()
        try:
            self._check(ready)
        except SandboxUnavailable:
            zygote.end()
            raise
        self._warn(ready.layers)
        self.report = MappingProxyType(ready.layers)
        self.layers = tuple(name for name in LAYERS if ready.layers.get(name) == "on")
        return zygote

    def _check(self, ready: Ready) -> None:
        for layer, why in ready.broken.items():
            raise SandboxUnavailable(
                f"programs are not confined here: {layer} is in force and does not hold, {why}", layer, _ALTERNATIVE
            )
        for wanted in sorted(self._require):
            alternatives = wanted.split("|")
            if not any(ready.layers.get(layer) == "on" for layer in alternatives):
                states = ", and ".join(f"{layer} is {ready.layers.get(layer)}" for layer in alternatives)
                remedies = ". ".join(_REMEDIES[layer] for layer in alternatives)
                raise SandboxUnavailable(
                    f"programs cannot be confined here: {states}", alternatives[0], f"{remedies}. {_ALTERNATIVE}"
                )

    def _warn(self, layers: Mapping[str, str]) -> None:
        """Log once how programs could be confined better."""
        warns, self._warns = self._warns, False
        lacking = [layer for layer in LAYERS if layers.get(layer) != "on" and layer not in self._skip]
        if warns and lacking:
            states = "; ".join(f"{layer} is {layers.get(layer)}. {_REMEDIES[layer]}" for layer in lacking)
            _log.warning(
                "programs are confined, and could be confined better: %s. "
                'ProcessSandbox(require="all") refuses to run programs like that',
                states,
            )

    # --- spares -----------------------------------------------------------------------------------------------------

    def _spare(self, limits: tuple[int, int]) -> WorkerProcess | None:
        if limits != self._limits:
            self._drop_spares()
            self._limits = limits
        while self._spares:
            worker = self._spares.popleft()
            if worker.alive:
                return worker
            worker.close()
        return None

    def _restock(self) -> None:
        """Fork spare workers, now that a program has ended: before, a fork would have taken the processor from it."""
        with self._lock:
            zygote, limits = self._zygote, self._limits
            if zygote is None or limits is None:
                return
            with suppress(ConnectionError):  # it died; the next `take` notices
                while len(self._spares) < self._stock:
                    self._spares.append(zygote.fork(*limits))

    def _drop_spares(self) -> None:
        while self._spares:
            self._spares.popleft().close()


_pools: Final[weakref.WeakSet[WorkerPool]] = weakref.WeakSet()


def _forget_all() -> None:
    for pool in list(_pools):
        pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)

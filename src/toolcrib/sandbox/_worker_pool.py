"""Pools of workers: a zygote that is checked when it starts, spare workers, and a new zygote when it died."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, Protocol

from toolcrib._numbers import require_number
from toolcrib.errors import SandboxError, SandboxUnavailable
from toolcrib.sandbox._control_group import ControlGroup
from toolcrib.sandbox._layers import REQUIRED, LayerCheck
from toolcrib.sandbox._packages import Packages
from toolcrib.sandbox._zygote import WorkerProcess, Zygote


class WorkerStock:
    """Workers of one zygote and spare ones; synchronous, and safe to use from any thread.

    A process forked off the host has none of the workers and starts its own.

    Args:
        options: The options that the zygote serves with.
        check: Checks what guests report.
        spares: How many workers are started ahead.
        for_limits: Whether a spare is for the limits that were used last.
        group: Returns the control group of the workers; None for none.
        errors: A file for what the workers say.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        check: LayerCheck,
        spares: int,
        *,
        for_limits: bool = True,
        group: Callable[[], ControlGroup | None] | None = None,
        errors: IO[bytes] | None = None,
    ) -> None:
        require_number("a sandbox", "spares", spares, least=0)
        self._options, self._check, self._stock, self._for_limits = options, check, spares, for_limits
        self._group, self._errors = group, errors
        self._reset()
        leave_at_fork(self)

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers in force, in the order of `LAYERS`; empty before the start."""
        return self._check.layers

    @property
    def report(self) -> Mapping[str, str]:
        """Every layer with `on`, `skipped`, or `unavailable: why`."""
        return self._check.report

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
        self._start_zygote()

    def _start_zygote(self) -> Zygote:
        with self._lock:
            if self._zygote is None:
                self._closed = False
                group = None if self._group is None else self._group()
                self._zygote = self._checked(Zygote(self._options, group, self._errors))
            return self._zygote

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
        for process in (*spares, zygote):
            if process is not None:
                process.forget()

    # --- zygotes ----------------------------------------------------------------------------------------------------

    def _current_zygote(self) -> Zygote:
        if self._closed:
            raise SandboxError("this sandbox was closed. Make another one")
        zygote = self._zygote
        if zygote is not None:
            zygote.read_answers()
            if zygote.alive:
                return zygote
            self._died_unused = 0 if zygote.served else self._died_unused + 1
            self._drop_spares()
            zygote.end()
            self._zygote = None
            if self._died_unused > 1:
                self._died_unused = 0
                raise SandboxError("the sandbox's zygote was started twice, and died each time before its first worker")
        return self._start_zygote()

    def _checked(self, zygote: Zygote) -> Zygote:
        """Return a zygote that has started as it should."""
        zygote.ready()
        return zygote

    # --- spares -----------------------------------------------------------------------------------------------------

    def _spare(self, limits: tuple[int, int]) -> WorkerProcess | None:
        if self._for_limits and limits != self._limits:
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


class WorkerPool(WorkerStock):
    """Confined workers, one for each program.

    To take a worker is a matter of microseconds when there is a spare one, of milliseconds when it must be forked. To
    start takes longer, a tenth of a second or two: do it, and the first `take`, outside of an event loop.

    Args:
        require: Layers without which `start` refuses; `a|b` is either of them. None for `REQUIRED`.
        skip: Layers not to put on, for tests and for a sandbox that does not isolate.
        spares: How many workers are forked ahead, for the limits that were used last.
        group: Returns the control group of the workers; None for none.
        warn: Whether a layer that is lacking is a warning in the log, once for each pool.
        packages: The packages that workers have loaded.
        entry: A Python file with `warm_up()` and `serve(descriptor)`, for the workers in place of `_worker._entry`.

    Raises:
        ValueError: There is no layer of that name.
    """

    def __init__(
        self,
        *,
        require: frozenset[str] | None = None,
        skip: frozenset[str] = frozenset(),
        spares: int = 2,
        entry: Path | None = None,
        warn: bool = False,
        group: Callable[[], ControlGroup | None] | None = None,
        packages: Packages | None = None,
    ) -> None:
        packages = packages or Packages()
        options = {
            **{"serve": "zygote", "skip": sorted(skip), "entry": None if entry is None else str(entry)},
            **{"packages": packages.names, "folders": packages.folders},
        }
        check = LayerCheck(REQUIRED if require is None else require, skip, warn=warn)
        super().__init__(options, check, spares, group=group)

    def _checked(self, zygote: Zygote) -> Zygote:
        try:
            self._check.take(zygote.ready())
        except SandboxUnavailable:
            zygote.end()
            raise
        return zygote


class _Forgettable(Protocol):
    """A thing that belongs to one process, and not to those that are forked off it."""

    def forget(self) -> None:
        """Leave it to the process that this one was forked from, and begin anew."""
        ...


_forgotten: Final[weakref.WeakSet[_Forgettable]] = weakref.WeakSet()


def leave_at_fork(pool: _Forgettable) -> None:
    """Forget a pool in a process that is forked off this one."""
    _forgotten.add(pool)


def _forget_all() -> None:
    for pool in list(_forgotten):
        pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)

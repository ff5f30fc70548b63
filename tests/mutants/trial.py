"""Runs of pytest over a copy of the checkout, each in a fork of a process that has imported what others wrote.

Importing that takes most of the time of a short run, and no mutant changes any of it.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from types import FrameType
from typing import NoReturn

import pytest

__all__ = ["Told", "scratch", "tried", "warmed"]

_OURS = ("tests", "toolcrib", "__main__")
_EACH = 60  # seconds for one test: long, as a slow machine must not be taken for a mutant that was noticed
_OPTIONS = (
    *("-q", "--tb=no", f"--timeout={_EACH}", "-p", "no:cacheprovider", "-p", "tests.mutants.order"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # plugins were imported before pytest began
)


@dataclass(frozen=True, slots=True)
class Told:
    """How a run of pytest ended.

    Attributes:
        failed: The ids of the tests that failed, or that the run never came back from.
        late: Those among them that failed for want of an end.
        broken: What could not even be imported.
    """

    passed: bool
    failed: tuple[str, ...]
    late: tuple[str, ...]
    broken: tuple[str, ...]
    output: str


@contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """Make a folder and remove it in the end, also when the run is interrupted or asked to end."""
    before = signal.signal(signal.SIGTERM, _leave)
    folder = Path(mkdtemp(prefix=prefix))  # a TemporaryDirectory would be removed by the first fork that ends
    try:
        yield folder
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        rmtree(folder)
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def warmed(checkout: Path) -> None:
    """Import what the ways in and the tests of a checkout need, except for its own modules."""
    code = "import sys, pytest, tests.conftest, tests.ways; print(*sys.modules)"
    path = os.pathsep.join([str(checkout / "src"), str(checkout)])
    told = subprocess.run(
        (sys.executable, "-c", code), env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    for name in told.stdout.split():
        if name.partition(".")[0] not in _OURS:
            with suppress(Exception):  # others' modules, some of which are nothing to import
                importlib.import_module(name)
    gc.collect()
    gc.freeze()


def tried(checkout: Path, tests: Sequence[str], longest: float, *, first: bool = True) -> Told:
    """Run tests of a checkout against its own source, up to the first that fails unless told otherwise."""
    said, events = checkout.parent / "said", checkout.parent / "events"
    for path in (said, events):
        path.write_text("")
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        _run(checkout, (*_OPTIONS, *(["-x"] if first else []), *tests), said, events)
    try:
        code = _ended(child, time.monotonic() + longest)
    finally:  # with whatever it left running
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)
    output = said.read_text("utf-8", "replace") + ("" if code is not None else f"\nno end within {longest} s")
    return _told(code, events.read_text("utf-8"), output)


def _ended(child: int, latest: float) -> int | None:
    """Return the exit status of a process; None when it takes too long."""
    with suppress(PermissionError, ProcessLookupError):  # it does so itself, too: whichever comes first
        os.setpgid(child, child)
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > latest:
            return None
        time.sleep(0.05)
    return os.waitstatus_to_exitcode(ended[1])


def _told(code: int | None, events: str, output: str) -> Told:
    found: dict[str, dict[str, None]] = {"begun": {}, "ended": {}, "failed": {}, "late": {}, "broken": {}}
    for line in events.splitlines():
        kind, name = json.loads(line)
        found[kind][name] = None
    if not found["broken"]:  # then the last that was begun may be the one that took the process with it
        lost = dict.fromkeys(name for name in found["begun"] if name not in found["ended"])
        found["failed"] |= lost
        found["late"] |= lost
    return Told(code == 0, tuple(found["failed"]), tuple(found["late"]), tuple(found["broken"]), output)


def _run(checkout: Path, arguments: Sequence[str], said: Path, events: Path) -> NoReturn:
    """Be the process that runs pytest."""
    code = 99
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for stream in (1, 2):
            os.dup2(os.open(said, os.O_WRONLY | os.O_APPEND), stream)
        os.chdir(checkout)
        os.environ["PYTHONPATH"] = str(checkout / "src")
        for name in [name for name in sys.modules if name.partition(".")[0] in _OURS]:
            del sys.modules[name]
        sys.modules["__main__"] = importlib.import_module("pytest.__main__")  # what a process of a test's imports
        sys.path[:0] = [str(checkout), str(checkout / "src")]
        sys.argv = ["pytest", *arguments]
        sys.dont_write_bytecode = False  # each run would compile everything anew
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        code = int(pytest.main([*arguments], plugins=[_Teller(events)]))
        sys.stdout.flush()
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage] -- as at the end of an interpreter of its own
    finally:
        os._exit(code)


class _Teller:
    """A plugin of pytest that writes down what becomes of each test, at once: the process may end at any time."""

    def __init__(self, events: Path) -> None:
        self._file = events.open("a", encoding="utf-8", buffering=1)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._tell("begun", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._tell("failed", report.nodeid)
            if "Timeout (>" in str(report.longrepr):
                self._tell("late", report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._tell("ended", nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell("broken", report.nodeid)

    def _tell(self, kind: str, name: str) -> None:
        self._file.write(json.dumps([kind, name]) + "\n")

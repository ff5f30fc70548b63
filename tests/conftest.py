"""What every test gets beside empty registries, which are the plugin's.

Property tests do not watch the clock, there is a Postgres server for those who ask, and `--tier` chooses a tier.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Container, Generator, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.effort import examples
from tests.postgres import Postgres, absence, programs, running
from tests.tiers import TIERS, may_hold, tier_of_test

_UNHURRIED = settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("local", _UNHURRIED)
settings.register_profile("ci", _UNHURRIED, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# Of the terminal that the tests are started in, and of its person: the commands here write to none, for nobody.
_OURS = ("TOOLCRIB_EFFORT", "TOOLCRIB_PICTURES", "TOOLCRIB_WRITE_FORMS")
_THEIRS = {"COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "PY_COLORS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}
for _name in [*os.environ]:
    if _name in _THEIRS or (_name.startswith(("OTEL_", "TOOLCRIB_")) and _name not in _OURS):
        del os.environ[_name]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in its background
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The last is how a sandbox, which has a process already, is asked for another one.
_STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "socket.sendmsg")
# What `platform` asks about the interpreter when croniter is imported, in the test that happens to be the first.
_ASKED_OF_PLATFORM = ("subprocess.Popen", "file")
_started: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that chooses tiers."""
    parser.addoption("--tier", action="append", choices=TIERS, help="Run this tier alone: see tests/tiers.py.")


def pytest_configure(config: pytest.Config) -> None:
    """Watch for processes that a test of the first tier starts."""
    if config.getoption("--tier") == [TIERS[0]]:
        sys.addaudithook(partial(_note_start, _STARTS))


def _note_start(starts: Container[str], event: str, given: tuple[object, ...]) -> None:
    if event in starts and (event, *given[:1]) != _ASKED_OF_PLATFORM:
        _started.append(f"{event}{given}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files that have no test of the tiers that were chosen."""
    tiers = config.getoption("--tier")
    if not tiers or collection_path.is_dir():
        return None
    return None if any(may_hold(collection_path, tier) for tier in tiers) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of the tiers that were not chosen.

    The files of a tier are all collected when it is chosen: there each test of a later one shows whether that one's run
    would have collected it, so that none is lost to all of them.
    """
    if lost := [item.nodeid for item in items if not may_hold(item.path, tier_of_test(item))]:
        raise pytest.UsageError(f"it cannot be told from the file's text that it holds tests of this tier: {lost[:5]}")
    if not (tiers := config.getoption("--tier")):
        return
    chosen = [item for item in items if tier_of_test(item) in tiers]
    left_out = set(items).difference(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = chosen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Count from here on the processes that a test starts."""
    _started.clear()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Fail a test of the first tier that has started a process and is not marked `smoke`.

    After a module's last test the engine of the durable ways in is stopped: a process has one, and others want it.
    """
    try:
        result = yield
    finally:
        durable = sys.modules.get("tests.ways_in.durable")
        if durable is not None and (nextitem is None or nextitem.path != item.path):
            durable.close_engine()
    if _started and item.get_closest_marker("smoke") is None:
        pytest.fail(f"it started a process, so that it belongs to a later tier (tests/tiers.py): {_started[0]:.200}")
    return result


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Take what the test modules import out of the garbage collector's sight: it is there for good, and large."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Run one Postgres server for all the tests that ask for one; each takes a database of its own on it."""
    if programs() is None:
        why, could_be_installed = absence()
        if could_be_installed:
            pytest.fail(why)
        pytest.skip(why)
    with running() as server:
        yield server


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write half a surrogate pair in what a test printed or logged as its number: no report could be sent with it."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report

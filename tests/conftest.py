"""What every test gets beside empty registries, which are the plugin's.

Property tests do not watch the clock, and there is a Postgres server for those who ask.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.effort import examples
from tests.postgres import Postgres, absence, programs, running

_UNHURRIED = settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("local", _UNHURRIED)
settings.register_profile("ci", _UNHURRIED, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

os.environ.pop("COLUMNS", None)  # of the terminal that the tests are started in: commands here write to none

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in its background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Take what the test modules import out of the garbage collector's sight: it is there for good, and large."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
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

"""What every test gets: empty registries, property tests that do not watch the clock, a Postgres server if it asks."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.effort import examples
from tests.postgres import Postgres, absence, programs, running
from toolcrib.registry import registry_scope

_UNHURRIED = settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("local", _UNHURRIED)
settings.register_profile("ci", _UNHURRIED, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

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


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Import each module with registries of its own, so that two may have tools of one name."""
    if not isinstance(collector, pytest.Module):
        return (yield)
    with registry_scope():
        return (yield)


@pytest.fixture(autouse=True)
def own_registries() -> Iterator[None]:
    """Set the process's registries aside, so that a test finds in them only what it made itself."""
    with registry_scope():
        yield


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


@pytest.fixture(autouse=True, scope="module")
def no_engine_left() -> Iterator[None]:
    """Stop the engine of the durable ways in after each module: a process has one, and others want it."""
    yield
    durable = sys.modules.get("toolcrib.testing._durable")
    if durable is not None:
        durable.close_engine()

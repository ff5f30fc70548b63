"""Plugin of pytest: fixtures for tests of tools.

pytest imports it wherever toolcrib is installed. So it stands outside of the package, and imports none of it before a
test asks for something: a test suite without tools waits for nothing, and coverage sees the package being imported.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from toolcrib.calls import CallRecord

__all__ = ["OUTCOMES"]

OUTCOMES: tuple[type[BaseException], ...] = (pytest.fail.Exception, pytest.skip.Exception, pytest.exit.Exception)
"""Exceptions of pytest, as of `pytest.fail`: inside a tool they end the test and not the call."""
if "toolcrib.errors" in sys.modules:  # else it reads them when it is imported, which may be in the middle of a test
    for _outcome in OUTCOMES:
        sys.modules["toolcrib.errors"].register_signal(_outcome)

_OPTION = "toolcrib_registries"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that gives each test module, and each test, registries of its own."""
    about = "Give each test module while it is imported, and each test, empty registries of tools, agents and hooks."
    parser.addini(_OPTION, about, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Configure every test to use `empty_registries`, where the option says so."""
    if config.getini(_OPTION):
        config.addinivalue_line("usefixtures", "empty_registries")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Import each module with registries of its own, where the option says so: two may have tools of one name."""
    if not (isinstance(collector, pytest.Module) and collector.config.getini(_OPTION)):
        return (yield)
    with import_module("toolcrib.registry").registry_scope():
        return (yield)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `every_way` once for each way in."""
    if "every_way" in metafunc.fixturenames:
        metafunc.parametrize("every_way", import_module("toolcrib.testing").WAYS, ids=repr)


@pytest.fixture
def empty_registries() -> Iterator[None]:
    """Set the registries aside, so that a test finds in them only the tools, agents and hooks that it makes."""
    with import_module("toolcrib.registry").registry_scope():
        yield


@pytest.fixture
def tool_calls() -> Iterator[list[CallRecord]]:
    """The records of the calls that ended during the test, in order, over any way in: a list that grows."""
    log = import_module("toolcrib.record").calls_log
    handler, level = _Records(), log.level
    log.addHandler(handler)
    if not log.isEnabledFor(logging.INFO):
        log.setLevel(logging.INFO)
    yield handler.records
    log.removeHandler(handler)
    log.setLevel(level)


class _Records(logging.Handler):
    """Keeps the records that the pipeline's logger is given."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: list[CallRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(vars(record)["toolcrib"])

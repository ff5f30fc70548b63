"""Tiers of the tests: `make test` runs `fast`, `make test-processes` and `make test-systems` the other two.

A test belongs to the tier of the longest path in TIER_OF that its file is in or is, and to `fast` where none is. A
test of such a file that belongs to a later tier is marked, by `pytest.mark.processes` or `pytest.mark.systems`; what
asks for a Postgres server is of `systems` without a mark. A test of `fast` starts no process and waits for no time to
pass, but for those that are marked `smoke`: one for each promise that takes a process.
"""

from __future__ import annotations

from pathlib import Path

import pytest

__all__ = ["TIERS", "TIER_OF", "tier_of_file", "tier_of_test"]

TIERS = ("fast", "processes", "systems")

TIER_OF = {
    # Sandboxes, servers, commands, documentation, examples, browsers, checkers of types.
    "tests/cli": "processes",
    "tests/code": "processes",
    "tests/console": "processes",
    "tests/docs": "processes",
    "tests/examples": "processes",
    "tests/sandbox": "processes",
    "tests/testing/test_plugin.py": "processes",
    "tests/credentials/test_public_pages.py": "processes",
    "tests/rounds/test_client_model.py": "processes",
    # The rest of these rooms is tested where an extra is missing, which takes another process.
    "tests/adapters/pydantic_ai/test_extra.py": "processes",
    "tests/openapi/test_extra.py": "processes",
    "tests/serving/test_extras.py": "processes",
    "tests/telemetry/test_extra.py": "processes",
    # Reads all of the source.
    "tests/test_rooms.py": "processes",
    "tests/toolsets/test_typing.py": "processes",
    # Postgres, crashes, attacks, soaks, other walls, other projects' suites and data.
    "tests/attacks": "systems",
    "tests/benchmarks": "systems",
    "tests/crash": "systems",
    "tests/durable": "systems",
    "tests/gateway": "systems",
    "tests/mutants": "systems",
}
"""The tier of the tests below a path."""

_ROOT = Path(__file__).parents[1]


def tier_of_file(path: Path) -> str:
    """Return the tier of a file's tests that have no mark."""
    places = [path, *path.parents]
    names = [place.relative_to(_ROOT).as_posix() for place in places if place.is_relative_to(_ROOT)]
    return next((TIER_OF[name] for name in names if name in TIER_OF), TIERS[0])


def tier_of_test(item: pytest.Item) -> str:
    """Return the tier of a test: the latest of that of its file and those that it is marked with."""
    callspec = getattr(item, "callspec", None)
    values = callspec.params.values() if callspec else ()
    found = {tier_of_file(item.path), *(mark.name for mark in item.iter_markers() if mark.name in TIERS)}
    if "postgres" in getattr(item, "fixturenames", ()) or "postgres" in [v for v in values if isinstance(v, str)]:
        found.add("systems")
    return max(found, key=TIERS.index)

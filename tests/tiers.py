"""Tiers of the tests: `make test` runs `fast`, `make test-processes` and `make test-systems` the other two.

A test belongs to the tier of the longest path in TIER_OF that its file is in or is, and to `fast` where none is. A
test of such a file that belongs to a later tier is marked, by `pytest.mark.processes` or `pytest.mark.systems`. What
asks for a Postgres server is of `systems` without a mark, and what goes over a way in by programs of `processes`. A
test of `fast` starts no process and waits for no time to pass, but for those that are marked `smoke`: one for each
promise that takes a process.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

__all__ = ["TIERS", "TIER_OF", "may_hold", "tier_of_file", "tier_of_test"]

TIERS = ("fast", "processes", "systems")

TIER_OF = {
    # Sandboxes and programs, servers and commands over pipes and HTTP, pages in browsers, documentation, examples.
    "tests/adapters/dbos": "processes",
    "tests/adapters/mcp_client": "processes",
    "tests/adapters/mcp_server/test_everything_behind.py": "processes",
    "tests/adapters/mcp_server/test_exits.py": "processes",
    "tests/adapters/mcp_server/test_gateway.py": "processes",
    "tests/adapters/mcp_server/test_hostile.py": "processes",
    "tests/adapters/mcp_server/test_http.py": "processes",
    "tests/adapters/mcp_server/test_http_hostile.py": "processes",
    "tests/adapters/mcp_server/test_oauth.py": "processes",
    "tests/adapters/mcp_server/test_one_bad_server.py": "processes",
    "tests/adapters/mcp_server/test_passing_on.py": "processes",
    "tests/adapters/mcp_server/test_programs.py": "processes",
    "tests/adapters/mcp_server/test_proxy.py": "processes",
    "tests/adapters/mcp_server/test_same_gate.py": "processes",
    "tests/adapters/mcp_server/test_sessions.py": "processes",
    "tests/adapters/mcp_server/test_sign_in.py": "processes",
    "tests/cli": "processes",
    "tests/code": "processes",
    "tests/console": "processes",
    "tests/credentials/test_public_pages.py": "processes",
    "tests/docs": "processes",
    "tests/examples": "processes",
    "tests/rounds/test_client_model.py": "processes",
    "tests/sandbox": "processes",
    "tests/testing/test_plugin.py": "processes",
    # What an error says where an extra is missing, seen in a process that hides it.
    "tests/adapters/pydantic_ai/test_extra.py": "processes",
    "tests/adapters/test_extras.py": "processes",
    "tests/openapi/test_extra.py": "processes",
    "tests/serving/test_extras.py": "processes",
    "tests/telemetry/test_extra.py": "processes",
    # Reads of the whole source, by us and by checkers of types.
    "tests/test_prose.py": "processes",
    "tests/test_rooms.py": "processes",
    "tests/toolsets/test_typing.py": "processes",
    # Postgres, crashes, attacks, soaks, and what other projects wrote: suites, servers, clients, documents, data.
    "tests/adapters/ag_ui/test_page.py": "systems",
    "tests/adapters/dbos/test_migrate.py": "systems",
    "tests/adapters/mcp_client/test_conformance.py": "systems",
    "tests/adapters/mcp_client/test_real_servers.py": "systems",
    "tests/adapters/mcp_server/test_conformance.py": "systems",
    "tests/adapters/mcp_server/test_conformance_behind.py": "systems",
    "tests/adapters/restate": "systems",
    "tests/adapters/vercel_ai/test_page.py": "systems",
    "tests/attacks": "systems",
    "tests/benchmarks": "systems",
    "tests/crash": "systems",
    "tests/database": "systems",
    "tests/durable": "systems",
    "tests/formats/test_llama_server.py": "systems",
    "tests/gateway": "systems",
    "tests/gateway/test_apis.py": "processes",
    "tests/gateway/test_endpoints.py": "processes",
    "tests/gateway/test_groups.py": "processes",
    "tests/gateway/test_options.py": "processes",
    "tests/gateway/test_servers.py": "processes",
    "tests/mutants": "systems",
    "tests/openapi/test_real_documents.py": "systems",
    "tests/results/test_size.py": "systems",
    "tests/rounds/test_any_round.py": "systems",
    "tests/sandbox/test_command_workers.py": "systems",
}
"""The tier of the tests below a path."""

_ROOT = Path(__file__).parents[1]

# What makes a test later than its file. It stands in the file, in a conftest.py of its folders, or in a module of the
# tests that one of these imports.
_SIGNS = {"processes": r"mark\.processes|tests\.ways", "systems": r"mark\.systems|postgres"}
_IMPORTED = re.compile(r"^\s*(?:from|import) +(tests(?:\.\w+)*)(?: +import +(\([^)]*\)|.*))?", re.MULTILINE)


@functools.cache
def tier_of_file(path: Path) -> str:
    """Return the tier of a file's tests that have no mark."""
    places = [path, *path.parents]
    names = [place.relative_to(_ROOT).as_posix() for place in places if place.is_relative_to(_ROOT)]
    return next((TIER_OF[name] for name in names if name in TIER_OF), TIERS[0])


@functools.cache
def may_hold(path: Path, tier: str) -> bool:
    """Return whether a file may hold tests of a tier, as far as its text tells: it is not imported."""
    of_file = tier_of_file(path)
    if tier == of_file:
        return True
    if TIERS.index(tier) < TIERS.index(of_file):
        return False
    return any(re.search(_SIGNS[tier], _text(one)) for one in _read_with(path))


def _read_with(path: Path) -> set[Path]:
    """Return a file, the conftest.py of each of its folders below `tests`, and what these import of `tests`."""
    found: set[Path] = set()
    left = [path, *(place / "conftest.py" for place in path.parents if (_ROOT / "tests") in place.parents)]
    while left:
        one = left.pop()
        if one not in found and one.is_file():
            found.add(one)
            left += [place for module, names in _IMPORTED.findall(_text(one)) for place in _files(module, names)]
    return found


def _files(module: str, names: str) -> list[Path]:
    """Return where a module of the tests may be, and what is imported from it if those are modules too."""
    place = _ROOT.joinpath(*module.split("."))
    places = [place, *(place / name for name in re.findall(r"\w+", names))]
    return [file for one in places for file in (one.with_suffix(".py"), one / "__init__.py")]


@functools.cache
def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace")


def tier_of_test(item: pytest.Item) -> str:
    """Return the tier of a test: the latest of that of its file and those that it is marked with."""
    callspec = getattr(item, "callspec", None)
    parameters = [*callspec.params.values()] if callspec else []
    found = {tier_of_file(item.path), *(mark.name for mark in item.iter_markers() if mark.name in TIERS)}
    titles = [getattr(one, "title", None) for one in parameters]
    if any(isinstance(title, str) and ("code" in title or "program" in title) for title in titles):
        found.add("processes")  # a way in by programs, which run in a sandbox
    if "postgres" in [*getattr(item, "fixturenames", ()), *(one for one in parameters if isinstance(one, str))]:
        found.add("systems")
    return max(found, key=TIERS.index)

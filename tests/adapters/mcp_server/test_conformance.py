"""Clients that nobody here wrote: the official conformance suite, and the command line of the inspector."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mcp_server.http import command_over_http
from tests.npm.conformance import LIMIT, REVISIONS, check_manual, not_passed
from tests.npm.programs import command

TOOLS = Path(__file__).with_name("conformance_tools.py")

# Each with its reason, and a line in docs/mcp-server.md. What the suite runs without counting it is here, too.
NOT_PASSED = {
    "2025-11-25": {},
    "2026-07-28": {
        "tasks-mrtr-composition": "an extension; a task asks its questions itself, and not before it begins",
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server with the tools that the suite asks for."""
    with command_over_http(tmp_path_factory.mktemp("served"), str(TOOLS), "--approve-by", "elicit") as url:
        yield url


@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_official_suite_passes_but_for_what_is_listed(server: str, revision: str, tmp_path: Path) -> None:
    failed = await not_passed("server", revision, tmp_path, "--url", server)

    assert failed == set(NOT_PASSED[revision])


def test_the_manual_says_what_is_passed_and_what_is_not() -> None:
    check_manual("mcp-server.md", "server", NOT_PASSED)


@pytest.fixture(scope="module", params=["http", "stdio"])
def place(request: pytest.FixtureRequest) -> list[str]:
    """Return how the inspector is told of the server: by its URL, or by the command that it starts."""
    if request.param == "stdio":
        return [sys.executable, "-m", "toolcrib", "serve", str(TOOLS)]
    return [request.getfixturevalue("server"), "--transport", "http"]


def inspect(folder: Path, place: list[str], *arguments: str) -> Any:
    """Return what the command line of the inspector prints: it waits for a busy machine, and a server writes here."""
    run = command("@modelcontextprotocol/inspector", "--cli", "--connect-timeout", "0", *place, *arguments)
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=folder)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_the_inspector_lists_the_tools_and_finds_nothing_wrong(place: list[str], tmp_path: Path) -> None:
    listed = inspect(tmp_path, place, "--method", "tools/list")

    tools = {tool["name"]: tool for tool in listed["tools"]}
    assert tools["test_elicitation"]["inputSchema"]["required"] == ["message"]
    assert tools["test_simple_text"]["inputSchema"]["properties"] == {}


def test_the_inspector_calls_a_tool(place: list[str], tmp_path: Path) -> None:
    result = inspect(tmp_path, place, "--method", "tools/call", "--tool-name", "test_simple_text")

    assert result["content"][0]["text"] == "This is a simple text response for testing."

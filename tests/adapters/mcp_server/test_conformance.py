"""Clients that nobody here wrote: the official conformance suite, and the command line of the inspector."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mcp_server.http import command_over_http
from tests.npm.programs import command

TOOLS = Path(__file__).with_name("conformance_tools.py")

# What a server of tools does not have, a line each in docs/mcp-server.md.
NOT_PASSED = {
    "logging-set-level": "logging",
    "tools-call-with-logging": "logging",
    "completion-complete": "completion",
    "tools-call-sampling": "sampling",
    "elicitation-sep1034-defaults": "forms",
    "elicitation-sep1330-enums": "forms",
    "resources-list": "resources",
    "resources-read-text": "resources",
    "resources-read-binary": "resources",
    "resources-templates-read": "resources",
    "resources-subscribe": "resources",
    "resources-unsubscribe": "resources",
    "prompts-list": "prompts",
    "prompts-get-simple": "prompts",
    "prompts-get-with-args": "prompts",
    "prompts-get-embedded-resource": "prompts",
    "prompts-get-with-image": "prompts",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server with the tools that the suite asks for."""
    with command_over_http(tmp_path_factory.mktemp("served"), str(TOOLS), "--approve-by", "elicit") as url:
        yield url


def test_the_official_suite_passes_but_for_what_a_server_of_tools_does_not_have(server: str, tmp_path: Path) -> None:
    suite = command("@modelcontextprotocol/conformance", "server", "--url", server, "--suite", "all")

    said = subprocess.run([*suite, "-o", str(tmp_path)], capture_output=True, text=True, check=False).stdout

    results = re.findall(r"^(\S) ([\w-]+): (\d+) passed, (\d+) failed", said, re.MULTILINE)
    assert len(results) == 32, said
    failed = {name for _, name, _, count in results if count != "0"}
    assert failed == set(NOT_PASSED)


def test_each_kind_of_scenario_that_is_not_passed_is_in_the_manual() -> None:
    manual = (Path(__file__).parents[3] / "docs" / "mcp-server.md").read_text("utf-8")

    listed = re.findall(r"^\| `([\w-]+)`", manual[manual.index("## Conformance") :], re.MULTILINE)

    assert sorted(listed) == sorted(NOT_PASSED)


def inspect(server: str, *arguments: str) -> Any:
    """Return what the command line of the inspector prints."""
    run = command("@modelcontextprotocol/inspector", "--cli", server, "--transport", "http", *arguments)
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_the_inspector_lists_the_tools_and_finds_nothing_wrong(server: str) -> None:
    listed = inspect(server, "--method", "tools/list")

    tools = {tool["name"]: tool for tool in listed["tools"]}
    assert tools["test_elicitation"]["inputSchema"]["required"] == ["message"]
    assert tools["test_simple_text"]["inputSchema"]["properties"] == {}


def test_the_inspector_calls_a_tool(server: str) -> None:
    result = inspect(server, "--method", "tools/call", "--tool-name", "test_simple_text")

    assert result["content"][0]["text"] == "This is a simple text response for testing."

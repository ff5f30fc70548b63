"""The commands are loaded when they are named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_group

from tests.cli.conftest import Command
from toolcrib.cli._app import app


def test_each_command_is_found_by_its_name() -> None:
    commands = get_group(app).commands

    names = {name: command.name for name, command in commands.items()}

    assert len(names) > 20
    assert list(names) == list(names.values())


@pytest.mark.parametrize("name", ["lst", ""])
def test_an_unknown_command_is_none(name: str) -> None:
    commands = get_group(app).commands

    command = commands.get(name)

    assert command is None


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("list", "a toolset, tools, an object, or a module with tools"),
        ("trace", "A run's, activity's or call's id, or how it begins"),
        ("resume", "What `exec --pause` wrote"),
        ("import", "One of claude-desktop, claude-code, cursor, vscode"),
    ],
)
def test_an_argument_that_is_missing_is_explained(toolcrib: Command, command: str, meant: str) -> None:
    refused = toolcrib(command)

    assert refused.exit_code == 2
    assert meant in " ".join(refused.stderr.replace("│", " ").split())


# Commands that neither a test of their own nor a page of the manual starts as a process.
PROCESSES = {
    "approvals token ann": (2, "this is not a terminal"),
    "credentials list": (2, "there is no file credentials.db"),
    "import claude-code": (0, "wrote mcp.json"),
    "install claude-code tools.py --dry-run": (0, '"serve",'),
    "pins list tools.py": (2, "no MCP server of it is pinned"),
    "schedules list --database work.db": (2, "there is no such file"),
    "workers list --database work.db": (2, "there is no such file"),
}


@pytest.mark.parametrize(("command", "exit_status", "words"), [(name, *told) for name, told in PROCESSES.items()])
def test_a_command_runs_as_a_process(command: str, exit_status: int, words: str, tools: str, tmp_path: Path) -> None:
    (tmp_path / ".claude.json").write_text('{"mcpServers": {"files": {"command": "files-server"}}}', "utf-8")
    home = {name: str(tmp_path) for name in ("HOME", "USERPROFILE")}
    run = [sys.executable, "-m", "toolcrib", *command.split()]

    done = subprocess.run(run, cwd=tmp_path, env={**os.environ, **home}, capture_output=True, text=True, check=False)

    assert (done.returncode, words in done.stdout + done.stderr) == (exit_status, True), done

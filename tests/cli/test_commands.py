"""The commands are loaded when they are named."""

from __future__ import annotations

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

"""The commands are loaded when they are named."""

from __future__ import annotations

import pytest
from typer.main import get_group

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

"""Tables of a database from the command line: made, looked at, and cleared of what is old."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.postgres import Postgres


def test_tables_are_made_and_checked(toolcrib: Command, tmp_path: Path) -> None:
    missing = toolcrib("db", "check", "--database", "a.db")
    (tmp_path / "a.db").touch()
    before = toolcrib("db", "check", "--database", "a.db", "--json")

    made = toolcrib("db", "migrate", "--database", "a.db")
    after = toolcrib("db", "check", "--database", "a.db", "--json")

    assert (missing.exit_code, before.exit_code, made.exit_code, after.exit_code) == (2, 1, 0, 0)
    assert "`toolcrib db migrate` makes it" in missing.stderr
    assert {one["to_do"] for one in json.loads(before.stdout)["stores"]} == {"Run: toolcrib db migrate"}
    assert {one["state"] for one in json.loads(after.stdout)["stores"]} == {"current"}


def test_what_is_old_is_counted_and_removed(toolcrib: Command, tools: str) -> None:
    toolcrib("call", tools, "add", '{"a": 1}', "--record", "a.db")

    young = toolcrib("db", "prune", "--older-than", "1h", "--database", "a.db", "--json")
    dry = toolcrib("db", "prune", "--older-than", "1h", "--dry-run", "--database", "a.db")

    assert json.loads(young.stdout)["calls and runs"] == 0
    assert dry.stderr.startswith("would remove 0 turns")


@pytest.mark.parametrize("age", ["30", "d", "0d", "-1d", "30x"])
def test_an_age_has_a_unit(toolcrib: Command, age: str) -> None:
    result = toolcrib("db", "prune", f"--older-than={age}")

    assert result.exit_code == 2
    assert "is not an age; write 12h, 30d or 8w" in result.stderr


def test_a_schema_is_for_one_command_and_its_password_is_hidden(toolcrib: Command, postgres: Postgres) -> None:
    url = postgres.url("cli_db")

    made = toolcrib("db", "migrate", "--database", url, "--schema", "orders", "--json")
    here = toolcrib("db", "check", "--database", url, "--schema", "orders")
    elsewhere = toolcrib("db", "check", "--database", url)

    assert (made.exit_code, here.exit_code, elsewhere.exit_code) == (0, 0, 1)
    assert postgres.password not in made.output
    assert "TOOLCRIB_SCHEMA" not in os.environ


@pytest.mark.parametrize("command", [("approvals", "list"), ("workflows", "list"), ("db", "check")])
def test_a_file_has_no_schema(toolcrib: Command, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "a.db").touch()

    result = toolcrib(*command, "--database", "a.db", "--schema", "orders")

    assert result.exit_code == 2
    assert "a file has no schema" in result.stderr

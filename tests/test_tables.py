"""Tables of a store are made once, brought from version to version, and left alone where a newer one made them."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

import toolcrib
from toolcrib.approvals import SQLITE_APPROVAL_TABLES, SqliteApprovalStore
from toolcrib.database import StoreTables, file_version, make_file
from toolcrib.database._sqlite import sqlite3
from toolcrib.errors import DatabaseError

FIRST = ("CREATE TABLE IF NOT EXISTS notes (text TEXT)",)
SECOND = ("ALTER TABLE notes ADD COLUMN author TEXT", "UPDATE notes SET author = 'ann'")
OLD, NEW = StoreTables("notes", (FIRST,)), StoreTables("notes", (FIRST, SECOND))


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(sql).fetchall()


def test_tables_are_made_and_their_version_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    make_file(path, NEW)

    assert file_version(path, NEW).state == "current"
    assert rows(path, "SELECT * FROM toolcrib_versions") == [("notes", 2)]
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]


def test_a_step_is_taken_once_and_rows_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    make_file(path, OLD)
    rows(path, "INSERT INTO notes VALUES ('hello')")
    before = file_version(path, NEW).state

    make_file(path, NEW)
    make_file(path, NEW)  # the second step fails where it was taken

    assert before == "old"
    assert rows(path, "SELECT * FROM notes") == [("hello", "ann")]


def test_a_step_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    make_file(path, OLD)

    with pytest.raises(sqlite3.Error):
        make_file(path, StoreTables("notes", (FIRST, ("CREATE TABLE more (x)", "no SQL"))))

    assert file_version(path, NEW).found == 1
    assert rows(path, "SELECT name FROM sqlite_master WHERE name = 'more'") == []


def test_tables_of_a_newer_version_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    make_file(path, NEW)

    with pytest.raises(DatabaseError, match=r"a newer version of Toolcrib made its notes \(version 2, not 1\)"):
        make_file(path, OLD)

    assert file_version(path, OLD).state == "newer"


def test_stores_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    make_file(path, NEW)

    SqliteApprovalStore(path)

    assert file_version(path, SQLITE_APPROVAL_TABLES).state == file_version(path, NEW).state == "current"


def test_a_file_from_before_versions_were_kept_is_taken_as_the_first(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    rows(path, FIRST[0])
    rows(path, "INSERT INTO notes VALUES ('hello')")

    make_file(path, NEW)

    assert rows(path, "SELECT * FROM notes") == [("hello", "ann")]


def test_each_table_is_of_one_store() -> None:
    sources = [path.read_text("utf-8") for path in Path(toolcrib.__file__).parent.rglob("*.py")]

    names = Counter(name for text in sources for name in re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?(\w*_\w+)", text))

    assert names["toolcrib_program_lines"] == 1
    assert [name for name, count in names.items() if count > 1] == []

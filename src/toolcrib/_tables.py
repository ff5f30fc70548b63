"""Tables of a store: the statements that make them, step by step, and the version that a database has of them.

The table `toolcrib_versions` says which version of each store a database has. A version is never changed: a store that
needs other tables gets one step more, which leads from the version before to the next.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from toolcrib._sqlite import sqlite3, write_ahead
from toolcrib.errors import DatabaseError

__all__ = ["MIGRATE", "Execute", "StoreTables", "TablesVersion", "file_version", "make_file"]

Execute: TypeAlias = Callable[[str, Sequence[Any]], Any]
"""Runs a statement, which has `?` for each value, and returns its cursor."""

MIGRATE = "Run `toolcrib db migrate` as one who may make tables"

_BUSY_SECONDS = 30.0  # how long to wait for another process's write
_VERSIONS = "CREATE TABLE IF NOT EXISTS toolcrib_versions (store TEXT PRIMARY KEY, version INTEGER NOT NULL)"
_HAS_VERSIONS = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'toolcrib_versions'",
    "postgresql": "SELECT 1 WHERE to_regclass('toolcrib_versions') IS NOT NULL",
}


@dataclass(frozen=True, slots=True)
class TablesVersion:
    """The version of a store's tables in a database.

    Attributes:
        found: 0 when they are missing.
        latest: The one that this process works with.
    """

    store: str
    found: int
    latest: int

    @property
    def state(self) -> Literal["missing", "old", "current", "newer"]:
        """How the two compare."""
        if self.found == self.latest:
            return "current"
        return "newer" if self.found > self.latest else "old" if self.found else "missing"


@dataclass(frozen=True, slots=True)
class StoreTables:
    """The tables of one store.

    Attributes:
        store: Its name.
        steps: The statements of each version, from the first on. Those of the first may be run where the tables are.
    """

    store: str
    steps: tuple[tuple[str, ...], ...]

    def version(self, execute: Execute, kind: str) -> TablesVersion:
        """Return which version a database has."""
        row = None
        if execute(_HAS_VERSIONS[kind], ()).fetchone() is not None:
            row = execute("SELECT version FROM toolcrib_versions WHERE store = ?", (self.store,)).fetchone()
        return TablesVersion(self.store, 0 if row is None else int(row[0]), len(self.steps))

    def is_current(self, execute: Execute, kind: str, database: str) -> bool:
        """Return whether there is nothing to make.

        Raises:
            DatabaseError: A newer version of Toolcrib made the tables.
        """
        version = self.version(execute, kind)
        if version.state == "newer":
            problem = (
                f"a newer version of Toolcrib made its {self.store} (version {version.found}, not {version.latest})"
            )
            raise DatabaseError(database, problem, "Update Toolcrib here")
        return version.state == "current"

    def make(self, execute: Execute, kind: str, database: str) -> None:
        """Bring the tables to the latest version, in a transaction in which no other process does.

        Raises:
            DatabaseError: A newer version of Toolcrib made the tables.
        """
        if self.is_current(execute, kind, database):
            return
        execute(_VERSIONS, ())
        for step in self.steps[self.version(execute, kind).found :]:
            for statement in step:
                execute(statement, ())
        execute(
            "INSERT INTO toolcrib_versions (store, version) VALUES (?, ?) "
            "ON CONFLICT (store) DO UPDATE SET version = excluded.version",
            (self.store, len(self.steps)),
        )


def make_file(path: Path, tables: StoreTables) -> None:
    """Bring a store's tables in a SQLite file to the latest version; a missing file is made, for its owner alone.

    Raises:
        DatabaseError: A newer version of Toolcrib made the tables.
        OSError: The file cannot be made.
    """
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
        if tables.is_current(connection.execute, "sqlite", str(path)):
            return
        write_ahead(connection, _BUSY_SECONDS)
        connection.execute("BEGIN IMMEDIATE")  # closing without COMMIT takes all back
        tables.make(connection.execute, "sqlite", str(path))
        connection.execute("COMMIT")


def file_version(path: Path, tables: StoreTables) -> TablesVersion:
    """Return which version of a store's tables a SQLite file has; the file stays as it is."""
    with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
        return tables.version(connection.execute, "sqlite")

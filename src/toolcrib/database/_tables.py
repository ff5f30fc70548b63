"""Tables of a store: the statements that make them, step by step, and the version that a database has of them.

The table `toolcrib_versions` says which version of each store a database has. A version is never changed: a store that
needs other tables gets one step more, which leads from the version before to the next.

Statements are written once, with `?` for each value and the column types of SQLite.

On a server, processes go on writing to a table while its indexes are made: write a step that changes indexes of indexes
alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from toolcrib.errors import DatabaseError

Execute: TypeAlias = Callable[[str, Sequence[Any]], Any]
"""Runs a statement, which has `?` for each value, and returns its cursor."""

MIGRATE = "Run `toolcrib db migrate` as one who may make tables"

_VERSIONS = "CREATE TABLE IF NOT EXISTS toolcrib_versions (store TEXT PRIMARY KEY, version INTEGER NOT NULL)"
_HAS_VERSIONS = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'toolcrib_versions'",
    "postgresql": "SELECT 1 WHERE to_regclass('toolcrib_versions') IS NOT NULL",
}
_SERVER_TYPES = {
    "INTEGER PRIMARY KEY": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "BLOB": "BYTEA",
    "REAL": "DOUBLE PRECISION",
}
_TYPE = re.compile(rf"\b(?:{'|'.join(_SERVER_TYPES)})\b")
_INDEX = re.compile(r"(CREATE|DROP) INDEX (?:IF (?:NOT )?EXISTS )?(\w+)(.*)", re.DOTALL)
_WRITE_VERSION = """INSERT INTO toolcrib_versions (store, version) VALUES (?, ?)
    ON CONFLICT (store) DO UPDATE SET version = excluded.version"""


class Tables(Protocol):
    """Tables of stores in a database, and transactions on them; used in any thread.

    Attributes:
        error: The class of errors of a statement that the database refuses.
    """

    error: type[Exception]

    def transaction(self, *, write: bool) -> AbstractContextManager[Execute]:
        """Begin a transaction, which is taken back if the body raises; it may block.

        Args:
            write: Whether the body writes; no other transaction of the stores writes meanwhile, unless the first of
                them shares its lock.
        """
        ...

    def close(self) -> None:
        """Close the connections; others are opened when the tables are used again."""
        ...


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
        """The result of comparing the two."""
        if self.found == self.latest:
            return "current"
        return "newer" if self.found > self.latest else "old" if self.found else "missing"


@dataclass(frozen=True, slots=True)
class StoreTables:
    """The tables of one store.

    Attributes:
        store: Its name.
        steps: The statements of each version, from the first on. Those of the first may be run where the tables are.
        shares_lock: Whether on a server any number of transactions write at a time, each of which holds the lock that
            excludes those of versions before, which wrote one at a time.
    """

    store: str
    steps: tuple[tuple[str, ...], ...]
    shares_lock: bool = False

    @property
    def lock(self) -> str:
        """The name of the lock that those who write to them hold on a server."""
        return f"toolcrib: {self.store}"

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
        """Migrate the tables to the latest version, in a transaction in which no other process does.

        Raises:
            DatabaseError: A newer version of Toolcrib made the tables.
        """
        if self.is_current(execute, kind, database):
            return
        execute(_VERSIONS, ())
        for step in self.steps[self.version(execute, kind).found :]:
            for statement in step:
                execute(statement if kind == "sqlite" else _on_server(statement), ())
        execute(_WRITE_VERSION, (self.store, len(self.steps)))

    def migrate(
        self, begin: Callable[[], AbstractContextManager[Execute]], outside: Execute, kind: str, database: str
    ) -> None:
        """Migrate the tables on a server, on which other processes use them; no other process may migrate meanwhile.

        New tables are made in one transaction, and of those that are there each step is done by itself. A step of
        indexes alone is done again from its beginning where a process died in it.

        Args:
            begin: Begins a transaction.
            outside: Runs a statement in none.

        Raises:
            DatabaseError: A newer version of Toolcrib made the tables.
        """
        with begin() as execute:
            found = self.version(execute, kind).found
            if not found or self.is_current(execute, kind, database):
                self.make(execute, kind, database)
                return
        for number, step in enumerate(self.steps[found:], found + 1):
            is_of_indexes = all(map(_INDEX.match, step))
            for statement in step if is_of_indexes else ():
                for part in _beside_writers(statement):
                    outside(part, ())
            with begin() as execute:
                for statement in () if is_of_indexes else step:
                    execute(_on_server(statement), ())
                execute(_WRITE_VERSION, (self.store, number))


def _beside_writers(statement: str) -> Iterator[str]:
    """Yield the statements that make or drop an index and hold up no one, each to be run outside of a transaction.

    What is left of an index that was not completed is dropped before it is made.
    """
    verb, name, rest = _INDEX.findall(statement)[0]
    yield f"DROP INDEX CONCURRENTLY IF EXISTS {name}"
    if verb == "CREATE":
        yield f"CREATE INDEX CONCURRENTLY {name}{rest}"


def _on_server(statement: str) -> str:
    """Return a statement with the column types of Postgres."""
    return _TYPE.sub(lambda found: _SERVER_TYPES[found[0]], statement)

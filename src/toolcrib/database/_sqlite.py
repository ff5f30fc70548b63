"""The one SQLite library of this process, under the name `sqlite3`.

DBOS needs a newer SQLite than some systems' Python brings, and then runs on `pysqlite3`. Other code that opens a file
must take the same one: when one of two SQLite libraries in a process closes a file, the system drops the locks that the
other holds on it, and its writes are no longer kept apart from other processes'.
"""

from __future__ import annotations

import importlib
import sqlite3 as _own
import time
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

BUSY_SECONDS = 30.0
"""The seconds that a write to a file waits for another process's, and work for a connection of a pool."""
DURABLE_VERSION = (3, 42, 0)
"""The version of SQLite that DBOS needs at least."""


def _chosen() -> ModuleType:
    if _own.sqlite_version_info >= DURABLE_VERSION:
        return _own
    try:
        return importlib.import_module("pysqlite3")  # of the extra `durable`
    except ModuleNotFoundError:
        return _own


if TYPE_CHECKING:
    import sqlite3
else:
    sqlite3 = _chosen()

SqliteConnection: TypeAlias = sqlite3.Connection
"""A connection of the library."""
SqliteError: TypeAlias = sqlite3.Error
"""Its errors."""

_UNAVAILABLE = (
    "database is locked",
    "database table is locked",
    "database schema is locked",
    "database or disk is full",
    "disk I/O error",
    "unable to open database file",
    "attempt to write a readonly database",
)


def is_unavailable(error: BaseException) -> bool:
    """Return whether an error says that a file cannot be used now: it is locked or away, or its disk is full."""
    return isinstance(error, sqlite3.OperationalError) and str(error).startswith(_UNAVAILABLE)


def write_ahead(connection: sqlite3.Connection) -> None:
    """Set a file to a mode in which readers go on while one writes; the file remembers it."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:  # another process does the same: for this SQLite does not wait by itself
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return

"""Tables in a SQLite file, which outlives the process and serves several, or in the memory of this process.

Each transaction opens the file and closes it: there is nothing to close, and neither a fork nor a second event loop
makes a difference. It costs a few milliseconds at most.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from toolcrib.database._sqlite import BUSY_SECONDS, sqlite3, write_ahead
from toolcrib.database._tables import Execute, StoreTables, TablesVersion
from toolcrib.errors import DatabaseError

_log = logging.getLogger("toolcrib.database")


def connect_file(path: str | Path, *, shared: bool = False) -> sqlite3.Connection:
    """Return a connection to a SQLite file, which commits each statement that is in no transaction.

    Args:
        shared: Whether threads take turns with it; else it is for this thread alone.
    """
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=not shared)


NOT_A_DATABASE: Final = "the file is something else than a SQLite database"
"""The problem of a file that SQLite calls none of its own."""


def require_name(name: object) -> None:
    """Raise TypeError for what is given in the place of a database's name, such as an agent."""
    if not isinstance(name, str | Path):
        raise TypeError(f"a database is named by a path or a URL, as in 'toolcrib.db', and not by {name!r:.80}")


def file_error(path: Path, error: BaseException) -> DatabaseError:
    """Return the error that says what keeps a SQLite file from being used, and the way out."""
    reason = " ".join(str(error).split())
    if not path.parent.is_dir():
        return DatabaseError(str(path), f"there is no folder {path.parent}", "Make it first")
    if path.is_dir():
        return DatabaseError(str(path), "it is a folder", "Name a file in it")
    if "not a database" in reason:
        return DatabaseError(str(path), NOT_A_DATABASE, "Name another")
    return DatabaseError(str(path), reason, "Look at who may read and write the file and its folder")


def make_file(path: Path, tables: StoreTables) -> None:
    """Migrate a store's tables in a SQLite file to the latest version; a missing file is made, for its owner alone.

    Raises:
        DatabaseError: A newer version of Toolcrib made the tables.
        OSError: The file cannot be made.
    """
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        _log.info("made the new database %s", path.absolute())
    with closing(connect_file(path)) as connection:
        if tables.is_current(connection.execute, "sqlite", str(path)):
            return
        write_ahead(connection)
        connection.execute("BEGIN IMMEDIATE")  # closing without COMMIT takes all back
        tables.make(connection.execute, "sqlite", str(path))
        connection.execute("COMMIT")


def file_version(path: Path, tables: StoreTables) -> TablesVersion:
    """Return which version of a store's tables a SQLite file has; the file stays as it is."""
    with closing(connect_file(path)) as connection:
        return tables.version(connection.execute, "sqlite")


class SqliteTables:
    """Tables of stores in a SQLite file.

    Args:
        path: The file, or its URL, `sqlite:///app.db`; it is made when missing, for its owner alone to read. Its folder
            has to be on a local disk.
        tables: The tables of each store; missing ones are made.
        erase: Whether deleted content is overwritten in the file.

    Raises:
        TypeError: The path is something else, such as an agent.
        DatabaseError: The path is not that of a file, the file cannot be used, or a newer version of Toolcrib made the
            tables.
    """

    error: type[Exception] = sqlite3.OperationalError

    def __init__(self, path: str | Path, *tables: StoreTables, erase: bool = False) -> None:
        require_name(path)
        name = str(path).removeprefix("sqlite:///")
        stores = " and ".join(store_tables.store for store_tables in tables)
        if "://" in name:
            problem = f"{stores} are kept in a file here, and this is the URL of a server"
            raise DatabaseError(name, problem, "Use the Postgres store")
        if name.strip() in ("", ":memory:"):
            problem = f"{stores} have to be kept in a file"
            raise DatabaseError(
                name.strip() or repr(name), problem, "Name one, such as toolcrib.db, or use the Memory store"
            )
        self.path, self._erase = Path(name), erase
        try:
            for store_tables in tables:
                make_file(self.path, store_tables)
        except DatabaseError:
            raise
        except (sqlite3.Error, OSError) as error:
            raise file_error(self.path, error) from error

    @contextmanager
    def transaction(self, *, write: bool) -> Generator[Execute]:
        """Begin a transaction, which is taken back if the body raises; the only one that writes, where `write`."""
        with closing(connect_file(self.path)) as connection:
            if self._erase:
                connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")  # closing without COMMIT takes all back
            yield connection.execute
            connection.execute("COMMIT")

    def close(self) -> None:
        """Return at once: no connection is open."""


class MemoryTables:
    """Tables of stores in the memory of this process; one transaction at a time."""

    error: type[Exception] = sqlite3.OperationalError

    def __init__(self, *tables: StoreTables) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        weakref.finalize(self, self._connection.close)
        for store_tables in tables:
            store_tables.make(self._connection.execute, "sqlite", "memory")

    @contextmanager
    def transaction(self, *, write: bool) -> Generator[Execute]:
        """Begin a transaction, which is taken back if the body raises."""
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                yield self._connection.execute
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def close(self) -> None:
        """Return at once: the tables go with this object."""

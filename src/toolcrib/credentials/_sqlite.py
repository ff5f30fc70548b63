"""Credential stores: in a SQLite file that its owner alone can read, and in memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from toolcrib._sqlite import sqlite3
from toolcrib._tables import StoreTables, make_file
from toolcrib.credentials._keys import CredentialKeys, new_key
from toolcrib.credentials._store import CredentialRows, CredentialStore, written_at

__all__ = ["CREDENTIAL_TABLES", "MemoryCredentialStore", "SqliteCredentialStore"]

_BUSY_SECONDS: Final = 30.0
_TABLE: Final = "toolcrib_credentials"
_THIS: Final = "WHERE kind = ? AND principal = ? AND server = ?"
CREDENTIAL_TABLES: Final = StoreTables(
    "credentials",
    (
        (
            f"CREATE TABLE IF NOT EXISTS {_TABLE} (kind TEXT NOT NULL, principal TEXT NOT NULL, server TEXT NOT NULL, "
            "sealed BLOB NOT NULL, version TEXT NOT NULL, until REAL NOT NULL, claimed REAL NOT NULL, "
            "at TEXT NOT NULL, PRIMARY KEY (kind, principal, server))",
        ),
    ),
)
"""The table of `SqliteCredentialStore`."""


class SqliteCredentialStore(CredentialStore):
    """Credentials in a SQLite file, encrypted; the file is for its owner alone.

    Args:
        path: The file; it is made when missing.
        keys: The keys; those of this machine when None.

    Raises:
        CredentialKeyError: There is no key.
        DatabaseError: A newer version of Toolcrib wrote the file.
    """

    def __init__(self, path: str | Path, keys: CredentialKeys | None = None) -> None:
        super().__init__(CredentialKeys.found() if keys is None else keys)
        self.path = Path(path)
        make_file(self.path, CREDENTIAL_TABLES)
        if os.name == "posix" and self.path.stat().st_mode & 0o077:
            self.path.chmod(0o600)  # a file that was there before

    @contextmanager
    def _transaction(self) -> Generator[CredentialRows]:
        with closing(sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = ON")  # what is forgotten leaves no trace in the file
            connection.execute("BEGIN IMMEDIATE")  # closing without COMMIT takes all back
            yield _SqliteRows(connection)
            connection.execute("COMMIT")


class _SqliteRows:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute

    def read(self, kind: str, principal: str, server: str) -> tuple[bytes, str, float, float] | None:
        query = f"SELECT sealed, version, until, claimed FROM {_TABLE} {_THIS}"
        return self._execute(query, (kind, principal, server)).fetchone()

    def write(self, kind: str, principal: str, server: str, sealed: bytes, version: str, until: float) -> None:
        self._execute(
            f"INSERT INTO {_TABLE} (kind, principal, server, sealed, version, until, claimed, at) "
            "VALUES (?, ?, ?, ?, ?, ?, 0, ?) ON CONFLICT (kind, principal, server) DO UPDATE SET "
            "sealed = excluded.sealed, version = excluded.version, until = excluded.until, claimed = 0, "
            "at = excluded.at",
            (kind, principal, server, sealed, version, until, written_at()),
        )

    def claim(self, kind: str, principal: str, server: str, until: float) -> None:
        self._execute(f"UPDATE {_TABLE} SET claimed = ? {_THIS}", (until, kind, principal, server))

    def remove(self, kind: str, principal: str, server: str) -> bool:
        return self._execute(f"DELETE FROM {_TABLE} {_THIS}", (kind, principal, server)).rowcount > 0

    def all(self) -> list[tuple[str, str, str, bytes, str, float]]:
        query = f"SELECT kind, principal, server, sealed, at, until FROM {_TABLE}"
        return list(self._execute(query).fetchall())


class MemoryCredentialStore(CredentialStore):
    """Credentials in the memory of this process, sealed with a key that it alone has."""

    def __init__(self) -> None:
        super().__init__(CredentialKeys([new_key()]))
        self._rows = _MemoryRows()
        self._lock = threading.Lock()

    @contextmanager
    def _transaction(self) -> Generator[CredentialRows]:
        with self._lock:
            before = dict(self._rows.kept)
            try:
                yield self._rows
            except BaseException:
                self._rows.kept = before
                raise


class _MemoryRows:
    def __init__(self) -> None:
        self.kept: dict[tuple[str, str, str], tuple[Any, ...]] = {}

    def read(self, kind: str, principal: str, server: str) -> tuple[bytes, str, float, float] | None:
        row = self.kept.get((kind, principal, server))
        return None if row is None else (row[0], row[1], row[2], row[3])

    def write(self, kind: str, principal: str, server: str, sealed: bytes, version: str, until: float) -> None:
        self.kept[kind, principal, server] = (sealed, version, until, 0.0, written_at())

    def claim(self, kind: str, principal: str, server: str, until: float) -> None:
        row = self.kept.get((kind, principal, server))
        if row is not None:
            self.kept[kind, principal, server] = (*row[:3], until, row[4])

    def remove(self, kind: str, principal: str, server: str) -> bool:
        return self.kept.pop((kind, principal, server), None) is not None

    def all(self) -> list[tuple[str, str, str, bytes, str, float]]:
        return [(*key, row[0], row[4], row[2]) for key, row in self.kept.items()]

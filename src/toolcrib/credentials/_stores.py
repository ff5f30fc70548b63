"""Credential stores: in a SQLite file that its owner alone can read, and in memory."""

from __future__ import annotations

import os
from pathlib import Path

from toolcrib.credentials._keys import CredentialKeys, new_key
from toolcrib.credentials._store import CREDENTIAL_TABLES, CredentialStore
from toolcrib.database import MemoryTables, SqliteTables
from toolcrib.errors import explain_options


@explain_options()
class SqliteCredentialStore(CredentialStore):
    """Credentials in a SQLite file, encrypted; the file is for its owner alone.

    What is removed leaves no trace in the file.

    Args:
        path: The file; it is made when missing.
        keys: The keys; those of this machine when None.

    Raises:
        CredentialKeyError: There is no key.
        DatabaseError: A newer version of Toolcrib wrote the file.
    """

    def __init__(self, path: str | Path, keys: CredentialKeys | None = None) -> None:
        keys = CredentialKeys.found() if keys is None else keys
        tables = SqliteTables(path, CREDENTIAL_TABLES, erase=True)
        super().__init__(tables, keys)
        self.path = tables.path
        if os.name == "posix" and self.path.stat().st_mode & 0o077:
            self.path.chmod(0o600)  # a file that was there before


class MemoryCredentialStore(CredentialStore):
    """Credentials in the memory of this process, sealed with a key that it alone has."""

    def __init__(self) -> None:
        super().__init__(MemoryTables(CREDENTIAL_TABLES), CredentialKeys([new_key()]))

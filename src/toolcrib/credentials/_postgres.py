"""Credentials on a Postgres server, for processes on many hosts."""

from __future__ import annotations

from pathlib import Path

from toolcrib.credentials._keys import CredentialKeys
from toolcrib.credentials._store import CREDENTIAL_TABLES, CredentialStore
from toolcrib.database import Database, PostgresTables


class PostgresCredentialStore(CredentialStore):
    """Credentials on a Postgres server, encrypted before they are sent there. It needs the extra `postgres`.

    Args:
        database: Its URL, or what `Database.named` made of one. Missing tables are made.
        keys: The keys; those of this machine when None. Every process needs the same.

    Raises:
        CredentialKeyError: There is no key.
        DatabaseError: It is not a Postgres database, or it cannot be connected to.
    """

    def __init__(self, database: str | Path | Database, keys: CredentialKeys | None = None) -> None:
        keys = CredentialKeys.found() if keys is None else keys
        tables = PostgresTables(database, CREDENTIAL_TABLES, pool=2)
        super().__init__(tables, keys)
        self.database = tables.database

    def close(self) -> None:
        """Close the connections; the store opens others when it is used again."""
        self._tables.close()

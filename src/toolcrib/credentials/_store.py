"""Credential store: sealed rows by kind, principal and server, each with a version; and links to consent pages."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, TypeVar

from toolcrib._short_repr import FileRepr
from toolcrib.credentials._keys import CredentialKeys, new_key
from toolcrib.database import Execute, MemoryTables, SqliteTables, StoreTables, Tables
from toolcrib.errors import explain_options

T = TypeVar("T")
TOKEN: Final = "token"  # of OAuth
KEY: Final = "key"  # of an API
CLIENT: Final = "client"  # what we are to an authorization server
TICKET: Final = "ticket"  # a link that a principal was given to consent by
STATE: Final = "state"  # a browser that is at an authorization server
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
"""The table of a credential store."""


@dataclass(frozen=True, slots=True)
class KeptCredential:
    """A credential without its secret, for lists.

    Attributes:
        kind: `oauth` or `key`.
        since: When it was obtained, or refreshed last.
    """

    principal: str
    server: str
    kind: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Row:
    """A row that was opened."""

    value: Mapping[str, Any] = field(repr=False)
    version: str = ""


class _Rows:
    """The rows inside one transaction."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    def read(self, kind: str, principal: str, server: str) -> tuple[bytes, str, float, float] | None:
        """Return the sealed value, the version, and until when it counts and is claimed, in seconds since 1970."""
        query = f"SELECT sealed, version, until, claimed FROM {_TABLE} {_THIS}"
        return self._execute(query, (kind, principal, server)).fetchone()

    def write(self, kind: str, principal: str, server: str, sealed: bytes, version: str, until: float) -> None:
        """Keep a row, in place of the one that is there; no process claims it."""
        self._execute(
            f"INSERT INTO {_TABLE} (kind, principal, server, sealed, version, until, claimed, at) "
            "VALUES (?, ?, ?, ?, ?, ?, 0, ?) ON CONFLICT (kind, principal, server) DO UPDATE SET "
            "sealed = excluded.sealed, version = excluded.version, until = excluded.until, claimed = 0, "
            "at = excluded.at",
            (kind, principal, server, sealed, version, until, datetime.now(UTC).isoformat()),
        )

    def claim(self, kind: str, principal: str, server: str, until: float) -> None:
        """Claim a row for a process."""
        self._execute(f"UPDATE {_TABLE} SET claimed = ? {_THIS}", (until, kind, principal, server))

    def remove(self, kind: str, principal: str, server: str) -> bool:
        """Remove a row; return whether there was one."""
        return self._execute(f"DELETE FROM {_TABLE} {_THIS}", (kind, principal, server)).rowcount > 0

    def all(self) -> list[tuple[str, str, str, bytes, str, float]]:
        """Return kind, principal, server, what is sealed, when it was written, and until when each row counts."""
        query = f"SELECT kind, principal, server, sealed, at, until FROM {_TABLE}"
        return list(self._execute(query, ()).fetchall())


class CredentialStore:
    """Credentials of principals, encrypted, in a table of a database.

    A row that was copied to another principal or server cannot be opened there.

    Args:
        tables: The table in a SQLite file, on a Postgres server, or in memory.
        keys: The keys that the rows are sealed with.
    """

    def __init__(self, tables: Tables, keys: CredentialKeys) -> None:
        self._tables, self._keys = tables, keys

    async def _run(self, work: Callable[[_Rows], T]) -> T:
        def run() -> T:
            with self._tables.transaction(write=True) as execute:
                return work(_Rows(execute))

        return await asyncio.to_thread(run)

    # --- one row

    async def read(self, kind: str, principal: str, server: str) -> Row | None:
        """Return a row that counts still; raises CredentialKeyError where the key is another one."""

        def work(rows: _Rows) -> Row | None:
            return self._open(rows, kind, principal, server)

        return await self._run(work)

    async def write(
        self, kind: str, principal: str, server: str, value: Mapping[str, Any], seconds: float = 0.0
    ) -> None:
        """Keep a row, in place of an older one; for so many seconds, or for good."""

        def work(rows: _Rows) -> None:
            self._keep(rows, kind, principal, server, value, seconds)

        await self._run(work)

    async def swap(self, kind: str, principal: str, server: str, version: str, value: Mapping[str, Any] | None) -> bool:
        """Replace a row, or remove it for None, if it has still this version; return whether it had."""

        def work(rows: _Rows) -> bool:
            row = rows.read(kind, principal, server)
            if row is None or row[1] != version:
                return False
            if value is None:
                return rows.remove(kind, principal, server)
            self._keep(rows, kind, principal, server, value, 0.0)
            return True

        return await self._run(work)

    async def take(self, kind: str, principal: str, server: str) -> Row | None:
        """Return a row and remove it: of several at once, one gets it."""

        def work(rows: _Rows) -> Row | None:
            row = self._open(rows, kind, principal, server)
            rows.remove(kind, principal, server)
            return row

        return await self._run(work)

    async def find_or_write(
        self, kind: str, principal: str, server: str, value: Mapping[str, Any], seconds: float
    ) -> Row:
        """Return the row that is there, or this one, which is then kept for so many seconds."""

        def work(rows: _Rows) -> Row:
            found = self._open(rows, kind, principal, server)
            return found or self._keep(rows, kind, principal, server, value, seconds)

        return await self._run(work)

    async def claim(self, kind: str, principal: str, server: str, version: str, seconds: float) -> bool:
        """Claim a row for this process for some seconds; False where another one has it, or has changed it."""

        def work(rows: _Rows) -> bool:
            row = rows.read(kind, principal, server)
            if row is None or row[1] != version or row[3] > time.time():
                return False
            rows.claim(kind, principal, server, time.time() + seconds)
            return True

        return await self._run(work)

    async def unclaim(self, kind: str, principal: str, server: str) -> None:
        """Release a row for other processes."""
        await self._run(lambda rows: rows.claim(kind, principal, server, 0.0))

    # --- all rows

    async def credentials(self, principal: str | None = None) -> tuple[KeptCredential, ...]:
        """Return the credentials that are kept, without their secrets: of one principal, or of all."""
        kinds = {TOKEN: "oauth", KEY: "key"}
        found = await self._run(lambda rows: rows.all())
        return tuple(
            KeptCredential(whose, server, kinds[kind], datetime.fromisoformat(at))
            for kind, whose, server, _, at, _ in sorted(found, key=lambda row: (row[1], row[2]))
            if kind in kinds and principal in (None, whose)
        )

    async def reseal(self, keys: CredentialKeys) -> int:
        """Encrypt every row with the first of these keys, which open it, too; return how many rows changed."""

        def work(rows: _Rows) -> int:
            changed = 0
            for kind, principal, server, sealed, _, until in rows.all():
                if not keys.is_newest(sealed):
                    place = _place(kind, principal, server)
                    fresh = keys.sealed(keys.opened(sealed, place), place)
                    rows.write(kind, principal, server, fresh, token_hex(8), until)
                    changed += 1
            return changed

        changed = await self._run(work)
        self._keys = keys
        return changed

    async def prune(self) -> int:
        """Remove the links and states that do not count any more; return how many there were."""

        def work(rows: _Rows) -> int:
            old = [row for row in rows.all() if 0 < row[5] <= time.time()]
            return sum(rows.remove(kind, principal, server) for kind, principal, server, *_ in old)

        return await self._run(work)

    # --- inside a transaction

    def _open(self, rows: _Rows, kind: str, principal: str, server: str) -> Row | None:
        found = rows.read(kind, principal, server)
        if found is None or 0 < found[2] <= time.time():
            return None
        text = self._keys.opened(found[0], _place(kind, principal, server))
        return Row(json.loads(text), found[1])

    def _keep(
        self, rows: _Rows, kind: str, principal: str, server: str, value: Mapping[str, Any], seconds: float
    ) -> Row:
        sealed = self._keys.sealed(json.dumps(value).encode(), _place(kind, principal, server))
        row = Row(value, token_hex(8))
        rows.write(kind, principal, server, sealed, row.version, time.time() + seconds if seconds else 0.0)
        return row


@explain_options()
class SqliteCredentialStore(FileRepr, CredentialStore):
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


def _place(kind: str, principal: str, server: str) -> bytes:
    return json.dumps([kind, principal, server]).encode()


_LINK: Final = "link"  # the ticket that a principal has for a server now
_SECONDS: Final = 7 * 24 * 3600.0  # as long as a suspended call is kept


async def link_for(store: CredentialStore, pages: str, principal: str, server: str, about: Mapping[str, Any]) -> str:
    """Return the link by which a principal consents; the same one while it is valid."""
    fresh = {"ticket": secrets.token_urlsafe(32)}
    ticket: str = (await store.find_or_write(_LINK, principal, server, fresh, _SECONDS)).value["ticket"]
    ticket_data = {**about, "principal": principal, "server": server, "pages": pages}
    await store.write(TICKET, "", name_of(ticket), ticket_data, _SECONDS)
    return f"{pages}/{ticket}"


async def ticket_row(store: CredentialStore, ticket: str) -> Row | None:
    """Return the row of a ticket; None where it is unknown, used or too old."""
    row = await store.read(TICKET, "", name_of(ticket))
    if row is None:
        return None
    link = await store.read(_LINK, row.value["principal"], row.value["server"])
    return row if link is not None and link.value["ticket"] == ticket else None


async def drop_link(store: CredentialStore, principal: str, server: str, ticket: str) -> None:
    """Invalidate a link."""
    await store.take(TICKET, "", name_of(ticket))
    link = await store.read(_LINK, principal, server)
    if link is not None and link.value["ticket"] == ticket:
        await store.swap(_LINK, principal, server, link.version, None)


def name_of(secret: str) -> str:
    """Return the name of a row that a secret leads to: the database does not have the secret itself."""
    return hashlib.sha256(secret.encode()).hexdigest()

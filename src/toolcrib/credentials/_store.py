"""Credential store: sealed rows by kind, principal and server, each with a version."""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Final, Protocol, TypeVar

from toolcrib.credentials._keys import CredentialKeys

__all__ = [
    "CLIENT",
    "KEY",
    "STATE",
    "TICKET",
    "TOKEN",
    "CredentialRows",
    "CredentialStore",
    "KeptCredential",
    "Row",
    "written_at",
]

T = TypeVar("T")
TOKEN: Final = "token"  # of OAuth
KEY: Final = "key"  # of an API
CLIENT: Final = "client"  # what we are to an authorization server
TICKET: Final = "ticket"  # a link that a principal was given to consent by
STATE: Final = "state"  # a browser that is at an authorization server


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


class CredentialRows(Protocol):
    """The rows inside one transaction."""

    def read(self, kind: str, principal: str, server: str) -> tuple[bytes, str, float, float] | None:
        """Return what is sealed, the version, and until when it counts and is claimed, in seconds since 1970."""
        ...

    def write(self, kind: str, principal: str, server: str, sealed: bytes, version: str, until: float) -> None:
        """Keep a row, in place of the one that is there; no process claims it."""
        ...

    def claim(self, kind: str, principal: str, server: str, until: float) -> None:
        """Note that a process works on a row."""
        ...

    def remove(self, kind: str, principal: str, server: str) -> bool:
        """Remove a row; return whether there was one."""
        ...

    def all(self) -> list[tuple[str, str, str, bytes, str, float]]:
        """Return kind, principal, server, what is sealed, when it was written, and until when each row counts."""
        ...


class CredentialStore(ABC):
    """Credentials of principals, encrypted; each kind of database is a subclass.

    A row that was copied to another principal or server cannot be opened there.

    Args:
        keys: The keys that the rows are sealed with.
    """

    def __init__(self, keys: CredentialKeys) -> None:
        self._keys = keys

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[CredentialRows]:
        """Begin a transaction, in a worker thread: the only one that writes; taken back where the body raises."""

    async def _run(self, work: Callable[[CredentialRows], T]) -> T:
        def run() -> T:
            with self._transaction() as rows:
                return work(rows)

        return await asyncio.to_thread(run)

    # --- one row

    async def read(self, kind: str, principal: str, server: str) -> Row | None:
        """Return a row that counts still; raises CredentialKeyError where the key is another one."""

        def work(rows: CredentialRows) -> Row | None:
            return self._open(rows, kind, principal, server)

        return await self._run(work)

    async def write(
        self, kind: str, principal: str, server: str, value: Mapping[str, Any], seconds: float = 0.0
    ) -> None:
        """Keep a row, in place of an older one; for so many seconds, or for good."""

        def work(rows: CredentialRows) -> None:
            self._keep(rows, kind, principal, server, value, seconds)

        await self._run(work)

    async def swap(self, kind: str, principal: str, server: str, version: str, value: Mapping[str, Any] | None) -> bool:
        """Replace a row, or remove it for None, if it has still this version; return whether it had."""

        def work(rows: CredentialRows) -> bool:
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

        def work(rows: CredentialRows) -> Row | None:
            row = self._open(rows, kind, principal, server)
            rows.remove(kind, principal, server)
            return row

        return await self._run(work)

    async def find_or_write(
        self, kind: str, principal: str, server: str, value: Mapping[str, Any], seconds: float
    ) -> Row:
        """Return the row that is there, or this one, which is then kept for so many seconds."""

        def work(rows: CredentialRows) -> Row:
            found = self._open(rows, kind, principal, server)
            return found or self._keep(rows, kind, principal, server, value, seconds)

        return await self._run(work)

    async def claim(self, kind: str, principal: str, server: str, version: str, seconds: float) -> bool:
        """Note that this process works on a row for some seconds; False where another one does, or has changed it."""

        def work(rows: CredentialRows) -> bool:
            row = rows.read(kind, principal, server)
            if row is None or row[1] != version or row[3] > time.time():
                return False
            rows.claim(kind, principal, server, time.time() + seconds)
            return True

        return await self._run(work)

    async def unclaim(self, kind: str, principal: str, server: str) -> None:
        """Let other processes work on a row."""
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

        def work(rows: CredentialRows) -> int:
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

        def work(rows: CredentialRows) -> int:
            old = [row for row in rows.all() if 0 < row[5] <= time.time()]
            return sum(rows.remove(kind, principal, server) for kind, principal, server, *_ in old)

        return await self._run(work)

    # --- inside a transaction

    def _open(self, rows: CredentialRows, kind: str, principal: str, server: str) -> Row | None:
        found = rows.read(kind, principal, server)
        if found is None or 0 < found[2] <= time.time():
            return None
        text = self._keys.opened(found[0], _place(kind, principal, server))
        return Row(json.loads(text), found[1])

    def _keep(
        self, rows: CredentialRows, kind: str, principal: str, server: str, value: Mapping[str, Any], seconds: float
    ) -> Row:
        sealed = self._keys.sealed(json.dumps(value).encode(), _place(kind, principal, server))
        row = Row(value, token_hex(8))
        rows.write(kind, principal, server, sealed, row.version, time.time() + seconds if seconds else 0.0)
        return row


def _place(kind: str, principal: str, server: str) -> bytes:
    return json.dumps([kind, principal, server]).encode()


def written_at() -> str:
    """Return the time for a row that is written now."""
    return datetime.now(UTC).isoformat()

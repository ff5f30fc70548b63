"""Pins in a SQLite file: how a server described what it has when it was first used, or last accepted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

from toolcrib._sqlite import sqlite3
from toolcrib._tables import StoreTables, make_file
from toolcrib.calls import now

__all__ = ["TOOL_PIN_TABLES", "PinEntry", "PinKind", "ToolPins"]

T = TypeVar("T")

_BUSY_SECONDS: Final = 30.0
_BEGUN: Final = ""  # the name of the row which says that a server was used, and had this kind

PinKind: TypeAlias = Literal["tool", "resource", "template", "prompt", "instructions"]
"""What is kept of a server: tools and prompts by name, resources and templates by their URIs, its instructions."""

TOOL_PIN_TABLES: Final = StoreTables(
    "tool pins",
    (
        (
            "CREATE TABLE IF NOT EXISTS toolcrib_tool_pins (server TEXT NOT NULL, tool TEXT NOT NULL, "
            "definition TEXT NOT NULL, approver TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (server, tool))",
        ),
        (
            "CREATE TABLE toolcrib_server_pins (server TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, "
            "definition TEXT NOT NULL, approver TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (server, kind, name))",
            "INSERT INTO toolcrib_server_pins SELECT server, 'tool', tool, definition, approver, at "
            "FROM toolcrib_tool_pins",
            "DROP TABLE toolcrib_tool_pins",
        ),
    ),
)
"""The table of `ToolPins`."""


@dataclass(frozen=True, slots=True)
class PinEntry:
    """What is kept of one tool, resource, template or prompt, or of the instructions of a server.

    Attributes:
        approver: Who accepted it; `first use` where no person had to.
    """

    server: str
    kind: PinKind
    name: str
    approver: str
    at: datetime


class ToolPins:
    """What servers have, as people know it, in a SQLite file; it may be the file of a `SqliteApprovalStore`.

    Args:
        path: The file; it is made when missing.

    Raises:
        DatabaseError: A newer version of Toolcrib wrote it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        make_file(self.path, TOOL_PIN_TABLES)

    async def begin(
        self, server: str, found: Mapping[str, Mapping[str, Any]], kind: PinKind = "tool"
    ) -> dict[str, Any]:
        """Return what is kept of a server, by name; what is found is kept where nothing of its kind was before."""

        def work(connection: sqlite3.Connection) -> dict[str, Any]:
            query = "SELECT 1 FROM toolcrib_server_pins WHERE server = ? AND kind = ?"
            if connection.execute(query, (server, kind)).fetchone() is None:
                _write(connection, server, kind, _BEGUN, {}, "first use")
                for name, definition in found.items():
                    _write(connection, server, kind, name, definition, "first use")
            return _read(connection, server, kind)

        return await self._run(work)

    async def of(self, server: str, kind: PinKind = "tool") -> dict[str, Any]:
        """Return what is kept of a server, by name."""
        return await self._run(lambda connection: _read(connection, server, kind))

    async def keep(
        self, server: str, name: str, definition: Mapping[str, Any], approver: str, kind: PinKind = "tool"
    ) -> None:
        """Keep something as an approver has accepted it."""
        await self._run(lambda connection: _write(connection, server, kind, name, definition, approver))

    async def approver_of(
        self, server: str, name: str, definition: Mapping[str, Any], kind: PinKind = "tool"
    ) -> str | None:
        """Return who accepted something as it is here, or `first use`; None where it is not kept so."""
        query = (
            "SELECT definition, approver FROM toolcrib_server_pins "
            "WHERE server = ? AND kind = ? AND name = ? AND name != ?"
        )

        def work(connection: sqlite3.Connection) -> str | None:
            row = connection.execute(query, (server, kind, name, _BEGUN)).fetchone()
            return row[1] if row is not None and json.loads(row[0]) == definition else None

        return await self._run(work)

    async def servers(self) -> tuple[str, ...]:
        """Return the servers of which something is kept."""
        query = "SELECT DISTINCT server FROM toolcrib_server_pins ORDER BY server"
        return await self._run(lambda connection: tuple(row[0] for row in connection.execute(query)))

    async def entries(self) -> tuple[PinEntry, ...]:
        """Return what is kept of all servers."""
        query = (
            "SELECT server, kind, name, approver, at FROM toolcrib_server_pins WHERE name != ? "
            "ORDER BY server, kind, name"
        )

        def work(connection: sqlite3.Connection) -> tuple[PinEntry, ...]:
            rows = connection.execute(query, (_BEGUN,)).fetchall()
            return tuple(PinEntry(s, kind, name, by, datetime.fromisoformat(at)) for s, kind, name, by, at in rows)

        return await self._run(work)

    async def forget(self, server: str) -> bool:
        """Forget a server, which is kept as it is when it is used next; return whether it was known."""
        query = "DELETE FROM toolcrib_server_pins WHERE server = ?"
        return await self._run(lambda connection: connection.execute(query, (server,)).rowcount > 0)

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            with self._transaction() as connection:
                return work(connection)

        return await asyncio.to_thread(run)

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")  # closing without COMMIT takes all back
            yield connection
            connection.execute("COMMIT")


def _read(connection: sqlite3.Connection, server: str, kind: PinKind) -> dict[str, Any]:
    query = "SELECT name, definition FROM toolcrib_server_pins WHERE server = ? AND kind = ? AND name != ?"
    return {name: json.loads(text) for name, text in connection.execute(query, (server, kind, _BEGUN))}


def _write(
    connection: sqlite3.Connection,
    server: str,
    kind: PinKind,
    name: str,
    definition: Mapping[str, Any],
    approver: str,
) -> None:
    connection.execute(
        "INSERT INTO toolcrib_server_pins (server, kind, name, definition, approver, at) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (server, kind, name) "
        "DO UPDATE SET definition = excluded.definition, approver = excluded.approver, at = excluded.at",
        (server, kind, name, json.dumps(definition), approver, now().isoformat()),
    )

"""Pins in a SQLite file: the descriptions of a server's tools when it was first used, or last accepted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

from toolcrib.calls import now
from toolcrib.database import Execute, SqliteTables, StoreTables

T = TypeVar("T")

_BEGUN: Final = ""  # the name of the row which says that a server was used, and had this kind

PinKind: TypeAlias = Literal["tool", "resource", "template", "prompt", "instructions"]
"""Kinds of pin of a server: tools and prompts by name, resources and templates by their URIs, its instructions."""

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
    """The pin of one tool, resource, template or prompt, or of the instructions of a server.

    Attributes:
        by: The person who accepted it; `first use` where no person had to.
    """

    server: str
    kind: PinKind
    name: str
    by: str
    at: datetime


class ToolPins:
    """Pins of servers, as people accepted them, in a SQLite file; it may be the file of a `SqliteApprovalStore`.

    Args:
        path: The file; it is made when missing.

    Raises:
        DatabaseError: A newer version of Toolcrib wrote it.
    """

    def __init__(self, path: str | Path) -> None:
        self._tables = SqliteTables(path, TOOL_PIN_TABLES)
        self.path = self._tables.path

    async def begin(
        self, server: str, found: Mapping[str, Mapping[str, Any]], kind: PinKind = "tool"
    ) -> dict[str, Any]:
        """Return the pins of a server, by name; the first time, pin the definitions that were found."""

        def work(execute: Execute) -> dict[str, Any]:
            query = "SELECT 1 FROM toolcrib_server_pins WHERE server = ? AND kind = ?"
            if execute(query, (server, kind)).fetchone() is None:
                _write(execute, server, kind, _BEGUN, {}, "first use")
                for name, definition in found.items():
                    _write(execute, server, kind, name, definition, "first use")
            return _read(execute, server, kind)

        return await self._run(work, write=True)

    async def of(self, server: str, kind: PinKind = "tool") -> dict[str, Any]:
        """Return the pins of a server, by name."""
        return await self._run(lambda execute: _read(execute, server, kind))

    async def keep(
        self, server: str, name: str, definition: Mapping[str, Any], by: str, kind: PinKind = "tool"
    ) -> None:
        """Keep something as a person has accepted it."""
        await self._run(lambda execute: _write(execute, server, kind, name, definition, by), write=True)

    async def accepted_by(
        self, server: str, name: str, definition: Mapping[str, Any], kind: PinKind = "tool"
    ) -> str | None:
        """Return who accepted something as it is here, or `first use`; None where it is not kept so."""
        query = (
            "SELECT definition, approver FROM toolcrib_server_pins "
            "WHERE server = ? AND kind = ? AND name = ? AND name != ?"
        )

        def work(execute: Execute) -> str | None:
            row = execute(query, (server, kind, name, _BEGUN)).fetchone()
            return row[1] if row is not None and json.loads(row[0]) == definition else None

        return await self._run(work)

    async def servers(self) -> tuple[str, ...]:
        """Return the servers of which something is kept."""
        query = "SELECT DISTINCT server FROM toolcrib_server_pins ORDER BY server"
        return await self._run(lambda execute: tuple(row[0] for row in execute(query, ())))

    async def entries(self) -> tuple[PinEntry, ...]:
        """Return the pins of all servers."""
        query = (
            "SELECT server, kind, name, approver, at FROM toolcrib_server_pins WHERE name != ? "
            "ORDER BY server, kind, name"
        )

        def work(execute: Execute) -> tuple[PinEntry, ...]:
            rows = execute(query, (_BEGUN,)).fetchall()
            return tuple(PinEntry(s, kind, name, by, datetime.fromisoformat(at)) for s, kind, name, by, at in rows)

        return await self._run(work)

    async def forget(self, server: str) -> bool:
        """Forget a server, which is kept as it is when it is used next; return whether it was known."""
        query = "DELETE FROM toolcrib_server_pins WHERE server = ?"
        return await self._run(lambda execute: execute(query, (server,)).rowcount > 0, write=True)

    async def _run(self, work: Callable[[Execute], T], *, write: bool = False) -> T:
        def run() -> T:
            with self._tables.transaction(write=write) as execute:
                return work(execute)

        return await asyncio.to_thread(run)


def _read(execute: Execute, server: str, kind: PinKind) -> dict[str, Any]:
    query = "SELECT name, definition FROM toolcrib_server_pins WHERE server = ? AND kind = ? AND name != ?"
    return {name: json.loads(text) for name, text in execute(query, (server, kind, _BEGUN))}


def _write(
    execute: Execute,
    server: str,
    kind: PinKind,
    name: str,
    definition: Mapping[str, Any],
    by: str,
) -> None:
    execute(
        "INSERT INTO toolcrib_server_pins (server, kind, name, definition, approver, at) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (server, kind, name) "
        "DO UPDATE SET definition = excluded.definition, approver = excluded.approver, at = excluded.at",
        (server, kind, name, json.dumps(definition), by, now().isoformat()),
    )

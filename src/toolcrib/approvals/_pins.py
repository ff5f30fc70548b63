"""Pins of tools in a SQLite file: how a server described them when they were first used, or last accepted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from toolcrib._sqlite import sqlite3
from toolcrib._tables import StoreTables, make_file
from toolcrib.calls import now

__all__ = ["TOOL_PIN_TABLES", "ToolPins"]

T = TypeVar("T")

_BUSY_SECONDS: Final = 30.0
_SERVER: Final = ""  # the name of the row which says that a server was used
TOOL_PIN_TABLES: Final = StoreTables(
    "tool pins",
    (
        (
            "CREATE TABLE IF NOT EXISTS toolcrib_tool_pins (server TEXT NOT NULL, tool TEXT NOT NULL, "
            "definition TEXT NOT NULL, approver TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (server, tool))",
        ),
    ),
)
"""The table of `ToolPins`."""


class ToolPins:
    """Tools of servers as people know them, in a SQLite file; it may be the file of a `SqliteApprovalStore`.

    Args:
        path: The file; it is made when missing.

    Raises:
        DatabaseError: A newer version of Toolcrib wrote it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        make_file(self.path, TOOL_PIN_TABLES)

    async def begin(self, server: str, tools: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return what is kept of a server, by tool; when it is used for the first time, these tools are kept."""

        def work(connection: sqlite3.Connection) -> dict[str, Any]:
            known = connection.execute("SELECT 1 FROM toolcrib_tool_pins WHERE server = ?", (server,)).fetchone()
            if known is None:
                _write(connection, server, _SERVER, {}, "first use")
                for name, definition in tools.items():
                    _write(connection, server, name, definition, "first use")
            return _read(connection, server)

        return await self._run(work)

    async def of(self, server: str) -> dict[str, Any]:
        """Return what is kept of a server, by tool."""
        return await self._run(lambda connection: _read(connection, server))

    async def keep(self, server: str, tool: str, definition: Mapping[str, Any], approver: str) -> None:
        """Keep a tool as an approver has accepted it."""
        await self._run(lambda connection: _write(connection, server, tool, definition, approver))

    async def servers(self) -> tuple[str, ...]:
        """Return the servers of which something is kept."""
        query = "SELECT DISTINCT server FROM toolcrib_tool_pins ORDER BY server"
        return await self._run(lambda connection: tuple(row[0] for row in connection.execute(query)))

    async def forget(self, server: str) -> bool:
        """Forget a server, whose tools are kept as they are when it is used next; return whether it was known."""
        query = "DELETE FROM toolcrib_tool_pins WHERE server = ?"
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


def _read(connection: sqlite3.Connection, server: str) -> dict[str, Any]:
    query = "SELECT tool, definition FROM toolcrib_tool_pins WHERE server = ? AND tool != ?"
    return {tool: json.loads(text) for tool, text in connection.execute(query, (server, _SERVER))}


def _write(
    connection: sqlite3.Connection, server: str, tool: str, definition: Mapping[str, Any], approver: str
) -> None:
    connection.execute(
        "INSERT INTO toolcrib_tool_pins (server, tool, definition, approver, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT "
        "(server, tool) DO UPDATE SET definition = excluded.definition, approver = excluded.approver, at = excluded.at",
        (server, tool, json.dumps(definition), approver, now().isoformat()),
    )

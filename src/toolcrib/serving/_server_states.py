"""States of the servers behind gateways, in the file where their approvals are: the console shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from toolcrib.calls import now
from toolcrib.database import SqliteTables, StoreTables

_SILENT: Final = timedelta(seconds=30)  # after which a gateway that has said nothing is taken for gone
_FORGOTTEN: Final = timedelta(hours=1)  # after which it is not shown any more
SERVER_STATE_TABLES: Final = StoreTables(
    "server states",
    (
        (
            "CREATE TABLE IF NOT EXISTS toolcrib_server_states (gateway TEXT PRIMARY KEY, servers TEXT NOT NULL, "
            "seen_at TEXT NOT NULL)",
        ),
    ),
)
"""The table of `ServerStates`."""


class ServerStates:
    """The last state that each gateway reported of the servers behind it, in a SQLite file.

    Args:
        path: The file; it is made when missing.

    Raises:
        DatabaseError: A newer version of Toolcrib wrote it.
    """

    def __init__(self, path: str | Path) -> None:
        self._tables = SqliteTables(path, SERVER_STATE_TABLES)
        self.path = self._tables.path

    def keep(self, gateway: str, servers: Sequence[Mapping[str, Any]]) -> None:
        """Replace the states of a gateway's servers, and record that the gateway is alive."""
        self._write(
            "INSERT INTO toolcrib_server_states (gateway, servers, seen_at) VALUES (?, ?, ?) ON CONFLICT (gateway) "
            "DO UPDATE SET servers = excluded.servers, seen_at = excluded.seen_at",
            (gateway, json.dumps([dict(server) for server in servers]), now().isoformat()),
        )
        self._write("DELETE FROM toolcrib_server_states WHERE seen_at < ?", ((now() - _FORGOTTEN).isoformat(),))

    def forget(self, gateway: str) -> None:
        """Forget a gateway that ends."""
        self._write("DELETE FROM toolcrib_server_states WHERE gateway = ?", (gateway,))

    def read(self) -> list[dict[str, Any]]:
        """Return each gateway with its servers, by name; `silent` is one that may have been killed."""
        query = "SELECT gateway, servers, seen_at FROM toolcrib_server_states WHERE seen_at > ? ORDER BY gateway"
        with self._tables.transaction(write=False) as execute:
            rows = execute(query, ((now() - _FORGOTTEN).isoformat(),)).fetchall()
        return [
            {
                "gateway": gateway,
                "seen_at": seen_at,
                "silent": now() - datetime.fromisoformat(seen_at) > _SILENT,
                "servers": json.loads(servers),
            }
            for gateway, servers, seen_at in rows
        ]

    def _write(self, sql: str, values: Sequence[str]) -> None:
        with self._tables.transaction(write=True) as execute:
            execute(sql, values)

"""States of servers that gateways keep for the console."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from toolcrib.calls import now
from toolcrib.serving import ServerStates


def aged(path: Path, gateway: str, age: timedelta) -> None:
    """Have a gateway said nothing for a while."""
    with closing(sqlite3.connect(path)) as connection, connection:
        at = (now() - age).isoformat()
        connection.execute("UPDATE toolcrib_server_states SET seen_at = ? WHERE gateway = ?", (at, gateway))


def test_what_a_gateway_said_last_is_read_until_it_ends(tmp_path: Path) -> None:
    states = ServerStates(tmp_path / "toolcrib.db")
    states.keep("desk", [{"server": "files", "state": "up"}])
    states.keep("desk", [{"server": "files", "state": "down"}])
    states.keep("bench", [])

    found = ServerStates(tmp_path / "toolcrib.db").read()
    states.forget("desk")

    assert [one["gateway"] for one in found] == ["bench", "desk"]
    assert found[1]["servers"] == [{"server": "files", "state": "down"}]
    assert not found[1]["silent"]
    assert [one["gateway"] for one in states.read()] == ["bench"]


def test_a_gateway_that_was_killed_is_silent_and_then_forgotten(tmp_path: Path) -> None:
    states = ServerStates(tmp_path / "toolcrib.db")
    for gateway in ("dead", "long dead", "alive"):
        states.keep(gateway, [])
    aged(states.path, "dead", timedelta(minutes=1))
    aged(states.path, "long dead", timedelta(hours=2))

    found = {one["gateway"]: one["silent"] for one in states.read()}

    assert found == {"alive": False, "dead": True}

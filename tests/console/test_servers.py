"""Servers behind gateways: the page asks how they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.conftest import Console, serve_app
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.console import console_app
from toolcrib.record import sqlite_events
from toolcrib.serving import ServerStates


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Console]:
    path = tmp_path / "toolcrib.db"
    app = console_app(sqlite_events(path), SqliteApprovalStore(path), servers=ServerStates(path))
    with serve_app(app) as port:
        yield Console(port, path)


def test_the_servers_of_each_gateway_are_shown(watching: Console) -> None:
    ServerStates(watching.path).keep("desk", [{"server": "files", "state": "down", "reason": "it died"}])

    [gateway] = watching.get("/api/servers").json["gateways"]

    assert watching.get("/api/state").json["servers"]
    assert (gateway["gateway"], gateway["silent"]) == ("desk", False)
    assert gateway["servers"] == [{"server": "files", "state": "down", "reason": "it died"}]


def test_a_console_that_is_not_told_of_servers_has_none(console: Console) -> None:
    assert console.get("/api/servers").json == {"gateways": []}
    assert not console.get("/api/state").json["servers"]


def test_the_page_has_a_view_of_them(watching: Console) -> None:
    assert "gateways.js" in watching.get("/main.js").body.decode()
    assert watching.get("/gateways.js").headers["content-type"].startswith("text/javascript")

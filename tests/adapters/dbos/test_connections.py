"""Connections to Postgres: a peer that acknowledges nothing is given up, and none is waited for without end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from tests.adapters.dbos.durable import count, durable, engine_of
from tests.postgres import Postgres
from toolcrib.adapters.dbos import Client, PostgresApprovalStore, PostgresResultStore, PostgresSink
from toolcrib.turns import Turn

_SETTINGS = ("connect_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")


@pytest.fixture
def url(postgres: Postgres) -> str:
    """The URL of a database with nothing in it."""
    return postgres.url(f"network_{uuid4().hex[:8]}")


@pytest.fixture
def settings() -> Any:
    """The settings of each connection that a pool opens."""
    found: list[dict[str, str]] = []

    def connected(connection: Any, record: Any) -> None:
        found.append(connection.info.get_parameters())

    sa.event.listen(sa.pool.Pool, "connect", connected)
    yield found
    sa.event.remove(sa.pool.Pool, "connect", connected)


@pytest.mark.parametrize("kind", [Client, PostgresSink, PostgresApprovalStore, PostgresResultStore])
def test_a_peer_that_acknowledges_nothing_is_given_up(
    url: str, settings: list[dict[str, str]], kind: Callable[[str], Any]
) -> None:
    kind(url).close()

    assert settings
    assert {tuple(one[name] for name in _SETTINGS) for one in settings} == {("10", "10", "2", "3", "10000")}


def test_the_settings_of_a_url_take_the_place_of_ours(url: str, settings: list[dict[str, str]]) -> None:
    PostgresResultStore(f"{url}?tcp_user_timeout=60000&keepalives_idle=99").close()

    assert [settings[0][name] for name in _SETTINGS] == ["10", "99", "2", "3", "60000"]


async def test_every_connection_of_a_worker_has_them(
    url: str, settings: list[dict[str, str]], postgres: Postgres
) -> None:
    async with engine_of(url, agent := durable(count), record=True):
        await (await agent.put(Turn(count))).outcome()
        with postgres.connect() as connection:
            query = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
            (there,) = connection.execute(query, [sa.make_url(url).database]).fetchone() or (0,)

    assert {one["tcp_user_timeout"] for one in settings} == {"10000"}
    assert 0 < there <= len(settings)  # none was opened but by a pool

"""Listener to the notifications of a server: when it may be relied on, and when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.durable.crash_places import no_pooler, pooling
from tests.postgres import Postgres
from toolcrib.database import PostgresTables
from toolcrib.database._listener import Listener
from toolcrib.testing import FakeClock

CONNECTIONS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid != pg_backend_pid()"
LISTENERS = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN %' AND pid != pg_backend_pid()"


async def until(happened: Callable[[], bool]) -> None:
    """Return when something has happened in the listener's thread, or on the server."""
    while not happened():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


@asynccontextmanager
async def hearing(listener: Listener, postgres: Postgres) -> AsyncGenerator[tuple[list[str], Any]]:
    """Have a listener hear for the body, which gets what it has heard, and another connection."""
    heard: list[str] = []
    with listener.receiving(heard.append), postgres.connect("listener") as other:
        listener.start()
        await until(lambda: listener.hears)
        yield heard, other


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def listener(postgres: Postgres, clock: FakeClock) -> Iterator[Listener]:
    tables = PostgresTables(postgres.url("listener"))
    listener = tables.listener("news", clock=clock)
    yield listener
    listener.close()
    tables.close()


@pytest.fixture
def pooled(postgres: Postgres, mode: str) -> Iterator[Listener]:
    """A listener whose connections a pooler lends."""
    with pooling(postgres, "listener", mode) as pooler:
        tables = PostgresTables(postgres.url("listener").replace(f":{postgres.port}/", f":{pooler.port}/"))
        listener = tables.listener("news")
        yield listener
        listener.close()
        tables.close()


async def test_it_hears_what_is_notified_once_it_says_so(postgres: Postgres, listener: Listener) -> None:
    async with hearing(listener, postgres) as (heard, other):
        other.execute("NOTIFY news, 'late'")
        await until(lambda: "late" in heard)

    assert heard == ["", "late"]


async def test_it_is_not_relied_on_any_more_when_its_connection_is_lost_and_connects_again(
    postgres: Postgres, listener: Listener, clock: FakeClock
) -> None:
    async with hearing(listener, postgres) as (heard, other):
        other.execute(f"SELECT pg_terminate_backend(pid) FROM ({LISTENERS}) AS found")
        await until(lambda: not listener.is_running)
        listener.start()
        was_early, told = listener.is_running, [*heard]
        clock.advance(5)
        listener.start()
        await until(lambda: listener.hears)

    assert (was_early, told) == (False, ["", ""])


async def test_it_ends_when_nothing_has_waited_for_a_while(
    postgres: Postgres, listener: Listener, clock: FakeClock
) -> None:
    async with hearing(listener, postgres) as (heard, other):
        clock.advance(60)
        other.execute("NOTIFY news, 'late'")
        await until(lambda: "late" in heard)
    ran_meanwhile = listener.is_running

    clock.advance(60)
    await until(lambda: not listener.is_running)

    assert ran_meanwhile
    with postgres.connect("listener") as other:
        await until(lambda: other.execute(LISTENERS).fetchall() == [])


async def test_it_is_closed_with_its_connection_and_starts_again(postgres: Postgres, listener: Listener) -> None:
    listener.start()
    await until(lambda: listener.hears)

    listener.close()
    with postgres.connect("listener") as other:
        await until(lambda: other.execute(LISTENERS).fetchall() == [])  # the server hears of it a moment later
    listener.start()

    await until(lambda: listener.hears)


@pytest.mark.skipif(no_pooler() is not None, reason=str(no_pooler()))
@pytest.mark.parametrize("mode", ["session", "transaction"])
async def test_it_is_relied_on_behind_a_pooler_that_passes_notifications_on(
    postgres: Postgres, listener: Listener, pooled: Listener, mode: str
) -> None:
    async with hearing(listener, postgres) as (heard, other):
        pooled.start()
        await until(lambda: len(heard) == 2)  # what it notifies itself of
        other.execute("NOTIFY news, 'late'")
        await until(lambda: "late" in heard)
        if mode == "session":
            await until(lambda: pooled.hears)

    assert pooled.is_running
    assert pooled.hears == (mode == "session")


async def test_it_leaves_no_connection_where_it_is_closed_while_it_connects(postgres: Postgres) -> None:
    tables = PostgresTables(postgres.url("listener"))
    listener = tables.listener("news")

    listener.start()
    listener.close()
    tables.close()
    await until(lambda: not listener.is_running)

    with postgres.connect("listener") as other:
        await until(lambda: other.execute(CONNECTIONS).fetchall() == [])  # the server hears of it a moment later

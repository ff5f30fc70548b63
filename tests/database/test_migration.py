"""Migration of tables on a Postgres server: what uses them goes on, and one process at a time migrates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from uuid import uuid4

import psycopg
import pytest

from tests.postgres import Postgres
from toolcrib.database import Database, PostgresTables, StoreTables, TablesVersion, transaction
from toolcrib.record import POSTGRES_EVENT_TABLES

EVENTS, WORDS, _ = POSTGRES_EVENT_TABLES
MAKES_INDEX = "query ~ '(CREATE|DROP) INDEX' AND wait_event_type = 'Lock'"
WAITS_FOR_ITS_TURN = "query ~ 'pg_try_advisory_lock'"
ADD = "INSERT INTO toolcrib_activities VALUES ({}, '', '', NULL, '', '', 'done', NULL, 1, 1, '', NULL, NULL, 'oslo')"


@pytest.fixture
def name(postgres: Postgres) -> str:
    """The name of a database in which the indexes of calls and runs are those of an older version."""
    name = f"older_{uuid4().hex[:8]}"
    PostgresTables(postgres.url(name), EVENTS, StoreTables(WORDS.store, WORDS.steps[:-1])).close()
    return name


def versions(postgres: Postgres, name: str) -> list[TablesVersion]:
    engine = Database.named(postgres.url(name)).engine(pool=1)
    with transaction(engine) as execute:
        found = [tables.version(execute, "postgresql") for tables in POSTGRES_EVENT_TABLES]
    engine.dispose()
    return found


@asynccontextmanager
async def migrating(postgres: Postgres, name: str) -> AsyncGenerator[Callable[[], asyncio.Task[None]]]:
    """Yield what begins a migration, which is held up in the middle until the block ends by one who writes."""
    migrations: list[asyncio.Task[None]] = []

    def begin() -> asyncio.Task[None]:
        make = asyncio.to_thread(lambda: PostgresTables(postgres.url(name), *POSTGRES_EVENT_TABLES).close())
        migrations.append(asyncio.create_task(make))
        return migrations[-1]

    with postgres.connect(name) as writer:
        with writer.transaction():
            writer.execute(ADD.format("'first'"))
            yield begin
        async with asyncio.timeout(60):
            await asyncio.gather(*migrations)


async def seen(postgres: Postgres, name: str, condition: str) -> None:
    """Wait until the server has a session of a database of which this is true."""
    query = f"SELECT 1 FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid() AND {condition}"
    async with asyncio.timeout(60):
        with postgres.connect() as connection:
            while connection.execute(query.encode(), [name]).fetchone() is None:  # noqa: ASYNC110 -- the server's
                await asyncio.sleep(0.02)


async def test_events_are_written_while_the_index_of_words_is_made(postgres: Postgres, name: str) -> None:
    async with migrating(postgres, name) as begin:
        begin()
        await seen(postgres, name, MAKES_INDEX)
        with postgres.connect(name) as other:
            other.execute("SET lock_timeout = '10s'")
            other.execute(ADD.format("'second'"))

    assert {version.state for version in versions(postgres, name)} == {"current"}


async def test_one_process_migrates_and_holds_the_others_up_without_being_held_up(
    postgres: Postgres, name: str
) -> None:
    async with migrating(postgres, name) as begin:
        begin()
        await seen(postgres, name, MAKES_INDEX)
        begin()
        await seen(postgres, name, WAITS_FOR_ITS_TURN)

    assert {version.state for version in versions(postgres, name)} == {"current"}


def test_what_a_migration_left_that_died_is_made_again(postgres: Postgres) -> None:
    name = f"older_{uuid4().hex[:8]}"
    PostgresTables(postgres.url(name), StoreTables(EVENTS.store, EVENTS.steps[:-1])).close()
    with postgres.connect(name) as connection:
        connection.execute(ADD.format("'first'"))
        connection.execute(ADD.format("'second'"))
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute(
                "CREATE UNIQUE INDEX CONCURRENTLY toolcrib_activities_unfinished ON toolcrib_activities (words)"
            )

    PostgresTables(postgres.url(name), *POSTGRES_EVENT_TABLES).close()

    with postgres.connect(name) as connection:
        (definition, is_valid) = connection.execute(
            "SELECT pg_get_indexdef(indexrelid), indisvalid FROM pg_index "
            "WHERE indexrelid = 'toolcrib_activities_unfinished'::regclass"
        ).fetchone() or ("", False)
    assert is_valid
    assert "UNIQUE" not in definition
    assert {version.state for version in versions(postgres, name)} == {"current"}

"""Credential stores: rows that are used once, changed by one at a time, and read by nobody without the key."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from tests.credentials.authority import held_in
from tests.postgres import Postgres
from toolcrib.credentials import (
    ApiKeys,
    CredentialKeys,
    CredentialStore,
    MemoryCredentialStore,
    PostgresCredentialStore,
    SqliteCredentialStore,
    new_key,
)
from toolcrib.errors import CredentialKeyError

SERVER = "https://tools.example/mcp"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CredentialStore]:
    keys = CredentialKeys([new_key()])
    match request.param:
        case "memory":
            yield MemoryCredentialStore()
        case "sqlite":
            yield SqliteCredentialStore(tmp_path / "c.db", keys)
        case _:
            pytest.importorskip("psycopg")
            server: Postgres = request.getfixturevalue("postgres")
            with closing(PostgresCredentialStore(server.url(f"credentials_{uuid4().hex[:8]}"), keys)) as kept:
                yield kept


async def test_row_is_taken_once(store: CredentialStore) -> None:
    await store.write("state", "", "x", {"verifier": "v"})

    taken = await asyncio.gather(*(store.take("state", "", "x") for _ in range(10)))

    assert [row.value["verifier"] for row in taken if row is not None] == ["v"]


async def test_row_is_replaced_by_who_knows_its_version(store: CredentialStore) -> None:
    await store.write("token", "ann", SERVER, {"n": 1})
    row = await store.read("token", "ann", SERVER)
    assert row is not None

    swapped = await asyncio.gather(*(store.swap("token", "ann", SERVER, row.version, {"n": 2}) for _ in range(10)))
    removed = await store.swap("token", "ann", SERVER, row.version, None)

    assert swapped.count(True) == 1
    assert not removed


async def test_claim_is_of_one_until_the_row_changes(store: CredentialStore) -> None:
    await store.write("token", "ann", SERVER, {"n": 1})
    row = await store.read("token", "ann", SERVER)
    assert row is not None

    claims = await asyncio.gather(*(store.claim("token", "ann", SERVER, row.version, 60) for _ in range(10)))
    await store.unclaim("token", "ann", SERVER)

    assert claims.count(True) == 1
    assert await store.claim("token", "ann", SERVER, row.version, 60)
    assert not await store.claim("token", "ann", SERVER, "another", 60)


async def test_row_that_is_too_old_is_none_and_is_pruned(store: CredentialStore) -> None:
    await store.write("state", "", "x", {"verifier": "v"}, seconds=-1.0)
    await store.write("state", "", "y", {"verifier": "v"}, seconds=60.0)

    assert await store.read("state", "", "x") is None
    assert await store.take("state", "", "x") is None
    assert await store.prune() == 0  # it was taken
    await store.write("state", "", "x", {"verifier": "v"}, seconds=-1.0)
    assert await store.prune() == 1
    assert await store.read("state", "", "y") is not None


async def test_list_has_no_secrets(store: CredentialStore) -> None:
    keys = ApiKeys(store)
    await keys.add("ann", SERVER, "key-of-ann")
    await keys.add("bob", SERVER, "key-of-bob")

    found = await store.credentials()

    assert [(one.principal, one.server, one.kind) for one in found] == [("ann", SERVER, "key"), ("bob", SERVER, "key")]
    assert len(await store.credentials("bob")) == 1
    assert "key-of" not in repr(found) + repr(await store.read("key", "ann", SERVER)) + repr(keys) + repr(store)


async def test_all_rows_are_encrypted_anew(tmp_path: Path) -> None:
    old, new = new_key(), new_key()
    path = tmp_path / "c.db"
    before = SqliteCredentialStore(path, CredentialKeys([old]))
    await ApiKeys(before).add("ann", SERVER, "key-of-ann")

    changed = await before.reseal(CredentialKeys([new, old]))

    row = await SqliteCredentialStore(path, CredentialKeys([new])).read("key", "ann", SERVER)
    assert changed == 1
    assert row is not None
    assert row.value["key"] == "key-of-ann"
    with pytest.raises(CredentialKeyError, match="another key"):
        await SqliteCredentialStore(path, CredentialKeys([old])).read("key", "ann", SERVER)


async def test_stolen_file_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    store = SqliteCredentialStore(path, CredentialKeys([new_key()]))
    await ApiKeys(store).add("ann", SERVER, "key-of-ann")
    await ApiKeys(store).forget("ann", SERVER)
    await ApiKeys(store).add("bob", SERVER, "key-of-bob")

    held = held_in(tmp_path)

    assert b"key-of" not in held
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(CredentialKeyError, match="another key"):
        await SqliteCredentialStore(path, CredentialKeys([new_key()])).read("key", "bob", SERVER)


async def test_row_that_was_given_to_another_principal_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    store = SqliteCredentialStore(path, CredentialKeys([new_key()]))
    await ApiKeys(store).add("ann", SERVER, "key-of-ann")
    with sqlite3.connect(path) as connection:  # by who can write the file, and has no key
        connection.execute("UPDATE toolcrib_credentials SET principal = 'eve'")
    connection.close()

    with pytest.raises(CredentialKeyError, match="moved"):
        await store.read("key", "eve", SERVER)


def test_file_that_was_there_before_is_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    path.touch(0o644)
    path.chmod(0o644)

    SqliteCredentialStore(path, CredentialKeys([new_key()]))

    assert path.stat().st_mode & 0o777 == 0o600

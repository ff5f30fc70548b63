"""What every store of saved programs promises: in memory, in a file, on a Postgres server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from toolcrib.code import (
    PROGRAM_TABLES,
    MemoryProgramStore,
    PostgresProgramStore,
    ProgramStore,
    SavedProgram,
    SqliteProgramStore,
)
from toolcrib.database import SqliteTables


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ProgramStore]:
    if request.param == "memory":
        yield MemoryProgramStore()
    elif request.param == "sqlite":
        yield SqliteProgramStore(tmp_path / "programs.db")
    else:
        pytest.importorskip("psycopg")
        opened = PostgresProgramStore(request.getfixturevalue("postgres").url(f"programs_{uuid4().hex[:8]}"))
        yield opened
        opened.close()


def program(name: str, code: str = "1") -> SavedProgram:
    return SavedProgram(name, f"# inputs: none\n{code}")


async def test_a_program_is_kept_listed_and_removed(store: ProgramStore) -> None:
    two, one = program("two"), program("one")
    added = [await store.add(two), await store.add(one)]

    found = (await store.get("one"), await store.list())
    removed = [await store.remove("one"), await store.remove("one")]

    assert added == [True, True]
    assert found == (one, (one, two))
    assert (removed, await store.get("one")) == ([True, False], None)


async def test_a_name_is_replaced_only_when_it_is_said(store: ProgramStore) -> None:
    first, second, third = (program("one", code) for code in ("1", "2", "3"))

    added = [await store.add(first), await store.add(second), await store.add(third, replace=True)]

    assert added == [True, False, True]
    assert await store.get("one") == third


async def test_of_many_at_once_one_is_kept(store: ProgramStore) -> None:
    added = await asyncio.gather(*(store.add(program("one", str(n))) for n in range(8)))

    assert sorted(added) == [False] * 7 + [True]


async def test_a_file_is_read_by_another_store(tmp_path: Path) -> None:
    path = tmp_path / "programs.db"
    await SqliteProgramStore(path).add(program("one"))

    assert [each.name for each in await SqliteProgramStore(path).list()] == ["one"]


async def test_what_is_no_program_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "programs.db"
    store = SqliteProgramStore(path)
    with SqliteTables(path, PROGRAM_TABLES).transaction(write=True) as execute:
        execute("INSERT INTO toolcrib_saved_programs VALUES (?, ?)", ("one", '{"name": "one"}'))

    with pytest.raises(ValueError, match="the field `code` is missing"):
        await store.get("one")

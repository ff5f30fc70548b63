"""One behaviour of every journal: in memory, in a file, in a database, of a claim, and of a durable program."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, closing
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.postgres import Postgres
from toolcrib.approvals import LedgerStore, MemoryApprovalStore, PostgresApprovalStore, SqliteApprovalStore
from toolcrib.calls import Grant
from toolcrib.code import FileJournal, Journal, JournalEntry, SqlJournal, Toolkit, paused_program_in
from toolcrib.code._claim import ClaimJournal
from toolcrib.database import JOURNAL_LINES, JOURNAL_TABLES, MemoryTables, PostgresTables, SqliteTables, Tables
from toolcrib.errors import PausedProgramError
from toolcrib.sandbox import Raised, Value
from toolcrib.testing import FakeSandbox
from toolcrib.tools import ez_tool

Journals = Callable[[str], Awaitable[Journal]]
"""Opens the journal of a name once more, as another process does that goes on with it."""


async def in_file(stack: AsyncExitStack, place: Path | str) -> Journals:
    async def journal(name: str) -> Journal:
        path = Path(place) / name
        path.touch()
        return stack.enter_context(FileJournal(path))

    return journal


async def in_tables(stack: AsyncExitStack, tables: Tables) -> Journals:
    stack.enter_context(closing(tables))

    async def journal(name: str) -> Journal:
        return SqlJournal(tables, name)

    return journal


async def of_claims(stack: AsyncExitStack, store: LedgerStore) -> Journals:
    async def journal(name: str) -> Journal:
        await store.release(f"program:{name}", ended=False)
        await store.claim(f"program:{name}")
        stack.push_async_callback(store.release, f"program:{name}", ended=False)
        return ClaimJournal(store, f"program:{name}", name)

    return journal


async def of_programs(stack: AsyncExitStack, database: str) -> Journals:
    pytest.importorskip("dbos")
    client = await stack.enter_async_context(import_module("toolcrib.adapters.dbos").Client(database))
    programs = import_module("toolcrib.adapters.dbos._program_journal")

    async def journal(name: str) -> Journal:
        return programs.ProgramJournal(client, name, name, None)

    return journal


BACKENDS = (
    *("file", "memory", "sqlite", "postgres"),
    *("claim in memory", "claim in sqlite", "claim in postgres", "program in sqlite", "program in postgres"),
)


@pytest.fixture(params=BACKENDS)
async def journals(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Journals]:
    def url() -> str:
        pytest.importorskip("psycopg")
        server: Postgres = request.getfixturevalue("postgres")
        return server.url(f"journals_{uuid4().hex[:8]}")

    async with AsyncExitStack() as stack:
        match request.param:
            case "file":
                yield await in_file(stack, tmp_path)
            case "memory":
                yield await in_tables(stack, MemoryTables(JOURNAL_TABLES))
            case "sqlite":
                yield await in_tables(stack, SqliteTables(tmp_path / "a.db", JOURNAL_TABLES))
            case "postgres":
                yield await in_tables(stack, PostgresTables(url(), JOURNAL_TABLES))
            case "claim in memory":
                yield await of_claims(stack, MemoryApprovalStore())
            case "claim in sqlite":
                yield await of_claims(stack, SqliteApprovalStore(tmp_path / "a.db"))
            case "claim in postgres":
                yield await of_claims(stack, stack.enter_context(closing(PostgresApprovalStore(url()))))
            case "program in sqlite":
                yield await of_programs(stack, str(tmp_path / "a.db"))
            case _:
                yield await of_programs(stack, url())


def brief(entries: Any) -> list[tuple[str, str]]:
    return [(entry.kind, entry.call_id) for entry in entries]


async def test_each_kind_of_entry_is_read_as_it_was_written(journals: Journals) -> None:
    grant = Grant("pay", "ann", "c1", "digest", "ask_1")
    written = [
        JournalEntry("state", fields={"state": {"order": [[1]]}}),
        JournalEntry("started", "c1", {"name": "pay", "digest": "d", "summary": {"é": "\n"}, "grant": grant}),
        JournalEntry("value", "c1", {"value": [1, {"a": None}]}),
        JournalEntry("retried", "c1", {"failed": "it raised"}),
        JournalEntry("ended", "c1", {"reply": Value({"$table": 0}, (b"\0table",)), "summary": {}}),
        JournalEntry("ended", "c2", {"reply": Raised("KeyError", "x"), "summary": {}}),
        JournalEntry("cancelled", "c3"),
    ]
    journal = await journals("one")
    await journal.read()
    for entry in written:
        journal.append(entry)
    await journal.flush()

    found = await (await journals("one")).read()

    assert brief(found) == brief(written)
    assert all(before.fields.items() <= after.fields.items() for before, after in zip(written, found, strict=True))


async def test_entries_of_the_next_process_come_after_those_of_the_one_before(journals: Journals) -> None:
    for number in range(3):
        journal = await journals("one")
        before = await journal.read()
        journal.append(JournalEntry("started", f"c{number}"))
        await journal.flush()
        journal.append(JournalEntry("cancelled", f"c{number}"))
        await journal.flush()

        assert len(before) == 2 * number

    found = await (await journals("one")).read()
    assert brief(found) == [(kind, f"c{number}") for number in range(3) for kind in ("started", "cancelled")]


async def test_each_journal_has_its_own_entries(journals: Journals) -> None:
    one, other = await journals("one"), await journals("other")
    one.append(JournalEntry("started", "c1"))
    await one.flush()
    other.append(JournalEntry("started", "c2"))
    await other.flush()

    assert brief(await (await journals("one")).read()) == [("started", "c1")]
    assert brief(await (await journals("other")).read()) == [("started", "c2")]


async def test_entries_of_calls_at_once_are_in_the_order_in_which_they_came(journals: Journals) -> None:
    journal = await journals("one")

    async def call(number: int) -> None:
        journal.append(JournalEntry("started", f"c{number}"))
        await journal.flush()
        order.append(number)
        journal.append(JournalEntry("cancelled", f"c{number}"))
        await journal.flush()

    order: list[int] = []
    await asyncio.gather(*map(call, range(40)))
    found = await (await journals("one")).read()

    assert [entry.call_id for entry in found if entry.kind == "started"] == [f"c{number}" for number in range(40)]
    assert [entry.call_id for entry in found if entry.kind == "cancelled"] == [f"c{number}" for number in order]


async def test_a_program_goes_on_from_any_entry_at_which_it_was_cut(journals: Journals) -> None:
    done: list[str] = []

    @ez_tool
    async def find(city: str) -> int:
        done.append(f"find {city}")
        return 3

    @ez_tool
    async def pay(sum: int) -> str:
        done.append(f"pay {sum}")
        return "paid"

    kit = Toolkit([find, pay], sandbox=FakeSandbox(("find", {"city": "Oslo"}), ("pay", {"sum": 3})))
    journal = await journals("whole")
    await kit.execute_async("", journal=journal)
    entries = [entry for entry in await (await journals("whole")).read() if entry.kind != "done"]

    results: list[Any] = []
    for cut in range(1, len(entries) + 1):
        done.clear()
        paused = paused_program_in(entries[:cut])
        assert paused is not None
        result = await kit.resume_async(paused, journal=await journals(f"cut {cut}"))
        doubtful = [call.tool for call in result.suspended_calls if call.in_doubt]
        results.append((entries[cut - 1].kind, result.return_value, doubtful, list(done)))

    assert results == [
        ("program", "paid", [], ["find Oslo", "pay 3"]),
        ("started", None, ["find"], []),
        ("ended", "paid", [], ["pay 3"]),
        ("started", None, ["pay"], []),
        ("ended", "paid", [], []),
    ]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    match request.param:
        case "memory":
            return MemoryTables(JOURNAL_TABLES)
        case "sqlite":
            return SqliteTables(tmp_path / "a.db", JOURNAL_TABLES)
        case _:
            pytest.importorskip("psycopg")
            server: Postgres = request.getfixturevalue("postgres")
            return PostgresTables(server.url(f"journals_{uuid4().hex[:8]}"), JOURNAL_TABLES)


async def test_of_two_writers_of_a_journal_in_a_database_one_writes(tables: Tables) -> None:
    with closing(tables):
        one, other = SqlJournal(tables, "one"), SqlJournal(tables, "one")
        one.append(JournalEntry("started", "c1"))
        await one.flush()
        for call in ("c2", "c3"):
            other.append(JournalEntry("started", call))

        with pytest.raises(PausedProgramError, match="another process writes its journal"):
            await other.flush()
        with pytest.raises(PausedProgramError, match="another process writes its journal"):
            other.append(JournalEntry("started", "c4"))
        await other.drain()
        assert brief(await SqlJournal(tables, "one").read()) == [("started", "c1")]


async def test_lines_whose_answer_was_lost_are_written_once(tables: Tables) -> None:
    lines = [f'"{number}"' for number in range(450)]  # of more than one statement
    with closing(tables):
        with tables.transaction(write=True) as execute:
            first = JOURNAL_LINES.append(execute, "one", lines, 0)
        with tables.transaction(write=True) as execute:
            again = JOURNAL_LINES.append(execute, "one", lines, 0)
            changed = JOURNAL_LINES.append(execute, "one", [*lines[:449], "other"], 0)
            later = JOURNAL_LINES.append(execute, "one", ['"last"'])

            assert (first, again, changed, later) == (True, True, False, True)
            assert JOURNAL_LINES.read(execute, "one") == [*lines, '"last"']

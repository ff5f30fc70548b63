"""Result stores of every kind: whose a handle is, how long it holds, and how much there is room for."""

from __future__ import annotations

import multiprocessing
from collections.abc import Generator, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from tests.postgres import Postgres
from tests.results.conftest import OpenStore
from toolcrib.database import Execute, MemoryTables
from toolcrib.errors import DatabaseError
from toolcrib.results import MemoryResultStore, Owner, PostgresResultStore, ResultStore, SqliteResultStore, StoredResult
from toolcrib.results._pieces import Piece, pieces_of
from toolcrib.results._read import FoundText, ResultQuery, read
from toolcrib.results._store import RESULT_TABLES


def keep(store: ResultStore, value: object, principal: str | None = "ann", call_id: str = "call_1") -> StoredResult:
    """Keep a value, and return what was kept."""
    made = store.keep(pieces_of(value, "find", []), Owner(principal, "find", call_id))
    assert made is not None
    return made


def text_of(store: ResultStore, handle: str) -> str:
    return "".join(found.piece.text for found in store.pieces(handle))


def test_a_result_is_found_by_its_principal_alone(open_store: OpenStore) -> None:
    store = open_store()

    made = keep(store, "x" * 500_000)

    assert store.find(made.handle, "ann") == made
    assert text_of(store, made.handle) == "x" * 500_000
    assert [store.find(made.handle, other) for other in ("bob", None, "")] == [None, None, None]


def test_no_principal_is_none_of_any_name(open_store: OpenStore) -> None:
    store = open_store()

    made = keep(store, "x", None)

    assert store.find(made.handle, None) == made
    assert store.find(made.handle, "null") is None


def test_handles_cannot_be_guessed() -> None:
    store = MemoryResultStore()

    handles = {keep(store, "x", call_id=f"call_{number}").handle for number in range(100)}

    assert len(handles) == 100
    assert {len(handle) for handle in handles} == {20}  # 96 bits
    assert len({handle[4:8] for handle in handles}) > 90


def test_the_same_result_of_the_same_call_has_one_handle(open_store: OpenStore) -> None:
    store = open_store()

    first, again = keep(store, ["a"]), keep(store, ["a"])
    others = [keep(store, ["b"]), keep(store, ["a"], call_id="call_2"), keep(store, ["a"], "bob")]

    assert first == again
    assert len({first.handle, *(other.handle for other in others)}) == 4
    assert text_of(store, first.handle) == '["a"]'


def test_a_result_that_has_expired_is_not_found(open_store: OpenStore) -> None:
    store = open_store(expires=timedelta(microseconds=1))

    made = keep(store, "x")

    assert store.find(made.handle, "ann") is None


async def test_what_has_expired_is_removed(open_store: OpenStore) -> None:
    store, lasting = open_store(expires=timedelta(microseconds=1)), open_store()
    new, old = keep(lasting, "y"), keep(store, "x" * 1_000)

    assert await store.prune() == 1

    assert text_of(store, old.handle) == ""
    assert text_of(lasting, new.handle) == "y"
    assert await store.prune() == 0


def test_the_oldest_of_a_principal_go_first(open_store: OpenStore) -> None:
    store = open_store(max_principal_bytes=2_500)

    made = [keep(store, "x" * 1_000, call_id=f"call_{number}") for number in range(3)]
    others = keep(store, "x" * 1_000, "bob")

    assert [store.find(one.handle, "ann") for one in made] == [None, *made[1:]]
    assert store.find(others.handle, "bob") == others


def test_the_oldest_of_all_go_first(open_store: OpenStore) -> None:
    store = open_store(max_bytes=2_500)

    made = [keep(store, "x" * 1_000, name) for name in ("ann", "bob", "eve")]

    found = [store.find(one.handle, name) for one, name in zip(made, ("ann", "bob", "eve"), strict=True)]
    assert found == [None, *made[1:]]


def test_a_result_that_is_longer_than_there_is_room_for_is_not_kept(open_store: OpenStore) -> None:
    store = open_store(max_principal_bytes=2_500)
    first = keep(store, "x" * 1_000)

    refused = store.keep(pieces_of("x" * 3_000, "find", []), Owner("ann", "find", "call_2"))

    assert refused is None
    assert store.find(first.handle, "ann") == first


def test_a_result_is_found_only_when_all_of_it_is_there(open_store: OpenStore) -> None:
    store = open_store()
    seen: list[str] = []

    def pieces() -> Iterator[Piece]:
        yield Piece("x" * 5_000_000)
        with store._transaction(write=False) as execute:  # pyright: ignore[reportPrivateUsage] -- no reader is told the handle yet
            seen.extend(handle for (handle,) in execute("SELECT handle FROM toolcrib_results", ()).fetchall())
        assert store.find(seen[0], "ann") is None
        yield Piece("y")

    made = store.keep(pieces(), Owner("ann", "find", "call_1"))

    assert made is not None
    assert seen == [made.handle]


class ProcessEndedError(BaseException):
    """The end of a process, after which it writes nothing."""


class EndingTables(MemoryTables):
    """Tables of a process that ends before it begins a transaction more than `left`."""

    left = 100

    @contextmanager
    def transaction(self, *, write: bool) -> Generator[Execute]:
        """Begin a transaction."""
        self.left -= 1
        if self.left < 0:
            raise ProcessEndedError
        with super().transaction(write=write) as execute:
            yield execute


@pytest.mark.parametrize("transactions", range(1, 6))
def test_a_process_that_ends_while_another_one_takes_its_room_leaves_no_pieces(transactions: int) -> None:
    tables = EndingTables(RESULT_TABLES)
    store = ResultStore(tables, max_bytes=12_000_000)

    def pieces() -> Iterator[Piece]:
        yield from pieces_of("x" * 5_000_000, "find", [])
        before, tables.left = tables.left, 100  # of the other process
        keep(store, "y" * 11_000_000, call_id="call_2")
        tables.left = before
        yield from pieces_of("z" * 5_000_000, "find", [])

    tables.left = transactions
    with suppress(ProcessEndedError):
        assert store.keep(pieces(), Owner("ann", "find", "call_1")) is None

    tables.left = 1
    with tables.transaction(write=False) as execute:
        query = "SELECT handle FROM toolcrib_result_pieces EXCEPT SELECT handle FROM toolcrib_results"
        assert execute(query, ()).fetchall() == []


def test_a_result_that_could_not_be_written_leaves_nothing(open_store: OpenStore) -> None:
    store = open_store()

    def broken() -> Iterator[Piece]:
        yield Piece("x" * 5_000_000)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        store.keep(broken(), Owner("ann", "find", "call_1"))

    with store._transaction(write=False) as execute:  # pyright: ignore[reportPrivateUsage] -- of what has no handle
        assert execute("SELECT COUNT(*) FROM toolcrib_result_pieces", ()).fetchone()[0] == 0
        assert execute("SELECT COUNT(*) FROM toolcrib_results", ()).fetchone()[0] == 0


@pytest.mark.parametrize("text", ["a\0b", "half of a pair \ud800", "Grüße 🎉"])
def test_any_text_comes_back(open_store: OpenStore, text: str) -> None:
    store = open_store()

    made = keep(store, {text: [text]})

    assert text_of(store, made.handle) == "".join(piece.text for piece in pieces_of({text: [text]}, "find", []))


def _read_elsewhere(kind: str, name: str, handle: str) -> str | None:
    store = SqliteResultStore(name) if kind == "sqlite" else PostgresResultStore(name)
    stored = store.find(handle, "ann")
    found = None if stored is None else read(store, stored, ResultQuery(offset=2_000_000, limit=5))
    if isinstance(store, PostgresResultStore):
        store.close()
    return found.text if isinstance(found, FoundText) else None


@pytest.mark.processes
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_another_process_reads_it(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    store: ResultStore
    if kind == "sqlite":
        name = str(tmp_path / "results.db")
        store = SqliteResultStore(name)
    else:
        server: Postgres = request.getfixturevalue("postgres")
        name = server.url("results_elsewhere")
        store = PostgresResultStore(name)
    made = keep(store, "x" * 2_000_000 + "y" * 2_000_000)
    if isinstance(store, PostgresResultStore):
        store.close()

    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
        found = other.submit(_read_elsewhere, kind, name, made.handle).result(60)

    assert found == "yyyyy"


def test_only_its_owner_may_read_the_file(tmp_path: Path) -> None:
    SqliteResultStore(tmp_path / "results.db")

    assert (tmp_path / "results.db").stat().st_mode & 0o077 == 0


def test_a_file_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"results have to be kept in a file. .* use the Memory store"):
        SqliteResultStore(":memory:")


@pytest.mark.parametrize("name", ["max_result_chars", "max_bytes", "max_principal_bytes"])
def test_a_bound_is_at_least_one(name: str) -> None:
    with pytest.raises(ValueError, match=f"a result store: {name} must be at least 1"):
        MemoryResultStore(**{name: 0})


def test_a_result_is_kept_for_some_time() -> None:
    with pytest.raises(ValueError, match="expires"):
        MemoryResultStore(expires=timedelta(0))


def test_a_time_to_keep_results_is_a_timedelta() -> None:
    with pytest.raises(
        TypeError, match=r"a result store: expires must be a timedelta, as timedelta\(hours=1\), and is 5"
    ):
        MemoryResultStore(expires=5)  # type: ignore[arg-type]


def test_a_folder_is_no_file_for_results(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"it is a folder. Name a file in it"):
        SqliteResultStore(tmp_path)

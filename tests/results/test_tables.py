"""Tables that are kept: as their columns, in every store, and read as their rows would be."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.results.conftest import OpenStore
from toolcrib._arrow import table_rows
from toolcrib.calls import Completed, ToolCall, jsonable
from toolcrib.code import Toolkit
from toolcrib.pipeline import Pipeline, Run
from toolcrib.results import MemoryResultStore, Owner, ResultStore, SqliteResultStore, StoredResult
from toolcrib.results._pieces import pieces_of
from toolcrib.results._read import FoundRows, ResultQuery, read
from toolcrib.sandbox import ProcessSandbox
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

COUNT = 8_000  # of which a table has three pieces, its rows seventeen
COLUMNS: dict[str, Any] = {
    "id": range(COUNT),
    "city": ["Oslo", "Rome", None, "Łódź"] * (COUNT // 4),
    "price": [0.5, float("nan"), 1e300, float("inf")] * (COUNT // 4),
    "paid": [True, False] * (COUNT // 2),
}
FRAME = pd.DataFrame(COLUMNS).assign(
    at=pd.date_range("2026-01-01", periods=COUNT, freq="s"),
    zone=pd.date_range("2026-01-01", periods=COUNT, freq="ms", tz="UTC"),
    kind=pd.Categorical(["a", "b"] * (COUNT // 2)),
    day=[date(2026, 1, 2), None] * (COUNT // 2),
    cost=[Decimal("1.50"), Decimal("2.00")] * (COUNT // 2),
    took=pd.to_timedelta(range(COUNT), unit="s"),
    whole=pd.array([1, None] * (COUNT // 2), dtype="Int64"),
)
TABLES = {
    "pandas": FRAME,
    "named rows": pd.DataFrame({"n": range(COUNT)}, index=pd.Index([f"row {n}" for n in range(COUNT)], name="name")),
    "numbers as names": pd.DataFrame(np.zeros((COUNT, 2))),
    "pyarrow": pa.table({"n": range(COUNT), "x": [0.5, float("nan")] * (COUNT // 2), "no": pa.nulls(COUNT)}),
    "slices": pa.table({"s": ["x" * 3_000_000, *(["y"] * 5_000), *(["z" * 2_000] * 5_000)]}),
}
QUERIES: list[dict[str, Any]] = [
    {},
    {"offset": 4_345, "limit": 7},
    {"offset": COUNT - 3},
    {"search": "ŁÓDŹ", "limit": 3},
    {"search": "02:13:1", "path": "$[7990:]"},
    {"search": "rome", "path": "$[*].city", "offset": COUNT // 4 - 10},
    {"path": "$[*].at", "limit": 5},
    {"path": "$[*].city", "offset": COUNT - 5},
    {"path": "$[100:103]"},
    {"path": "$[-2:].id"},
]


def keep(store: ResultStore, value: object) -> StoredResult:
    made = store.keep(pieces_of(value, "find", []), Owner("ann", "find", "call_1"))
    assert made is not None
    return made


def rows(store: ResultStore, stored: StoredResult, **query: Any) -> list[Any]:
    found = read(store, stored, ResultQuery(**query))
    assert isinstance(found, FoundRows)
    return found.rows


@pytest.mark.parametrize("title", TABLES)
def test_a_table_is_kept_as_columns_and_read_as_its_rows(title: str) -> None:
    store, table = MemoryResultStore(max_principal_bytes=100_000_000), TABLES[title]
    expected = jsonable(table_rows(table))

    made = keep(store, table)

    assert made.form == "table"
    assert rows(store, made, limit=len(expected), most_chars=10**9) == expected
    assert made.shape.startswith(f"list of {len(expected):,} rows")


@pytest.fixture(scope="module")
def kept_both_ways() -> list[tuple[ResultStore, StoredResult]]:
    """A table kept as its columns, and as its rows."""
    stores = MemoryResultStore(), MemoryResultStore()
    return [
        (store, keep(store, value)) for store, value in zip(stores, (FRAME, jsonable(table_rows(FRAME))), strict=True)
    ]


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_what_is_asked_of_a_table_is_what_its_rows_answer(
    kept_both_ways: list[tuple[ResultStore, StoredResult]], query: dict[str, Any]
) -> None:
    (store, table), (other, listed) = kept_both_ways

    found = read(store, table, ResultQuery(**query))

    assert found == read(other, listed, ResultQuery(**query))
    assert isinstance(found, FoundRows)
    assert found.rows
    assert table.shape == listed.shape
    assert table.counts == listed.counts


def test_a_table_comes_back_from_every_store(open_store: OpenStore) -> None:
    store = open_store()

    made = keep(store, FRAME)

    assert store.find(made.handle, "ann") == made
    assert rows(store, made, path="$[-2:].zone") == ["2026-01-01T00:00:07.998000Z", "2026-01-01T00:00:07.999000Z"]


def test_a_table_is_there_after_a_restart(tmp_path: Path) -> None:
    made = keep(SqliteResultStore(tmp_path / "results.db"), FRAME)

    again = SqliteResultStore(tmp_path / "results.db")

    found = again.find(made.handle, "ann")
    assert found == made
    assert rows(again, found, offset=COUNT - 1, path="$[*].took") == ["PT2H13M19S"]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [{"b": 1}, [2]] * 50}),
        pd.DataFrame([[1, 2]] * 60, columns=["a", "a"]),
        pd.DataFrame({"a": [1, "text"] * 50}),
        pd.DataFrame({"a": [2**70, 1] * 50}),
        pd.DataFrame({"a": pd.period_range("2026-01", periods=60, freq="M").astype(str), "b": [(1, 2)] * 60}),
        pa.table({"a": [[1], [2, 3]] * 50}),
        pa.table({"a": pa.array([1], pa.int64())}).slice(0, 0),
    ],
    ids=["objects", "same names", "mixed", "large", "tuples", "lists", "empty"],
)
def test_a_table_of_other_values_is_kept_as_rows(table: Any) -> None:
    store = MemoryResultStore()

    made = keep(store, table)

    assert made.form == "rows"
    assert rows(store, made, limit=100) == jsonable(table_rows(table))


async def test_a_model_is_shown_head_and_tail_of_a_table_and_its_size() -> None:
    tools = Toolset([ez_tool(lambda: FRAME, name="find")], results=MemoryResultStore())

    outcome = await Pipeline(tools).run(ToolCall("find", {}), Run())

    text = outcome.text()
    assert text.startswith("[Too long to show: list of 8,000 rows, ")
    assert " bytes. Head and tail follow." in text
    assert '\n[{"id": 0, "city": "Oslo", "price": 0.5' in text
    assert text.endswith('"took": "PT2H13M19S", "whole": null}]')


@pytest.mark.parametrize(
    ("table", "most"),
    [
        (pd.DataFrame(np.zeros((2, 41))), 20_000),
        (pd.DataFrame({"text": ["x" * 500] * 50}), 20_000),
        (pd.DataFrame({"n": range(50)}), 100),
    ],
    ids=["columns", "ends of texts", "max_result_chars"],
)
async def test_a_table_of_few_rows_is_kept_where_something_of_it_is_not_shown(table: pd.DataFrame, most: int) -> None:
    @ez_tool(max_result_chars=most)
    def few() -> pd.DataFrame:
        """Return few rows."""
        return table

    outcome = await Pipeline(Toolset([few], results=MemoryResultStore())).run(ToolCall("few", {}), Run())

    assert isinstance(outcome, Completed)
    assert outcome.kept is not None


@pytest.mark.processes
async def test_a_program_is_given_the_table_itself_by_its_handle() -> None:
    tools, run = Toolset([ez_tool(lambda: FRAME, name="find")], results=MemoryResultStore()), Run(principal="ann")
    outcome = await Pipeline(tools).run(ToolCall("find", {}), run)
    assert isinstance(outcome, Completed)
    assert outcome.kept is not None
    code = f"""
kept = read_result({outcome.kept.handle!r})
some = read_result({outcome.kept.handle!r}, path="$[:2].kind")
[type(kept).__name__, len(kept), int(kept["id"].sum()), some]
"""

    with ProcessSandbox(packages=["pandas", "pyarrow"]) as sandbox:
        frame = await Toolkit(tools, sandbox=sandbox).execute_async(code, run)
    listed = await Toolkit(tools).execute_async(code.replace('kept["id"].sum()', 'kept[7]["id"]'), run)

    some = ["a", "b"]
    assert frame.return_value == ["DataFrame", COUNT, COUNT * (COUNT - 1) // 2, some]
    assert listed.return_value == ["list", COUNT, 7, some]


@pytest.mark.processes
def test_a_part_of_a_table_is_small_however_its_rows_are() -> None:
    parts = list(pieces_of(TABLES["slices"], "find", []))

    assert parts[0].count == 1
    assert max(len(piece.data) for piece in parts[1:]) < 4_000_000
    assert sum(piece.count for piece in parts) == 10_001

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from toolcrib._arrow import TableFacts, is_table, table_facts, table_rows, table_stream, table_summary

WHEN = datetime(2026, 1, 2)


def frame(rows: int = 3) -> pd.DataFrame:
    return pd.DataFrame({"n": range(rows), "x": [0.5] * rows, "s": ["é"] * rows, "at": [WHEN] * rows})


TABLES: list[Any] = [frame(), pa.Table.from_pandas(frame()), pa.RecordBatch.from_pandas(frame())]


class Exported:
    """A table of a library that is not known."""

    columns = ("n", "x", "s", "at")

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.Table.from_pandas(frame()).__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("table", [*TABLES, Exported()], ids=lambda table: type(table).__name__)
def test_a_table_is_known_and_its_rows_are_read(table: Any) -> None:
    facts = table_facts(table)

    assert is_table(table)
    assert (facts.rows, [name for name, _ in facts.columns]) == (3, ["n", "x", "s", "at"])
    assert facts.columns[0] == ("n", "int64")
    assert table_rows(table, 1, 2) == [{"n": 1, "x": 0.5, "s": "é", "at": WHEN}]
    assert table_rows(table, 2, 1) == []
    assert len(table_rows(table)) == 3


@pytest.mark.parametrize(
    "value", [[{"a": 1}], {"columns": 1}, "text", None, pa.array([1]), pa.chunked_array([[1]]), pd.Series([1]), TABLES]
)
def test_other_values_are_no_tables(value: object) -> None:
    assert not is_table(value)


def test_what_is_missing_is_none() -> None:
    table = pd.DataFrame({"x": [1.5, np.nan], "at": [pd.NaT, WHEN], "s": ["a", None]})

    assert table_rows(table) == [{"x": 1.5, "at": None, "s": "a"}, {"x": None, "at": WHEN, "s": None}]


def test_names_of_rows_are_a_column_and_numbers_of_rows_are_none() -> None:
    summed = frame().groupby("s").sum(numeric_only=True)
    filtered = frame()[frame()["n"] > 0]

    assert table_rows(summed) == [{"s": "é", "n": 3, "x": 1.5}]
    assert [name for name, _ in table_facts(filtered).columns] == ["n", "x", "s", "at"]
    assert table_facts(frame().describe()).columns[0] == ("index", "str")


def test_a_small_table_is_shown_whole() -> None:
    assert table_summary(frame(2)) == {
        "rows": 2,
        "columns": {"n": "int64", "x": "float64", "s": "str", "at": "datetime64[us]"},
        "head": [[0, 0.5, "é", "2026-01-02 00:00:00"], [1, 0.5, "é", "2026-01-02 00:00:00"]],
    }


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.table])
def test_a_large_table_is_shown_by_its_shape_and_ends(kind: Any) -> None:
    table = kind({f"c{at}": ["x" * 1_000] * 2_000 for at in range(60)})

    said = table_summary(table)

    assert (said["rows"], len(said["columns"]), said["more_columns"]) == (2_000, 40, 20)
    assert (len(said["head"]), len(said["tail"]), len(said["head"][0])) == (5, 3, 40)
    assert said["tail"][0][0] == "x" * 80 + "..."


def test_a_long_text_in_a_small_table_is_shown_as_far_as_there_is_room() -> None:
    said = table_summary(pd.DataFrame({"n": [1, 2], "text": ["x" * 3_000, "y" * 9_000]}))

    assert said["head"] == [[1, "x" * 3_000], [2, "y" * 5_000 + "..."]]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame([[1, 2, 3, 4]], columns=["a", "a", "a.1", "a"]),
        pa.table([[1], [2], [3], [4]], names=["a", "a", "a.1", "a"]),
    ],
    ids=["pandas", "pyarrow"],
)
def test_columns_of_one_name_get_names_of_their_own(table: Any) -> None:
    names = ("a", "a.2", "a.1", "a.3")

    assert table_facts(table) == TableFacts(1, tuple((name, "int64") for name in names))
    assert table_summary(table)["head"] == [[1, 2, 3, 4]]
    assert table_rows(table) == [dict(zip(names, (1, 2, 3, 4), strict=True))]
    assert pa.ipc.open_stream(table_stream(table)).read_all().column_names == list(names)


def test_names_that_are_the_same_as_texts_are_of_one_name() -> None:
    assert table_rows(pd.DataFrame([[1, 2]], columns=[1, "1"])) == [{"1": 1, "1.1": 2}]


def test_intervals_and_months_are_texts_in_rows() -> None:
    table = pd.DataFrame({"n": pd.interval_range(0, 2), "m": pd.period_range("2026-01", periods=2, freq="M")})
    table["cut"] = pd.cut(pd.Series([1, None]), [0, 1])

    assert table_rows(table) == [
        {"n": "(0, 1]", "m": "2026-01", "cut": "(0, 1]"},
        {"n": "(1, 2]", "m": "2026-02", "cut": None},
    ]
    assert table["n"].dtype == "interval"


def test_a_table_of_no_rows_has_its_columns() -> None:
    assert table_summary(frame(0))["head"] == []
    assert table_rows(pa.table({"a": pa.array([], pa.int8())})) == []

from __future__ import annotations

import asyncio
from math import inf
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from toolcrib.calls import ToolCall
from toolcrib.errors import SchemaError
from toolcrib.pipeline import Pipeline
from toolcrib.tools import Tool, ez_tool
from toolcrib.toolsets import Toolset

ROWS = {"items": {"additionalProperties": True, "type": "object"}, "type": "array"}


def taking(kind: Any) -> Tool[..., Any]:
    async def take(table: Any) -> Any:
        return table

    take.__annotations__["table"] = kind
    return ez_tool(take)


def taken(kind: Any, table: Any) -> Any:
    """Return what a tool is given, or the sentence for the model."""
    outcome = asyncio.run(Pipeline(Toolset([taking(kind)])).run(ToolCall("take", {"table": table})))
    return outcome.value if outcome.kind == "completed" else outcome.text()


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.Table, pa.RecordBatch])
def test_a_caller_gives_rows_and_the_tool_gets_a_table(kind: Any) -> None:
    table = taken(kind, [{"a": 1}, {"a": 2, "b": "x"}])

    assert taking(kind).parameters["properties"]["table"] == ROWS
    assert isinstance(table, kind)
    assert list(pa.table(table).to_pydict().values()) == [[1, 2], [None, "x"]]


@pytest.mark.parametrize(
    ("column", "kind", "first"),
    [
        ([1, None], "Int64", 1),
        ([2**53 + 1, None], "Int64", 2**53 + 1),
        ([2**63, None], "UInt64", 2**63),
        ([2**70, None], "object", 2**70),
        ([True, None], "boolean", True),
        (["Infinity", 1.5], "float64", inf),
        (["-Infinity", 1], "float64", -inf),
        (["Infinity"], "float64", inf),
        (["Infinity", "x"], "str", "Infinity"),
        (["Infinity", True], "object", "Infinity"),
    ],
    ids=repr,
)
def test_numbers_of_a_column_stay_what_they_are(column: list[Any], kind: str, first: Any) -> None:
    table = taken(pd.DataFrame, [{"a": value} for value in column])

    assert (str(table["a"].dtype), table["a"].iloc[0]) == (kind, first)


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.Table])
def test_a_table_without_rows_has_its_columns(kind: Any) -> None:
    table = taken(kind, {"$columns": ["city", "amount"]})

    again = taken(kind, taking(kind).spec.canonical({"table": table}).values["table"])

    assert pa.table(again).column_names == ["city", "amount"]
    assert again.shape == (0, 2)


def test_a_table_may_be_left_out() -> None:
    assert taken(pd.DataFrame | None, None) is None


def test_the_host_may_give_a_table() -> None:
    table = pd.DataFrame({"a": [1]})

    assert asyncio.run(taking(pd.DataFrame)(table)) is table


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([1], "`take` cannot take these arguments: table[0]: must be an object"),
        ("a", "`take` cannot take these arguments: table: must be an array"),
        ({"$columns": [1]}, "`take` cannot take these arguments: table: must be an array"),
        ([{"a": 1}, {"a": "x"}], "`take` cannot take these arguments: table: Could not convert"),
    ],
)
def test_what_is_no_table_is_refused(rows: Any, problem: str) -> None:
    assert problem in taken(pa.Table, rows)


def test_one_column_has_no_schema() -> None:
    with pytest.raises(SchemaError):
        _ = taking(pd.Series).parameters

"""Tables that leave a program: as they were, or refused, whatever a worker says of them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.code.hosts import TableHost
from tests.effort import examples
from tests.sandbox.fake_worker import WorkerEnd, faked
from toolcrib.sandbox import Program
from toolcrib.sandbox._frames import DoneFrame, ProtocolError
from toolcrib.sandbox._result_tables import with_tables
from toolcrib.sandbox._worker.tables import packed

MOST = 100_000


def returned(table: Any, most: int = MOST) -> Any:
    """Return a table that has left a program."""
    made = packed(table)
    return with_tables(
        DoneFrame({"$table": 0}, blobs=[memoryview(made.data)], tables=[{**made.facts, "blob": 0}]), most
    )


KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.string(), st.text()),
    (pa.large_string(), st.text()),
    (pa.date32(), st.dates()),
    (pa.timestamp("us"), st.datetimes()),
    (pa.duration("s"), st.integers(-(10**6), 10**6)),
]


@settings(max_examples=examples(60))
@given(st.data())
def test_a_table_arrives_as_it_left(data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 20))
    kinds = data.draw(st.lists(st.sampled_from(KINDS), max_size=5))
    arrays = [
        pa.array(data.draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind) for kind, values in kinds
    ]
    table = pa.table(arrays, names=[f"c{number}" for number in range(len(arrays))])
    start = data.draw(st.integers(0, rows))

    assert returned(table.slice(start)).equals(table.slice(start))
    assert returned(pa.concat_tables([table, table.slice(start)])).to_pydict() == {
        name: values + values[start:] for name, values in table.to_pydict().items()
    }


@pytest.mark.parametrize(
    ("array", "comes"),
    [
        (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        (pa.array([None, None]), [None, None]),
        (pa.array([Decimal("1.50")]), ["1.50"]),
        (pa.array([timedelta(seconds=1)]), [timedelta(seconds=1)]),
        (pa.array([1.5], pa.float16()), [1.5]),
        (pa.array([date(2026, 1, 2)], pa.date64()), [date(2026, 1, 2)]),
        (pa.array(["a"], pa.string_view()), ["a"]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_other_types_become_one_that_can_leave(array: Any, comes: list[Any]) -> None:
    assert returned(pa.table({"c": array})).to_pydict() == {"c": comes}


def test_a_frame_arrives_as_a_frame() -> None:
    frame = pd.DataFrame({"n": [1, 2], "s": ["a", None], "at": [datetime(2026, 1, 2)] * 2}).set_index("n")

    assert returned(frame).equals(frame.reset_index())


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.array([2**53 + 1, None], dtype="Int64"), "Int64"),
        (pd.array([1, None], dtype="UInt8"), "UInt8"),
        (pd.array([1, 2], dtype="Int64"), "int64"),
        (pd.array([True, None], dtype="boolean"), "boolean"),
        ([1.5, None], "float64"),
    ],
    ids=str,
)
def test_numbers_stay_what_they_are_where_some_are_missing(column: Any, kind: str) -> None:
    frame = pd.DataFrame({"n": column})

    came = returned(frame)

    assert str(came["n"].dtype) == kind
    assert came["n"].astype(object).equals(frame["n"].astype(object))


def test_columns_of_one_name_get_names_of_their_own() -> None:
    assert returned(pd.DataFrame([[1, 2]], columns=["a", "a"])).to_dict("list") == {"a": [1], "a.1": [2]}
    assert returned(pd.DataFrame({"i": [1]}, index=pd.Index([2], name="i"))).to_dict("list") == {"i": [2], "i.1": [1]}
    assert returned(pa.table([[1], [2]], names=["a", "a"])).to_pydict() == {"a": [1], "a.1": [2]}


def test_intervals_and_months_leave_as_texts() -> None:
    frame = pd.DataFrame({"n": pd.interval_range(0, 2), "m": pd.period_range("2026-01", periods=2, freq="M")})
    counted = frame.assign(cut=pd.cut(pd.Series([1, 5]), [0, 2, 9])).groupby("cut", observed=True).size().to_frame("c")

    assert returned(frame).to_dict("list") == {"n": ["(0, 1]", "(1, 2]"], "m": ["2026-01", "2026-02"]}
    assert returned(counted).to_dict("list") == {"cut": ["(0, 2]", "(2, 9]"], "c": [1, 1]}


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (["a", 1], "int, str"),
        ([1j], "complex128"),
        ([2**70], "int"),
        (pd.arrays.SparseArray([0, 1]), "Sparse[int64, 0]"),
        ([object()], "object"),
    ],
    ids=["mixed", "complex", "large", "sparse", "objects"],
)
def test_a_column_of_pandas_that_cannot_leave_is_named_with_the_mend(column: Any, kind: str) -> None:
    with pytest.raises(ValueError, match="the column `b` of a table") as refused:
        packed(pd.DataFrame({"a": [1] * len(column), "b": column}))

    assert f"values of type {kind}, which cannot leave the program" in str(refused.value)
    assert "table['b'] = table['b'].astype(str)" in str(refused.value)


@pytest.mark.parametrize("array", [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([b"\xff"])])
def test_other_columns_do_not_leave(array: Any) -> None:
    with pytest.raises(ValueError, match="the column `c` of a table has values of type"):
        packed(pa.table({"c": array}))


GOOD = {"rows": 2, "columns": [["c", "string", True, 3]], "pandas": False, "blob": 0}
BYTES = b"\3" + bytes(7) + b"".join(end.to_bytes(4, "little") for end in (0, 1, 3)) + bytes(4) + b"abc"


@pytest.mark.parametrize(
    ("facts", "data", "why"),
    [
        ("text", BYTES, "invalid table"),
        ({**GOOD, "rows": True}, BYTES[:0], "fewer bytes"),
        ({**GOOD, "rows": -1}, BYTES, "rows that are not there"),
        ({**GOOD, "rows": 1 << 62}, BYTES, "more than it may have"),
        ({**GOOD, "rows": MOST // 16 + 1}, BYTES, "more than it may have"),
        ({**GOOD, "rows": MOST // 2 + 1, "columns": [["c", "int8", False, 0]]}, bytes(MOST), "more than it may have"),
        ({**GOOD, "rows": MOST // 16 + 1, "columns": [["c", "bool", True, 0]]}, bytes(MOST), "more than it may have"),
        ({**GOOD, "columns": [["c", "int8", False, 0]] * 200}, bytes(MOST), "more than it may have"),
        ({**GOOD, "blob": 1}, BYTES, "rows that are not there"),
        ({**GOOD, "blob": -1}, BYTES, "rows that are not there"),
        ({**GOOD, "columns": [["c", "string", True, -3]]}, BYTES, "invalid table column"),
        ({**GOOD, "columns": [["c", "string", True, 1 << 62]]}, BYTES, "fewer bytes than it needs"),
        ({**GOOD, "columns": [["c", "int64", 1, 0]]}, BYTES, "invalid table column"),
        ({**GOOD, "columns": [["c", "list<item: string>", True, 3]]}, BYTES, "which there is not"),
        ({**GOOD, "columns": [["c", "binary", True, 3]]}, BYTES, "which there is not"),
        ({**GOOD, "columns": [["c", "null", False, 0]]}, BYTES, "which there is not"),
        ({**GOOD, "columns": [["c", "timestamp[ns, tz=../x]", False, 0]]}, BYTES, "which there is not"),
        ({**GOOD, "columns": [["c", "extension<py>", False, 0]]}, BYTES, "which there is not"),
        (GOOD, BYTES[:-1], "fewer bytes than it needs"),
        (GOOD, b"", "fewer bytes than it needs"),
        (GOOD, BYTES.replace(b"\3\0\0\0", b"\4\0\0\0"), "invalid table"),  # beyond the text
        (GOOD, BYTES.replace(b"\1\0\0\0\3", b"\xf1\xff\xff\xff\3"), "invalid table"),  # an end before the start
        (GOOD, BYTES.replace(b"abc", b"\xff\xfe\xfd"), "invalid table"),  # no UTF-8
    ],
)
def test_a_table_that_is_none_is_refused(facts: Any, data: bytes, why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        with_tables(DoneFrame(blobs=[memoryview(data)], tables=[facts]), MOST)


@pytest.mark.parametrize(("facts", "data"), [(GOOD, BYTES), ({**GOOD, "columns": []}, bytes(20_000))])
def test_tables_have_one_limit_for_all(facts: Any, data: bytes) -> None:
    with pytest.raises(ProtocolError, match="more than it may have"):
        with_tables(DoneFrame(blobs=[memoryview(data)], tables=[facts] * 120), MOST)


def test_the_table_without_a_fault_is_taken() -> None:
    done = DoneFrame([{"$table": 0}, {"$table": 1}, {"$table": "x"}], blobs=[memoryview(BYTES)], tables=[GOOD])

    table, *others = with_tables(done, MOST)

    assert table.to_pydict() == {"c": ["a", "bc"]}
    assert others == [{"$table": 1}, {"$table": "x"}]


@settings(max_examples=examples(200))
@given(
    st.binary(max_size=200), st.integers(0, 40), st.lists(st.sampled_from(["bool", "int8", "string", "large_string"]))
)
def test_any_bytes_are_a_table_or_refused(data: bytes, rows: int, kinds: list[str]) -> None:
    columns = [[str(number), kind, bool(len(data) % 2), len(data) % 7] for number, kind in enumerate(kinds)]
    facts = {"rows": rows, "columns": columns, "pandas": len(data) % 3 == 0, "blob": 0}
    try:
        table = with_tables(DoneFrame({"$table": 0}, blobs=[memoryview(data)], tables=[facts]), MOST)
    except ProtocolError:
        return

    assert len(table) == (rows if kinds else 0)
    assert repr(table)


async def test_a_worker_that_sends_no_table_has_broken_the_protocol() -> None:
    def lie(worker: WorkerEnd) -> None:
        worker.send("done", v={"$table": 0}, tables=[GOOD], blobs=[1])
        worker.bytes(b"x")
        worker.until_killed()

    with faked(lie) as sandbox:
        result = await sandbox.run(Program("1"), TableHost())

    assert "a table that has fewer bytes than it needs" in str(result.error)

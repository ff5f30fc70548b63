"""Arrays and columns of other libraries, and their scalars, as JSON shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from toolcrib.calls import jsonable, lenient
from toolcrib.calls._json import plain_value

DAYS = pd.date_range("2026-01-01", periods=2)


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array([1.5, np.nan]), [1.5, "NaN"]),
        (np.array(5), 5),
        (np.array(["2026-01-01", "NaT"], dtype="datetime64[D]"), ["2026-01-01", "NaT"]),
        (np.ma.masked_array([1, 2], mask=[False, True]), [1, None]),
        (np.bool_(True), True),
        (np.int64(7), 7),
        (np.datetime64("2026-01-01"), "2026-01-01"),
        (pd.Series([1.5, None]), [1.5, None]),
        (pd.Series([1, 2], index=["a", "b"]), {"a": 1, "b": 2}),
        (pd.Series([1, 2], index=[2025, 2026]), {"2025": 1, "2026": 2}),
        (pd.Series([1, 2], index=["a", "a"]), [1, 2]),
        (pd.Series([1, 2], index=DAYS), {"2026-01-01T00:00:00": 1, "2026-01-02T00:00:00": 2}),
        (pd.Series([1], index=pd.MultiIndex.from_tuples([("a", 1)])), {"('a', 1)": 1}),
        (pd.Series([*DAYS, None]), ["2026-01-01T00:00:00", "2026-01-02T00:00:00", None]),
        (pd.Series(pd.period_range("2026-01", periods=2, freq="M")), ["2026-01", "2026-02"]),
        (pd.Series([{"a": np.int64(1)}]), [{"a": 1}]),
        (pd.DataFrame({"k": ["a", "a"], "v": [1, 2]}).groupby("k")["v"].sum(), {"a": 3}),
        (pd.Index(["a", "b"]), ["a", "b"]),
        (pd.array([1, None], dtype="Int64"), [1, None]),
        (pd.Interval(0, 1), "(0, 1]"),
        (pd.NA, None),
        (pa.array([1, None]), [1, None]),
        (pa.chunked_array([["a"], ["b"]]), ["a", "b"]),
        ({"deep": [pd.Series([np.array([1])])]}, {"deep": [[[1]]]}),
    ],
    ids=str,
)
def test_an_array_is_a_list_and_a_scalar_a_value(value: Any, shape: Any) -> None:
    assert jsonable(value) == shape
    assert lenient(value) == shape


def test_what_is_no_array_stays_as_it_is() -> None:
    given = [pd.DataFrame(), np.random.default_rng(0), pa.int64(), object()]

    assert all(plain_value(value) is value for value in given)

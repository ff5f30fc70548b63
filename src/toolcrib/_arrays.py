"""Arrays of numpy, Arrow and polars, columns of pandas, and their scalars, as values of Python's own."""

from __future__ import annotations

import sys
from datetime import date
from typing import Any


def plain_value(value: Any) -> Any:
    """Return a list for an array or a column, a Python value for a scalar; any other value as it is.

    A column of pandas whose rows have names is a dict. No package is imported for it.
    """
    home = type(value).__module__.partition(".")[0]
    package: Any = sys.modules.get(home)
    if home == "numpy":
        return _of_numpy(value, package)
    if home == "pandas":
        return _of_pandas(value, package)
    is_array = home in ("pyarrow", "polars") and hasattr(value, "__len__") and not hasattr(value, "columns")
    return value.to_list() if is_array and home == "polars" else value.to_pylist() if is_array else value


def _of_numpy(value: Any, numpy: Any) -> Any:
    if not isinstance(value, numpy.ndarray | numpy.generic):
        return value
    if value.dtype.kind in "mM":  # whose items would be numbers
        value = value.astype(str)
    return value.tolist()


def _of_pandas(value: Any, pandas: Any) -> Any:
    if value is pandas.NA:
        return None
    if isinstance(value, pandas.Period | pandas.Interval):
        return str(value)
    if isinstance(value, pandas.Index | pandas.api.extensions.ExtensionArray):
        value = pandas.Series(value)
    if not isinstance(value, pandas.Series):
        return value
    listed, index = value.astype(object).where(value.notna(), None).tolist(), value.index
    if isinstance(index, pandas.RangeIndex) or not index.is_unique:
        return listed
    names = (name if isinstance(name, str | int | float | date) else str(name) for name in index.tolist())
    return dict(zip(names, listed, strict=True))

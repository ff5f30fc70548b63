"""Tables of data in a program: those that the host gave it, and what of one can leave it.

A table comes as an Arrow IPC stream. It leaves as the plain buffers of its columns, so that the host needs no reader
of a format for what a program sends; `COLUMN_TYPES` are those that there are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, cast

from .imports import PACKAGES

__all__ = [
    "ALIGNMENT",
    "COLUMNS",
    "COLUMN_TYPES",
    "MARK",
    "TIMESTAMP",
    "PackedTable",
    "columns_of",
    "cost",
    "data_frame",
    "is_table",
    "packed",
    "rows_of",
    "with_tables",
]

MARK: Final = "$table"
"""The key of an object that stands for a table; its value is the table's number."""

COLUMNS: Final = "$columns"
"""The key of an object that stands for a table without rows, as an argument; its value are the names of the columns."""

ALIGNMENT: Final = 8  # bytes: where the buffers of a column begin
TIMESTAMP: Final = r"timestamp\[(s|ms|us|ns)(?:, tz=([A-Za-z0-9_+\-/:]{1,64}))?\]"
COLUMN_TYPES: Final = {
    "bool": 1,
    **dict.fromkeys(("int8", "uint8"), 8),
    **dict.fromkeys(("int16", "uint16"), 16),
    **dict.fromkeys(("int32", "uint32", "float", "date32[day]"), 32),
    **dict.fromkeys(("int64", "uint64", "double"), 64),
    **dict.fromkeys(("duration[s]", "duration[ms]", "duration[us]", "duration[ns]"), 64),
    **dict.fromkeys(("string", "large_string"), 0),
}
"""The bits of a value of each type, 0 for text; beside these there are timestamps, of 64."""

_COLUMN: Final = 500  # bytes that a column counts as, since to make one takes a while
_NUMBER, _OBJECT = 2, 16  # bytes: in a DataFrame a number takes at most four times as many, and an object some more
_NO_ARROW = "pyarrow is not among the packages of this sandbox"
_SEEN: Final = 10_000  # values of a column that are looked at for an error
_NULLABLE: Final = {
    "bool": "boolean",
    **{f"int{bits}": f"Int{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"UInt{bits}" for bits in (8, 16, 32, 64)},
}
"""The types of pandas for columns in which values are missing, where it would make floats of them, or objects."""


class PackedTable:
    """A table as it leaves a program.

    Attributes:
        facts: The facts that the host needs to put it together again.
        data: The buffers of its columns.
    """

    def __init__(self, facts: dict[str, Any], data: bytearray) -> None:
        self.facts, self.data = facts, data

    @property
    def size(self) -> int:
        """The bytes that it counts as."""
        return max(len(self.data), cost(self.facts["rows"], self.facts["columns"]))


def cost(rows: int, columns: Sequence[Any]) -> int:
    """Return the bytes that a table counts as, however few they are: the host may make a DataFrame of it.

    Args:
        columns: The facts of its columns, in a list each: the name, the type, whether values are missing.
    """
    objects = sum(column[1:2] == ["string"] or column[1:3] == ["bool", True] for column in columns)
    return rows * (objects * _OBJECT + (len(columns) - objects) * _NUMBER) + (len(columns) + 1) * _COLUMN


def is_table(value: object) -> bool:
    """Return whether a value is a table: it exports itself as one, and has columns, as a single column has not."""
    return hasattr(type(value), "__arrow_c_stream__") and hasattr(type(value), "columns")


# --- into the program


def with_tables(value: Any, tables: list[bytearray]) -> Any:
    """Return a value with the tables in it where marks stand for them."""
    if isinstance(value, list):
        return [with_tables(part, tables) for part in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    parts = cast("dict[str, Any]", value)
    number = parts.get(MARK)
    if isinstance(number, int) and number < len(tables):
        arrow = _arrow()
        table = arrow.ipc.open_stream(arrow.py_buffer(tables[number])).read_all()
        return data_frame(table, use_threads=False) if "pandas" in PACKAGES else table
    return {name: with_tables(part, tables) for name, part in parts.items()}


def data_frame(table: Any, **options: Any) -> Any:
    """Return a table of pyarrow as a DataFrame; whole numbers and booleans stay that where some are missing.

    Args:
        options: Those of `to_pandas`.
    """
    frame = table.to_pandas(**options)
    types: Any = sys.modules["pandas"].api.types
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = _NULLABLE.get(str(column.type))
        if kind and column.null_count and name in frame.columns and frame[name].dtype.kind in "fO":
            frame[name] = types.pandas_dtype(kind).__from_arrow__(column)
    return frame


# --- out of the program


def rows_of(value: Any) -> list[dict[str, Any]]:
    """Return the rows of a table as dicts."""
    return _arrow_table(value).to_pylist()


def columns_of(value: Any) -> list[str]:
    """Return the names of a table's columns; what the rows are named by is a column, too."""
    return _arrow_table(value).column_names


def packed(value: Any) -> PackedTable:
    """Return the buffers of a table's columns.

    Raises:
        ValueError: A column has a type that cannot leave the program.
    """
    table = _arrow_table(value)
    columns: list[list[Any]] = []
    data = bytearray()
    for name, column in zip(table.column_names, table.columns, strict=True):
        array = _plain(str(name), column)
        has_missing = array.null_count > 0
        buffers = list(_buffers(array, has_missing))
        columns.append([str(name), str(array.type), has_missing, len(buffers[-1])])
        for buffer in buffers:
            data += buffer
            data += bytes(-len(data) % ALIGNMENT)
    is_pandas = type(value).__module__.partition(".")[0] == "pandas"
    return PackedTable({"rows": table.num_rows, "columns": columns, "pandas": is_pandas}, data)


def _plain(name: str, column: Any) -> Any:
    """Return the values of a column in one array, which begins with its first value, of a type that may leave."""
    arrow = _arrow()
    types = arrow.types
    kind = column.type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_null(kind) or types.is_decimal(kind) or types.is_time(kind) or "string_view" in str(kind):
        kind = arrow.large_string()
    elif types.is_float16(kind):
        kind = arrow.float32()
    elif types.is_date64(kind):
        kind = arrow.date32()
    if str(kind) not in COLUMN_TYPES and not types.is_timestamp(kind):
        raise _refusal(name, str(kind))
    chunks = column.cast(kind).chunks if kind != column.type else column.chunks
    # one that is empty before the others: what is put together anew begins with its first value
    return arrow.concat_arrays([arrow.array([], kind), *chunks])


def _buffers(array: Any, has_missing: bool) -> Iterator[memoryview]:
    """Yield the buffers of an array: which values are there, where texts end, and the values."""
    rows, kind = len(array), str(array.type)
    missing, *others = array.buffers()
    if has_missing:
        yield memoryview(missing)[: (rows + 7) // 8]
    bits = COLUMN_TYPES.get(kind, 64)
    if bits:
        yield memoryview(others[0] or b"")[: (rows * bits + 7) // 8]
        return
    width = 8 if kind == "large_string" else 4
    ends = memoryview(others[0] if rows else bytes(width))[: (rows + 1) * width]
    yield ends
    yield memoryview(others[1] or b"")[: int.from_bytes(ends[-width:], sys.byteorder)]


def _arrow_table(value: Any) -> Any:
    """Return a value as a table of pyarrow, in which each column has a name of its own.

    Raises:
        ValueError: A column has values that Arrow has no type for.
    """
    arrow = _arrow()
    if type(value).__module__.partition(".")[0] != "pandas":
        table = value if isinstance(value, arrow.Table) else arrow.table(value)
        return table.rename_columns(_own_names(table.column_names))
    index = value.index
    is_named = index.dtype.kind not in "iu" or index.names[0] is not None
    frame = value.reset_index(allow_duplicates=True) if is_named else value.copy(deep=False)
    frame.columns = _own_names(frame.columns)
    for name in frame.columns:
        # intervals or periods, also as categories
        inner = getattr(getattr(frame[name].dtype, "categories", None), "dtype", frame[name].dtype)
        if str(inner).startswith(("interval", "period")):
            frame[name] = frame[name].astype(object).map(str, na_action="ignore")
    try:
        return arrow.Table.from_pandas(frame, nthreads=1, preserve_index=False)
    except Exception as error:  # of pyarrow, which has many for a value that it has no type for
        raise _refusal_of(frame) or ValueError(f"a table cannot leave the program: {error}") from None


def _own_names(names: Iterable[Any]) -> list[str]:
    """Return a name of its own for each column, as `read_csv` makes them: `a`, and `a.1` for a second one."""
    wanted = [str(name) for name in names]
    used, last, found = set(wanted), dict[str, int](), list[str]()
    for name in wanted:
        unique = name
        while name in last and unique in used:
            last[name] += 1
            unique = f"{name}.{last[name]}"
        last.setdefault(name, 0)
        used.add(unique)
        found.append(unique)
    return found


def _refusal_of(frame: Any) -> ValueError | None:
    """Return why a DataFrame cannot leave, which names the first column that Arrow has no type for."""
    for name in frame.columns:
        try:
            _arrow().Table.from_pandas(frame[[name]], nthreads=1, preserve_index=False)
        except Exception:  # of pyarrow
            kind = str(frame[name].dtype)
            if kind == "object":
                kind = ", ".join(sorted({type(part).__name__ for part in frame[name].head(_SEEN)}))
            return _refusal(name, kind, f"table[{name!r}] = table[{name!r}].astype(str)")
    return None


def _refusal(name: str, kind: str, mend: str = "") -> ValueError:
    return ValueError(
        f"the column `{name}` of a table has values of type {kind}, which cannot leave the program; make them "
        f"text, numbers or dates first{mend and ': '}{mend}"
    )


def _arrow() -> Any:
    """Return the module `pyarrow`.

    Raises:
        ValueError: It is not loaded.
    """
    found = sys.modules.get("pyarrow")
    if found is None:
        raise ValueError(_NO_ARROW)
    return found

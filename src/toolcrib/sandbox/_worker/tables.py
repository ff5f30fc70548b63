"""Tables of data in a program: those that the host gave it, and what of one can leave it.

A table comes as an Arrow IPC stream. It leaves as the plain buffers of its columns, so that the host needs no reader
of a format for what a program sends; `COLUMN_TYPES` are those that there are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from .imports import PACKAGES

__all__ = [
    "ALIGNMENT",
    "COLUMN_TYPES",
    "MARK",
    "TIMESTAMP",
    "PackedTable",
    "cost",
    "is_table",
    "packed",
    "rows_of",
    "with_tables",
]

MARK: Final = "$table"
"""The key of an object that stands for a table; its value is the table's number."""

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


class PackedTable:
    """A table as it leaves a program.

    Attributes:
        facts: What the host needs to know to put it together again.
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
        return _table(tables[number])
    return {name: with_tables(part, tables) for name, part in parts.items()}


def _table(data: bytearray) -> Any:
    """Return a DataFrame where the program may import pandas, else a table of pyarrow."""
    arrow = _arrow()
    table = arrow.ipc.open_stream(arrow.py_buffer(data)).read_all()
    return table.to_pandas(use_threads=False) if "pandas" in PACKAGES else table


# --- out of the program


def rows_of(value: Any) -> list[dict[str, Any]]:
    """Return the rows of a table as dicts."""
    return _arrow_table(value).to_pylist()


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
        raise ValueError(
            f"the column `{name}` of a table has values of type {kind}, which cannot leave the program; make them "
            "text, numbers or dates first"
        )
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
    arrow = _arrow()
    if type(value).__module__.partition(".")[0] != "pandas":
        return value if isinstance(value, arrow.Table) else arrow.table(value)
    index = value.index
    if index.dtype.kind not in "iu" or index.names[0] is not None:
        value = value.reset_index(allow_duplicates=True)
    return arrow.Table.from_pandas(value, nthreads=1, preserve_index=False)


def _arrow() -> Any:
    """Return the module `pyarrow`.

    Raises:
        ValueError: It is not loaded.
    """
    found = sys.modules.get("pyarrow")
    if found is None:
        raise ValueError(_NO_ARROW)
    return found

"""Tables that a program leaves, from the bytes that its worker sent: every type, number and size of them is checked.

No reader of a format sees these bytes. They are the buffers of columns of plain types, so that a table takes as much
memory as was sent; a DataFrame may take some times that, which a limit on the number of cells bounds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from toolcrib._arrow import pyarrow
from toolcrib._numbers import count_text
from toolcrib.sandbox._frames import DoneFrame, ProtocolError
from toolcrib.sandbox._worker.tables import ALIGNMENT, COLUMN_TYPES, MARK, TIMESTAMP, cost, data_frame


def with_tables(done: DoneFrame, most: int) -> Any:
    """Return the value of a program's last frame, with its tables where marks stand for them.

    Args:
        most: Bytes that tables may have.

    Raises:
        ProtocolError: One of them is not a table.
    """
    tables: list[Any] = []
    for facts in done.tables:
        table, size = _table(facts, done.blobs, most)
        tables.append(table)
        most -= size
    return _placed(done.value, tables)


def _placed(value: Any, tables: Sequence[Any]) -> Any:
    if isinstance(value, list):
        return [_placed(part, tables) for part in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    parts = cast("dict[str, Any]", value)
    number = parts.get(MARK)
    if type(number) is int and 0 <= number < len(tables):
        return tables[number]
    return {name: _placed(part, tables) for name, part in parts.items()}


def _table(facts: Any, blobs: Sequence[memoryview], most: int) -> tuple[Any, int]:
    """Return a table, and the bytes that it counts as."""
    match facts:
        case {"rows": int(rows), "columns": [*columns], "pandas": bool(is_pandas), "blob": int(blob)}:
            pass
        case _:
            raise ProtocolError("invalid table")
    if not 0 <= blob < len(blobs) or rows < 0:
        raise ProtocolError("a table of rows that are not there")
    size = max(cost(rows, columns), len(blobs[blob]))
    if size > most:
        shape = f"{count_text(rows, 'row')} and {count_text(len(columns), 'column')}"
        raise ProtocolError(f"a table of {shape}, which is more than it may have")
    arrow = pyarrow("a table that a program leaves")
    buffers = _Buffers(arrow.py_buffer(bytes(blobs[blob])))
    try:
        arrays = [_array(arrow, rows, column, buffers) for column in columns]
        table = arrow.table(arrays, names=[column[0] for column in columns])
    except arrow.ArrowException as error:
        raise ProtocolError(f"invalid table: {error!s:.200}") from None
    try:
        return (data_frame(table, date_as_object=False) if is_pandas else table), size
    except Exception:  # of pandas, which is not there, or has no such dates
        return table, size


def _array(arrow: Any, rows: int, column: Any, buffers: _Buffers) -> Any:
    match column:
        case [str(), str(kind), bool(has_missing), int(size)] if size >= 0:
            pass
        case _:
            raise ProtocolError("invalid table column")
    stamp = re.fullmatch(TIMESTAMP, kind)
    bits = COLUMN_TYPES.get(kind) if stamp is None else 64
    if bits is None:
        raise ProtocolError(f"a column of a table of type {kind:.60}, which there is not")
    missing = buffers.take(rows, 1) if has_missing else None
    if bits:
        values = [buffers.take(rows, bits)]
    else:
        values = [buffers.take(rows + 1, 64 if kind == "large_string" else 32), buffers.take(size, 8)]
    type_ = arrow.type_for_alias(kind) if stamp is None else arrow.timestamp(stamp[1], stamp[2])
    array = arrow.Array.from_buffers(type_, rows, [missing, *values])
    array.validate(full=True)
    return array


class _Buffers:
    """The buffers of a table, one after the other."""

    def __init__(self, data: Any) -> None:
        self._data, self._at = data, 0

    def take(self, count: int, bits: int) -> Any:
        """Return the next buffer, of so many values."""
        size = (count * bits + 7) // 8
        if self._at + size > len(self._data):
            raise ProtocolError("a table that has fewer bytes than it needs")
        found = self._data.slice(self._at, size)
        self._at += size + -size % ALIGNMENT
        return found

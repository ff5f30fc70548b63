"""Tables of data, such as DataFrames and Arrow tables: what a model is shown of one, and its rows.

A table is known by the Arrow PyCapsule interface. Neither pandas nor pyarrow is imported before a value needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any

from toolcrib.errors import MissingExtraError

_WHOLE_ROWS, _WHOLE_CELLS = 50, 1_000  # the most that is shown of a table without leaving rows out
_HEAD_ROWS, _TAIL_ROWS = 5, 3
_COLUMNS = 40
_CELL_CHARS = 80
_SUMMARY_CHARS = 20_000
_PART_BYTES = 256 * 1024  # of the rows that are kept together, about
_JSON = ("integer", "boolean", "string", "large_string")  # types of which pyarrow gives JSON shapes
_PLAIN = (*_JSON, "floating", "decimal", "date", "time", "timestamp", "duration", "null")
_NO_JSON = frozenset({"NaN", "Infinity", "-Infinity"})  # as results and arguments have them; see `calls`
_NULLABLE = {frozenset({int, type(None)}): ("Int64", "UInt64"), frozenset({bool, type(None)}): ("boolean",)}
_FEATURE = "a table that is not a DataFrame of pandas, or goes into a program,"


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The shape of a table.

    Attributes:
        columns: The name and the type of each column; what the rows of a DataFrame are named by is a column, too.
    """

    rows: int
    columns: tuple[tuple[str, str], ...]


def is_table(value: object) -> bool:
    """Return whether a value is a table."""
    return is_table_class(type(value))


def is_table_class(kind: type[Any]) -> bool:
    """Return whether values of a class are tables: they export themselves as Arrow streams, and have columns.

    A single column exports itself, too. It is the class that is asked, since asking a value may compute something.
    """
    return hasattr(kind, "__arrow_c_stream__") and hasattr(kind, "columns")


def pyarrow(feature: str) -> Any:
    """Return the module `pyarrow`.

    Raises:
        MissingExtraError: It is not installed, and this feature needs it.
    """
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise MissingExtraError(feature, "data") from error


def table_facts(table: Any) -> TableFacts:
    """Return the shape of a table."""
    if _is_pandas(table):
        shown = _with_index(table.iloc[:0])
        return TableFacts(len(table), tuple(zip(_own_names(shown.columns), map(str, shown.dtypes), strict=True)))
    table = _arrow(table)
    return TableFacts(table.num_rows, tuple((field.name, str(field.type)) for field in table.schema))


def table_rows(table: Any, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
    """Return rows of a table as dicts of Python values; a value that is missing is None."""
    if _is_pandas(table):
        names = [name for name, _ in table_facts(table).columns]
        return [dict(zip(names, row, strict=True)) for row in _rows(table, start, stop)]
    return _slice(table, start, stop).to_pylist()


def table_summary(table: Any) -> dict[str, Any]:
    """Return a table for a model, in at most some 20,000 characters: its shape, and rows as lists.

    A small table is shown whole, of a larger one the head and the tail.
    """
    facts = table_facts(table)
    shown = facts.columns[:_COLUMNS]
    is_whole = facts.rows <= _WHOLE_ROWS and facts.rows * len(shown) <= _WHOLE_CELLS
    head = facts.rows if is_whole else _HEAD_ROWS
    most = _most_chars(min(facts.rows, head + _TAIL_ROWS) * len(shown))
    summary: dict[str, Any] = {"rows": facts.rows, "columns": dict(shown), "head": _shown(table, 0, head, most)}
    if not is_whole:
        summary["tail"] = _shown(table, max(head, facts.rows - _TAIL_ROWS), facts.rows, most)
    if len(shown) < len(facts.columns):
        summary["more_columns"] = len(facts.columns) - len(shown)
    return summary


def is_shown_whole(summary: dict[str, Any]) -> bool:
    """Return whether the summary of a table has all of its rows, columns and texts."""
    if "tail" in summary or "more_columns" in summary:
        return False
    most = _most_chars(len(summary["head"]) * len(summary["columns"]))
    return not any(isinstance(value, str) and len(value) > most for row in summary["head"] for value in row)


def _most_chars(cells: int) -> int:
    """Return how many characters of each cell are shown, where there are so many cells."""
    return max(_CELL_CHARS, _SUMMARY_CHARS // max(cells, 1))


def _shown(table: Any, start: int, stop: int, most: int) -> list[list[Any]]:
    return [[_cell(value, most) for value in islice(row, _COLUMNS)] for row in _rows(table, start, stop)]


def _cell(value: Any, most: int) -> Any:
    """Return a number or None as it is, and the text of anything else, the end of a long one cut off."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= most else f"{text[:most]}..."


def _rows(table: Any, start: int, stop: int | None) -> list[tuple[Any, ...]]:
    if _is_pandas(table):
        part = _with_text(_with_index(table.iloc[start:stop]), ("interval", "period"))
        columns = [part.iloc[:, at] for at in range(part.shape[1])]
        values = [column.astype(object).where(column.notna(), None).tolist() for column in columns]
    else:
        values = [column.to_pylist() for column in _slice(table, start, stop).columns]
    return list(zip(*values, strict=True))


def _slice(table: Any, start: int, stop: int | None) -> Any:
    table = _arrow(table)
    return table.slice(start, None if stop is None else max(stop - start, 0))


def table_of(kind: type[Any], rows: list[dict[str, Any]], columns: Sequence[str] = ()) -> Any:
    """Return a table of rows, of a class of pandas, polars or pyarrow.

    A column of numbers takes "NaN", "Infinity" and "-Infinity" for the numbers that JSON does not have.

    Args:
        columns: The names of columns that come first, also where no row has them.

    Raises:
        ValueError: The values of a column are of several kinds.
    """
    names = dict.fromkeys((*columns, *(name for row in rows for name in row)))
    values = {name: _numbers([row.get(name) for row in rows]) for name in names}
    package = kind.__module__.partition(".")[0]
    if package == "pandas":
        return kind({name: _nullable(column) for name, column in values.items()}, dtype=None if rows else object)
    if package != "pyarrow":
        return kind(values)
    try:
        return kind.from_pydict(values)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _numbers(column: list[Any]) -> list[Any]:
    """Return a column, with numbers in the place of the texts that JSON has for those that it lacks."""
    kinds = set(map(type, column))
    if str not in kinds or not kinds <= {str, int, float, type(None)} or not _NO_JSON.issuperset(_texts(column)):
        return column
    return [float(value) if type(value) is str else value for value in column]


def _texts(column: list[Any]) -> set[str]:
    return {value for value in column if type(value) is str}


def _nullable(column: list[Any]) -> Any:
    """Return a column for a DataFrame, in which whole numbers and booleans stay that where some are missing."""
    for kind in _NULLABLE.get(frozenset(map(type, column)), ()):
        with suppress(OverflowError, TypeError):  # beyond 64 bits
            return import_module("pandas").array(column, dtype=kind)
    return column


def table_bytes(table: Any) -> int:
    """Return about how many bytes a table takes; of a DataFrame the objects in it are not counted."""
    return int(table.memory_usage().sum()) if _is_pandas(table) else _arrow(table).nbytes


def table_stream(table: Any) -> bytes:
    """Return a table as an Arrow IPC stream."""
    table = _arrow(table)
    sink = pyarrow(_FEATURE).BufferOutputStream()
    with pyarrow(_FEATURE).ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def plain_table(table: Any) -> Any | None:
    """Return a table as one of pyarrow, with the columns that a model sees; None where one is of no plain type."""
    try:
        arrow = pyarrow(_FEATURE)
        arrow_table = _arrow(table)
        if _is_pandas(table):
            arrow_table = arrow.Table.from_pandas(_with_index(table), preserve_index=False)
        columns = [_plain_column(column, arrow.types) for column in arrow_table.columns]
        return None if None in columns else arrow.table(columns, names=arrow_table.column_names)
    except Exception:  # of the table's library: pyarrow is not there, or its values are of any kind
        return None


def _plain_column(column: Any, types: Any) -> Any | None:
    kind = column.type
    if types.is_dictionary(kind):  # of which each part would have all values
        kind, column = kind.value_type, column.cast(kind.value_type)
    return column if any(getattr(types, f"is_{plain}")(kind) for plain in _PLAIN) else None


def table_parts(table: Any) -> Iterator[tuple[int, int, bytes]]:
    """Yield a table of pyarrow in parts: the first row of each, how many rows it has, and these as an IPC stream."""
    start, usual = 0, max(1, table.num_rows * _PART_BYTES // max(table.nbytes, 1))
    while start < table.num_rows:
        part = table.slice(start, usual)
        while part.num_rows > 1 and part.nbytes > 8 * _PART_BYTES:
            part = part.slice(0, part.num_rows // 2)
        yield start, part.num_rows, table_stream(part)
        start += part.num_rows


def part_columns(
    part: bytes, start: int, stop: int | None, columns: Sequence[str] | None = None
) -> list[tuple[str, list[Any], bool]]:
    """Return the columns of rows in a part of a table: name, values, and whether these are JSON shapes already.

    Args:
        columns: The names of those that are wanted; None for all.
    """
    table = _slice(_opened(part), start, stop)
    names = [name for name in table.column_names if columns is None or name in columns]
    return [(name, table[name].to_pylist(), _is_json(table[name])) for name in names]


def _is_json(column: Any) -> bool:
    arrow = pyarrow(_FEATURE)
    types, kind = arrow.types, column.type
    if types.is_floating(kind):
        return bool(arrow.compute.all(arrow.compute.is_finite(column), min_count=0).as_py())
    return bool(
        types.is_integer(kind) or types.is_boolean(kind) or types.is_string(kind) or types.is_large_string(kind)
    )


def joined_parts(parts: Iterator[bytes]) -> Any:
    """Return the table of pyarrow that was kept in parts."""
    return pyarrow(_FEATURE).concat_tables([_opened(part) for part in parts])


def _opened(part: bytes) -> Any:
    return pyarrow(_FEATURE).ipc.open_stream(part).read_all()


def _arrow(table: Any) -> Any:
    """Return a table as one of pyarrow, in which each column has a name of its own."""
    arrow = pyarrow(_FEATURE)
    if not _is_pandas(table):
        table = table if isinstance(table, arrow.Table) else arrow.table(table)
        return table.rename_columns(_own_names(table.column_names))
    has_name = table.index.names[0] is not None  # it is a column then, also where it just counts
    table = _with_text(table, ("interval",))
    if _leaves_as_text(table.index, ("interval",)):
        table = table.set_axis(table.index.map(str))
    names = _own_names(table.columns)
    if names != [str(name) for name in table.columns]:
        table = table.set_axis(names, axis=1)
    return arrow.Table.from_pandas(table, preserve_index=True if has_name else None)


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


def _is_pandas(table: Any) -> bool:
    return type(table).__module__.partition(".")[0] == "pandas"


def _with_index(part: Any) -> Any:
    """Return a DataFrame with the names of its rows as a column, unless they are just numbers."""
    index = part.index
    names: Sequence[Any] = index.names
    if index.dtype.kind in "iu" and names[0] is None:
        return part
    return part.reset_index(allow_duplicates=True)


def _with_text(frame: Any, kinds: tuple[str, ...]) -> Any:
    """Return a DataFrame with texts in the columns of such kinds, for which JSON and Arrow have nothing."""
    for at in range(frame.shape[1]):
        column = frame.iloc[:, at]
        if _leaves_as_text(column, kinds):
            frame = frame.copy(deep=False)
            frame.isetitem(at, column.astype(object).map(str, na_action="ignore"))
    return frame


def _leaves_as_text(column: Any, kinds: tuple[str, ...]) -> bool:
    inner = getattr(getattr(column.dtype, "categories", None), "dtype", column.dtype)  # they may be categories
    return str(inner).startswith(kinds)

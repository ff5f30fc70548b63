"""Tables in the result of a program's call, as they are given to the program."""

from __future__ import annotations

from typing import Any

from toolcrib._arrow import table_bytes, table_facts, table_rows, table_stream, table_summary
from toolcrib._numbers import count_text
from toolcrib.calls import charged
from toolcrib.errors import MissingExtraError

_MOST_CELLS = 2_000_000  # as rows: they would take a hundred bytes each in the program


class TableRefused(Exception):
    """A table cannot be given to a program, as it is too large or of a kind that Arrow lacks; the message says why."""


class GivenTables:
    """The tables in one result, each of which becomes a stream and a summary that stands for it, or rows.

    Args:
        tool: The name of the tool, for errors.
        most: The bytes that tables may have; 0 for a program that has nothing to read them with, and is given rows.
    """

    def __init__(self, tool: str, most: int) -> None:
        self._tool, self._most = tool, most
        self._streams: list[bytes] = []

    @property
    def streams(self) -> tuple[bytes, ...]:
        """The tables so far, as Arrow IPC streams."""
        return tuple(self._streams)

    def __call__(self, table: Any) -> Any:
        """Replace a table in a value by its rows or its stream.

        Raises:
            TableRefused: It is too large, or Arrow cannot hold it.
        """
        return charged(self._as_stream if self._most else self._as_rows, table)

    def _as_stream(self, table: Any) -> Any:
        size = table_bytes(table)
        if size > self._most:
            raise TableRefused(
                f"`{self._tool}` returned a table of {size} bytes, and {self._most} is the most a program can take in "
                "at once (SandboxLimits.bytes_in). Ask it for fewer rows or columns."
            )
        try:
            self._streams.append(table_stream(table))
        except MissingExtraError:
            raise
        except Exception as error:  # of the table's library: its values may be of any kind
            raise TableRefused(
                f"`{self._tool}` returned a table that Arrow cannot hold ({type(error).__name__}: {error}). The tool "
                "has to return columns of one plain kind each: numbers of 64 bits, texts, dates; "
                "`table[name].astype(str)` makes a column text."
            ) from error
        return {"$table": len(self._streams) - 1, **table_summary(table)}

    def _as_rows(self, table: Any) -> Any:
        facts = table_facts(table)
        rows, columns = count_text(facts.rows, "row"), count_text(len(facts.columns), "column")
        if facts.rows * len(facts.columns) > _MOST_CELLS:
            raise TableRefused(
                f"`{self._tool}` returned a table of {rows} and {columns}, and a program "
                f"can take in {_MOST_CELLS} values at once as rows. Ask it for fewer; or run programs in "
                'ProcessSandbox(packages=["pandas", "pyarrow"]), where tables arrive as they are.'
            )
        return table_rows(table)

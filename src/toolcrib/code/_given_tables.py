"""Tables in the result of a program's call: as they are given to the program."""

from __future__ import annotations

from typing import Any

from toolcrib._arrow import table_facts, table_rows, table_stream, table_summary
from toolcrib.calls import charged

__all__ = ["GivenTables"]

_MOST_CELLS = 2_000_000  # as rows: they would take a hundred bytes each in the program


class GivenTables:
    """The tables in one result, each of which becomes a stream and a summary that stands for it, or rows.

    Args:
        rows: Give them as rows, to a program that has nothing that reads a stream.
    """

    def __init__(self, *, rows: bool) -> None:
        self._as_rows = rows
        self._streams: list[bytes] = []

    @property
    def streams(self) -> tuple[bytes, ...]:
        """The tables so far, as Arrow IPC streams."""
        return tuple(self._streams)

    def __call__(self, table: Any) -> Any:
        """Return what stands for a table in a value.

        Raises:
            ValueError: As rows, it would be too large.
        """
        if not self._as_rows:
            self._streams.append(charged(table_stream, table))
            return {"$table": len(self._streams) - 1, **table_summary(table)}
        facts = table_facts(table)
        if facts.rows * len(facts.columns) > _MOST_CELLS:
            raise ValueError(
                f"a table of {facts.rows} rows and {len(facts.columns)} columns, of which a program takes in "
                f"{_MOST_CELLS} values at once as rows. Return fewer, or run programs in "
                'ProcessSandbox(packages=["pandas", "pyarrow"]), where tables arrive as they are'
            )
        return charged(table_rows, table)
